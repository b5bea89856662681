//! The disk has no space left: writes and new files fail with `ENOSPC`, what is there stays readable.

use super::{Act, stage::Stage};
use rt::world::{DiskChance, DiskError, DiskFault, DiskOperation, disk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lets writes of a node fail for want of space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskFull {
    /// Whose disk.
    pub node: String,
}

impl Act for DiskFull {
    const UNIT: &'static str = "operations failed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = disk::effects(node).errors_injected;
        let full = DiskFault {
            operation: DiskOperation::Write,
            path_contains: None,
            chance: DiskChance::Always,
            error: DiskError::Full,
        };
        let id = disk::inject(node, full);
        stage.hold(lasts).await;
        disk::remove(node, id);
        disk::effects(node).errors_injected - before
    }
}
