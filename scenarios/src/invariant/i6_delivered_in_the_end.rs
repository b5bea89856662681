//! I6: each stored, visible message is delivered to each subscribed group in the end. Broadcasting: to each member that was there
//! when it was stored is not claimed here; to some member is. A group that subscribes to tags is owed the messages with those.
//! (Asynchronous flush, again: a reader that had gone past messages of the lost suffix, which it did not subscribe to, may not see
//! what is stored at their offsets next. How far it may have gone is how far any queue was ever seen to reach.)
//!
//! What its master removed because it had expired ([`super::i16_only_expired_goes`]) may go to nobody: retention does not ask whether groups
//! are done. A group that was behind goes on with the first message that is left, and gets each one from there.
//!
//! A message that a listener failed on and that came back is one more message, of the group's retry topic, which is delivered in the
//! end too; what becomes of it then is [`super::i6_comes_again`].

use crate::breach::{Breach, Subject};
use crate::evidence::Snapshot;
use crate::plan::Plan;
use std::collections::BTreeSet;

/// Stable name.
pub const NAME: &str = "I6 delivered in the end";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let mut unmet = Vec::new();
    for group in plan.clients.groups() {
        if look.owners.get(&group).is_none_or(|members| members.is_empty()) {
            continue;
        }
        for (queue, end) in &look.queue_ends {
            let consumed: BTreeSet<i64> =
                look.consumed.get(&group).and_then(|queues| queues.get(queue)).into_iter().flatten().copied().collect();
            let below = look.expired.below_of(queue);
            let missing: Vec<i64> = (below..*end)
                .filter(|offset| !consumed.contains(offset) && look.is_owed(&group, queue, *offset))
                .collect();
            if let Some(first) = missing.first() {
                let summary = format!(
                    "{group}: {} of {} queue {} from offset {first} on were never consumed",
                    missing.len(),
                    queue.broker,
                    queue.id
                );
                unmet.push(Breach::new(summary).about(Subject::Place(queue.clone(), *first)));
            }
        }
    }
    if let Some(kinds) = &look.kinds {
        let unfinished = kinds.unfinished_retries.iter();
        unmet.extend(unfinished.map(|message| message.clone().and(" came back and was not finished")));
        if kinds.handed_back_lately > 0 {
            unmet.push(Breach::new("a listener has failed just now"));
        }
    }
    unmet
}
