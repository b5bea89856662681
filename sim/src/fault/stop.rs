//! The operator stops the program and starts it again later.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often it is looked whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Asks the program to end, kills it if it has not done so in time, and starts it again at the end of the fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Whose.
    pub node: String,
    /// How long it may take.
    #[serde(with = "crate::duration")]
    pub grace: Duration,
}

impl Act for Stop {
    const UNIT: &'static str = "tasks ended";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let tasks = stage.take_down(&self.node, rt::world::request_stop);
        let node = stage.node(&self.node);
        let deadline = rt::world::elapsed() + self.grace;
        // Also while all is to heal: a stop that has begun is brought to its end.
        while rt::world::tasks(node) > 0 && rt::world::elapsed() < deadline {
            rt::time::sleep(LOOK_EVERY).await;
        }
        if rt::world::tasks(node) > 0 {
            stage.tell(&self.node, "does not stop in time and is killed");
        }
        // A program that has ended leaves its sockets and its request to stop: the end of the process takes both.
        rt::world::crash(node);
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        tasks
    }
}
