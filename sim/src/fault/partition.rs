//! Two groups of nodes do not hear each other, in either direction.

use super::{Act, stage::Stage};
use rt::world::{NodeId, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Blocks every link between the groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// One side.
    pub left: Vec<String>,
    /// The other.
    pub right: Vec<String>,
}

impl Act for Partition {
    const UNIT: &'static str = "packets dropped";

    fn nodes(&self) -> Vec<&str> {
        self.left.iter().chain(&self.right).map(String::as_str).collect()
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let nodes = |names: &[String]| names.iter().map(|name| stage.node(name)).collect::<Vec<NodeId>>();
        let (left, right) = (nodes(&self.left), nodes(&self.right));
        let before = network::effects().dropped_by_block;
        network::partition(&[&left, &right]);
        stage.hold(lasts).await;
        network::unpartition(&[&left, &right]);
        network::effects().dropped_by_block - before
    }
}
