//! Names and bytes of the files: each layout stands here once.
//!
//! ```text
//! root/commitlog/<20 digits>                        segments of `mappedFileSizeCommitLog`, named by the log offset of byte 0
//! root/consumequeue/<topic>/<queue>/<20 digits>     files of `mappedFileSizeConsumeQueue`, named by 20 x the queue offset of entry 0
//! root/batchconsumequeue/<topic>/<queue>/<20 digits> queues of another kind: see `layout/queue_entry.rs`
//! root/consumequeue_ext/<topic>/<queue>/<20 digits> what there is no room for in entries: see `layout/extension.rs`
//! root/index/<17 digits>                            files of an index, named by the time of their creation: see `layout/index.rs`
//! root/timerwheel, root/timerlog/<20 digits>, root/config/timercheck    what waits for a moment: see `layout/timer.rs`
//! root/checkpoint                                   one page of 4096 bytes
//! root/abort                                        process id as text; there while the store runs
//! root/lock                                         the text `lock`; locked while the store runs
//!
//! queue entry  0        8     12         20
//!              | offset | size | tag hash |     offset, size: of the record in the commit log; instead of the hash: the time of delivery
//!                                              of a delayed message, or where the entry's unit is in the extension
//!
//! blank record 0      4       8
//!              | size | magic |  size - 8 bytes of anything: fills a segment to its end
//!
//! record       0    4     8   12      16   20           28              36      40   48        48+b         56+b  …
//!              |size|magic|crc|queueId|flag|queueOffset |physicalOffset |sysFlag|born|bornHost |storeTime   |storeHost …
//!
//! checkpoint   0       8        16      24                    32       40                                            80
//!              | log ms| queue ms| index ms| masterFlushedOffset | confirm | Hotfire's part: see `checkpoint.rs`     |
//! ```
mod extension;
mod index;
mod queue_entry;
mod timer;

pub(crate) use extension::{EXTENSION_DIR, UNIT_END, UNIT_END_BYTES, UNIT_MAX, UNIT_MIN, Unit, address_of, place_of};
pub(crate) use index::{IndexEntry, IndexHeader, IndexSizes, key_hash};
pub(crate) use queue_entry::{BATCH_ENTRY_SIZE, BATCH_MESSAGES_MAX, BATCH_QUEUE_DIR, QueueEntry, QueueKind};
pub(crate) use timer::{
    CONFIG_DIR, Slot, TIMER_BLANK_BYTES, TIMER_CHECKPOINT_FILE, TIMER_LOG_DIR, TIMER_WHEEL_FILE, WHEEL_BYTES,
    WHEEL_REACH, WHEEL_SLOTS, timer_blank,
};
pub use timer::{TimerCheckpoint, TimerUnit};

use protocol::{PhysicalOffset, QueueOffset};
use std::path::Path;

pub(crate) const COMMIT_LOG_DIR: &str = "commitlog";
pub(crate) const CONSUME_QUEUE_DIR: &str = "consumequeue";
pub(crate) const INDEX_DIR: &str = "index";
pub(crate) const CHECKPOINT_FILE: &str = "checkpoint";
pub(crate) const ABORT_FILE: &str = "abort";
pub(crate) const LOCK_FILE: &str = "lock";

/// A segment holds at least one record of a message without a body, and the size of a blank record fits a signed 32-bit number.
pub(crate) const SEGMENT_SIZE_MIN: u64 = 256;
pub(crate) const SEGMENT_SIZE_MAX: u64 = (1 << 31) - 1;
/// A record's size must fit a signed 32-bit integer with room for properties.
pub(crate) const MESSAGE_SIZE_MAX: u64 = 1 << 30;
pub(crate) const PAGE: u64 = 4096;

/// So much room is always kept at the end of a segment: a blank record's size and magic code.
pub(crate) const BLANK_HEADER: usize = protocol::message::record::PEEK_BYTES;

