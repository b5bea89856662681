//! Messages: what a producer makes, what the log holds, and the encodings in between.

pub mod batch;
pub mod compression;
mod hash;
mod id;
mod properties;
pub mod property;
mod queue;
mod recall;
pub mod record;
mod stored;
mod sys_flag;
mod unique_key;

use bytes::Bytes;

pub use batch::BatchEntry;
pub use hash::{crc32, hash_code, hash_code_after, tags_code};
pub use id::MessageId;
pub use properties::{Properties, find as find_property};
pub use queue::{DLQ_PREFIX, MessageQueue, RETRY_PREFIX, dlq_topic, is_retry_topic, retry_topic};
pub use recall::RecallHandle;
pub use record::{Record, RecordVersion, RecordView};
pub use stored::{StoredMessage, decode_all};
pub use sys_flag::{CompressionType, SysFlag, TransactionType};
pub use unique_key::{UniqueKeyMaker, unique_key_time_ms};

/// A message as a producer makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Topic.
    pub topic: String,
    /// The user's flag; RocketMQ stores it and does nothing with it.
    pub flag: i32,
    /// Properties, the user's and RocketMQ's.
    pub properties: Properties,
    /// Body, not compressed.
    pub body: Bytes,
}

impl Message {
    /// A message without properties.
    #[must_use]
    pub fn new(topic: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), flag: 0, properties: Properties::new(), body: body.into() }
    }

    /// The same message with this tag.
    #[must_use]
    pub fn with_tags(mut self, tags: impl AsRef<str>) -> Self {
        self.properties.insert(property::TAGS, tags);
        self
    }

    /// The same message with these index keys, separated by spaces.
    #[must_use]
    pub fn with_keys(mut self, keys: impl AsRef<str>) -> Self {
        self.properties.insert(property::KEYS, keys);
        self
    }

    /// The same message with one more property.
    #[must_use]
    pub fn with_property(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.properties.insert(name, value);
        self
    }

    /// The tag.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.properties.get(property::TAGS)
    }

    /// The unique key, once the producer has given one.
    #[must_use]
    pub fn unique_key(&self) -> Option<&str> {
        self.properties.get(property::UNIQUE_KEY)
    }
}
