//! JSON as fastjson speaks it.
//!
//! RocketMQ's bodies are not always JSON: map keys that are numbers stand bare (`{0:"a"}`), keys that are objects stand as objects.
//! The reader takes that and more (single quotes, bare keys, stray commas, numbers as texts, enum ordinals, names in any case,
//! `$ref`); what is missing or null takes the type's default. The writer makes either the dialect, byte for byte what Java
//! would write apart from map order, or strict JSON.

mod de;
mod parse;
mod scan;
mod ser;

pub(crate) use parse::{Value, parse};
pub(crate) use scan::quote_or_escape;
pub(crate) use ser::{write_number, write_text};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::JsonError;
use crate::lossy::lossy;

/// Reads a body.
///
/// # Errors
/// The text is not JSON, is nested or repeated beyond the limits, or a value has the wrong shape.
pub fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, JsonError> {
    from_str(&lossy(body))
}

/// Reads a body from text.
///
/// # Errors
/// As [`from_slice`].
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    T::deserialize(de::Lenient(parse(text)?))
}

/// Writes a body in fastjson's dialect: null members omitted, number keys bare, object keys raw, UTF-8 unescaped.
///
/// # Errors
/// The value holds something that no RocketMQ body has (bytes, enum variants with data, keys of odd types).
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    ser::write(value, ser::Style::Fastjson)
}

/// Writes a body as strict JSON: number keys quoted, object keys as texts that hold JSON, everything outside ASCII escaped.
///
/// # Errors
/// As [`to_vec`].
pub fn to_vec_strict<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    ser::write(value, ser::Style::Strict)
}

/// Writes a body in fastjson's dialect, indented, for configuration files that people open.
///
/// # Errors
/// As [`to_vec`].
pub fn to_vec_pretty<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    let compact = to_vec(value)?;
    let text = String::from_utf8(compact).expect("the writer writes utf-8");
    Ok(ser::pretty(&parse(&text)?).into_bytes())
}

#[cfg(test)]
mod tests;
