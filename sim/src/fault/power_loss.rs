//! The machine loses its power: only what was synced is sure to stay, and its sockets go silent.

use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Cuts a node's power; the end of the fault starts it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerLoss {
    /// Whose.
    pub node: String,
}

impl Act for PowerLoss {
    const UNIT: &'static str = "tasks ended";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = disk::effects(node).sectors_lost;
        let tasks = stage.take_down(&self.node, rt::world::power_loss);
        stage.count("sectors lost to power losses", disk::effects(node).sectors_lost - before);
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        tasks
    }
}
