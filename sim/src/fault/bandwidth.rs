//! A link carries few bytes a second: packets queue, and those that find no room in the queue are lost.

use super::Act;
use super::stage::{Link, Stage};
use rt::world::{Bandwidth as Simulated, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Makes both directions of a link narrow, each with a queue of its own. Two at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// One end.
    pub left: String,
    /// The other.
    pub right: String,
    /// What it carries.
    pub bytes_per_second: u64,
    /// How many bytes may wait.
    pub queue_bytes: u64,
}

impl Act for Bandwidth {
    const UNIT: &'static str = "packets held up";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.left, &self.right]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let link = Link::between(stage.node(&self.left), stage.node(&self.right));
        let narrow = Simulated { bytes_per_second: self.bytes_per_second, queue_bytes: self.queue_bytes };
        let met = || network::effects().queued + network::effects().dropped_by_queue;
        let before = met();
        let apply = |bandwidth: Option<Simulated>| {
            network::set_bandwidth(link.low, link.high, bandwidth);
            network::set_bandwidth(link.high, link.low, bandwidth);
        };
        stage.set(|holds| &mut holds.bandwidth, link, narrow, lasts, apply).await;
        met() - before
    }
}
