//! L3: each queue is served: what a probe put into it after the faults had stopped is consumed by each group.
//!
//! A queue that does not show the whole log yet (its files had no room) has no end to look at. A slave's queues must show its log
//! too, or a group that moves there finds nothing. (A damaged log has an end that nobody can dispatch past.)
//! The probe's messages are part of the queue ends, so this is the end of each queue; [`super::i6_delivered_in_the_end`] looks at
//! what lies below. A message that expired before a group came to it is waited for by nobody: but what was put there last stays, in the last
//! segment, which no broker removes.

use crate::breach::{Breach, Subject};
use crate::evidence::Snapshot;
use crate::plan::Plan;

/// Stable name.
pub const NAME: &str = "L3 queues are served";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let mut unmet = Vec::new();
    for master in plan.cluster.masters() {
        let known = look.queue_ends.keys().filter(|queue| queue.broker == master).count();
        let wanted = usize::try_from(plan.cluster.queues).expect("a plan has few queues");
        if known != wanted {
            let summary = format!("{known} of {wanted} queues of {master} answer");
            unmet.push(Breach::new(summary).about(Subject::Lives(master)));
        }
    }
    let is_sound = |node: &String| !look.damaged.contains(node);
    for node in plan.cluster.brokers().into_iter().filter(is_sound) {
        match look.dispatch_behind.get(&node) {
            Some(0) => {}
            Some(bytes) => unmet.push(Breach::new(format!("{bytes} bytes of {node}'s log are in no queue yet"))),
            None => unmet.push(Breach::new(format!("{node} does not say whether its queues show its whole log"))),
        }
    }
    for (group, members) in look.owners.iter().filter(|(_, members)| !members.is_empty()) {
        for (queue, end) in &look.queue_ends {
            let last =
                look.consumed.get(group).and_then(|queues| queues.get(queue)).and_then(|offsets| offsets.iter().max());
            let last = last.copied().max(look.last_not_owed(group, queue));
            let last = last.max(look.expired.below_of(queue).checked_sub(1).filter(|last| *last >= 0));
            if *end > 0 && last.is_none_or(|last| last + 1 < *end) {
                let summary = format!(
                    "{group} with {} members: {} queue {} waits at {last:?} of {end}",
                    members.len(),
                    queue.broker,
                    queue.id
                );
                let first = Subject::Place(queue.clone(), last.map_or(0, |last| last + 1));
                unmet.push(Breach::new(summary).about(first));
            }
        }
    }
    unmet
}
