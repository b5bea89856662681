//! The program stands still, as in a long garbage collection or under a stopped hypervisor. Its clock and its sockets go on.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Holds the tasks of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Whose.
    pub node: String,
}

impl Act for Pause {
    const UNIT: &'static str = "tasks held";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let tasks = rt::world::tasks(node) as u64;
        stage.pause(node);
        stage.hold(lasts).await;
        stage.resume(node);
        tasks
    }
}
