//! A write lands at another place of its file, and its own place keeps what it had.

use super::damage::Target;
use super::{Act, stage::Stage};
use rt::world::{DiskAnomaly, disk};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Misdirects the next write to one file, if the atlas permits it and the file has another place. It stays where it landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MisdirectedWrite {
    /// Whose disk.
    pub node: String,
    /// Only in a file whose path contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_contains: Option<String>,
}

impl Act for MisdirectedWrite {
    const UNIT: &'static str = "writes misdirected";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let Some(target) = Target::choose(stage, &self.node, self.path_contains.as_deref()) else { return 0 };
        let path = target.path.to_string_lossy().into_owned();
        let id = disk::add_anomaly(node, DiskAnomaly::MisdirectedWrite, Some(path));
        stage.hold(lasts).await;
        let struck = !disk::remove_anomaly(node, id);
        if !struck {
            stage.atlas().ended(&self.node, &target.path);
        }
        u64::from(struck)
    }
}
