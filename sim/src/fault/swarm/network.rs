//! Draws of faults of firewalls, narrow links, datagrams and names: a scenario names each that it wants.

use super::super::Kind;
use super::super::bandwidth::Bandwidth;
use super::super::duplicate::Duplicate;
use super::super::firewall::{FirewallDrop, FirewallReject};
use super::super::name_view::{NameFailure, NameStale};
use super::super::reorder::Reorder;
use super::super::swizzle_clog::SwizzleClog;
use proptest::prelude::any;
use proptest::sample::subsequence;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use std::time::Duration;

/// A fault of that kind between the nodes. A name is taken to be that of a node.
pub(super) fn kind(kind: &str, nodes: &[String]) -> Option<BoxedStrategy<Kind>> {
    if nodes.len() < 2 {
        return None;
    }
    let some = |count: usize| subsequence(nodes.to_vec(), count).prop_shuffle();
    let pair = some(2).prop_map(|pair| (pair[0].clone(), pair[1].clone()));
    let percent = 1..=50_u8;
    Some(match kind {
        "firewall_drop" => {
            pair.prop_map(|(from, to)| Kind::FirewallDrop(FirewallDrop { from, to, port: None })).boxed()
        }
        "firewall_reject" => {
            pair.prop_map(|(from, to)| Kind::FirewallReject(FirewallReject { from, to, port: None })).boxed()
        }
        "swizzle_clog" => {
            let chosen = (2..=nodes.len()).prop_flat_map(some_of(nodes));
            (chosen, any::<u64>()).prop_map(|(nodes, order)| Kind::SwizzleClog(SwizzleClog { nodes, order })).boxed()
        }
        "bandwidth" => (pair, 1_000..1_000_000_u64, 2_000..200_000_u64)
            .prop_map(|((left, right), bytes_per_second, queue_bytes)| {
                Kind::Bandwidth(Bandwidth { left, right, bytes_per_second, queue_bytes })
            })
            .boxed(),
        "duplicate" => (pair, percent)
            .prop_map(|((left, right), percent)| Kind::Duplicate(Duplicate { left, right, percent }))
            .boxed(),
        "reorder" => (pair, percent, (1..100_u64).prop_map(Duration::from_millis))
            .prop_map(|((left, right), percent, held_max)| Kind::Reorder(Reorder { left, right, percent, held_max }))
            .boxed(),
        "name_failure" => pair.prop_map(|(node, name)| Kind::NameFailure(NameFailure { node, name })).boxed(),
        "name_stale" if nodes.len() > 2 => some(3)
            .prop_map(|three| {
                let [node, name, means] = [0, 1, 2].map(|at: usize| three[at].clone());
                Kind::NameStale(NameStale { node, name, means })
            })
            .boxed(),
        _ => return None,
    })
}

fn some_of(nodes: &[String]) -> impl Fn(usize) -> BoxedStrategy<Vec<String>> + use<> {
    let nodes = nodes.to_vec();
    move |count| (Just(nodes.clone()), Just(count)).prop_flat_map(|(nodes, count)| subsequence(nodes, count)).boxed()
}

#[cfg(test)]
mod tests {
    use super::kind;
    use crate::fault::Kind;
    use crate::scenario::draw;

    #[test]
    fn each_kind_is_drawn_and_survives_a_file() {
        let nodes = ["a", "b", "c"].map(str::to_owned);
        let names = [
            "firewall_drop",
            "firewall_reject",
            "swizzle_clog",
            "bandwidth",
            "duplicate",
            "reorder",
            "name_failure",
            "name_stale",
        ];
        for name in names {
            let strategy = kind(name, &nodes).expect("it can be drawn");
            for seed in 0..20 {
                let fault = draw(&strategy, name, seed);
                assert_eq!(fault.name(), name);
                let text = serde_json::to_string(&fault).expect("plain data");
                assert_eq!(serde_json::from_str::<Kind>(&text).expect("just written"), fault);
            }
            assert!(kind(name, &nodes[..1]).is_none());
        }
        assert!(kind("crash", &nodes).is_none());
    }
}
