//! What a look at the running cluster says of messages that are not plain: which still wait, which have come back and were not
//! finished, which a group does not want. Read on from look to look.

use crate::breach::Breach;
use crate::evidence::{KindsSeen, LogCopy, POWER_LOST, SYNC_FAILED};
use crate::expiry::Expired;
use crate::kinds::{Kind, is_wanted, subscription};
use crate::ledger::{Entry, Ledger};
use crate::operation::{Ask, HALF_QUEUE, History, Queue, Told};
use crate::plan::{Flush, Plan, TOPIC, is_clustering};
use protocol::message::retry_topic;
use sim::history::{OperationId, What};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A message that a listener failed on is with a broker within that, or is given to a listener again: time-outs of the hand-back
/// (5 s) and of the send that follows it (3 s), and the client's own pause (5 s).
const HAND_BACK_MAX: Duration = Duration::from_secs(15);

/// What was read so far.
#[derive(Debug, Default)]
pub struct KindsLook {
    ledgers: BTreeMap<String, Ledger>,
    /// Offsets of retry topics whose message a listener has finished, by group.
    finished: BTreeMap<(String, Queue), BTreeSet<i64>>,
    /// Calls of listeners that have not returned, with the place of their event.
    begun: BTreeMap<OperationId, usize>,
    last_failure: Option<Duration>,
    /// Half messages that are stored without a promise: their producer rolls them back.
    weak_halves: BTreeSet<String>,
    reached: Reached,
    events_read: usize,
}

/// How far queues were seen to reach, and how far they had before their master lost power.
#[derive(Debug, Default)]
struct Reached {
    /// The message at each offset that was told or delivered.
    named: BTreeMap<Queue, BTreeMap<i64, String>>,
    /// What had been named when power was lost.
    lost: BTreeMap<Queue, BTreeMap<i64, String>>,
}

impl Reached {
    fn name(&mut self, queue: &Queue, offset: i64, key: &str) {
        self.named.entry(queue.clone()).or_default().insert(offset, key.to_owned());
    }

    fn power_lost(&mut self, node: &str) {
        for (queue, named) in self.named.iter().filter(|(queue, _)| queue.broker == node) {
            self.lost
                .entry(queue.clone())
                .or_default()
                .extend(named.iter().map(|(offset, key)| (*offset, key.clone())));
        }
    }

    /// Whether a reader may have been past this offset when it named no message, or another.
    fn may_be_passed(&self, queue: &Queue, offset: i64, key: &str) -> bool {
        let Some(before) = self.lost.get(queue) else { return false };
        let end = before.keys().next_back().map_or(0, |last| last + 1);
        offset < end + UNNAMED_MAX && before.get(&offset).is_none_or(|named| named != key)
    }
}

/// Messages of a queue that are stored and read by one reader before anybody else is told of them, at most: a batch of each producer, and
/// its repetition.
const UNNAMED_MAX: i64 = 20;

