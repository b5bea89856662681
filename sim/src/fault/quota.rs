//! One directory may take few bytes: `EDQUOT` beyond that, while the disk has room.

use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits what the files below a directory take. Of two at one time the smaller counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Whose disk.
    pub node: String,
    /// Path of the directory.
    pub directory: String,
    /// How much it may take; less than it takes means that it is full.
    pub bytes: u64,
}

impl Act for Quota {
    const UNIT: &'static str = "writes refused";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = disk::effects(node).over_quota;
        let quota = disk::add_quota(node, &self.directory, self.bytes).expect("a plan names a directory in valid text");
        stage.hold(lasts).await;
        disk::remove(node, quota);
        disk::effects(node).over_quota - before
    }
}
