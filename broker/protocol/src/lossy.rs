//! Bytes that ought to be UTF-8, as Java reads them: what is not becomes a replacement character.

use std::borrow::Cow;

/// As [`String::from_utf8_lossy`], which looks at text character by character even if nothing is wrong with it.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
