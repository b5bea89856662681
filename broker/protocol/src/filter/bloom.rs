//! Which groups a stored message is for, in a few bits (`BloomFilter`).
use super::bits::BitsArray;
use super::murmur;
use serde::{Deserialize, Serialize};

/// The bits of one group and topic, as stored with its filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BloomFilterData {
    /// Bits of the whole filter when these were chosen.
    pub bit_num: i32,
    /// Positions.
    pub bit_pos: Vec<i32>,
}

/// The size of the filter, and how many bits each entry gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloomFilter {
    hashes: i32,
    bits: i32,
}

impl BloomFilter {
    /// A filter for so many entries with at most so many false hits in a hundred; none: there is no such filter.
    #[must_use]
    pub fn new(error_percent: i32, entries: i32) -> Option<BloomFilter> {
        if !(1..100).contains(&error_percent) || entries < 1 {
            return None;
        }
        let log = |base: f64, number: f64| number.ln() / base.ln();
        let error = f64::from(error_percent) / 100.0;
        let hashes = rounded(log(0.5, error).ceil());
        let bits = rounded((f64::from(entries) * log(2.0, 1.0 / error) * log(2.0, std::f64::consts::E)).ceil());
        let bits = i32::try_from((i64::from(bits) + 7) / 8 * 8).ok()?;
        Some(BloomFilter { hashes, bits })
    }

    /// Bits of each entry.
    #[must_use]
    pub fn hashes(&self) -> i32 {
        self.hashes
    }

    /// Bits of the filter, whole bytes.
    #[must_use]
    pub fn bits(&self) -> i32 {
        self.bits
    }

    /// The bits of a group's filter of a topic.
    #[must_use]
    pub fn of_subscription(&self, group: &str, topic: &str) -> BloomFilterData {
        self.of(&format!("{group}#{topic}"))
    }

    /// The bits of an entry.
    #[must_use]
    pub fn of(&self, entry: &str) -> BloomFilterData {
        let hash = murmur::hash(entry.as_bytes());
        let (low, high) = (hash as u32, (hash >> 32) as u32);
        let position = |number: u32| {
            let combined = low.wrapping_add(number.wrapping_mul(high)).cast_signed();
            (if combined < 0 { !combined } else { combined }) % self.bits
        };
        BloomFilterData { bit_num: self.bits, bit_pos: (1..=self.hashes.cast_unsigned()).map(position).collect() }
    }

    /// Whether the bits were chosen by such a filter.
    #[must_use]
    pub fn is_valid(&self, data: &BloomFilterData) -> bool {
        let in_range = |position: &i32| (0..self.bits).contains(position);
        data.bit_num == self.bits
            && i32::try_from(data.bit_pos.len()) == Ok(self.hashes)
            && data.bit_pos.iter().all(in_range)
    }

    /// A row of bits of the filter's size.
    #[must_use]
    pub fn empty(&self) -> BitsArray {
        BitsArray::unset(usize::try_from(self.bits).expect("above zero"))
    }
}

impl BloomFilterData {
    /// Sets the entry's bits. Bits out of range, which no valid entry has, are passed over.
    pub fn put(&self, bits: &mut BitsArray) {
        for position in self.positions().filter(|position| *position < bits.len()).collect::<Vec<_>>() {
            bits.set(position);
        }
    }

    /// Whether all of the entry's bits are set: the entry may have been put, or is not there for sure.
    #[must_use]
    pub fn is_hit(&self, bits: &BitsArray) -> bool {
        self.positions().all(|position| bits.is_set(position))
    }

    fn positions(&self) -> impl Iterator<Item = usize> {
        self.bit_pos.iter().map(|position| usize::try_from(*position).unwrap_or(usize::MAX))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "as Java narrows a double, which ends at the largest int as well")]
fn rounded(number: f64) -> i32 {
    number as i32
}
