//! I5: once a group has settled, each queue has exactly one owner (clustering), or each member owns all (broadcasting).

use crate::breach::Breach;
use crate::evidence::Snapshot;
use crate::operation::Queue;
use crate::plan::{Plan, is_clustering};
use std::collections::BTreeMap;

/// Stable name.
pub const NAME: &str = "I5 one owner";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let mut unmet = Vec::new();
    for (group, members) in &look.owners {
        let mut owners: BTreeMap<&Queue, Vec<&str>> = BTreeMap::new();
        for (member, queues) in members {
            for queue in queues {
                owners.entry(queue).or_default().push(member);
            }
        }
        let wanted = if is_clustering(plan, group) { 1 } else { members.len() };
        for queue in look.queue_ends.keys() {
            let found = owners.get(queue).cloned().unwrap_or_default();
            if found.len() != wanted && !members.is_empty() {
                unmet.push(format!("{group}: {} queue {} is owned by {found:?}", queue.broker, queue.id).into());
            }
        }
    }
    unmet
}
