//! A stored message as a consumer sees it.

use std::net::SocketAddr;

use bytes::{Buf, Bytes};

use super::record::{Record, RecordView};
use super::{MessageId, Properties, SysFlag, compression};
use crate::error::RecordError;
use crate::offset::{PhysicalOffset, QueueOffset};

/// A record with its properties read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Topic.
    pub topic: String,
    /// Queue.
    pub queue_id: i32,
    /// Offset in the queue.
    pub queue_offset: QueueOffset,
    /// Offset in the log.
    pub physical_offset: PhysicalOffset,
    /// Size of the record in bytes.
    pub store_size: usize,
    /// User's flag.
    pub flag: i32,
    /// System flag.
    pub sys_flag: SysFlag,
    /// Birth, Unix milliseconds of the producer.
    pub born_timestamp: i64,
    /// Address of the producer.
    pub born_host: SocketAddr,
    /// Unix milliseconds of the broker.
    pub store_timestamp: i64,
    /// Address of the broker.
    pub store_host: SocketAddr,
    /// How often a retried message has been tried.
    pub reconsume_times: i32,
    /// Queue offset of the half message.
    pub prepared_transaction_offset: i64,
    /// Properties.
    pub properties: Properties,
    /// Body; compressed as long as the system flag says so.
    pub body: Bytes,
}

impl StoredMessage {
    /// Reads the record at the front of `input`, sharing its memory.
    ///
    /// # Errors
    /// As [`Record::decode`].
    pub fn decode(input: &Bytes) -> Result<Self, RecordError> {
        Ok(Record::decode(input)?.into())
    }

    /// Offset message id.
    #[must_use]
    pub const fn offset_message_id(&self) -> MessageId {
        MessageId::new(self.store_host, self.physical_offset)
    }

    /// What a client calls the message id: the unique key if there is one, else the offset message id.
    #[must_use]
    pub fn message_id(&self) -> String {
        self.properties.unique_key().map_or_else(|| self.offset_message_id().to_string(), str::to_owned)
    }

    /// Makes the body plain, and the flag say so; after an error the message is as before.
    ///
    /// # Errors
    /// The body is no stream of its algorithm, or larger than the limit.
    pub fn decompress(&mut self, bytes_max: usize) -> Result<(), RecordError> {
        if self.sys_flag.is_compressed() {
            self.body = compression::decompress(&self.body, self.sys_flag.compression()?, bytes_max)?;
            self.sys_flag = self.sys_flag.without(SysFlag::COMPRESSED);
        }
        Ok(())
    }
}

impl From<Record> for StoredMessage {
    fn from(record: Record) -> Self {
        Self {
            store_size: record.encoded_bytes(),
            properties: Properties::parse_bytes(&record.properties),
            topic: record.topic,
            queue_id: record.queue_id,
            queue_offset: record.queue_offset,
            physical_offset: record.physical_offset,
            flag: record.flag,
            sys_flag: record.sys_flag,
            born_timestamp: record.born_timestamp,
            born_host: record.born_host,
            store_timestamp: record.store_timestamp,
            store_host: record.store_host,
            reconsume_times: record.reconsume_times,
            prepared_transaction_offset: record.prepared_transaction_offset,
            body: record.body,
        }
    }
}

/// Reads records that stand back to back: the body of a pull answer.
///
/// # Errors
/// As [`Record::decode`]. RocketMQ's client drops the rest silently; a hole in what was pulled is not to be overlooked.
pub fn decode_all(mut input: Bytes) -> Result<Vec<StoredMessage>, RecordError> {
    let mut messages = Vec::new();
    while !input.is_empty() {
        let size = RecordView::parse(&input)?.size();
        messages.push(StoredMessage::decode(&input)?);
        input.advance(size);
    }
    Ok(messages)
}
