//! RocketMQ's bytes and types: what crosses a socket or lies in a log, and nothing that moves it.
//!
//! **Owns**: the remoting frame with both header serialisations, every request and response code, the typed headers and JSON
//! bodies, the message record (V1 and V2), the client batch, properties, message ids, tag hashes, checksums and compression.
//!
//! **Must never know**: a socket, a file, a clock, a random number, a task. Every function here is pure: time, ids and
//! counters are arguments. It depends on nothing of ours, not even `rt`.
//!
//! | Module | Holds |
//! |---|---|
//! | [`frame`] | [`Command`], [`ExtFields`], [`Language`], [`Serialization`], [`FrameLimits`]; bytes ⇄ command |
//! | [`code`] | [`RequestCode`], [`ResponseCode`] |
//! | [`header`] | the [`Header`] trait and one struct per request and response header, a file per family |
//! | [`body`] | serde types of the JSON bodies, a file per family |
//! | [`json`] | fastjson's dialect: lenient reader, dialect and strict writers |
//! | [`filter`] | SQL92 expressions over properties, the bloom filter of consumer groups |
//! | [`message`] | [`Message`], [`StoredMessage`], records, batches, properties, ids, compression |
//! | [`offset`] | [`QueueOffset`], [`PhysicalOffset`] |
//! | [`error`] | one error enum per operation family |
//!
//! Invariants:
//! - No input makes a decoder panic, recurse without bound or allocate more than a constant factor of the bytes it was given.
//! - Everything is big-endian.
//! - Decoding what was encoded gives the same value, for both header serialisations, headers, bodies, records and batches.

#![deny(clippy::host_endian_bytes, clippy::little_endian_bytes)]

pub mod body;
pub mod code;
pub mod error;
pub mod filter;
pub mod frame;
pub mod header;
mod hex;
pub mod json;
mod lossy;
pub mod message;
pub mod offset;
mod text_map;

pub use code::{RequestCode, ResponseCode};
pub use error::{
    BatchError, CompressionError, EvaluationError, FilterError, FrameError, HeaderError, IdError, JsonError,
    RecordError, RegisterBodyError,
};
pub use frame::{Command, ExtFields, Flag, FrameLimits, Language, Serialization, VERSION, version_name};
pub use header::Header;
pub use message::{Message, MessageId, MessageQueue, Properties, Record, StoredMessage, SysFlag, tags_code};
pub use offset::{PhysicalOffset, QueueOffset};
