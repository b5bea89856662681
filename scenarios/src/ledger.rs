//! What a master's log says of each message: where it waits, where it was delivered, where it was buried.
//!
//! A delayed message has two records: one in the queue of its level, one where it went when its time had come. So has a message that a
//! listener handed back, whose second record is in its group's retry topic. A half message has one among the halves, and one more each time
//! that its producer is asked; then its final record, which may be one that waits; and an op message that says that it is decided.

use crate::evidence::LogCopy;
use crate::kinds::Kind;
use protocol::message::property::{KEYS, REAL_TOPIC, TIMER_OUT_MS, TRANSACTION_CHECK_TIMES};
use protocol::message::record::{Peeked, RecordView, peek};
use std::collections::BTreeMap;

/// Where messages wait for their delay to pass.
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
/// Where messages wait for a moment of their own.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
/// Where half messages wait.
pub const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Where it is said which are decided.
pub const OP_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";

/// One record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The key of the run; empty for a message that no client of the plan sent.
    pub key: String,
    /// Commit-log offset.
    pub physical: i64,
    /// Store time by the clock of the broker that wrote it, in milliseconds.
    pub stored_ms: i64,
    /// How often a listener had handed it back.
    pub reconsume_times: i32,
    /// Of a message that waits: the topic that it is for.
    pub waits_for: Option<String>,
    /// Of one that waits for a moment: the second that must be over, in milliseconds of that clock.
    pub due_ms: Option<i64>,
    /// Of a half message: how often its producer had been asked.
    pub checks: u32,
    /// Of an op message: offsets of the halves that are decided.
    pub decided: Vec<i64>,
}

/// What tells the records of a message apart: the topic that it is in or waits for, its key, and how often it had come back.
pub type Trip<'a> = (&'a str, &'a str, i32);

/// The records of a log, by topic and queue, then by queue offset.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    queues: BTreeMap<(String, i32), BTreeMap<i64, Entry>>,
    read: LogCopy,
}

