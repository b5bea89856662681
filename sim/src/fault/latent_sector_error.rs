//! Sectors that were synced cannot be read: `EIO`, until they are written again or the fault ends.

use super::damage::{SECTOR, Target};
use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lets some sectors in a row of one file be unreadable, if the atlas permits it. What was in them is there again at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentSectorError {
    /// Whose disk.
    pub node: String,
    /// Only in a file whose path contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_contains: Option<String>,
    /// How many sectors of 512 bytes, at least 1; fewer at the end of the file.
    pub sectors: u64,
}

impl Act for LatentSectorError {
    const UNIT: &'static str = "operations failed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let Some(mut target) = Target::choose(stage, &self.node, self.path_contains.as_deref()) else { return 0 };
        let before = disk::effects(node).unreadable;
        let start = target.below(target.len.div_ceil(SECTOR)) * SECTOR;
        let range = start..start.saturating_add(self.sectors.max(1).saturating_mul(SECTOR));
        let bad = disk::fail_sectors(node, &target.path, range).expect("the file was just seen");
        stage.hold(lasts).await;
        disk::restore_sectors(node, &bad);
        stage.atlas().ended(&self.node, &target.path);
        disk::effects(node).unreadable - before
    }
}
