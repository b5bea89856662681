//! Segments between two nodes take longer than usual.

use super::Act;
use super::stage::{Link, Stage};
use rt::world::{Latency as Simulated, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Delays segments in both directions. Two on one link at one time: the last one that is not over counts.
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
        let link = Link::between(stage.node(&self.left), stage.node(&self.right));
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (min, max) = (nanos(self.min.min(self.max)), nanos(self.max));
        let before = network::effects().delayed;
        let apply = |latency: Option<Simulated>| {
            network::set_latency(link.low, link.high, latency);
            network::set_latency(link.high, link.low, latency);
        };
        stage.set(|holds| &mut holds.latency, link, Simulated::uniform(min, max), lasts, apply).await;
        network::effects().delayed - before
    }
}
