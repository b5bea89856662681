//! Bits of what was synced flip at rest, and nobody is told.

use super::damage::Target;
use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Flips drawn bits of one file, if the atlas permits it. They stay flipped: the end of the fault only ends the count of the reads
/// that showed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitRot {
    /// Whose disk.
    pub node: String,
    /// Only in a file whose path contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_contains: Option<String>,
    /// How many bits.
    pub bits: u32,
}

impl Act for BitRot {
    const UNIT: &'static str = "bits flipped";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let Some(mut target) = Target::choose(stage, &self.node, self.path_contains.as_deref()) else { return 0 };
        let before = disk::effects(node).rotten_reads;
        let mut flipped = 0;
        for _ in 0..self.bits {
            let (offset, bit) = (target.below(target.len), target.below(8) as u8);
            let rots = disk::flip_bit(node, &target.path, offset, bit).expect("the file was just seen");
            flipped += u64::from(rots);
        }
        if flipped == 0 {
            stage.atlas().ended(&self.node, &target.path);
        }
        stage.hold(lasts).await;
        stage.count("rotten sectors read", disk::effects(node).rotten_reads - before);
        flipped
    }
}
