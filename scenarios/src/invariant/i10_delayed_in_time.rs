//! I10: a delayed message is never early, and is delivered in the end. So is one that a listener handed back.
//!
//! *Never early*, in every durability mode:
//!
//! - By the clock of the broker that delivers, which is the one that took the message: the record in the topic is stored at least the
//!   level's delay after the record that waited; of a timer, when the second is over that the waiting record names. Only setting that clock back may make it less, for then the clock says nothing of the
//!   time that has passed.
//! - By the world's time: a listener has it no earlier than the delay after the producer asked (or after the listener that failed was
//!   done), less what that broker's clock was set or ran ahead meanwhile. No other clock counts: neither the producer's nor a consumer's.
//!
//! *Delivered in the end*: after the faults have stopped, each record that waits at a master has its second record within its delay,
//! whatever was lost since. The first record is what was promised; the second one may have been in a suffix that a power loss took
//! (asynchronous flush), and is then written again: the level's progress must not be kept longer than what it speaks of.
//! Retention takes nothing from this: a record that was removed before it was delivered still waits.

use crate::breach::Breach;
use crate::evidence::{Evidence, Snapshot, sends};
use crate::kinds::{Kind, TIMER_STEP, delay};
use crate::ledger::{Entry, Ledger, Trip};
use crate::operation::{Ask, Queue, Told};
use crate::plan::{Plan, TOPIC};
use indexmap::IndexMap;
use protocol::message::retry_topic;
use sim::fault::Kind as FaultKind;
use sim::history::Outcome;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I10 delayed in time";

/// Store times are whole milliseconds of a broker's clock.
const CLOCK_STEP: Duration = Duration::from_millis(1);

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let Some(kinds) = &look.kinds else { return Vec::new() };
    let unread = plan.cluster.masters().into_iter().filter(|master| !kinds.logs_read.contains(master));
    let unread = unread.map(|master| format!("the log of {master} was not read").into());
    let waiting = kinds.waiting.iter();
    unread.chain(waiting.map(|waiting| waiting.clone().and(" was not delivered"))).collect()
}

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for (master, ledger) in &evidence.ledgers {
        violations.extend(early_by_its_clock(plan, master, ledger));
    }
    if !evidence.ledgers.is_empty() {
        violations.extend(early_in_the_world(plan, evidence));
    }
    violations
}

fn early_by_its_clock(plan: &Plan, master: &str, ledger: &Ledger) -> Vec<Breach> {
    if plan.faults.iter().any(|fault| matches!(&fault.fault, FaultKind::ClockStep(step) if step.node == master)) {
        return Vec::new();
    }
    let mut waited: IndexMap<Trip<'_>, Vec<(i32, &Entry)>> = IndexMap::new();
    for (level, _, entry) in ledger.delayed() {
        let topic = entry.waits_for.as_deref().unwrap_or_default();
        waited.entry((topic, &entry.key, entry.reconsume_times)).or_default().push((level, entry));
    }
    let mut violations = Vec::new();
    for ((topic, key, times), copies) in ledger.delivered() {
        let kind = Kind::of(key);
        let is_timed = times == 0 && topic == TOPIC && kind.seconds > 0;
        if is_timed {
            violations.extend(copies.iter().filter_map(|copy| early_by_its_timer(master, ledger, key, copy)));
            continue;
        }
        let is_delayed = times > 0 || (topic == TOPIC && kind.level > 0);
        if !is_delayed || topic.starts_with("%DLQ%") {
            continue;
        }
        let before = waited.get(&(topic, key, times)).map_or(&[][..], Vec::as_slice);
        for copy in copies {
            // It may have waited more than once: one that had waited long enough is enough.
            let enough = |(level, entry): &(i32, &Entry)| {
                let delay = i64::try_from(delay(*level).as_millis()).expect("a delay is short");
                entry.physical < copy.physical && copy.stored_ms - entry.stored_ms >= delay
            };
            if !before.iter().any(enough) {
                let waits: Vec<i64> = before.iter().map(|(_, entry)| copy.stored_ms - entry.stored_ms).collect();
                let summary = format!(
                    "{key} is in {topic} at {master} log offset {} after {waits:?} ms by the clock of {master}, too early",
                    copy.physical
                );
                violations.push(Breach::of_message(key, summary));
            }
        }
    }
    violations
}

