//! What one node sends does not reach another, while the other way works: the failure that heartbeats in one direction miss.

use super::{Act, stage::Stage};
use rt::world::network;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Blocks one direction of one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneWay {
    /// Who is not heard.
    pub from: String,
    /// By whom.
    pub to: String,
}

impl Act for OneWay {
    const UNIT: &'static str = "packets dropped";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.from, &self.to]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let (from, to) = (stage.node(&self.from), stage.node(&self.to));
        let before = network::effects().dropped_by_block;
        network::block(from, to);
        stage.hold(lasts).await;
        network::unblock(from, to);
        network::effects().dropped_by_block - before
    }
}
