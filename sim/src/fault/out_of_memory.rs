//! The kernel ends the program for want of memory, and again each time that it is started, until the fault is over: as under a
//! supervisor that starts what has died, on a machine that has too little.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends the program of a node again and again. How long it lives between stands in the plan: the simulator does not count bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfMemory {
    /// Whose.
    pub node: String,
    /// How long a program that was started again lives until it is ended again. At least a millisecond counts.
    #[serde(with = "crate::duration")]
    pub survives: Duration,
}

/// A shorter life would end the run as a livelock.
const SURVIVES_MIN: Duration = Duration::from_millis(1);

impl Act for OutOfMemory {
    const UNIT: &'static str = "programs killed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let survives = self.survives.max(SURVIVES_MIN);
        let end = rt::world::elapsed() + lasts;
        let mut killed = 0;
        loop {
            stage.tell(&self.node, "out of memory: killed");
            killed += u64::from(stage.take_down(&self.node, rt::world::crash) > 0);
            stage.bring_up(&self.node);
            let left = end.saturating_sub(rt::world::elapsed());
            if survives >= left {
                stage.hold(left).await;
                return killed;
            }
            if stage.unless_healed(rt::time::sleep(survives)).await.is_none() {
                return killed;
            }
        }
    }
}