impl Ledger {
    /// The records of a log.
    pub fn of(log: LogCopy) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.read_on(log);
        ledger
    }

    /// Takes in what came since the last call; a log that is not a continuation of what was read is read anew.
    pub fn read_on(&mut self, log: LogCopy) {
        if log.start != self.read.start || !log.bytes.starts_with(&self.read.bytes) {
            *self = Ledger { read: LogCopy { start: log.start, bytes: Vec::new() }, ..Ledger::default() };
        }
        let mut rest = &log.bytes[self.read.bytes.len()..];
        while let Ok(found) = peek(rest) {
            let size = match found {
                Peeked::Record { size, .. } => {
                    if let Ok(record) = RecordView::parse(rest) {
                        self.note(&record);
                    }
                    size
                }
                Peeked::Blank { size } => size,
            };
            let Some(behind) = rest.get(size..) else { break };
            rest = behind;
        }
        self.read = log;
    }

    fn note(&mut self, record: &RecordView<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let keys = text(record.property(KEYS).unwrap_or_default());
        let topic = text(record.topic());
        let due_ms = record.property(TIMER_OUT_MS).and_then(|value| text(value).parse().ok());
        let checks = record.property(TRANSACTION_CHECK_TIMES).and_then(|value| text(value).parse().ok());
        let body = if topic == OP_TOPIC { text(record.body()) } else { String::new() };
        let waits_for = is_waiting_room(&topic).then(|| text(record.property(REAL_TOPIC).unwrap_or_default()));
        let entry = Entry {
            key: keys.split(' ').find(|key| !key.is_empty()).unwrap_or_default().to_owned(),
            physical: record.physical_offset().0,
            stored_ms: record.store_timestamp(),
            reconsume_times: record.reconsume_times(),
            due_ms: due_ms.filter(|_| topic == TIMER_TOPIC),
            waits_for,
            checks: checks.unwrap_or(0),
            decided: body.split(',').filter_map(|offset| offset.parse().ok()).collect(),
        };
        self.queues.entry((topic, record.queue_id())).or_default().insert(record.queue_offset().0, entry);
    }

    /// Puts a record behind all others of the log.
    #[cfg(test)]
    pub fn put(&mut self, topic: &str, queue: i32, offset: i64, entry: Entry) {
        let physical = self.queues.values().map(|entries| i64::try_from(entries.len()).expect("few")).sum();
        self.queues.entry((topic.to_owned(), queue)).or_default().insert(offset, Entry { physical, ..entry });
    }

    /// The queues of a topic with what stands at each offset.
    pub fn topic<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = (i32, &'a BTreeMap<i64, Entry>)> + 'a {
        let queues = self.queues.range((topic.to_owned(), i32::MIN)..);
        queues.take_while(move |((name, _), _)| name == topic).map(|((_, id), entries)| (*id, entries))
    }

    /// What stands at an offset.
    pub fn at(&self, topic: &str, queue: i32, offset: i64) -> Option<&Entry> {
        self.queues.get(&(topic.to_owned(), queue)).and_then(|entries| entries.get(&offset))
    }

    /// Messages that wait for their delay, or did: level, offset in its queue, record.
    pub fn delayed(&self) -> impl Iterator<Item = (i32, i64, &Entry)> {
        self.topic(SCHEDULE_TOPIC)
            .flat_map(|(queue, entries)| entries.iter().map(move |(offset, entry)| (queue + 1, *offset, entry)))
    }

    /// Messages that wait for a moment, or did: offset in the timer's queue, record.
    pub fn timed(&self) -> impl Iterator<Item = (i64, &Entry)> {
        self.topic(TIMER_TOPIC).flat_map(|(_, entries)| entries.iter().map(|(offset, entry)| (*offset, entry)))
    }

    /// Half messages: offset in their queue, record.
    pub fn halves(&self) -> impl Iterator<Item = (i64, &Entry)> {
        self.topic(HALF_TOPIC).flat_map(|(_, entries)| entries.iter().map(|(offset, entry)| (*offset, entry)))
    }

    /// What was decided: offset of a half, and of the record that says so in the log.
    pub fn decided(&self) -> impl Iterator<Item = (i64, i64)> {
        let ops = self.topic(OP_TOPIC).flat_map(|(_, entries)| entries.values());
        ops.flat_map(|op| op.decided.iter().map(|half| (*half, op.physical)))
    }

    /// First records of messages of the topic that are no half: those that stand in it without having waited, and those that wait.
    pub fn finals<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = &'a Entry> {
        let stands = self.topic(topic).flat_map(|(_, entries)| entries.values());
        let waits = self.delayed().map(|(_, _, entry)| entry).chain(self.timed().map(|(_, entry)| entry));
        let waits = waits.filter(move |entry| entry.waits_for.as_deref() == Some(topic));
        stands.filter(|entry| Kind::of(&entry.key).wait().is_none()).chain(waits)
    }

    /// The offset behind the last record of each level's queue.
    pub fn level_ends(&self) -> BTreeMap<i32, i64> {
        self.topic(SCHEDULE_TOPIC).map(|(queue, entries)| (queue + 1, end(entries))).collect()
    }

    /// Messages whose second record is not there: with level, or none of a timer, and the offset in the queue that they wait in.
    pub fn undelivered(&self) -> Vec<(Option<i32>, i64, &Entry)> {
        let delivered = self.delivered();
        let is_delivered = |entry: &Entry| {
            let trip = (entry.waits_for.as_deref().unwrap_or_default(), entry.key.as_str(), entry.reconsume_times);
            delivered.get(&trip).is_some_and(|copies| copies.iter().any(|copy| copy.physical > entry.physical))
        };
        let delayed = self.delayed().map(|(level, offset, entry)| (Some(level), offset, entry));
        let timed = self.timed().map(|(offset, entry)| (None, offset, entry));
        delayed.chain(timed).filter(|(_, _, entry)| !is_delivered(entry)).collect()
    }

    /// The offsets behind the last half message and the last op message.
    pub fn transaction_ends(&self) -> [i64; 2] {
        [HALF_TOPIC, OP_TOPIC].map(|topic| self.topic(topic).map(|(_, entries)| end(entries)).max().unwrap_or(0))
    }

    /// All records, with their topic.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.queues.iter().flat_map(|((topic, _), entries)| entries.values().map(|entry| (topic.as_str(), entry)))
    }

    /// The records of messages that do not wait.
    pub fn delivered(&self) -> BTreeMap<Trip<'_>, Vec<&Entry>> {
        let mut delivered: BTreeMap<_, Vec<&Entry>> = BTreeMap::new();
        for ((topic, _), entries) in self.queues.iter().filter(|((topic, _), _)| !is_waiting_room(topic)) {
            for entry in entries.values() {
                delivered.entry((topic.as_str(), entry.key.as_str(), entry.reconsume_times)).or_default().push(entry);
            }
        }
        delivered
    }
}

fn is_waiting_room(topic: &str) -> bool {
    [SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC].contains(&topic)
}

fn end(entries: &BTreeMap<i64, Entry>) -> i64 {
    entries.keys().next_back().map_or(0, |last| last + 1)
}
