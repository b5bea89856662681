//! The checksum of a whole record, kept as its last property (`enabledAppendPropCRC`): what the checksum of the body does not cover is
//! covered by it.
//!
//! ```text
//! … properties | __CRC32# 01 | ten decimal digits, the least significant first | 02        the digits cover every byte before the name
//! ```
use super::{PROPERTIES_BYTES_MAX, RecordView};
use crate::error::RecordError;
use crate::message::hash::crc32;
use crate::message::property::CRC32;

/// Bytes that a seal takes of the properties.
pub const SEAL_BYTES: usize = 20;
const DIGITS: usize = 10;
const DIGITS_AT: usize = SEAL_BYTES - 1 - DIGITS;
const _: () = assert!(DIGITS_AT == CRC32.len() + 1, "name, separator, digits, separator");

/// Property text with room for a seal at its end, and without any that it had.
#[must_use]
pub fn with_room_for_seal(properties: &str) -> String {
    let mut text = without_seal(properties);
    if !text.is_empty() && !text.ends_with('\u{2}') {
        text.push('\u{2}');
    }
    text.push_str(CRC32);
    text.push('\u{1}');
    text.push_str(&"0".repeat(DIGITS));
    text.push('\u{2}');
    text
}

/// Property text without the property that only a broker may give: one of a client would be taken for the record's checksum.
#[must_use]
pub fn without_seal(properties: &str) -> String {
    let is_seal = |property: &str| property.split_once('\u{1}').is_some_and(|(name, _)| name == CRC32);
    properties.split_inclusive('\u{2}').filter(|property| !is_seal(property)).collect()
}

/// Whether [`without_seal`] would take something away.
#[must_use]
pub fn has_seal(properties: &str) -> bool {
    properties.contains(CRC32) && without_seal(properties).len() < properties.len()
}

/// Fills in the checksum of a record that is complete otherwise.
///
/// # Panics
/// If the record has no room for it: see [`with_room_for_seal`].
pub fn seal(record: &mut [u8]) {
    let at = record.len().checked_sub(SEAL_BYTES).expect("records are longer");
    assert!(is_seal(&record[at..]), "the properties end with room for a seal");
    let digits = digits_of(crc32(&record[..at]));
    record[at + DIGITS_AT..at + DIGITS_AT + DIGITS].copy_from_slice(&digits);
}

fn is_seal(bytes: &[u8]) -> bool {
    let (head, tail) = bytes.split_at(DIGITS_AT);
    head.strip_prefix(CRC32.as_bytes()) == Some(&[1]) && tail.last() == Some(&2)
}

fn digits_of(mut checksum: u32) -> [u8; DIGITS] {
    std::array::from_fn(|_| {
        let digit = u8::try_from(checksum % 10).expect("a digit");
        checksum /= 10;
        b'0' + digit
    })
}

impl RecordView<'_> {
    /// Whether the whole record is what was stored; `None` if it has no seal.
    ///
    /// # Errors
    /// It is not.
    #[must_use]
    pub fn check_seal(&self) -> Option<Result<(), RecordError>> {
        debug_assert!(self.properties().len() <= PROPERTIES_BYTES_MAX, "checked when it was parsed");
        let at = self.properties().len().checked_sub(SEAL_BYTES)?;
        let sealed = &self.properties()[at..];
        if !is_seal(sealed) {
            return None;
        }
        let computed = digits_of(crc32(&self.bytes()[..self.size() - SEAL_BYTES]));
        let stored = &sealed[DIGITS_AT..DIGITS_AT + DIGITS];
        let text = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
        let wrong = || RecordError::Seal { stored: text(stored), computed: text(&computed) };
        Some(if stored == computed { Ok(()) } else { Err(wrong()) })
    }
}

#[cfg(test)]
mod tests {
    use super::{digits_of, has_seal, with_room_for_seal, without_seal};

    #[test]
    fn digits_are_those_of_apache() {
        assert_eq!(&digits_of(1_234_567), b"7654321000");
        assert_eq!(&digits_of(0), b"0000000000");
    }

    #[test]
    fn only_the_broker_seals() {
        assert_eq!(with_room_for_seal(""), "__CRC32#\u{1}0000000000\u{2}");
        assert_eq!(with_room_for_seal("A\u{1}1"), "A\u{1}1\u{2}__CRC32#\u{1}0000000000\u{2}");
        let forged = "A\u{1}1\u{2}__CRC32#\u{1}12\u{2}B\u{1}2\u{2}";
        assert_eq!(without_seal(forged), "A\u{1}1\u{2}B\u{1}2\u{2}");
        assert!(has_seal(forged));
        assert!(!has_seal("A\u{1}__CRC32#\u{2}") && !has_seal("A\u{1}1\u{2}"));
    }
}
