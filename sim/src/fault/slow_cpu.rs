//! Each step of the program takes time on the node's one processor.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Slows a node down. Two at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowCpu {
    /// Whose processor.
    pub node: String,
    /// How long one poll of a task takes.
    #[serde(with = "crate::duration")]
    pub poll: Duration,
}

impl Act for SlowCpu {
    const UNIT: &'static str = "tasks slowed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let tasks = rt::world::tasks(node) as u64;
        let apply = |poll: Option<Duration>| rt::world::set_poll_cost(node, poll.unwrap_or(Duration::ZERO));
        stage.set(|holds| &mut holds.poll_cost, node, self.poll, lasts, apply).await;
        tasks
    }
}
