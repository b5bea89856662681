//! Links stop one by one in a random order, and open one by one in another: FoundationDB's swizzle-clogging, which finds what no
//! single partition does, because every step leaves another part of the system connected.

use super::{Act, stage::Stage};
use rt::world::{NodeId, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Blocks every link between the nodes, each direction by itself: the first half of the fault's time they stop, the second they open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwizzleClog {
    /// Between whom.
    pub nodes: Vec<String>,
    /// Decides both orders.
    pub order: u64,
}

impl Act for SwizzleClog {
    const UNIT: &'static str = "packets dropped";

    fn nodes(&self) -> Vec<&str> {
        self.nodes.iter().map(String::as_str).collect()
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|name| stage.node(name)).collect();
        let links = links(&nodes);
        let pause = lasts / u32::try_from(2 * links.len().max(1)).unwrap_or(u32::MAX);
        let before = network::effects().dropped_by_block;
        for (from, to) in shuffled(links.clone(), self.order) {
            network::block(from, to);
            stage.hold(pause).await;
        }
        for (from, to) in shuffled(links, !self.order) {
            network::unblock(from, to);
            stage.hold(pause).await;
        }
        network::effects().dropped_by_block - before
    }
}

/// Both directions between every two nodes.
fn links(nodes: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
    pairs.filter(|(from, to)| from != to).collect()
}

/// Fisher and Yates, with the numbers of splitmix64: the order is a part of the plan, not of the run.
fn shuffled<T>(mut items: Vec<T>, order: u64) -> Vec<T> {
    let mut state = order;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^= word >> 31;
        items.swap(last, (word % (last as u64 + 1)) as usize);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::shuffled;
    use std::collections::BTreeSet;

    #[test]
    fn each_order_is_a_permutation_and_they_differ() {
        let orders: BTreeSet<Vec<u32>> = (0..50).map(|order| shuffled((0..6).collect(), order)).collect();
        assert!(orders.len() > 40, "{}", orders.len());
        for order in orders {
            assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
        }
    }
}
