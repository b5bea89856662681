//! Upper-case hexadecimal digits, without the formatter: each message has two ids of them.

/// Writes two digits for each byte to the front of `room`.
///
/// # Panics
/// If there is no room for them.
pub(crate) fn upper<'a>(bytes: &[u8], room: &'a mut [u8]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let room = &mut room[..bytes.len() * 2];
    for (digits, byte) in room.chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 0xF)];
    }
    std::str::from_utf8(room).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_byte_is_as_the_formatter_writes_it() {
        for byte in 0..=u8::MAX {
            assert_eq!(super::upper(&[0, byte], &mut [0; 9]), format!("00{byte:02X}"));
        }
    }
}
