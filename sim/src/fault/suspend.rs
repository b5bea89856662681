//! The machine is suspended and resumed, as a virtual one that is moved: the program stands still and both clocks with it; at the end
//! the wall clock jumps to the present, and the monotonic clock does not count the time asleep (Linux, `clock_gettime(2)`).

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Puts a node to sleep. Its kernel goes on answering: only the program and its clocks stand still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Whose.
    pub node: String,
}

impl Act for Suspend {
    const UNIT: &'static str = "ms asleep";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let (tasks, start) = (rt::world::tasks(node), rt::world::elapsed());
        stage.suspend(node);
        stage.hold(lasts).await;
        stage.wake(node);
        let asleep = rt::world::elapsed() - start;
        // A machine that runs nothing sleeps unnoticed.
        if tasks == 0 { 0 } else { u64::try_from(asleep.as_millis()).unwrap_or(u64::MAX) }
    }
}
