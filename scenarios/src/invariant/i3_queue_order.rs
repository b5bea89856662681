//! I3: queue offsets are dense and unique, follow the log's order, and an offset always names the same message.
//!
//! Retention takes nothing from this: a queue is judged with what was removed from it because it had expired, from its first message on, so a
//! minimum that was put too high shows as a gap.
//!
//! A reader that saw a message of a suffix lost under asynchronous flush is the known hazard of that mode: there, and only if a
//! replica of the queue lost power after that message was sent, its offset may name another message later. (After it was *sent*, not
//! after it was delivered: the answer to the pull may have been on its way, or in the consumer's hands, when the power went.)

use crate::breach::{Breach, Subject};
use crate::evidence::{Evidence, sends, slaves_of};
use crate::operation::Ask;
use crate::plan::{Flush, Plan};
use indexmap::IndexMap;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I3 queue order";

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = dense_and_ordered(evidence);
    violations.extend(same_message(plan, evidence));
    violations
}

fn dense_and_ordered(evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for (queue, contents) in &evidence.queues {
        let place = format!("{} queue {}", queue.broker, queue.id);
        let at = |offset| Subject::Place(queue.clone(), offset);
        let mut expected = contents.min;
        for message in &contents.messages {
            if message.offset != expected {
                let summary = format!("{place}: offset {} follows where {expected} must", message.offset);
                violations.push(Breach::new(summary).about(at(message.offset)));
                break;
            }
            if !message.body_intact {
                let summary = format!("{place} offset {}: the body of {} is damaged", message.offset, message.key);
                violations.push(Breach::of_message(&message.key, summary));
            }
            expected += 1;
        }
        if expected != contents.max {
            let summary = format!("{place}: the broker says {} messages, {expected} can be read", contents.max);
            violations.push(Breach::new(summary).about(at(expected)));
        }
        if let Some(pair) = contents.messages.windows(2).find(|pair| pair[0].physical >= pair[1].physical) {
            let summary =
                format!("{place}: offset {} stands behind offset {} in the log", pair[0].offset, pair[1].offset);
            violations.push(Breach::new(summary).about(at(pair[0].offset)).about(at(pair[1].offset)));
        }
    }
    violations
}

/// Each delivery and each acknowledgement names the message that its offset names at the end.
fn same_message(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let operations = evidence.history.operations();
    let sends = sends(&operations);
    // Looked for only where something is wrong.
    let sent =
        |key: &str| sends.iter().find(|send| send.key == key).map_or(Duration::ZERO, |send| send.operation.invoked_at);
    let mut violations = Vec::new();
    for operation in &operations {
        let Ask::Consume { queue, offset, key, .. } = operation.input else { continue };
        let Some(contents) = evidence.queues.get(queue) else { continue };
        let now = contents.key_at(*offset);
        if now == Some(key) || *offset < contents.min || hazard(plan, evidence, &queue.broker, sent(key)) {
            continue;
        }
        let now = now.unwrap_or("nothing");
        let summary = format!(
            "{} queue {} offset {offset} was delivered as {key} and names {now} at the end",
            queue.broker, queue.id
        );
        violations.push(Breach::new(summary).of_events(operation.events()));
    }
    let mut owners = IndexMap::new();
    for send in &sends {
        let Some(stored) = &send.stored else { continue };
        if let Some(other) = owners.insert((stored.queue, stored.offset, stored.is_delayed), send.key)
            && !hazard(plan, evidence, &stored.queue.broker, Duration::ZERO)
        {
            let summary = format!(
                "{other} and {} were both acknowledged at {} queue {} offset {}",
                send.key, stored.queue.broker, stored.queue.id, stored.offset
            );
            let both = Breach::new(summary).of_events(send.operation.events());
            violations.push(both.about(Subject::Message(other.to_owned())));
        }
    }
    violations
}

/// Whether what was sent at `sent` may have been lost with an unsynced suffix.
pub fn hazard(plan: &Plan, evidence: &Evidence, broker: &str, sent: Duration) -> bool {
    let nodes = [vec![broker.to_owned()], slaves_of(&plan.cluster, broker)].concat();
    plan.cluster.flush == Flush::Async
        && nodes.iter().any(|node| evidence.power_losses(node).into_iter().any(|loss| loss >= sent))
}
