//! The record: a message as the commit log holds it and pull answers carry it.
//!
//! ```text
//!   0 totalSize i32 | 4 magic | 8 bodyCRC | 12 queueId i32 | 16 flag i32 | 20 queueOffset i64 | 28 physicalOffset i64
//!  36 sysFlag i32 | 40 bornTimestamp i64 | 48 bornHost b | 48+b storeTimestamp i64 | storeHost s | reconsumeTimes i32
//!     preparedTransactionOffset i64 | bodyLen i32, body | topicLen (V1 u8, V2 u16), topic | propertiesLen u16, properties
//! ```
//! `b` and `s` are 8 (IPv4) or 20 (IPv6) as the system flag says; a port takes 32 bits.

mod seal;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

pub use seal::{SEAL_BYTES, has_seal, seal, with_room_for_seal, without_seal};

use super::hash::crc32;
use super::sys_flag::SysFlag;
use crate::error::RecordError;
use crate::lossy::lossy;
use crate::offset::{PhysicalOffset, QueueOffset};

/// Offsets of the fields that stand at fixed places.
pub mod layout {
    /// Total size, i32.
    pub const TOTAL_SIZE: usize = 0;
    /// Magic code, u32.
    pub const MAGIC: usize = 4;
    /// Checksum of the body, u32.
    pub const BODY_CRC: usize = 8;
    /// Queue, i32.
    pub const QUEUE_ID: usize = 12;
    /// User's flag, i32.
    pub const FLAG: usize = 16;
    /// Offset in the queue, i64.
    pub const QUEUE_OFFSET: usize = 20;
    /// Offset in the log, i64.
    pub const PHYSICAL_OFFSET: usize = 28;
    /// System flag, i32.
    pub const SYS_FLAG: usize = 36;
    /// Birth, i64 milliseconds.
    pub const BORN_TIMESTAMP: usize = 40;
    /// Host of the producer.
    pub const BORN_HOST: usize = 48;
}

/// Magic code of V1.
pub const MAGIC_V1: u32 = 0xDAA3_20A7;
/// Magic code of V2.
pub const MAGIC_V2: u32 = 0xDAA3_20AB;
/// Magic code of the blank filler at the end of a segment.
pub const MAGIC_BLANK: u32 = 0xCBD4_3194;
/// Longest topic of V1 in bytes; longer ones (retry topics only) make a V2 record.
pub const TOPIC_BYTES_MAX_V1: usize = 127;
/// Longest property text in bytes.
pub const PROPERTIES_BYTES_MAX: usize = 32_767;
/// Longest topic of V2 in bytes.
pub const TOPIC_BYTES_MAX_V2: usize = 32_767;
/// Smallest record there is: V1, IPv4 hosts, everything empty.
pub const SIZE_MIN: usize = 91;

/// How long a topic a record can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordVersion {
    /// Up to 127 bytes.
    V1,
    /// Up to 32,767 bytes.
    V2,
}

impl RecordVersion {
    /// The version in which a broker stores a topic.
    #[must_use]
    pub const fn for_topic(topic: &str) -> Self {
        if topic.len() > TOPIC_BYTES_MAX_V1 { Self::V2 } else { Self::V1 }
    }

    /// Its magic code.
    #[must_use]
    pub const fn magic(self) -> u32 {
        match self {
            Self::V1 => MAGIC_V1,
            Self::V2 => MAGIC_V2,
        }
    }

    const fn topic_length_bytes(self) -> usize {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    const fn topic_bytes_max(self) -> usize {
        match self {
            Self::V1 => TOPIC_BYTES_MAX_V1,
            Self::V2 => TOPIC_BYTES_MAX_V2,
        }
    }
}

/// A record with every field as stored: encoding it gives the stored bytes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Layout version.
    pub version: RecordVersion,
    /// Queue.
    pub queue_id: i32,
    /// User's flag.
    pub flag: i32,
    /// Offset in the queue; 0 for half and rolled back messages.
    pub queue_offset: QueueOffset,
    /// Offset in the log.
    pub physical_offset: PhysicalOffset,
    /// System flag; its host bits must fit the hosts.
    pub sys_flag: SysFlag,
    /// Birth, Unix milliseconds of the producer.
    pub born_timestamp: i64,
    /// Address of the producer.
    pub born_host: SocketAddr,
    /// Unix milliseconds of the broker; never decreases along the log.
    pub store_timestamp: i64,
    /// Address of the broker.
    pub store_host: SocketAddr,
    /// How often a retried message has been tried.
    pub reconsume_times: i32,
    /// Queue offset of the half message.
    pub prepared_transaction_offset: i64,
    /// Body, compressed if the system flag says so.
    pub body: Bytes,
    /// Topic.
    pub topic: String,
    /// Property text as stored.
    pub properties: Bytes,
}

