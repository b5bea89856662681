//! Segments between two nodes get lost; TCP turns that into delay, and a long loss into a time-out.

use super::Act;
use super::stage::{Link, Stage};
use rt::world::network;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Loses segments in both directions. Two on one link at one time: the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// One end.
    pub left: String,
    /// The other.
    pub right: String,
    /// How many of a hundred segments are lost.
    pub percent: u8,
}

impl Act for Loss {
    const UNIT: &'static str = "packets lost";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.left, &self.right]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let link = Link::between(stage.node(&self.left), stage.node(&self.right));
        let ppm = u32::from(self.percent.min(100)) * 10_000;
        let before = network::effects().dropped_by_loss;
        let apply = |ppm: Option<u32>| {
            network::set_loss(link.low, link.high, ppm.unwrap_or(0));
            network::set_loss(link.high, link.low, ppm.unwrap_or(0));
        };
        stage.set(|holds| &mut holds.loss_ppm, link, ppm, lasts, apply).await;
        network::effects().dropped_by_loss - before
    }
}
