//! Disk operations fail with an input/output error. A failed sync has dropped the dirty pages: to try it again is a bug.

use super::{Act, stage::Stage};
use rt::world::{DiskChance, DiskError, DiskFault, DiskOperation as Simulated, disk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskOperation {
    /// Opening and creating files.
    Open,
    /// Reading.
    Read,
    /// Writing and changing the length.
    Write,
    /// Syncing files and directories.
    Sync,
    /// As `sync`, and the pages that were not written stay readable and count as written, as with ext4 and XFS: only a power loss shows
    /// that they are not on the disk.
    SyncPagesStay,
    /// Creating directories, renaming, removing.
    Name,
}

/// Lets one kind of operation of a node fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskFails {
    /// Whose disk.
    pub node: String,
    /// Which operations.
    pub operation: DiskOperation,
    /// Only of paths that contain this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_contains: Option<String>,
    /// Only the n-th from the start of the fault; otherwise all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
}

impl Act for DiskFails {
    const UNIT: &'static str = "operations failed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let operation = match self.operation {
            DiskOperation::Open => Simulated::Open,
            DiskOperation::Read => Simulated::Read,
            DiskOperation::Write => Simulated::Write,
            DiskOperation::Sync | DiskOperation::SyncPagesStay => Simulated::Sync,
            DiskOperation::Name => Simulated::Name,
        };
        let chance = self.nth.map_or(DiskChance::Always, DiskChance::Nth);
        let before = disk::effects(node).errors_injected;
        let error = match self.operation {
            DiskOperation::SyncPagesStay => DiskError::IoPagesStay,
            _ => DiskError::Io,
        };
        let fault = DiskFault { operation, path_contains: self.path_contains.clone(), chance, error };
        let id = disk::inject(node, fault);
        stage.hold(lasts).await;
        disk::remove(node, id);
        disk::effects(node).errors_injected - before
    }
}
