//! Which bytes are a valid record, and the few facts that dispatch and recovery need of one.
//!
//! The record is looked at in place: recovery passes over gigabytes. What a torn write can leave is told from a record more
//! strictly than Apache's broker does: a record must say its own place, and properties of which a whole disk sector is zero are
//! torn (the body's checksum does not cover them). So no record is found that was never appended as it is.
use crate::layout::BATCH_MESSAGES_MAX;
use crate::light_queues::{LIGHT_QUEUE_ID, of_record};
use protocol::message::TransactionType;
use protocol::message::record::{PEEK_BYTES, Peeked, RecordView, peek};
use protocol::message::{find_property, property};
use protocol::{PhysicalOffset, QueueOffset, RecordError, SysFlag};
use std::borrow::Cow;

/// Smallest unit that a power loss keeps or loses as a whole.
const SECTOR: i64 = 512;
pub(crate) const DELAY_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Lengths, magic, place: for bytes that are known to be whole.
    Structure,
    /// And the body's checksum, and torn properties.
    Content,
    /// And the checksum of the whole record, if it has one.
    Seal,
    /// And it must have one.
    Sealed,
}

/// What lies at a place in the log.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Record(Facts<'a>),
    /// A blank record: the log goes on in the next segment.
    Blank,
    /// The bytes given are too few to say; so many are needed.
    Incomplete {
        needed: usize,
    },
}

/// A place in a queue that a record has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat<'a> {
    pub(crate) topic: &'a str,
    pub(crate) queue_id: i32,
    pub(crate) offset: QueueOffset,
    /// How many messages have it: those of an inner batch in the queue of its topic, else one.
    pub(crate) count: i64,
    /// Whether the queue is a light one, and not that of the record's topic.
    pub(crate) is_light: bool,
}

/// What dispatch and recovery need to know of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) topic: &'a str,
    record: RecordView<'a>,
}

impl<'a> Facts<'a> {
    /// Its place in the queue of its topic, then, if they are asked for, those in light queues. A half message and a rollback have none.
    pub(crate) fn seats(&self, with_light: bool) -> impl Iterator<Item = Seat<'a>> + use<'a> {
        let own = Seat {
            topic: self.topic,
            queue_id: self.queue_id(),
            offset: self.queue_offset(),
            count: inner_messages(self.record.sys_flag(), self.record.properties()),
            is_light: false,
        };
        let is_queued = self.is_queued();
        let light = if with_light && is_queued { of_record(self.topic, &self.record) } else { Vec::new() };
        let light = light.into_iter().map(|(topic, offset)| Seat {
            topic,
            queue_id: LIGHT_QUEUE_ID,
            offset,
            count: 1,
            is_light: true,
        });
        is_queued.then_some(own).into_iter().chain(light)
    }

    pub(crate) fn record(&self) -> &RecordView<'a> {
        &self.record
    }

    pub(crate) fn physical(&self) -> PhysicalOffset {
        self.record.physical_offset()
    }

    pub(crate) fn end(&self) -> PhysicalOffset {
        self.physical() + i64::from(self.size())
    }

    /// Bytes of the record.
    pub(crate) fn size(&self) -> i32 {
        i32::try_from(self.record.size()).expect("the size field is a signed 32-bit number")
    }

    pub(crate) fn queue_id(&self) -> i32 {
        self.record.queue_id()
    }

    pub(crate) fn queue_offset(&self) -> QueueOffset {
        self.record.queue_offset()
    }

    pub(crate) fn store_timestamp(&self) -> i64 {
        self.record.store_timestamp()
    }

    /// Whether the record has a place in its queue: a half message and a rollback have none.
    pub(crate) fn is_queued(&self) -> bool {
        is_queued(self.record.sys_flag())
    }

    /// Whether it is a batch as it was sent, for a queue of batches.
    pub(crate) fn is_inner_batch(&self) -> bool {
        self.record.sys_flag().has(SysFlag::INNER_BATCH)
    }

    /// Whether it ends a transaction without a message.
    pub(crate) fn is_rollback(&self) -> bool {
        self.record.sys_flag().transaction() == TransactionType::Rollback
    }

    /// The key that no other message has, and the keys that its producer gave it.
    pub(crate) fn keys(&self) -> [Option<Cow<'_, str>>; 2] {
        [property::UNIQUE_KEY, property::KEYS].map(|name| self.record.property(name).map(String::from_utf8_lossy))
    }

    /// Hash of the tag; for a delayed message the time of its delivery.
    pub(crate) fn tags_code(&self, delay_levels_ms: &[i64]) -> i64 {
        if self.topic == DELAY_TOPIC {
            let level =
                self.record.property(property::DELAY_TIME_LEVEL).and_then(|level| std::str::from_utf8(level).ok());
            let level = level.and_then(|level| level.parse::<i32>().ok()).and_then(|level| usize::try_from(level).ok());
            if let Some(level) = level.filter(|level| *level > 0) {
                // A level above the last is the last; without levels it is one second.
                let delay = delay_levels_ms.get(level - 1).or(delay_levels_ms.last()).copied().unwrap_or(1000);
                return self.store_timestamp().saturating_add(delay);
            }
        }
        self.record.tags_code()
    }
}

/// Whether a message with that flag gets a queue offset and an entry: all but half messages and rollbacks.
pub(crate) fn is_queued(sys_flag: SysFlag) -> bool {
    !matches!(sys_flag.transaction(), TransactionType::Prepared | TransactionType::Rollback)
}

