//! The wall clock jumps, as when an operator or a time server sets it. Timers do not notice.

use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Moves a node's wall clock, and moves it back at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// Whose.
    pub node: String,
    /// How far.
    #[serde(with = "crate::duration")]
    pub by: Duration,
    /// Into the past.
    pub back: bool,
}

impl Act for ClockStep {
    const UNIT: &'static str = "ms moved";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let by_ms = i64::try_from(self.by.as_millis()).unwrap_or(i64::MAX / 2_000_000);
        let by_ms = if self.back { -by_ms } else { by_ms };
        rt::world::step_wall_clock(node, by_ms);
        stage.hold(lasts).await;
        rt::world::step_wall_clock(node, -by_ms);
        by_ms.unsigned_abs()
    }
}
