//! The process ends at once, as by `kill -9`: the kernel keeps its page cache and resets its sockets.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends the program of a node; the end of the fault starts it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Whose.
    pub node: String,
}

impl Act for Crash {
    const UNIT: &'static str = "tasks ended";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let tasks = stage.take_down(&self.node, rt::world::crash);
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        tasks
    }
}
