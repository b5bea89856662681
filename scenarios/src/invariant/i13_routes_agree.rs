//! I13: after the faults have stopped, the routes at all name servers and clients agree with reality.

use crate::breach::{Breach, Subject};
use crate::evidence::Snapshot;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Stable name.
pub const NAME: &str = "I13 routes agree";

/// What is unmet at one look. Reality: every broker of the plan runs.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let mut expected: Vec<String> = Vec::new();
    for (index, master) in plan.cluster.masters().iter().enumerate() {
        expected.extend((0..=plan.cluster.slaves[index]).map(|id| format!("{master}#{id}")));
    }
    expected.sort();
    let mut unmet = Vec::new();
    let mut addresses: BTreeMap<&String, &String> = BTreeMap::new();
    for (node, route) in &look.routes {
        let found: Vec<&String> = route.keys().collect();
        if found != expected.iter().collect::<Vec<_>>() {
            unmet.push(format!("{node} routes to {found:?}").into());
        }
        for (broker, address) in route {
            if *addresses.entry(broker).or_insert(address) != address {
                unmet.push(format!("{node} has another address for {broker}: {address}").into());
            }
        }
    }
    unmet.extend(
        plan.cluster
            .names()
            .iter()
            .filter(|name| !look.routes.contains_key(*name))
            .map(|name| Breach::new(format!("{name} does not answer")).about(Subject::Lives(name.clone()))),
    );
    if look.client_route != plan.cluster.masters() {
        unmet.push(format!("a client sends to {:?}", look.client_route).into());
    }
    unmet
}
