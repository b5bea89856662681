//! Segments between two nodes get lost; TCP turns that into delay, and a long loss into a time-out.

use super::{Act, stage::Stage};
use rt::world::network;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Loses segments in both directions. Two on one link at one time: the later one counts, and the end of either ends both.
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
        let (left, right) = (stage.node(&self.left), stage.node(&self.right));
        let set = |ppm: u32| {
            network::set_loss(left, right, ppm);
            network::set_loss(right, left, ppm);
        };
        let before = network::effects().dropped_by_loss;
        set(u32::from(self.percent.min(100)) * 10_000);
        stage.hold(lasts).await;
        set(0);
        network::effects().dropped_by_loss - before
    }
}