/// Bytes of a queue entry.
pub(crate) const ENTRY_SIZE: usize = 20;
const _: () = assert!(ENTRY_SIZE == 8 + 4 + 8);

/// One entry of a consume queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) physical: PhysicalOffset,
    pub(crate) size: i32,
    pub(crate) tags_code: i64,
}

impl Entry {
    /// Stands for queue offsets before the first that this log has seen: 0, the largest size, 0 (Apache's pre-fill).
    pub(crate) const BLANK: Entry = Entry { physical: PhysicalOffset(0), size: i32::MAX, tags_code: 0 };

    pub(crate) fn encode(self) -> [u8; ENTRY_SIZE] {
        let mut out = [0; ENTRY_SIZE];
        out[..8].copy_from_slice(&self.physical.0.to_be_bytes());
        out[8..12].copy_from_slice(&self.size.to_be_bytes());
        out[12..].copy_from_slice(&self.tags_code.to_be_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; ENTRY_SIZE]) -> Entry {
        Entry { physical: PhysicalOffset(be_i64(bytes, 0)), size: be_i32(bytes, 8), tags_code: be_i64(bytes, 12) }
    }

    /// Names something: a record or, if [`is_hole`](Self::is_hole), nothing for ever.
    pub(crate) fn is_used(self) -> bool {
        self.physical.0 >= 0 && self.size > 0
    }

    /// Stands for an entry that is lost for good, behind a record that ends at `at`.
    pub(crate) fn hole(at: PhysicalOffset) -> Entry {
        Entry { physical: at, size: i32::MAX, tags_code: 0 }
    }

    /// Names no record: a hole or [`BLANK`](Self::BLANK).
    pub(crate) fn is_hole(self) -> bool {
        self.size == i32::MAX
    }

    /// The end of this entry's record if the entry can follow one that ended at `last_end` and the record ends at or below
    /// `limit`; a hole ends where it stands.
    pub(crate) fn end_after(self, last_end: PhysicalOffset, limit: PhysicalOffset) -> Option<PhysicalOffset> {
        if self == Entry::BLANK {
            return Some(last_end);
        }
        let end = if self.is_hole() { self.physical } else { self.end() };
        (self.is_used() && self.physical >= last_end && end <= limit).then_some(end)
    }

    /// End of the record that the entry names.
    pub(crate) fn end(self) -> PhysicalOffset {
        self.physical + i64::from(self.size)
    }
}

/// Byte position of an entry in its queue, over all files.
pub(crate) fn entry_position(offset: QueueOffset) -> u64 {
    u64::try_from(offset.0).expect("queue offsets are checked where they enter").saturating_mul(ENTRY_SIZE as u64)
}

/// 20 digits.
pub(crate) fn file_name(offset: u64) -> String {
    format!("{offset:020}")
}

/// The offset that a file's name says, if it is a name of ours.
pub(crate) fn parse_file_name(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let is_offset = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
    // Positions are signed 64-bit numbers everywhere else.
    is_offset.then(|| name.parse::<u64>().ok()).flatten().filter(|offset| i64::try_from(*offset).is_ok())
}

pub(crate) fn be_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn be_i64(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::{Entry, file_name, parse_file_name};
    use protocol::PhysicalOffset;
    use std::path::Path;

    #[test]
    fn entry_round_trip() {
        let entry = Entry { physical: PhysicalOffset(0x0102_0304_0506), size: 77, tags_code: -5 };
        assert_eq!(Entry::decode(&entry.encode()), entry);
        assert!(Entry::BLANK.is_used());
        assert!(Entry::BLANK.is_hole());
    }

    #[test]
    fn only_twenty_digits_are_a_file_name() {
        assert_eq!(file_name(262_144), "00000000000000262144");
        assert_eq!(parse_file_name(Path::new("x/00000000000000262144")), Some(262_144));
        for bad in ["0000000000000026214", "0000000000000026214x", "99999999999999999999", "+0000000000000262144"] {
            assert_eq!(parse_file_name(Path::new(bad)), None, "{bad}");
        }
    }
}
