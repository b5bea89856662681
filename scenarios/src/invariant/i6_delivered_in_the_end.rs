//! I6: each stored, visible message is delivered to each subscribed group in the end. Broadcasting: to each member that was there
//! when it was stored is not claimed here; to some member is.

use crate::evidence::Snapshot;
use crate::plan::Plan;
use std::collections::BTreeSet;

/// Stable name.
pub const NAME: &str = "I6 delivered in the end";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<String> {
    let mut unmet = Vec::new();
    for group in plan.clients.groups() {
        if look.owners.get(&group).is_none_or(|members| members.is_empty()) {
            continue;
        }
        for (queue, end) in &look.queue_ends {
            let consumed: BTreeSet<i64> =
                look.consumed.get(&group).and_then(|queues| queues.get(queue)).into_iter().flatten().copied().collect();
            let missing: Vec<i64> = (0..*end).filter(|offset| !consumed.contains(offset)).collect();
            if let Some(first) = missing.first() {
                unmet.push(format!(
                    "{group}: {} of {} queue {} from offset {first} on were never consumed",
                    missing.len(),
                    queue.broker,
                    queue.id
                ));
            }
        }
    }
    unmet
}