impl Record {
    /// Reads the record at the front of `input`, sharing its memory.
    ///
    /// # Errors
    /// As [`RecordView::parse`], and if the topic is not UTF-8.
    pub fn decode(input: &Bytes) -> Result<Self, RecordError> {
        let view = RecordView::parse(input)?;
        Ok(Self {
            version: view.version,
            queue_id: view.queue_id(),
            flag: view.flag(),
            queue_offset: view.queue_offset(),
            physical_offset: view.physical_offset(),
            sys_flag: view.sys_flag(),
            born_timestamp: view.born_timestamp(),
            born_host: view.born_host()?,
            store_timestamp: view.store_timestamp(),
            store_host: view.store_host()?,
            reconsume_times: view.reconsume_times(),
            prepared_transaction_offset: view.prepared_transaction_offset(),
            body: input.slice_ref(view.body()),
            topic: std::str::from_utf8(view.topic()).map_err(|_| RecordError::Topic)?.to_owned(),
            properties: input.slice_ref(view.properties()),
        })
    }

    /// Size when encoded, in bytes.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        SIZE_MIN - 1 - 16
            + self.version.topic_length_bytes()
            + self.sys_flag.born_host_bytes()
            + self.sys_flag.store_host_bytes()
            + self.body.len()
            + self.topic.len()
            + self.properties.len()
    }

    /// Appends the encoded record, with the checksum of its body.
    ///
    /// # Errors
    /// Body, topic or properties are too long for their length fields. Nothing is appended then.
    ///
    /// # Panics
    /// If the system flag's host bits do not fit the hosts: whoever sets hosts uses [`SysFlag::with_hosts`].
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), RecordError> {
        assert_eq!(self.sys_flag.has(SysFlag::BORN_HOST_V6), self.born_host.is_ipv6(), "born host bit");
        assert_eq!(self.sys_flag.has(SysFlag::STORE_HOST_V6), self.store_host.is_ipv6(), "store host bit");
        limit("topic", self.topic.len(), self.version.topic_bytes_max())?;
        limit("properties", self.properties.len(), PROPERTIES_BYTES_MAX)?;
        let total = self.encoded_bytes();
        limit("body", total, i32::MAX as usize)?;
        out.reserve(total);
        let start = out.len();
        out.put_i32(i32::try_from(total).expect("checked above"));
        out.put_u32(self.version.magic());
        out.put_u32(crc32(&self.body));
        out.put_i32(self.queue_id);
        out.put_i32(self.flag);
        out.put_i64(self.queue_offset.0);
        out.put_i64(self.physical_offset.0);
        out.put_i32(self.sys_flag.0);
        out.put_i64(self.born_timestamp);
        put_host(self.born_host, out);
        out.put_i64(self.store_timestamp);
        put_host(self.store_host, out);
        out.put_i32(self.reconsume_times);
        out.put_i64(self.prepared_transaction_offset);
        out.put_i32(i32::try_from(self.body.len()).expect("smaller than the total"));
        out.extend_from_slice(&self.body);
        match self.version {
            RecordVersion::V1 => out.put_u8(u8::try_from(self.topic.len()).expect("checked above")),
            RecordVersion::V2 => out.put_u16(u16::try_from(self.topic.len()).expect("checked above")),
        }
        out.extend_from_slice(self.topic.as_bytes());
        out.put_u16(u16::try_from(self.properties.len()).expect("checked above"));
        out.extend_from_slice(&self.properties);
        assert_eq!(out.len() - start, total, "fields add up to the size");
        Ok(())
    }
}

fn limit(field: &'static str, length: usize, limit: usize) -> Result<(), RecordError> {
    if length > limit { Err(RecordError::TooLong { field, length, limit }) } else { Ok(()) }
}

fn put_host(host: SocketAddr, out: &mut BytesMut) {
    match host.ip() {
        IpAddr::V4(ip) => out.put_slice(&ip.octets()),
        IpAddr::V6(ip) => out.put_slice(&ip.octets()),
    }
    out.put_i32(i32::from(host.port()));
}

/// What stands at a place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peeked {
    /// A record of this version and size.
    Record {
        /// Layout version.
        version: RecordVersion,
        /// Size in bytes.
        size: usize,
    },
    /// The filler up to the end of the segment.
    Blank {
        /// Size in bytes.
        size: usize,
    },
}

/// Bytes that [`peek`] needs.
pub const PEEK_BYTES: usize = 8;

