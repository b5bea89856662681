//! What administrators look at: progress, bounds, connections.

use std::collections::BTreeMap;

use super::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData, body};
use crate::frame::Language;
use crate::message::MessageQueue;

body! {
    /// Answer to GET_CONSUME_STATS.
    ConsumeStats {
        /// Messages consumed a second.
        consume_tps: f64,
        /// Progress by queue.
        offset_table: BTreeMap<MessageQueue, OffsetWrapper>,
    }

    /// A group's progress in one queue.
    OffsetWrapper {
        /// Behind the queue's last message.
        broker_offset: i64,
        /// Next message to consume.
        consumer_offset: i64,
        /// Store time of the last message consumed, Unix milliseconds.
        last_timestamp: i64,
        /// Next message to pull; 5.x.
        pull_offset: i64,
    }

    /// Answer to GET_TOPIC_STATS_INFO.
    TopicStatsTable {
        /// Bounds by queue.
        offset_table: BTreeMap<MessageQueue, TopicOffset>,
        /// Messages stored a second; 5.x.
        topic_put_tps: f64,
    }

    /// Bounds of one queue.
    TopicOffset {
        /// Store time of the last message, Unix milliseconds.
        last_update_timestamp: i64,
        /// Behind the last message.
        max_offset: i64,
        /// First message.
        min_offset: i64,
    }

    /// Answer to GET_CONSUMER_CONNECTION_LIST.
    ConsumerConnection {
        /// Members.
        connection_set: Vec<Connection>,
        /// Where a group without progress starts.
        consume_from_where: ConsumeFromWhere,
        /// Pull, push or pop.
        consume_type: ConsumeType,
        /// Sharing or broadcasting.
        message_model: MessageModel,
        /// Subscriptions by topic.
        subscription_table: BTreeMap<String, SubscriptionData>,
    }

    /// Answer to GET_PRODUCER_CONNECTION_LIST.
    ProducerConnection {
        /// Members.
        connection_set: Vec<Connection>,
    }

    /// Answer to QUERY_CONSUME_TIME_SPAN.
    QueryConsumeTimeSpanBody {
        /// A span a queue.
        consume_time_span_set: Vec<ConsumeTimeSpan>,
    }

    /// How old the messages are that a group consumes from one queue.
    ConsumeTimeSpan {
        /// Store time of the last message consumed, Unix milliseconds.
        consume_time_stamp: i64,
        /// How long the next message has been waiting, milliseconds.
        delay_time: i64,
        /// Store time of the last message, Unix milliseconds.
        max_time_stamp: i64,
        /// Queue.
        message_queue: MessageQueue,
        /// Store time of the first message, Unix milliseconds.
        min_time_stamp: i64,
    }
}

/// One client's connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Connection {
    /// `ip:port`.
    pub client_addr: String,
    /// Client id.
    pub client_id: String,
    /// Language.
    pub language: Language,
    /// Version ordinal.
    pub version: i32,
}

/// What a member left out means.
impl Default for Connection {
    fn default() -> Self {
        Self { client_addr: String::new(), client_id: String::new(), language: Language::Other, version: 0 }
    }
}
