//! The machine is replaced by one with an empty disk.

use super::damage::losable_disk;
use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends a node, empties its disk, and starts it again at the end of the fault, if the atlas lets its copies of everything be lost. They
/// count as damaged until the scenario says that its system has filled them again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WipedDisk {
    /// Whose.
    pub node: String,
}

impl Act for WipedDisk {
    const UNIT: &'static str = "files lost";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let Some(lost) = losable_disk(stage, &self.node) else { return 0 };
        stage.take_down(&self.node, rt::world::power_loss);
        disk::wipe(stage.node(&self.node));
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        lost.len() as u64
    }
}
