//! I4, at each moment: a committed offset never exceeds the end of what the group has finished without a gap.
//!
//! Whatever a master or a slave shows as committed for a group, each message below that the group subscribes to had been finished by one
//! of its listeners before: consumed, or found impossible and handed back. A commit that runs ahead is a message lost for whoever takes
//! the queue over at that moment, though it may be made good a second later. ([`super::i4_committed_offsets`] looks at the end only.)
//!
//! A message that its master had removed by then, because it had expired ([`super::i16_only_expired_goes`]), is passed over: a group that is
//! behind goes on at the new minimum of the queue. What a slave has removed may still be read at the master, so that excuses nobody.
//!
//! Durability: in every mode. What stands in a suffix that was lost, and what was stored there since, is left out: its offsets have named
//! several messages (asynchronous flush, power loss).

use crate::breach::{Breach, Subject};
use crate::evidence::{Evidence, slaves_of};
use crate::invariant::i3_queue_order::hazard;
use crate::kinds::subscription;
use crate::operation::{Ask, Queue};
use crate::plan::{Plan, is_clustering};
use sim::history::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I4 nothing skipped";

/// When each offset was finished first, by group and queue.
type Finished<'a> = BTreeMap<(&'a str, &'a Queue), BTreeMap<i64, Duration>>;

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let finished = finished(evidence);
    let mut violations = Vec::new();
    for group in plan.clients.groups().iter().filter(|group| is_clustering(plan, group)) {
        for queue in evidence.queues.keys() {
            let reached = reached(plan, evidence, &finished, group, queue);
            let nodes = [vec![queue.broker.clone()], slaves_of(&plan.cluster, &queue.broker)].concat();
            violations.extend(nodes.iter().find_map(|node| skipped(evidence, node, group, queue, &reached)));
        }
    }
    violations
}

fn finished(evidence: &Evidence) -> Finished<'_> {
    let mut finished = Finished::new();
    for event in evidence.history.operations() {
        let Ask::Consume { group, queue, offset, .. } = event.input else { continue };
        if let (Outcome::Ok(_), Some((_, at))) = (&event.outcome, event.ended) {
            let offsets = finished.entry((group, queue)).or_default();
            offsets.entry(*offset).and_modify(|first| *first = at.min(*first)).or_insert(at);
        }
    }
    finished
}

/// How far a queue must have been finished: an offset, and when everything up to it was, with the last to be so.
struct Step<'a> {
    offset: i64,
    at: Duration,
    last: (&'a str, i64),
}

fn reached<'a>(
    plan: &Plan,
    evidence: &'a Evidence,
    finished: &Finished<'_>,
    group: &str,
    queue: &Queue,
) -> Vec<Step<'a>> {
    let first_lost = evidence.lost_from(plan, queue);
    let by_tags = !subscription(&plan.clients, group).is_empty();
    if by_tags && first_lost.is_none() && hazard(plan, evidence, &queue.broker, Duration::ZERO) {
        // Where the lost suffix began may be told by messages only that this group does not see.
        return Vec::new();
    }
    let offsets = finished.get(&(group, queue));
    let mut steps: Vec<Step<'_>> = Vec::new();
    for message in &evidence.queues[queue].messages {
        if first_lost.is_some_and(|lost| message.offset >= lost) {
            break;
        }
        if !evidence.last.is_owed(group, queue, message.offset) {
            continue;
        }
        let finished = offsets.and_then(|offsets| offsets.get(&message.offset)).copied();
        // Whoever comes to it afterwards finds it gone.
        let expired = evidence.expired_at(queue, message.offset);
        let at = finished.into_iter().chain(expired).min().unwrap_or(Duration::MAX);
        let step = match steps.last() {
            Some(before) if before.at >= at => Step { offset: message.offset, ..*before },
            _ => Step { offset: message.offset, at, last: (&message.key, message.offset) },
        };
        steps.push(step);
    }
    steps
}

/// The first time that a node showed more than was finished.
fn skipped(evidence: &Evidence, node: &str, group: &str, queue: &Queue, reached: &[Step<'_>]) -> Option<Breach> {
    evidence.commits_seen(node, group, queue).iter().find_map(|(at, committed)| {
        let below = reached.partition_point(|step| step.offset < *committed);
        let step = &reached[below.checked_sub(1)?];
        let (key, offset) = step.last;
        (step.at > *at).then(|| {
            let summary = format!(
                "{group} at {} queue {}: {node} showed {committed} as committed at {:.3} s, and {key} at offset {offset} was not finished",
                queue.broker,
                queue.id,
                at.as_secs_f64()
            );
            let (node, group, queue) = (node.to_owned(), group.to_owned(), queue.clone());
            let reading = Subject::Reading { node, group, queue, at: *at };
            Breach::new(summary).about(reading).about(Subject::Message(key.to_owned()))
        })
    })
}
