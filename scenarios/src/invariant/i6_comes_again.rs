//! I6, for messages that a listener failed on: each comes again until a listener of the group has consumed it, or it lies in the group's
//! dead letter topic; and nothing is buried before its retries are used up.
//!
//! What a listener could not consume is done for its queue as soon as a broker has taken it back; from then on the copy there is all
//! that is left. That answer promises what an answer to a send promises in the same mode:
//!
//! | flush | what may take the message |
//! |---|---|
//! | sync | nothing |
//! | async | a power loss of the broker that took it back, within the flush window after the listener had failed |
//!
//! In every mode its copy may go because it has expired ([`super::i16_only_expired_goes`]) before a listener came to it.
//!
//! A hand-back that no broker takes is no hand-back: the consumer keeps the message and tries it again by itself, and if it dies the next
//! owner of the queue reads it there. So a message that stands in no queue of the topic at the end is not looked at: it was lost with the
//! suffix that held it before anybody took it back, and whether that may be is [`super::i1_acknowledged_survives`]'s to say. While a message
//! waits for a retry its copies are [`super::i10_delayed_in_time`]'s.

use crate::breach::Breach;
use crate::evidence::{Evidence, FLUSH_WINDOW, slaves_of};
use crate::faults::disk_held;
use crate::kinds::{failing, is_wanted};
use crate::ledger::Ledger;
use crate::operation::{Ask, Told};
use crate::plan::{Flush, Plan, TOPIC, is_clustering};
use indexmap::IndexMap;
use protocol::message::{dlq_topic, retry_topic};
use sim::history::Outcome;
use sim::verdict::EventId;
use std::collections::BTreeSet;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I6 comes again until it is done";

/// Time-outs of the hand-back and of the send that follows it.
const HAND_BACK_MAX: Duration = Duration::from_secs(8);

/// What listeners of a group made of one message.
#[derive(Default)]
struct Calls {
    is_consumed: bool,
    /// When listeners failed, with how often it had come back by then.
    failures: Vec<(Duration, i32)>,
    events: Vec<EventId>,
}

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let messages = evidence.queues.values().flat_map(|contents| &contents.messages);
    let stored: BTreeSet<&str> = messages.map(|message| message.key.as_str()).collect();
    let mut violations = Vec::new();
    for group in plan.clients.groups().iter().filter(|group| is_clustering(plan, group)) {
        let Some(failing) = failing(&plan.clients, group) else { continue };
        let calls = calls(evidence, group);
        let buried = buried(evidence, group);
        let is_owed = |key: &str| is_wanted(&plan.clients, group, key) && stored.contains(key);
        for (key, calls) in calls.iter().filter(|(key, _)| is_owed(key)) {
            let tries = calls.failures.iter().map(|(_, times)| times + 1).max().unwrap_or(0);
            let summary = if buried.contains(key) && tries <= failing.retries() {
                format!(
                    "{key} lies in the dead letter topic of {group} after {tries} tries; {} were due",
                    failing.retries() + 1
                )
            } else if !calls.is_consumed
                && !buried.contains(key)
                && !may_be_lost(plan, evidence, calls)
                && !is_expired(evidence, group, key, tries)
            {
                format!(
                    "{group} failed on {key} {} times, never consumed it, and it is not in the dead letter topic",
                    calls.failures.len()
                )
            } else {
                continue;
            };
            violations.push(Breach::new(summary).of_events(calls.events.clone()));
        }
    }
    violations
}

/// Calls of the group's listeners that have returned, by message; only of messages that one failed on.
fn calls<'a>(evidence: &'a Evidence, group: &str) -> IndexMap<&'a str, Calls> {
    let mut calls: IndexMap<&str, Calls> = IndexMap::new();
    for operation in evidence.history.operations() {
        let (Ask::Consume { group: of, key, reconsume_times, .. }
        | Ask::ConsumeAgain { group: of, key, reconsume_times, .. }) = operation.input
        else {
            continue;
        };
        let (Outcome::Ok(told), Some((_, at))) = (&operation.outcome, operation.ended) else { continue };
        if of == group {
            let calls = calls.entry(key).or_default();
            calls.events.extend(operation.events());
            match told {
                Told::Later => calls.failures.push((at, *reconsume_times)),
                _ => calls.is_consumed = true,
            }
        }
    }
    calls.retain(|_, calls| !calls.failures.is_empty());
    calls
}

fn buried<'a>(evidence: &'a Evidence, group: &str) -> BTreeSet<&'a str> {
    let topic = dlq_topic(group);
    let mut buried = BTreeSet::new();
    for ledger in evidence.ledgers.values() {
        for ((name, key, _), _) in ledger.delivered() {
            if name == topic {
                buried.insert(key);
            }
        }
    }
    buried
}

/// Whether the copy that would have come next was removed because it had expired: the one that was handed back last, or, if no broker took
/// that, the one that the listener had failed on.
fn is_expired(evidence: &Evidence, group: &str, key: &str, tries: i32) -> bool {
    let (retries, expired) = (retry_topic(group), evidence.expired());
    // None: there is no such copy.
    let has_expired = |topic: &str, times: i32| {
        let mut copies = evidence.ledgers.iter().flat_map(|(master, ledger)| {
            ledger.topic(topic).flat_map(move |(id, entries)| entries.iter().map(move |copy| (master, id, copy)))
        });
        copies
            .find(|(_, _, (_, entry))| entry.key == key && entry.reconsume_times == times)
            .map(|(master, id, (offset, _))| *offset < expired.below(master, topic, id))
    };
    let waits = || {
        let mut waiting = evidence.ledgers.values().flat_map(Ledger::delayed);
        waiting.any(|(_, _, entry)| {
            entry.key == key && entry.reconsume_times == tries && entry.waits_for.as_ref() == Some(&retries)
        })
    };
    match has_expired(&retries, tries) {
        Some(is_expired) => is_expired,
        None if waits() => false,
        None => has_expired(if tries == 1 { TOPIC } else { &retries }, tries - 1) == Some(true),
    }
}

/// Whether the table above lets the message go: a broker lost power soon after one of the failures.
fn may_be_lost(plan: &Plan, evidence: &Evidence, calls: &Calls) -> bool {
    let lost_with = |node: &str, failed: Duration| {
        let window = FLUSH_WINDOW + HAND_BACK_MAX + disk_held(plan, node);
        let mut losses = evidence.power_losses(node).into_iter();
        losses.any(|loss| loss >= failed && evidence.time_alive(node, failed, loss) <= window)
    };
    let needs_slaves = plan.cluster.is_replicated_before_ack() && plan.cluster.recover_from_slave;
    plan.cluster.flush == Flush::Async
        && calls.failures.iter().any(|(failed, _)| {
            plan.cluster.masters().iter().any(|master| {
                lost_with(master, *failed)
                    && (!needs_slaves || slaves_of(&plan.cluster, master).iter().all(|slave| lost_with(slave, *failed)))
            })
        })
}
