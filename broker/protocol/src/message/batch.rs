//! The client batch: the body of a send that carries several messages.
//!
//! ```text
//! per message: size i32 | magic i32 = 0 | crc i32 = 0 | flag i32 | bodyLen i32, body | propertiesLen i16, properties
//! ```
//! The broker makes one record of each; topic, system flag, birth and hosts come from the request.

use bytes::{BufMut, Bytes, BytesMut};

use super::record::PROPERTIES_BYTES_MAX;
use super::{Message, Properties};
use crate::error::BatchError;

/// Size of an entry with empty body and properties.
const SIZE_MIN: usize = 22;

/// One message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEntry {
    /// User's flag.
    pub flag: i32,
    /// Body, never compressed.
    pub body: Bytes,
    /// Property text as the producer wrote it.
    pub properties: Bytes,
}

impl BatchEntry {
    /// The entry of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        Self { flag: message.flag, body: message.body.clone(), properties: message.properties.to_text().into() }
    }

    /// The properties, read.
    #[must_use]
    pub fn properties(&self) -> Properties {
        Properties::parse_bytes(&self.properties)
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), BatchError> {
        limit("properties", self.properties.len(), PROPERTIES_BYTES_MAX)?;
        let size = SIZE_MIN + self.body.len() + self.properties.len();
        limit("body", size, i32::MAX as usize)?;
        out.reserve(size);
        out.put_i32(i32::try_from(size).expect("checked above"));
        out.put_u64(0);
        out.put_i32(self.flag);
        out.put_i32(i32::try_from(self.body.len()).expect("smaller than the size"));
        out.extend_from_slice(&self.body);
        out.put_u16(u16::try_from(self.properties.len()).expect("checked above"));
        out.extend_from_slice(&self.properties);
        Ok(())
    }
}

fn limit(field: &'static str, length: usize, limit: usize) -> Result<(), BatchError> {
    if length > limit { Err(BatchError::TooLong { field, length, limit }) } else { Ok(()) }
}

/// Writes a batch.
///
/// # Errors
/// A body or property text is too long for its length field.
pub fn encode<'a>(entries: impl IntoIterator<Item = &'a BatchEntry>) -> Result<Bytes, BatchError> {
    let mut out = BytesMut::new();
    for entry in entries {
        entry.encode(&mut out)?;
    }
    Ok(out.freeze())
}

/// Reads a batch, sharing its memory. Magic and checksum of the entries mean nothing.
///
/// # Errors
/// The bytes end inside an entry, lengths do not add up, or there are more than `entries_max` entries.
pub fn decode(input: &Bytes, entries_max: usize) -> Result<Vec<BatchEntry>, BatchError> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at < input.len() {
        if entries.len() == entries_max {
            return Err(BatchError::TooMany { limit: entries_max });
        }
        let (entry, end) = decode_one(input, at)?;
        entries.push(entry);
        at = end;
    }
    Ok(entries)
}

fn decode_one(input: &Bytes, at: usize) -> Result<(BatchEntry, usize), BatchError> {
    let truncated = |needed| BatchError::Truncated { at, needed, available: input.len() - at };
    let bad = |field, length| BatchError::BadLength { at, field, length };
    if input.len() - at < SIZE_MIN {
        return Err(truncated(SIZE_MIN));
    }
    let size = read_i32(input, at);
    let size = usize::try_from(size).ok().filter(|size| *size >= SIZE_MIN).ok_or(bad("size", i64::from(size)))?;
    if input.len() - at < size {
        return Err(truncated(size));
    }
    let end = at + size;
    let flag = read_i32(input, at + 12);
    let body_length = read_i32(input, at + 16);
    let body_at = at + 20;
    // What is left for the body once the length of the properties has its place.
    let body_bytes = usize::try_from(body_length)
        .ok()
        .filter(|bytes| *bytes <= size - SIZE_MIN)
        .ok_or(bad("body", i64::from(body_length)))?;
    let body_end = body_at + body_bytes;
    let properties_at = body_end + 2;
    let properties_length = i16::from_be_bytes([input[body_end], input[body_end + 1]]);
    if usize::try_from(properties_length) != Ok(end - properties_at) {
        return Err(bad("properties", i64::from(properties_length)));
    }
    let entry = BatchEntry { flag, body: input.slice(body_at..body_end), properties: input.slice(properties_at..end) };
    Ok((entry, end))
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests;
