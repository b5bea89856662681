//! Units of the extension of a consume queue: what there is no room for in an entry (`ConsumeQueueExt.CqExtUnit`).
//!
//! ```text
//! root/consumequeue_ext/<topic>/<queue>/<20 digits>   files of `mappedFileSizeConsumeQueueExt`, named by the place of byte 0
//!
//! unit         0      2          10           18               20
//!              | size | tag hash | store time | bit map's size | bit map |      size: of the whole unit
//!
//! end          0      2
//!              | -1   |  zero or anything: the next unit begins the next file
//! ```
//! The place of a unit, plus the smallest signed 64-bit number, stands in the queue entry where others have the hash of the tag. A hash is
//! a signed 32-bit number, so the two can be told apart.
use super::be_i64;
use std::ops::Range;

pub(crate) const EXTENSION_DIR: &str = "consumequeue_ext";

/// Bytes of a unit without its bit map.
pub(crate) const UNIT_MIN: usize = 20;
const _: () = assert!(UNIT_MIN == 2 + 8 + 8 + 2);
/// Its size is a signed 16-bit number.
pub(crate) const UNIT_MAX: usize = i16::MAX as usize;
/// So much room is always kept at the end of a file.
pub(crate) const UNIT_END_BYTES: u64 = 4;
/// Stands where the next unit would be, if that is in the next file.
pub(crate) const UNIT_END: [u8; 2] = (-1_i16).to_be_bytes();
/// Values up to this one are places of units.
const ADDRESS_MAX: i64 = i32::MIN as i64 - 1;
/// Places that an address can say.
const PLACES: Range<u64> = 0..(ADDRESS_MAX as u64).wrapping_sub(i64::MIN as u64) + 1;

/// What an entry says of its message besides where its record is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) tags_code: i64,
    pub(crate) store_timestamp: i64,
    /// Which filters the message passes; empty if nobody has looked.
    pub(crate) bit_map: Vec<u8>,
}

impl Unit {
    pub(crate) fn size(&self) -> usize {
        UNIT_MIN + self.bit_map.len()
    }

    /// The bytes; none if the bit map is too long.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let size = i16::try_from(self.size()).ok()?;
        let bit_map_size = i16::try_from(self.bit_map.len()).ok()?;
        let mut out = Vec::with_capacity(self.size());
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&self.tags_code.to_be_bytes());
        out.extend_from_slice(&self.store_timestamp.to_be_bytes());
        out.extend_from_slice(&bit_map_size.to_be_bytes());
        out.extend_from_slice(&self.bit_map);
        Some(out)
    }

    /// The unit at the start of `bytes`, if there is a whole one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Unit> {
        let (head, rest) = bytes.split_at_checked(UNIT_MIN)?;
        let size = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let bit_map_size = usize::from(u16::from_be_bytes([head[18], head[19]]));
        if size != UNIT_MIN + bit_map_size || size > UNIT_MAX {
            return None;
        }
        let bit_map = rest.get(..bit_map_size)?.to_vec();
        Some(Unit { tags_code: be_i64(head, 2), store_timestamp: be_i64(head, 10), bit_map })
    }
}

/// What stands in the entry of a unit at that place; none if no entry can say so.
pub(crate) fn address_of(place: u64) -> Option<i64> {
    PLACES.contains(&place).then(|| i64::MIN.wrapping_add_unsigned(place))
}

/// The place of the unit that an entry names, if it does not have the hash of a tag itself (`isExtAddr`).
pub(crate) fn place_of(tags_code: i64) -> Option<u64> {
    (tags_code <= ADDRESS_MAX).then(|| tags_code.wrapping_sub(i64::MIN).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::{Unit, address_of, place_of};

    #[test]
    fn round_trip() {
        let unit = Unit { tags_code: -70, store_timestamp: 0x0102_0304, bit_map: vec![0, 1, 0x40] };
        let bytes = unit.encode().unwrap();
        let head = [0, 23, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xba, 0, 0, 0, 0, 1, 2, 3, 4, 0, 3];
        assert_eq!(bytes, [&head[..], &[0, 1, 0x40]].concat());
        assert_eq!(Unit::decode(&bytes), Some(unit));
        for end in 0..bytes.len() {
            assert_eq!(Unit::decode(&bytes[..end]), None, "{end} bytes");
        }
        assert_eq!(Unit::decode(&[0; 40]), None);
        assert_eq!(Unit::decode(&[0xff; 40]), None);
        assert_eq!(Unit { bit_map: vec![0; 32_748], ..Unit::default() }.encode(), None);
    }

    #[test]
    fn places_and_hashes_are_told_apart() {
        assert_eq!(address_of(0), Some(i64::MIN));
        assert_eq!(address_of(476), Some(-9_223_372_036_854_775_332));
        assert_eq!(address_of(9_223_372_034_707_292_159), Some(-2_147_483_649));
        assert_eq!(address_of(9_223_372_034_707_292_160), None);
        for place in [0, 476, 9_223_372_034_707_292_159] {
            assert_eq!(place_of(address_of(place).unwrap()), Some(place));
        }
        for hash in [0, 70, i64::from(i32::MIN), i64::from(i32::MAX), i64::MAX] {
            assert_eq!(place_of(hash), None);
        }
    }
}
