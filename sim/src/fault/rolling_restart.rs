//! The operator restarts several programs, one after the other, as for an upgrade.

use super::stop::stop_in_order;
use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Asks each program in turn to end, kills it if it has not done so in time, and starts it again before the next one has its turn.
/// Each has an equal share of the fault's time: it is down for the first half of that, and up for the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollingRestart {
    /// Whose, in that order.
    pub nodes: Vec<String>,
    /// How long each may take to end.
    #[serde(with = "crate::duration")]
    pub grace: Duration,
}

impl Act for RollingRestart {
    const UNIT: &'static str = "programs restarted";

    fn nodes(&self) -> Vec<&str> {
        self.nodes.iter().map(String::as_str).collect()
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let share = lasts / u32::try_from(self.nodes.len().max(1)).unwrap_or(u32::MAX);
        let mut restarted = 0;
        for node in &self.nodes {
            if stage.healing().is_cancelled() {
                break;
            }
            let tasks = stop_in_order(stage, node, self.grace).await;
            stage.hold(share / 2).await;
            stage.bring_up(node);
            stage.hold(share / 2).await;
            restarted += u64::from(tasks > 0);
        }
        restarted
    }
}