/// A message in its topic before the second was over that it waited for.
fn early_by_its_timer(master: &str, ledger: &Ledger, key: &str, copy: &Entry) -> Option<Breach> {
    let step = i64::try_from(TIMER_STEP.as_millis()).expect("a second");
    let due = |entry: &Entry| entry.due_ms.map(|due_ms| due_ms + step);
    let waited = ledger.timed().filter(|(_, entry)| entry.key == key && entry.physical < copy.physical);
    let due: Vec<i64> = waited.filter_map(|(_, entry)| due(entry)).collect();
    if due.iter().any(|due| *due <= copy.stored_ms) {
        return None;
    }
    let early: Vec<i64> = due.iter().map(|due| due - copy.stored_ms).collect();
    let at = copy.physical;
    let summary =
        format!("{key} is in its topic at {master} log offset {at}, {early:?} ms early by the clock of {master}");
    Some(Breach::of_message(key, summary))
}

fn early_in_the_world(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let operations = evidence.history.operations();
    let sent: IndexMap<&str, Duration> =
        sends(&operations).into_iter().map(|send| (send.key, send.operation.invoked_at)).collect();
    let mut failed: IndexMap<(&str, &str, i32), Duration> = IndexMap::new();
    let mut violations = Vec::new();
    for operation in &operations {
        let (Ask::Consume { group, queue, offset, key, reconsume_times }
        | Ask::ConsumeAgain { group, queue, offset, key, reconsume_times }) = operation.input
        else {
            continue;
        };
        let times = *reconsume_times;
        if let (Outcome::Ok(Told::Later), Some((_, at))) = (&operation.outcome, operation.ended) {
            let first = failed.entry((group, key, times)).or_insert(at);
            *first = at.min(*first);
        }
        let due = match operation.input {
            Ask::Consume { reconsume_times: 0, .. } => {
                sent.get(key.as_str()).zip(Kind::of(key).wait()).map(|(sent, wait)| *sent + wait)
            }
            Ask::ConsumeAgain { .. } => {
                let waited = waited(evidence, group, queue, *offset, key, times);
                failed.get(&(group.as_str(), key.as_str(), times - 1)).zip(waited).map(|(at, waited)| *at + waited)
            }
            _ => None,
        };
        let Some(due) = due else { continue };
        if operation.invoked_at + CLOCK_STEP + clock_ahead(plan, &queue.broker) < due {
            let early = due.saturating_sub(operation.invoked_at).as_secs_f64();
            let summary = format!(
                "{key} of {} queue {} offset {offset} was given to {} {early:.3} s too early",
                queue.broker, queue.id, operation.client
            );
            violations.push(Breach::new(summary).of_events(operation.events()));
        }
    }
    violations
}

/// How long a message had to wait that stands in a retry topic; none if this call is not its first one from there: a client may also
/// try again by itself what no broker takes back.
fn waited(evidence: &Evidence, group: &str, queue: &Queue, offset: i64, key: &str, times: i32) -> Option<Duration> {
    let ledger = evidence.ledgers.get(&queue.broker)?;
    let topic = retry_topic(group);
    let entry = ledger.at(&topic, queue.id, offset)?;
    if entry.key != key || entry.reconsume_times != times {
        return None;
    }
    let waits = ledger.delayed().filter(|(_, _, waits)| {
        waits.key == key && waits.reconsume_times == times && waits.waits_for.as_deref() == Some(&topic)
    });
    waits.map(|(level, _, _)| delay(level)).min()
}

/// How far faults may have put a node's clock ahead of the world's, at most.
fn clock_ahead(plan: &Plan, node: &str) -> Duration {
    let ahead = |fault: &FaultKind| match fault {
        FaultKind::ClockStep(step) if step.node == node => step.by,
        // Millionths of the whole run, healing included.
        FaultKind::ClockDrift(drift) if drift.node == node => {
            plan.duration * u32::try_from(drift.ppm.unsigned_abs()).unwrap_or(u32::MAX) / 500_000
        }
        _ => Duration::ZERO,
    };
    plan.faults.iter().map(|fault| ahead(&fault.fault)).sum()
}
