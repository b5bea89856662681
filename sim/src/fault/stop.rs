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
        let tasks = stop_in_order(stage, &self.node, self.grace).await;
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        tasks
    }
}

/// Takes a node down by asking its program to end, and by killing it if it has not done so in time; how many tasks it had.
pub(super) async fn stop_in_order(stage: &Stage, name: &str, grace: Duration) -> u64 {
    let tasks = stage.take_down(name, rt::world::request_stop);
    let node = stage.node(name);
    let deadline = rt::world::elapsed() + grace;
    // Also while all is to heal: a stop that has begun is brought to its end.
    while rt::world::tasks(node) > 0 && rt::world::elapsed() < deadline {
        rt::time::sleep(LOOK_EVERY).await;
    }
    if rt::world::tasks(node) > 0 {
        stage.tell(name, "does not stop in time and is killed");
    }
    // A program that has ended leaves its sockets and its request to stop: the end of the process takes both.
    rt::world::crash(node);
    tasks
}
