//! Syncs and reads take longer, as on a disk that is worn or shared.

use super::{Act, stage::Stage};
use rt::world::{DiskLatency, disk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Slows a node's disk down. Two at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowDisk {
    /// Whose disk.
    pub node: String,
    /// Shortest time of an operation.
    #[serde(with = "crate::duration")]
    pub min: Duration,
    /// Longest time of an operation.
    #[serde(with = "crate::duration")]
    pub max: Duration,
}

impl Act for SlowDisk {
    const UNIT: &'static str = "operations slowed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let latency = DiskLatency { min_ns: nanos(self.min.min(self.max)), max_ns: nanos(self.max) };
        let before = disk::effects(node).slowed;
        let apply = |latency: Option<DiskLatency>| {
            disk::slow_sync(node, latency);
            disk::slow_read(node, latency);
        };
        stage.set(|holds| &mut holds.disk_latency, node, latency, lasts, apply).await;
        disk::effects(node).slowed - before
    }
}