/// How many messages a record holds: what `INNER_NUM` says of an inner batch, else one.
pub(crate) fn inner_messages(sys_flag: SysFlag, properties: &[u8]) -> i64 {
    if !sys_flag.has(SysFlag::INNER_BATCH) {
        return 1;
    }
    let count = find_property(properties, property::INNER_NUM).and_then(|count| std::str::from_utf8(count).ok());
    let count = count.and_then(|count| count.parse::<i64>().ok());
    count.filter(|count| (1..=BATCH_MESSAGES_MAX).contains(count)).unwrap_or(1)
}

/// Looks at the start of `bytes`, which lie in the log from `at` on, in a segment that ends at `segment_end`.
pub(crate) fn examine(
    bytes: &[u8],
    at: PhysicalOffset,
    segment_end: PhysicalOffset,
    check: Check,
) -> Result<Step<'_>, RecordError> {
    let room = usize::try_from(segment_end - at).unwrap_or(0);
    if bytes.len() < PEEK_BYTES && room >= PEEK_BYTES {
        return Ok(Step::Incomplete { needed: PEEK_BYTES });
    }
    let size = match peek(bytes)? {
        Peeked::Blank { .. } => return Ok(Step::Blank),
        Peeked::Record { size, .. } => size,
    };
    if size > room {
        return Err(RecordError::Truncated { needed: size, available: room });
    }
    if bytes.len() < size {
        return Ok(Step::Incomplete { needed: size });
    }
    let facts = parse(&bytes[..size], at, check)?;
    Ok(Step::Record(facts))
}

/// A checksum of the whole record covers the body too.
fn check_sums(record: &RecordView<'_>, check: Check) -> Result<(), RecordError> {
    let seal = if check == Check::Content { None } else { record.check_seal() };
    match seal {
        Some(checked) => checked,
        None if check == Check::Sealed => Err(RecordError::Unsealed),
        None => record.check_body(),
    }
}

fn parse(bytes: &[u8], at: PhysicalOffset, check: Check) -> Result<Facts<'_>, RecordError> {
    let record = RecordView::parse(bytes)?;
    let place = record.physical_offset();
    if place != at {
        return Err(RecordError::BadLength { field: "physical offset", length: place.0 });
    }
    if check != Check::Structure {
        check_sums(&record, check)?;
        let start = record.size() - record.properties().len();
        let start = at + i64::try_from(start).expect("inside a record");
        if is_torn(record.properties(), start) {
            return Err(RecordError::BadLength { field: "torn properties", length: start.0 });
        }
    }
    let topic = std::str::from_utf8(record.topic()).map_err(|_| RecordError::Topic)?;
    Ok(Facts { topic, record })
}

/// Whether the properties end with zero or a sector's whole share of them is zero. [`has_torn_look`] keeps such properties out of
/// the log.
fn is_torn(properties: &[u8], start: PhysicalOffset) -> bool {
    if !properties.contains(&0) {
        return false;
    }
    let first = usize::try_from(SECTOR - start.0.rem_euclid(SECTOR)).expect("at most a sector").min(properties.len());
    let (head, rest) = properties.split_at(first);
    let is_zero = |part: &[u8]| !part.is_empty() && part.iter().all(|byte| *byte == 0);
    properties.last() == Some(&0) || is_zero(head) || rest.chunks(usize::try_from(SECTOR).expect("small")).any(is_zero)
}

/// Whether properties could be taken for torn ones wherever they came to lie: zero at an end, or for a sector's length.
pub(crate) fn has_torn_look(properties: &[u8]) -> bool {
    let is_edge_zero = properties.first() == Some(&0) || properties.last() == Some(&0);
    let mut run = 0;
    is_edge_zero
        || properties.iter().any(|byte| {
            run = if *byte == 0 { run + 1 } else { 0 };
            run >= SECTOR
        })
}

#[cfg(test)]
mod tests {
    use super::{has_torn_look, is_torn};
    use protocol::PhysicalOffset;

    /// Loses the sectors of `lost` from properties that lie at `start`.
    fn torn(properties: &[u8], start: usize, lost: &[usize]) -> bool {
        let mut bytes = properties.to_vec();
        for (n, byte) in bytes.iter_mut().enumerate() {
            if lost.contains(&((start + n) / 512)) {
                *byte = 0;
            }
        }
        is_torn(&bytes, PhysicalOffset(i64::try_from(start).unwrap()))
    }

    #[test]
    fn every_lost_sector_is_noticed() {
        let properties = [b'x'; 1500];
        for start in [0, 1, 100, 511, 512, 700] {
            assert!(!torn(&properties, start, &[]));
            for sector in start / 512..=(start + 1499) / 512 {
                assert!(torn(&properties, start, &[sector]), "sector {sector} from {start}");
            }
        }
    }

    #[test]
    fn zero_bytes_inside_are_a_users_affair_and_at_the_edges_are_not_let_in() {
        let mut properties = [b'x'; 1500];
        properties[300..700].fill(0);
        assert!(!has_torn_look(&properties));
        for start in 0..1024 {
            assert!(!is_torn(&properties, PhysicalOffset(start)));
        }
        properties[1499] = 0;
        assert!(has_torn_look(&properties));
        properties[1499] = b'x';
        properties[700..812].fill(0);
        assert!(has_torn_look(&properties));
    }
}
