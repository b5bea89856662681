//! One node hears nobody and nobody hears it, as when its cable is pulled.

use super::{Act, stage::Stage};
use rt::world::network;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Blocks every link of a node to the others on the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isolate {
    /// Which.
    pub node: String,
}

impl Act for Isolate {
    const UNIT: &'static str = "packets dropped";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let (alone, others) = ([stage.node(&self.node)], stage.others(&self.node));
        let before = network::effects().dropped_by_block;
        network::partition(&[&alone, &others]);
        stage.hold(lasts).await;
        network::unpartition(&[&alone, &others]);
        network::effects().dropped_by_block - before
    }
}
