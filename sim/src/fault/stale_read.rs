//! A read shows what the last write to its file replaced, as from a cache of the device that was not told.

use super::{Act, stage::Stage};
use rt::world::{DiskAnomaly, disk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lets one read be stale. The next one is right again, so the atlas is not asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaleRead {
    /// Whose disk.
    pub node: String,
    /// Only of a file whose path contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_contains: Option<String>,
}

impl Act for StaleRead {
    const UNIT: &'static str = "reads of replaced bytes";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let id = disk::add_anomaly(node, DiskAnomaly::StaleRead, self.path_contains.clone());
        stage.hold(lasts).await;
        u64::from(!disk::remove_anomaly(node, id))
    }
}
