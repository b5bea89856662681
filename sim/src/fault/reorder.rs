//! Datagrams between two nodes overtake each other. Streams hide it.

use super::Act;
use super::stage::{Link, Stage};
use rt::world::{Reordering, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Holds datagrams back in both directions. Two on one link at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// One end.
    pub left: String,
    /// The other.
    pub right: String,
    /// How many of a hundred datagrams.
    pub percent: u8,
    /// For how long at most.
    #[serde(with = "crate::duration")]
    pub held_max: Duration,
}

impl Act for Reorder {
    const UNIT: &'static str = "datagrams held back";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.left, &self.right]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let link = Link::between(stage.node(&self.left), stage.node(&self.right));
        let held_ns_max = u64::try_from(self.held_max.as_nanos()).unwrap_or(u64::MAX >> 1);
        let reordering = Reordering { ppm: u32::from(self.percent.min(100)) * 10_000, held_ns_max };
        let before = network::effects().reordered;
        let apply = |reordering: Option<Reordering>| {
            network::set_reordering(link.low, link.high, reordering);
            network::set_reordering(link.high, link.low, reordering);
        };
        stage.set(|holds| &mut holds.reordering, link, reordering, lasts, apply).await;
        network::effects().reordered - before
    }
}
