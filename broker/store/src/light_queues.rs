//! Light queues (LMQ, multi-dispatch): queues whose entries name records of other topics.
//!
//! Their names begin with `%LMQ%`, and each has one queue, number 0. A producer names them in the property `INNER_MULTI_DISPATCH`,
//! separated by commas; the append adds `INNER_MULTI_QUEUE_OFFSET`, the message's offset in each, in the same order. So the log alone says
//! what is in a light queue, at a slave and after any crash. A name that can be no light queue gets no offset, and an offset that has no
//! name counts for nothing (`LmqDispatch`, `MultiDispatchUtils`).
use crate::consume_queues::is_directory_name;
use protocol::QueueOffset;
use protocol::message::property::{INNER_BASE, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET};
use protocol::message::{Properties, RecordView, find_property};
use std::collections::BTreeMap;

/// Begins the name of each (`MixAll.LMQ_PREFIX`).
const PREFIX: &str = "%LMQ%";
const SEPARATOR: char = ',';
/// The one queue of each.
pub(crate) const LIGHT_QUEUE_ID: i32 = 0;
/// No queue has a larger offset: it comes from a property, and the place of its entry must be a signed 64-bit number.
const OFFSET_MAX: i64 = 1 << 56;
/// Topics whose messages come to light queues when they leave them, or have been there. Half messages are no messages yet.
const EXCLUDED: [&str; 4] = ["%RETRY%", "rmq_sys_", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_"];

/// Whether a topic or group is one of a light queue (`MixAll.isLmq`).
#[must_use]
pub fn is_light(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether messages of the topic may be in light queues (`MixAll.topicAllowsLMQ`).
fn is_allowed(topic: &str) -> bool {
    !EXCLUDED.iter().any(|prefix| topic.starts_with(prefix))
}

fn is_usable(name: &str) -> bool {
    is_light(name) && is_directory_name(name)
}

/// Properties without offsets that did not come from this append; none if they have none.
pub(crate) fn without_offsets(text: &str) -> Option<String> {
    const OFFSETS: [&str; 2] = [INNER_MULTI_QUEUE_OFFSET, INNER_BASE];
    if OFFSETS.iter().all(|name| find_property(text.as_bytes(), name).is_none()) {
        return None;
    }
    let mut properties = Properties::parse(text);
    for name in OFFSETS {
        properties.remove(name);
    }
    Some(properties.to_text())
}

/// The next offset of each light queue that an append has to do with.
#[derive(Debug, Default)]
pub(crate) struct LightOffsets(BTreeMap<String, i64>);

impl LightOffsets {
    /// Takes a place in each light queue that the message names, and returns its properties with the offsets; none if it names none.
    /// `first`: the next offset of a queue before this append.
    pub(crate) fn take(&mut self, topic: &str, text: &[u8], first: impl Fn(&str) -> QueueOffset) -> Option<Vec<u8>> {
        let names = names(topic, text)?;
        let mut own = BTreeMap::new();
        let mut offset = |name: &str| match name {
            _ if is_usable(name) => {
                let next = self.0.entry(name.to_owned()).or_insert_with(|| first(name).0);
                // A name may be given twice.
                let offset = *own.entry(name.to_owned()).or_insert(*next);
                *next = offset + 1;
                offset.to_string()
            }
            // Apache's dispatch passes over such a name, but wants as many offsets as names.
            _ if is_light(name) => "0".to_owned(),
            _ => String::new(),
        };
        let offsets: Vec<String> = names.split(SEPARATOR).map(&mut offset).collect();
        if own.is_empty() {
            return None;
        }
        let offsets = offsets.join(",");
        Some([format!("{INNER_MULTI_QUEUE_OFFSET}\u{1}{offsets}\u{2}").as_bytes(), text].concat())
    }

    /// Whether no message named a light queue.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Light queues and their next offsets after the append.
    pub(crate) fn next(&self) -> impl Iterator<Item = (&str, QueueOffset)> {
        self.0.iter().map(|(name, next)| (name.as_str(), QueueOffset(*next)))
    }
}

/// The light queues that a record is in, each with its offset there.
pub(crate) fn of_record<'a>(topic: &str, record: &RecordView<'a>) -> Vec<(&'a str, QueueOffset)> {
    let Some(names) = names(topic, record.properties()) else { return Vec::new() };
    let offsets = record.property(INNER_MULTI_QUEUE_OFFSET).and_then(|offsets| std::str::from_utf8(offsets).ok());
    let mut queues = Vec::<(&str, QueueOffset)>::new();
    for (name, offset) in names.split(SEPARATOR).zip(offsets.unwrap_or_default().split(SEPARATOR)) {
        let offset = offset.parse().ok().filter(|offset| (0..OFFSET_MAX).contains(offset)).map(QueueOffset);
        if let Some(offset) = offset
            && is_usable(name)
            && queues.iter().all(|(known, _)| *known != name)
        {
            queues.push((name, offset));
        }
    }
    queues
}

/// What the property names, if messages of the topic may be in light queues.
fn names<'a>(topic: &str, properties: &'a [u8]) -> Option<&'a str> {
    let names = find_property(properties, INNER_MULTI_DISPATCH).filter(|_| is_allowed(topic))?;
    std::str::from_utf8(names).ok().filter(|names| !names.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::{LightOffsets, without_offsets};
    use protocol::QueueOffset;

    #[test]
    fn offsets_stand_in_the_order_of_the_names() {
        let check = |topic: &str, names: &str, expected: Option<&str>| {
            let mut offsets = LightOffsets::default();
            let text = format!("INNER_MULTI_DISPATCH\u{1}{names}\u{2}");
            let with = offsets.take(topic, text.as_bytes(), |name| QueueOffset(if name == "%LMQ%b" { 7 } else { 0 }));
            let expected = expected.map(|expected| format!("INNER_MULTI_QUEUE_OFFSET\u{1}{expected}\u{2}{text}"));
            assert_eq!(with.map(|with| String::from_utf8(with).unwrap()), expected, "{topic} {names}");
        };
        check("T", "%LMQ%a,%LMQ%b", Some("0,7"));
        check("T", "%LMQ%b,%LMQ%b,other,%LMQ%a/b,", Some("7,7,,0,"));
        check("T", " ", None);
        check("T", "other,%LMQ%a/b", None);
        for topic in ["%RETRY%g", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"] {
            check(topic, "%LMQ%a", None);
        }
    }

    #[test]
    fn messages_of_one_append_follow_each_other() {
        let mut offsets = LightOffsets::default();
        for _ in 0..3 {
            offsets.take("T", b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02", |_| QueueOffset(4)).unwrap();
        }
        assert_eq!(offsets.next().collect::<Vec<_>>(), [("%LMQ%a", QueueOffset(7))]);
    }

    #[test]
    fn offsets_that_a_client_sends_are_taken_out() {
        let text = without_offsets("A\u{1}b\u{2}INNER_MULTI_QUEUE_OFFSET\u{1}9\u{2}");
        assert_eq!(text.as_deref(), Some("A\u{1}b\u{2}"));
        assert_eq!(without_offsets("A\u{1}b\u{2}"), None);
    }
}