/// Reads size and magic only.
///
/// # Errors
/// Fewer than [`PEEK_BYTES`] bytes, an unknown magic code, or a size that no record has.
pub fn peek(input: &[u8]) -> Result<Peeked, RecordError> {
    let Some((size, rest)) = input.split_first_chunk::<4>() else { return Err(truncated(PEEK_BYTES, input)) };
    let Some(magic) = rest.first_chunk::<4>() else { return Err(truncated(PEEK_BYTES, input)) };
    let (size, magic) = (i32::from_be_bytes(*size), u32::from_be_bytes(*magic));
    let bad_size = RecordError::BadLength { field: "totalSize", length: i64::from(size) };
    let version = match magic {
        MAGIC_V1 => RecordVersion::V1,
        MAGIC_V2 => RecordVersion::V2,
        MAGIC_BLANK => {
            let size = usize::try_from(size).map_err(|_| bad_size.clone())?;
            return if size < PEEK_BYTES { Err(bad_size) } else { Ok(Peeked::Blank { size }) };
        }
        magic => return Err(RecordError::Magic { magic }),
    };
    let size = usize::try_from(size).map_err(|_| bad_size.clone())?;
    if size < SIZE_MIN {
        return Err(bad_size);
    }
    Ok(Peeked::Record { version, size })
}

fn truncated(needed: usize, input: &[u8]) -> RecordError {
    RecordError::Truncated { needed, available: input.len() }
}

/// A record in place: lengths checked, nothing copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Layout version.
    pub version: RecordVersion,
    bytes: &'a [u8],
    body_at: usize,
    body_end: usize,
    topic_at: usize,
    topic_end: usize,
}

impl<'a> RecordView<'a> {
    /// Finds the record at the front of `input`. Checks that the lengths add up, not the checksum.
    ///
    /// # Errors
    /// The bytes are no record, a blank filler, or not the whole record.
    pub fn parse(input: &'a [u8]) -> Result<Self, RecordError> {
        let (version, size) = match peek(input)? {
            Peeked::Record { version, size } => (version, size),
            Peeked::Blank { size } => {
                return Err(RecordError::Blank { size: u32::try_from(size).expect("was an i32") });
            }
        };
        let bytes = input.get(..size).ok_or_else(|| truncated(size, input))?;
        let sys_flag = SysFlag(read_i32(bytes, layout::SYS_FLAG));
        let body_length_at = layout::BORN_HOST + sys_flag.born_host_bytes() + 8 + sys_flag.store_host_bytes() + 4 + 8;
        let body_at = body_length_at + 4;
        let body_length = span(bytes, body_length_at, 4, "body")?;
        let topic_length_at = body_at + body_length;
        let topic_length = span(bytes, topic_length_at, version.topic_length_bytes(), "topic")?;
        let topic_at = topic_length_at + version.topic_length_bytes();
        let topic_end = topic_at + topic_length;
        let properties_length = span(bytes, topic_end, 2, "properties")?;
        let counted = topic_end + 2 + properties_length;
        if counted != size {
            return Err(RecordError::SizeMismatch { claimed: size, counted });
        }
        Ok(Self { version, bytes, body_at, body_end: topic_length_at, topic_at, topic_end })
    }

    /// The whole record.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Checksum of the body as stored.
    #[must_use]
    pub fn body_crc(&self) -> u32 {
        u32::from_be_bytes(read_i32(self.bytes, layout::BODY_CRC).to_be_bytes())
    }

