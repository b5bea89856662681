//! No sync and no read returns before the fault ends; writes into the page cache go on.

use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Holds up a node's disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StalledDisk {
    /// Whose disk.
    pub node: String,
}

impl Act for StalledDisk {
    const UNIT: &'static str = "operations held";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = disk::effects(node).stalled;
        disk::stall(node);
        stage.hold(lasts).await;
        disk::unstall(node);
        disk::effects(node).stalled - before
    }
}
