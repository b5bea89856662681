//! Segments between two nodes take longer than usual.

use super::{Act, stage::Stage};
use rt::world::{Latency as Simulated, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Delays segments in both directions. Two on one link at one time: the later one counts, and the end of either ends both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// One end.
    pub left: String,
    /// The other.
    pub right: String,
    /// Shortest time of a segment.
    #[serde(with = "crate::duration")]
    pub min: Duration,
    /// Longest time of a segment.
    #[serde(with = "crate::duration")]
    pub max: Duration,
}

impl Act for Latency {
    const UNIT: &'static str = "packets delayed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.left, &self.right]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let (left, right) = (stage.node(&self.left), stage.node(&self.right));
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (min, max) = (nanos(self.min.min(self.max)), nanos(self.max));
        let set = |latency: Option<Simulated>| {
            network::set_latency(left, right, latency);
            network::set_latency(right, left, latency);
        };
        let before = network::effects().delayed;
        set(Some(Simulated::uniform(min, max)));
        stage.hold(lasts).await;
        set(None);
        network::effects().delayed - before
    }
}
