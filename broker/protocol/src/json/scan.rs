//! Looks for the bytes that a text's writer and reader care about. The texts of headers are too short for a call into a searching library
//! to pay.

/// The same byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_be_bytes([byte; 8])
}

const HIGH_BITS: u64 = all(0x80);

/// Bytes that do not stand for themselves in a text.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped[0x7F] = true;
    escaped
};

/// Where the first quote or backslash stands. One by one: the reader's texts are a few bytes long, and it needs them to their end.
#[inline]
pub(crate) fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'))
}

/// Where the first byte stands that JSON escapes: a control character, a quote, a backslash. Eight at a time, for most texts have none.
#[inline]
pub(crate) fn to_be_escaped(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        if let Some(run) = first_escaped(*eight) {
            return Some(at + run);
        }
        at += 8;
    }
    bytes[at..].iter().position(|byte| ESCAPED[usize::from(*byte)]).map(|run| at + run)
}

#[inline]
fn first_escaped(eight: [u8; 8]) -> Option<usize> {
    let eight = u64::from_be_bytes(eight);
    let low_bits = eight & !HIGH_BITS;
    // The high bit of each byte that stands for itself; of one above 0x7F it is there already.
    let printable = low_bits + all(0x80 - 0x20);
    let plain = printable & differ(low_bits, b'"') & differ(low_bits, b'\\') & differ(low_bits, 0x7F) | eight;
    let escaped = !plain & HIGH_BITS;
    (escaped != 0).then(|| escaped.leading_zeros() as usize / 8)
}

/// The high bit of each of eight bytes below 0x80, unless it is this one.
#[inline]
fn differ(low_bits: u64, byte: u8) -> u64 {
    (low_bits ^ all(byte)) + all(0x7F)
}

#[cfg(test)]
mod tests {
    use super::{quote_or_escape, to_be_escaped};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_bytes_at_once_are_seen_as_one_by_one(bytes in proptest::collection::vec(proptest::prop_oneof![proptest::num::u8::ANY, 0x61..0x63_u8], 0..40)) {
            let quote = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(quote_or_escape(&bytes), quote);
            let escaped = bytes.iter().position(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(to_be_escaped(&bytes), escaped);
        }
    }

    #[test]
    fn each_byte_is_seen_in_each_place() {
        for byte in 0..=u8::MAX {
            for at in 0..17 {
                let mut bytes = [b'a'; 17];
                bytes[at] = byte;
                let is_quote = matches!(byte, b'"' | b'\\');
                assert_eq!(quote_or_escape(&bytes), is_quote.then_some(at), "byte {byte:#x}");
                assert_eq!(
                    to_be_escaped(&bytes),
                    (is_quote || byte.is_ascii_control()).then_some(at),
                    "byte {byte:#x}"
                );
            }
        }
    }
}