    /// Queue.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        read_i32(self.bytes, layout::QUEUE_ID)
    }

    /// User's flag.
    #[must_use]
    pub fn flag(&self) -> i32 {
        read_i32(self.bytes, layout::FLAG)
    }

    /// Offset in the queue.
    #[must_use]
    pub fn queue_offset(&self) -> QueueOffset {
        QueueOffset(read_i64(self.bytes, layout::QUEUE_OFFSET))
    }

    /// Offset in the log.
    #[must_use]
    pub fn physical_offset(&self) -> PhysicalOffset {
        PhysicalOffset(read_i64(self.bytes, layout::PHYSICAL_OFFSET))
    }

    /// System flag.
    #[must_use]
    pub fn sys_flag(&self) -> SysFlag {
        SysFlag(read_i32(self.bytes, layout::SYS_FLAG))
    }

    /// Birth, Unix milliseconds.
    #[must_use]
    pub fn born_timestamp(&self) -> i64 {
        read_i64(self.bytes, layout::BORN_TIMESTAMP)
    }

    /// Address of the producer.
    ///
    /// # Errors
    /// The port is not a port.
    pub fn born_host(&self) -> Result<SocketAddr, RecordError> {
        host(&self.bytes[layout::BORN_HOST..self.store_timestamp_at()])
    }

    /// Store time, Unix milliseconds.
    #[must_use]
    pub fn store_timestamp(&self) -> i64 {
        read_i64(self.bytes, self.store_timestamp_at())
    }

    /// Address of the broker.
    ///
    /// # Errors
    /// The port is not a port.
    pub fn store_host(&self) -> Result<SocketAddr, RecordError> {
        host(&self.bytes[self.store_timestamp_at() + 8..self.body_at - 16])
    }

    /// How often a retried message has been tried.
    #[must_use]
    pub fn reconsume_times(&self) -> i32 {
        read_i32(self.bytes, self.body_at - 16)
    }

    /// Queue offset of the half message.
    #[must_use]
    pub fn prepared_transaction_offset(&self) -> i64 {
        read_i64(self.bytes, self.body_at - 12)
    }

    /// Body as stored.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.body_at..self.body_end]
    }

    /// Topic.
    #[must_use]
    pub fn topic(&self) -> &'a [u8] {
        &self.bytes[self.topic_at..self.topic_end]
    }

    /// Property text.
    #[must_use]
    pub fn properties(&self) -> &'a [u8] {
        &self.bytes[self.topic_end + 2..]
    }

    /// One property, without building a table.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        super::properties::find(self.properties(), name)
    }

    /// What the consume queue entry of this record holds for its tags: hash of the TAGS property, 0 without one.
    #[must_use]
    pub fn tags_code(&self) -> i64 {
        self.property(super::property::TAGS).map_or(0, |tags| super::hash::tags_code(&lossy(tags)))
    }

    /// Whether the body is what was stored.
    ///
    /// # Errors
    /// It is not.
    pub fn check_body(&self) -> Result<(), RecordError> {
        let (stored, computed) = (self.body_crc(), crc32(self.body()));
        if stored == computed { Ok(()) } else { Err(RecordError::BodyChecksum { stored, computed }) }
    }

    fn store_timestamp_at(&self) -> usize {
        layout::BORN_HOST + self.sys_flag().born_host_bytes()
    }
}

/// Fills in what a record gets at the moment of its append: the places and the time, in a record that is otherwise complete.
///
/// # Panics
/// If `record` is shorter than a record.
pub fn stamp(record: &mut [u8], queue_offset: QueueOffset, physical_offset: PhysicalOffset, store_timestamp: i64) {
    assert!(record.len() >= SIZE_MIN, "not a record");
    let sys_flag = SysFlag(read_i32(record, layout::SYS_FLAG));
    let store_timestamp_at = layout::BORN_HOST + sys_flag.born_host_bytes();
    record[layout::QUEUE_OFFSET..layout::QUEUE_OFFSET + 8].copy_from_slice(&queue_offset.0.to_be_bytes());
    record[layout::PHYSICAL_OFFSET..layout::PHYSICAL_OFFSET + 8].copy_from_slice(&physical_offset.0.to_be_bytes());
    record[store_timestamp_at..store_timestamp_at + 8].copy_from_slice(&store_timestamp.to_be_bytes());
}

/// The blank filler's header for a gap of `size` bytes; the rest of the gap is left as it is.
///
/// # Panics
/// If the gap does not hold the header.
#[must_use]
pub fn blank_header(size: usize) -> [u8; PEEK_BYTES] {
    assert!(size >= PEEK_BYTES, "a gap always holds a header");
    let mut header = [0; PEEK_BYTES];
    header[..4].copy_from_slice(&i32::try_from(size).expect("gaps are smaller than segments").to_be_bytes());
    header[4..].copy_from_slice(&MAGIC_BLANK.to_be_bytes());
    header
}

/// Reads a length of 1, 2 or 4 bytes and checks that what it spans lies within the record.
fn span(bytes: &[u8], at: usize, width: usize, field: &'static str) -> Result<usize, RecordError> {
    let field_bytes = bytes.get(at..at + width).ok_or(RecordError::BadLength { field, length: 0 })?;
    let length = match *field_bytes {
        [byte] => i64::from(i8::from_be_bytes([byte])),
        [high, low] => i64::from(i16::from_be_bytes([high, low])),
        _ => i64::from(read_i32(bytes, at)),
    };
    let bad = RecordError::BadLength { field, length };
    let length = usize::try_from(length).map_err(|_| bad.clone())?;
    if length > bytes.len() - at - width { Err(bad) } else { Ok(length) }
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn read_i64(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn host(bytes: &[u8]) -> Result<SocketAddr, RecordError> {
    let (ip, port) = bytes.split_at(bytes.len() - 4);
    let port = read_i32(port, 0);
    let ip = match <[u8; 4]>::try_from(ip) {
        Ok(octets) => IpAddr::V4(Ipv4Addr::from(octets)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(ip).expect("hosts have 8 or 20 bytes"))),
    };
    let port = u16::try_from(port).map_err(|_| RecordError::Port { port })?;
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests;
