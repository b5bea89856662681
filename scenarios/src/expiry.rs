//! What brokers removed because it had expired: seen at their disks from look to look, and kept, for what expired is not lost.
//!
//! A log begins later than at the last look: its segments below were removed. What was in them was read at that look, so judges see each
//! log whole, the removed part and what is there, and ask of all messages what they ask in a run without retention.
//! [`crate::invariant::i16_only_expired_goes`] says what may be removed at all.

use crate::evidence::{LogCopy, StoredKey, slaves_of};
use crate::kinds::has_kinds;
use crate::ledger::Ledger;
use crate::observer::{Observer, stored_key};
use crate::operation::Queue;
use crate::plan::{Plan, TOPIC};
use protocol::message::record::{Peeked, RecordView, peek};
use std::collections::BTreeMap;
use std::time::Duration;

/// Node event: an operator has asked the broker to remove what has expired.
pub const REMOVAL_ASKED: &str = "asked to remove what has expired";

/// A segment that a broker removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// The broker node.
    pub node: String,
    /// The look that still saw it.
    pub after: Duration,
    /// The look that did not.
    pub by: Duration,
    /// Log offset of its first byte.
    pub start: i64,
    /// Log offset behind it.
    pub end: i64,
    /// Store time of its last message, in milliseconds of the clock of the broker that took it; none if it had none.
    pub newest_ms: Option<i64>,
    /// The most that the broker's own clock can have said.
    pub clock_ms: i64,
    /// The ends of the logs of the broker's slaves that have any, by node.
    pub slave_ends: BTreeMap<String, i64>,
    /// Messages in it that waited for a delay or a moment and had not been delivered: keys.
    pub undelivered: Vec<String>,
    /// The offset behind its last message of each queue, by topic and queue.
    pub ends: BTreeMap<(String, i32), i64>,
}

/// The offsets that masters' queues began at before and do not name any more, because their messages expired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired(BTreeMap<String, BTreeMap<(String, i32), i64>>);

impl Expired {
    /// What these removals took.
    pub fn of<'a>(removals: impl IntoIterator<Item = &'a Removal>) -> Expired {
        let mut expired = Expired::default();
        for removal in removals {
            let ends = expired.0.entry(removal.node.clone()).or_default();
            for (queue, end) in &removal.ends {
                let below = ends.entry(queue.clone()).or_default();
                *below = (*below).max(*end);
            }
        }
        expired
    }

    /// The offset below which a broker node has removed a queue's messages; 0: none.
    pub fn below(&self, node: &str, topic: &str, queue: i32) -> i64 {
        self.0.get(node).and_then(|ends| ends.get(&(topic.to_owned(), queue))).copied().unwrap_or(0)
    }

    /// As [`below`](Self::below), of a queue of the topic at its master.
    pub fn below_of(&self, queue: &Queue) -> i64 {
        self.below(&queue.broker, TOPIC, queue.id)
    }
}

/// What one broker's disk showed.
#[derive(Debug, Default)]
struct Seen {
    at: Duration,
    clock_ms: i64,
    log: LogCopy,
    /// What was removed from its log so far, in one piece.
    removed: LogCopy,
    ledger: Ledger,
}

impl Seen {
    /// The log with what was removed from it.
    fn whole(&self, log: LogCopy) -> LogCopy {
        let LogCopy { start, bytes } = &self.removed;
        if bytes.is_empty() || log.start > self.removed.end() || log.start < *start {
            return log;
        }
        let below = usize::try_from(log.start - start).expect("not before the removed part");
        LogCopy { start: *start, bytes: [&bytes[..below], &log.bytes].concat() }
    }
}

/// All removals so far, and what they took.
#[derive(Debug, Default)]
pub struct Archive {
    seen: BTreeMap<String, Seen>,
    removals: Vec<Removal>,
}

