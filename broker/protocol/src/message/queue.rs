//! Names: a queue, and the topics derived from a group.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// One queue of a topic at one broker name. Ordered by topic, broker, number, as Java orders it: clients divide queues by this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageQueue {
    /// Topic.
    pub topic: String,
    /// Broker name.
    pub broker_name: String,
    /// Number.
    pub queue_id: i32,
}

impl MessageQueue {
    /// A queue.
    #[must_use]
    pub fn new(topic: impl Into<String>, broker_name: impl Into<String>, queue_id: i32) -> Self {
        Self { topic: topic.into(), broker_name: broker_name.into(), queue_id }
    }
}

impl std::fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}@{}", self.topic, self.broker_name, self.queue_id)
    }
}

// By hand: Java writes the members in alphabetical order, which is not the order we sort by.
impl Serialize for MessageQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("MessageQueue", 3)?;
        members.serialize_field("brokerName", &self.broker_name)?;
        members.serialize_field("queueId", &self.queue_id)?;
        members.serialize_field("topic", &self.topic)?;
        members.end()
    }
}

/// Prefix of a group's retry topic.
pub const RETRY_PREFIX: &str = "%RETRY%";
/// Prefix of a group's dead letter topic.
pub const DLQ_PREFIX: &str = "%DLQ%";

/// The group's retry topic.
#[must_use]
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// The group's dead letter topic.
#[must_use]
pub fn dlq_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

/// Whether this is some group's retry topic.
#[must_use]
pub fn is_retry_topic(topic: &str) -> bool {
    topic.starts_with(RETRY_PREFIX)
}
