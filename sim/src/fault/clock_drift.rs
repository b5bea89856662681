//! Both clocks of a node run faster or slower than the world. The shift that has built up stays, as without a time server.

use super::Act;
use super::stage::{Stage, wall_clock_error};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Changes the rate of a node's clocks. Drifts of several faults add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockDrift {
    /// Whose.
    pub node: String,
    /// Millionths that they run too fast; negative: too slow.
    pub ppm: i64,
}

impl Act for ClockDrift {
    const UNIT: &'static str = "us shifted";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = wall_clock_error(node);
        stage.drift(node, self.ppm);
        stage.hold(lasts).await;
        stage.drift(node, -self.ppm);
        wall_clock_error(node).abs_diff(before) / 1_000
    }
}