impl Archive {
    /// Looks at the disk of each broker.
    pub fn look(&mut self, plan: &Plan, observer: &Observer) {
        let now = rt::world::elapsed();
        for node in plan.cluster.brokers() {
            let (log, clock_ms) = (observer.log(&node), observer.clock_ms(&node));
            let ends = slaves_of(&plan.cluster, &node).into_iter().map(|slave| (observer.log_end(&slave), slave));
            let slave_ends = ends.filter(|(end, _)| *end > 0).map(|(end, slave)| (slave, end)).collect();
            let seen = self.seen.entry(node.clone()).or_default();
            let passed = i64::try_from((now - seen.at).as_millis()).expect("a run is short");
            let found = Removal {
                node,
                after: seen.at,
                by: now,
                // It may have been set back since.
                clock_ms: clock_ms.max(seen.clock_ms + passed),
                slave_ends,
                ..Removal::default()
            };
            let size = i64::from(plan.cluster.segment_kib) * 1024;
            self.removals.extend(seen.compare(&log, size, &found, has_kinds(plan)));
            (seen.at, seen.clock_ms, seen.log) = (now, clock_ms, log);
        }
    }

    /// What was removed so far.
    pub fn removals(&self) -> &[Removal] {
        &self.removals
    }

    /// The node's log with what was removed from it.
    pub fn whole(&self, node: &str, log: LogCopy) -> LogCopy {
        match self.seen.get(node) {
            Some(seen) => seen.whole(log),
            None => log,
        }
    }

    /// What a master's queue held below `min`, in order of offset.
    pub fn messages(&self, queue: &Queue, min: i64) -> Vec<StoredKey> {
        let Some(seen) = self.seen.get(&queue.broker) else { return Vec::new() };
        let records = records(&seen.removed.bytes);
        let ours = records.filter(|record| record.topic() == TOPIC.as_bytes() && record.queue_id() == queue.id);
        ours.map(|record| stored_key(&record)).filter(|message| message.offset < min).collect()
    }
}

impl Seen {
    /// The segments that were there at the last look and are not in `log`, whose start they are below. `found`: what they have in common.
    fn compare(&mut self, log: &LogCopy, size: i64, found: &Removal, with_kinds: bool) -> Vec<Removal> {
        let mut removals = Vec::new();
        // A log that is empty was given up, or has not begun.
        let until = if log.bytes.is_empty() { self.log.start } else { log.start.min(self.log.end()) };
        let from = self.log.start.max(if self.removed.bytes.is_empty() { i64::MIN } else { self.removed.end() });
        if from >= until {
            return removals;
        }
        let place = |offset: i64| usize::try_from(offset - self.log.start).expect("not before the log");
        if self.removed.bytes.is_empty() {
            self.removed.start = from;
        }
        self.removed.bytes.extend_from_slice(&self.log.bytes[place(from)..place(until)]);
        if with_kinds {
            self.ledger.read_on(self.whole(log.clone()));
        }
        let undelivered = self.ledger.undelivered();
        let mut start = from;
        while start < until {
            let end = (start + size).min(until);
            let mut removal = Removal { start, end, ..found.clone() };
            for record in records(&self.log.bytes[place(start)..place(end)]) {
                removal.newest_ms = removal.newest_ms.max(Some(record.store_timestamp()));
                let topic = String::from_utf8_lossy(record.topic()).into_owned();
                removal.ends.insert((topic, record.queue_id()), record.queue_offset().0 + 1);
            }
            let inside = undelivered.iter().filter(|(_, _, entry)| (start..end).contains(&entry.physical));
            removal.undelivered = inside.map(|(_, _, entry)| entry.key.clone()).collect();
            removals.push(removal);
            start = end;
        }
        removals
    }
}

/// The records of a part of a log that begins with one.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (size, record) = match peek(bytes).ok()? {
                Peeked::Record { size, .. } => (size, Some(RecordView::parse(bytes).ok()?)),
                Peeked::Blank { size } => (size, None),
            };
            bytes = bytes.get(size..)?;
            if record.is_some() {
                return record;
            }
        }
    })
}
