//! The two kinds of queue, and what an entry of either says.
//!
//! ```text
//! root/batchconsumequeue/<topic>/<queue>/<20 digits>   files of `mapperFileSizeBatchConsumeQueue`, named by 46 x the number of entry 0
//!
//! entry        0        8      12         20           28           36      38        42
//!              | offset | size | tag hash | store time | base offset | count | -1      | 0   |     46 bytes
//! ```
//! An entry of a batch queue stands for `count` messages in one record, from queue offset `base offset` on; the field of -1 is where the
//! compaction of a topic counts (`BatchConsumeQueue`).
use super::{ENTRY_SIZE, Entry, be_i32, be_i64};
use protocol::{PhysicalOffset, QueueOffset};

/// Queues of topics that hold batches as they were sent (`StorePathConfigHelper.getStorePathBatchConsumeQueue`).
pub(crate) const BATCH_QUEUE_DIR: &str = "batchconsumequeue";
/// Bytes of an entry of a batch queue.
pub(crate) const BATCH_ENTRY_SIZE: usize = 46;
const _: () = assert!(BATCH_ENTRY_SIZE == 8 + 4 + 8 + 8 + 8 + 2 + 4 + 4);
/// No message of a topic that is not compacted has a place in its compaction.
const NOT_COMPACTED: i32 = -1;
/// The count is a signed 16-bit number.
pub(crate) const BATCH_MESSAGES_MAX: i64 = i16::MAX as i64;

/// How a queue finds its entries (`CQType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Entry *n* is that of queue offset *n*.
    Simple,
    /// Each entry says its queue offset, and how many messages it is for.
    Batch,
}

/// An entry and the messages that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    pub(crate) entry: Entry,
    /// Of the first message.
    pub(crate) offset: QueueOffset,
    /// Messages.
    pub(crate) count: i64,
}

impl QueueEntry {
    /// Behind the last message.
    pub(crate) fn next(&self) -> QueueOffset {
        self.offset + self.count
    }
}

impl QueueKind {
    pub(crate) fn entry_bytes(self) -> usize {
        match self {
            QueueKind::Simple => ENTRY_SIZE,
            QueueKind::Batch => BATCH_ENTRY_SIZE,
        }
    }

    pub(crate) fn encode(self, queued: &QueueEntry, store_timestamp: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&queued.entry.encode());
        if self == QueueKind::Batch {
            out.extend_from_slice(&store_timestamp.to_be_bytes());
            out.extend_from_slice(&queued.offset.0.to_be_bytes());
            let count = i16::try_from(queued.count).expect("counts are checked where they enter");
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&NOT_COMPACTED.to_be_bytes());
            out.extend_from_slice(&0_i32.to_be_bytes());
        }
    }

    /// `number`: which entry of the queue it is.
    pub(crate) fn decode(self, bytes: &[u8], number: i64) -> QueueEntry {
        let (physical, size) = (PhysicalOffset(be_i64(bytes, 0)), be_i32(bytes, 8));
        let entry = Entry { physical, size, tags_code: be_i64(bytes, 12) };
        match self {
            QueueKind::Simple => QueueEntry { entry, offset: QueueOffset(number), count: 1 },
            QueueKind::Batch => QueueEntry {
                entry,
                offset: QueueOffset(be_i64(bytes, 28)),
                count: i64::from(i16::from_be_bytes([bytes[36], bytes[37]])),
            },
        }
    }

    /// End of the entry's record if it can follow one that ended at `last_end` and messages up to `next`, and ends at or below `limit`.
    pub(crate) fn end_after(
        self,
        queued: &QueueEntry,
        (last_end, next): (PhysicalOffset, QueueOffset),
        limit: PhysicalOffset,
    ) -> Option<PhysicalOffset> {
        let is_possible =
            self == QueueKind::Simple || (queued.offset >= next && queued.count > 0 && !queued.entry.is_hole());
        queued.entry.end_after(last_end, limit).filter(|_| is_possible)
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_ENTRY_SIZE, QueueEntry, QueueKind};
    use crate::layout::Entry;
    use protocol::{PhysicalOffset, QueueOffset};

    #[test]
    fn round_trip() {
        let entry = Entry { physical: PhysicalOffset(0x0102), size: 3, tags_code: -1 };
        let queued = QueueEntry { entry, offset: QueueOffset(7), count: 5 };
        let mut bytes = Vec::new();
        QueueKind::Batch.encode(&queued, 0x0607, &mut bytes);
        let expected = [
            0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 6, 7,
            0, 0, 0, 0, 0, 0, 0, 7, 0, 5, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len(), BATCH_ENTRY_SIZE);
        assert_eq!(QueueKind::Batch.decode(&bytes, 99), queued);
        assert_eq!(QueueKind::Simple.decode(&bytes, 99), QueueEntry { entry, offset: QueueOffset(99), count: 1 });
    }
}
