//! Both clocks of a node stand still, and with them its timers; afterwards they go on from where they stood.

use super::Act;
use super::stage::{Stage, wall_clock_error};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Stops a node's clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockFreeze {
    /// Whose.
    pub node: String,
}

impl Act for ClockFreeze {
    const UNIT: &'static str = "us shifted";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = wall_clock_error(node);
        stage.freeze(node);
        stage.hold(lasts).await;
        stage.thaw(node);
        wall_clock_error(node).abs_diff(before) / 1_000
    }
}
