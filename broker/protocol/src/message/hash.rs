//! Hashes that RocketMQ's files and subscriptions are built on.

/// CRC-32 (IEEE) without its top bit, since Java keeps it as a positive number.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes) & 0x7FFF_FFFF
}

/// Java's `String.hashCode`: over UTF-16 units, wrapping.
#[must_use]
pub fn hash_code(text: &str) -> i32 {
    hash_code_after(0, text)
}

/// [`hash_code`] of a text that begins with one whose hash is `before`, and goes on with this one.
#[must_use]
pub fn hash_code_after(before: i32, text: &str) -> i32 {
    text.encode_utf16().fold(before, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// What a consume queue entry holds for a message with these tags: the hash of the whole text; 0 for none.
#[must_use]
pub fn tags_code(tags: &str) -> i64 {
    i64::from(hash_code(tags))
}

#[cfg(test)]
mod tests {
    use super::{crc32, hash_code, tags_code};

    #[test]
    fn matches_java() {
        for (text, hash) in [
            ("a", 97),
            ("TagA", 2_598_919),
            ("订单", 1_129_459),
            ("TagA || TagB", 1_359_775_119),
            ("zzzzzzzzzzzz", 1_097_476_992),
            ("", 0),
        ] {
            assert_eq!(hash_code(text), hash, "{text}");
            assert_eq!(tags_code(text), i64::from(hash));
        }
        for (text, crc) in [("", 0), ("a", 0x68b7_be43), ("hello", 0x3610_a686)] {
            assert_eq!(crc32(text.as_bytes()), crc, "{text}");
        }
    }
}
