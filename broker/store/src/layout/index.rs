//! Bytes of an index file.
//!
//! ```text
//! header   0          8        16      24    32      36      40
//!          | begin ms | end ms | begin | end | slots | count |      begin, end: offsets in the commit log of the first and last entry
//!
//! slots    40 + 4 n: number of the newest entry whose hash modulo the count of slots is n; 0: none
//!
//! entry i  40 + 4 slots + 20 i
//!          0      4        12        16         20
//!          | hash | offset | seconds | previous |                   entry 0 is never used; seconds: since the file's begin
//! ```
use super::{be_i32, be_i64, be_u32};
use protocol::PhysicalOffset;
use protocol::message::{hash_code, hash_code_after};

/// How large the files of an index are (`maxHashSlotNum`, `maxIndexNum`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexSizes {
    pub(crate) slots: u32,
    /// Entries, the one that is never used included.
    pub(crate) entries: u32,
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    pub(crate) begin_ms: i64,
    pub(crate) end_ms: i64,
    pub(crate) begin: PhysicalOffset,
    pub(crate) end: PhysicalOffset,
    /// Slots that name an entry.
    pub(crate) used_slots: u32,
    /// Number of the next entry.
    pub(crate) count: u32,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) hash: i32,
    pub(crate) physical: PhysicalOffset,
    pub(crate) seconds: i32,
    pub(crate) previous: u32,
}

/// The hash of a message's key: without sign, of topic and key.
pub(crate) fn key_hash(topic: &str, key: &str) -> i32 {
    let hash = hash_code_after(hash_code_after(hash_code(topic), "#"), key);
    hash.checked_abs().unwrap_or(0)
}

impl IndexSizes {
    pub(crate) fn file_bytes(self) -> u64 {
        self.entry_position(self.entries)
    }

    pub(crate) fn slots_bytes(self) -> usize {
        self.slots as usize * 4
    }

    pub(crate) fn slot_of(self, hash: i32) -> usize {
        (hash.unsigned_abs() % self.slots) as usize
    }

    pub(crate) fn entry_position(self, number: u32) -> u64 {
        (IndexHeader::BYTES + self.slots_bytes()) as u64 + u64::from(number) * IndexEntry::BYTES as u64
    }
}

impl IndexHeader {
    pub(crate) const BYTES: usize = 40;
    pub(crate) const EMPTY: IndexHeader = IndexHeader {
        begin_ms: 0,
        end_ms: 0,
        begin: PhysicalOffset::ZERO,
        end: PhysicalOffset::ZERO,
        used_slots: 0,
        count: 1,
    };

    /// Of the file that comes after a full one.
    pub(crate) fn follower(self) -> IndexHeader {
        let IndexHeader { end_ms, end, .. } = self;
        IndexHeader { begin_ms: end_ms, end_ms, begin: end, end, ..IndexHeader::EMPTY }
    }

    /// Without entries, but with the begin that times of entries count from.
    pub(crate) fn emptied(self) -> IndexHeader {
        let IndexHeader { begin_ms, begin, .. } = self;
        IndexHeader { begin_ms, end_ms: begin_ms, begin, end: begin, ..IndexHeader::EMPTY }
    }

    pub(crate) fn is_full(self, sizes: IndexSizes) -> bool {
        self.count >= sizes.entries
    }

    /// Seconds of an entry that is stored at this time.
    pub(crate) fn seconds_since_begin(self, store_ms: i64) -> i32 {
        if self.begin_ms <= 0 {
            return 0;
        }
        let seconds = store_ms.saturating_sub(self.begin_ms) / 1000;
        i32::try_from(seconds.max(0)).unwrap_or(i32::MAX)
    }

    /// One more entry.
    pub(crate) fn take(&mut self, physical: PhysicalOffset, store_ms: i64, is_first_of_slot: bool) {
        if self.count <= 1 {
            (self.begin, self.begin_ms) = (physical, store_ms);
        }
        (self.end, self.end_ms) = (physical, store_ms);
        self.used_slots += u32::from(is_first_of_slot);
        self.count += 1;
    }

    pub(crate) fn encode(self) -> [u8; IndexHeader::BYTES] {
        let mut out = [0; IndexHeader::BYTES];
        out[..8].copy_from_slice(&self.begin_ms.to_be_bytes());
        out[8..16].copy_from_slice(&self.end_ms.to_be_bytes());
        out[16..24].copy_from_slice(&self.begin.0.to_be_bytes());
        out[24..32].copy_from_slice(&self.end.0.to_be_bytes());
        out[32..36].copy_from_slice(&self.used_slots.to_be_bytes());
        out[36..].copy_from_slice(&self.count.to_be_bytes());
        out
    }

    /// A count that no file can have is that of an empty one.
    pub(crate) fn decode(bytes: &[u8; IndexHeader::BYTES], sizes: IndexSizes) -> IndexHeader {
        let count = be_u32(bytes, 36);
        IndexHeader {
            begin_ms: be_i64(bytes, 0),
            end_ms: be_i64(bytes, 8),
            begin: PhysicalOffset(be_i64(bytes, 16)),
            end: PhysicalOffset(be_i64(bytes, 24)),
            used_slots: be_u32(bytes, 32),
            count: if count <= sizes.entries { count.max(1) } else { 1 },
        }
    }
}

impl IndexEntry {
    pub(crate) const BYTES: usize = 20;

    /// Nothing was written there.
    pub(crate) fn is_used(self) -> bool {
        self.hash >= 0 && self.seconds >= 0 && self != IndexEntry::decode(&[0; IndexEntry::BYTES])
    }

    pub(crate) fn encode(self) -> [u8; IndexEntry::BYTES] {
        let mut out = [0; IndexEntry::BYTES];
        out[..4].copy_from_slice(&self.hash.to_be_bytes());
        out[4..12].copy_from_slice(&self.physical.0.to_be_bytes());
        out[12..16].copy_from_slice(&self.seconds.to_be_bytes());
        out[16..].copy_from_slice(&self.previous.to_be_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; IndexEntry::BYTES]) -> IndexEntry {
        IndexEntry {
            hash: be_i32(bytes, 0),
            physical: PhysicalOffset(be_i64(bytes, 4)),
            seconds: be_i32(bytes, 12),
            previous: be_u32(bytes, 16),
        }
    }
}
