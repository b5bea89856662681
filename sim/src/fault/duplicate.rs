//! Datagrams between two nodes arrive twice. Streams hide it.

use super::Act;
use super::stage::{Link, Stage};
use rt::world::network;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Doubles datagrams in both directions. Two on one link at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// One end.
    pub left: String,
    /// The other.
    pub right: String,
    /// How many of a hundred datagrams.
    pub percent: u8,
}

impl Act for Duplicate {
    const UNIT: &'static str = "datagrams doubled";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.left, &self.right]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let link = Link::between(stage.node(&self.left), stage.node(&self.right));
        let ppm = u32::from(self.percent.min(100)) * 10_000;
        let before = network::effects().duplicated;
        let apply = |ppm: Option<u32>| {
            network::set_duplication(link.low, link.high, ppm.unwrap_or(0));
            network::set_duplication(link.high, link.low, ppm.unwrap_or(0));
        };
        stage.set(|holds| &mut holds.duplicate_ppm, link, ppm, lasts, apply).await;
        network::effects().duplicated - before
    }
}