impl KindsLook {
    /// Takes in the events that came since the last look.
    pub fn read_history(&mut self, history: &History) {
        for (place, event) in history.events.iter().enumerate().skip(self.events_read) {
            match &event.what {
                What::Invoke { operation, input: Ask::ConsumeAgain { .. } | Ask::Send { .. }, .. } => {
                    self.begun.insert(*operation, place);
                }
                What::Invoke { input: Ask::Consume { queue, offset, key, .. }, .. } => {
                    self.reached.name(queue, *offset, key);
                }
                What::Node { node, event } if [POWER_LOST, SYNC_FAILED].contains(&event.as_str()) => {
                    self.reached.power_lost(node);
                }
                What::Ok { operation, output } => {
                    if *output == Told::Later {
                        self.last_failure = Some(event.at);
                    }
                    let begun = self.begun.remove(operation).map(|place| &history.events[place].what);
                    match (begun, output) {
                        (Some(What::Invoke { input: Ask::ConsumeAgain { group, queue, offset, .. }, .. }), _) => {
                            self.finished.entry((group.clone(), queue.clone())).or_default().insert(*offset);
                        }
                        (Some(What::Invoke { input: Ask::Send { key }, .. }), Told::Stored { queue, offset, .. }) => {
                            self.reached.name(queue, *offset, key);
                        }
                        (
                            Some(What::Invoke { input: Ask::Send { key }, .. }),
                            Told::Delayed { queue: Queue { id: HALF_QUEUE, .. }, promised: false, .. },
                        ) => drop(self.weak_halves.insert(key.clone())),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self.events_read = history.events.len();
    }

    /// Takes in a master's log.
    pub fn read_log(&mut self, master: &str, log: LogCopy) {
        self.ledgers.entry(master.to_owned()).or_default().read_on(log);
    }

    /// What that says at this time. The delay tables are the caller's to add.
    pub fn seen(&self, plan: &Plan, now: Duration, expired: &Expired) -> KindsSeen {
        let mut seen = KindsSeen { logs_read: self.ledgers.keys().cloned().collect(), ..KindsSeen::default() };
        seen.handed_back_lately = usize::from(self.last_failure.is_some_and(|failed| failed + HAND_BACK_MAX > now));
        for (master, ledger) in &self.ledgers {
            seen.waiting.extend(waiting(master, ledger));
            seen.level_ends.insert(master.clone(), ledger.level_ends());
            seen.transaction_ends.insert(master.clone(), ledger.transaction_ends());
            seen.open_transactions.extend(open_transactions(master, ledger, &self.weak_halves));
            for group in plan.clients.groups() {
                if is_clustering(plan, &group) {
                    seen.unfinished_retries.extend(self.unfinished(master, ledger, &group, expired));
                }
                if !subscription(&plan.clients, &group).is_empty() {
                    let queues = seen.not_owed.entry(group.clone()).or_default();
                    queues.extend(self.not_owed(plan, master, ledger, &group));
                }
            }
        }
        seen
    }

    /// What a group that subscribes to tags may miss: what it does not subscribe to, and what a reader had passed when a suffix was lost.
    fn not_owed(&self, plan: &Plan, master: &str, ledger: &Ledger, group: &str) -> Vec<(Queue, BTreeSet<i64>)> {
        let mut not_owed = Vec::new();
        for (id, entries) in ledger.topic(TOPIC) {
            let queue = Queue { broker: master.to_owned(), id };
            let may_miss = |offset: i64, key: &str| {
                !is_wanted(&plan.clients, group, key)
                    || (plan.cluster.flush == Flush::Async && self.reached.may_be_passed(&queue, offset, key))
            };
            let offsets = entries.iter().filter(|(offset, entry)| may_miss(**offset, &entry.key));
            let offsets = offsets.map(|(offset, _)| *offset).collect();
            not_owed.push((queue, offsets));
        }
        not_owed
    }

    fn unfinished(&self, master: &str, ledger: &Ledger, group: &str, expired: &Expired) -> Vec<Breach> {
        let topic = retry_topic(group);
        let mut unfinished = Vec::new();
        for (id, entries) in ledger.topic(&topic) {
            let finished = self.finished.get(&(group.to_owned(), Queue { broker: master.to_owned(), id }));
            let is_finished = |offset: &i64| finished.is_some_and(|offsets| offsets.contains(offset));
            let left = entries.range(expired.below(master, &topic, id)..);
            let missing = left.filter(|(offset, _)| !is_finished(offset));
            unfinished.extend(missing.map(|(offset, entry)| {
                let summary = format!("{} at {master} {topic} queue {id} offset {offset}", entry.key);
                Breach::of_message(&entry.key, summary)
            }));
        }
        unfinished
    }
}

/// Halves that nobody decided, and those that were to be committed and have no final message.
fn open_transactions(master: &str, ledger: &Ledger, weak: &BTreeSet<String>) -> Vec<Breach> {
    let decided: BTreeSet<i64> = ledger.decided().map(|(half, _)| half).collect();
    let mut last_final: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in ledger.finals(TOPIC) {
        let last = last_final.entry(&entry.key).or_insert(entry.physical);
        *last = entry.physical.max(*last);
    }
    let mut open = Vec::new();
    for (offset, half) in ledger.halves() {
        let key = &half.key;
        let is_committed = Kind::of(key).fate.is_some_and(|fate| fate.commits) && !weak.contains(key);
        if !decided.contains(&offset) {
            let summary = format!("{key} at {master} half message {offset} is not decided");
            open.push(Breach::of_message(key, summary));
        } else if is_committed && half.checks == 0 && last_final.get(key.as_str()).is_none_or(|at| *at < half.physical)
        {
            let summary =
                format!("{key} at {master} half message {offset} was to be committed and has no final message");
            open.push(Breach::of_message(key, summary));
        }
    }
    open
}

/// Messages whose second record is not there.
fn waiting(master: &str, ledger: &Ledger) -> Vec<Breach> {
    let waits = |(level, offset, entry): (Option<i32>, i64, &Entry)| {
        let topic = entry.waits_for.as_deref().unwrap_or_default();
        let room = level.map_or("timer".to_owned(), |level| format!("level {level}"));
        Breach::of_message(&entry.key, format!("{} for {topic} at {master} {room} offset {offset}", entry.key))
    };
    ledger.undelivered().into_iter().map(waits).collect()
}
