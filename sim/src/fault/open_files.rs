//! The process may have few files open: `EMFILE` beyond that. What is open stays open.

use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits the open files of a node's process. Two at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFiles {
    /// Whose.
    pub node: String,
    /// How many it may have.
    pub max: u64,
}

impl Act for OpenFiles {
    const UNIT: &'static str = "files not opened";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = disk::effects(node).opens_refused;
        let apply = |max| disk::limit_open_files(node, max);
        stage.set(|holds| &mut holds.open_files, node, self.max, lasts, apply).await;
        disk::effects(node).opens_refused - before
    }
}
