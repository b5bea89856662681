//! I15: a group is given only what it subscribes to.
//!
//! A broker chooses by the hash of a tag, which several tags may share; the client looks at the text. If the group subscribes by an
//! expression over properties, the broker alone chooses. So no listener ever sees a message
//! whose tag its group did not name: not from the topic, not when it comes back from the retry topic, in any durability mode. (That what
//! it does subscribe to is delivered is [`super::i6_delivered_in_the_end`].)

use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::kinds::is_wanted;
use crate::operation::Ask;
use crate::plan::Plan;

/// Stable name.
pub const NAME: &str = "I15 only what was subscribed";

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    if plan.clients.consumers.iter().all(|consumer| consumer.tags.is_empty()) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for operation in evidence.history.operations() {
        let (Ask::Consume { group, queue, offset, key, .. } | Ask::ConsumeAgain { group, queue, offset, key, .. }) =
            operation.input
        else {
            continue;
        };
        if !is_wanted(&plan.clients, group, key) {
            let summary = format!(
                "{key} of {} queue {} offset {offset} was given to {} of {group}, which does not subscribe to it",
                queue.broker, queue.id, operation.client
            );
            violations.push(Breach::new(summary).of_events(operation.events()));
        }
    }
    violations
}
