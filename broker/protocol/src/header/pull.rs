//! Pulling and looking up messages.

use super::header;
use crate::offset::{PhysicalOffset, QueueOffset};

header! {
    /// PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361).
    PullMessageRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
        /// First offset wanted.
        queue_offset: QueueOffset = "queueOffset",
        /// At most this many messages.
        max_msg_nums: i32 = "maxMsgNums",
        /// Bits of [`PullSysFlag`].
        sys_flag: i32 = "sysFlag",
        /// Offset to commit on the way; counts with [`PullSysFlag::COMMIT_OFFSET`] only.
        commit_offset: QueueOffset = "commitOffset",
        /// How long the broker may hold the request, milliseconds.
        suspend_timeout_millis: i64 = "suspendTimeoutMillis",
        /// Subscription expression.
        subscription: Option<String> = "subscription",
        /// Version of the subscription.
        sub_version: i64 = "subVersion",
        /// `TAG` or `SQL92`; absent means `TAG`.
        expression_type: Option<String> = "expressionType",
        /// At most this many bytes; 5.x.
        max_msg_bytes: Option<i32> = "maxMsgBytes",
        /// −1 client, 0 proxy in order, 1 proxy broadcasting, 2 proxy streaming; 5.x.
        request_source: Option<i32> = "requestSource",
        /// Client behind a proxy; 5.x. The wire spells it this way.
        proxy_forward_client_id: Option<String> = "proxyFrowardClientId",
    }

    /// Answer to a pull, whatever its code.
    PullMessageResponse {
        /// Broker id to pull from next.
        suggest_which_broker_id: i64 = "suggestWhichBrokerId",
        /// Offset to pull from next.
        next_begin_offset: QueueOffset = "nextBeginOffset",
        /// Smallest offset of the queue.
        min_offset: QueueOffset = "minOffset",
        /// Offset behind the last message of the queue.
        max_offset: QueueOffset = "maxOffset",
        /// To be added to the offsets of the messages; static topics.
        offset_delta: Option<i64> = "offsetDelta",
        /// System flag of the topic.
        topic_sys_flag: Option<i32> = "topicSysFlag",
        /// System flag of the group.
        group_sys_flag: Option<i32> = "groupSysFlag",
        /// Why code 16: 1 broker, 2 group, 3 topic, 4 broadcasting, 5 subscription.
        forbidden_type: Option<i32> = "forbiddenType",
    }

    /// QUERY_MESSAGE (12).
    QueryMessageRequest {
        /// Topic.
        topic: String = "topic",
        /// Key, or unique key.
        key: String = "key",
        /// At most this many messages.
        max_num: i32 = "maxNum",
        /// Stored not before, Unix milliseconds.
        begin_timestamp: i64 = "beginTimestamp",
        /// Stored not after, Unix milliseconds.
        end_timestamp: i64 = "endTimestamp",
        /// Whether `key` is a unique key.
        unique_key: Option<bool> = "_UNIQUE_KEY_QUERY",
    }

    /// Answer to QUERY_MESSAGE.
    QueryMessageResponse {
        /// Store time of the newest indexed message, Unix milliseconds.
        index_last_update_timestamp: i64 = "indexLastUpdateTimestamp",
        /// Commit log offset of the newest indexed message.
        index_last_update_phyoffset: PhysicalOffset = "indexLastUpdatePhyoffset",
    }

    /// VIEW_MESSAGE_BY_ID (33).
    ViewMessageRequest {
        /// Topic.
        topic: Option<String> = "topic",
        /// Commit log offset.
        offset: PhysicalOffset = "offset",
    }
}

/// Bits of a pull's `sysFlag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PullSysFlag(pub i32);

impl PullSysFlag {
    /// The commit offset is to be stored.
    pub const COMMIT_OFFSET: i32 = 1;
    /// The broker may hold the request until something arrives.
    pub const SUSPEND: i32 = 2;
    /// The request's subscription counts, not the one of the heartbeat.
    pub const SUBSCRIPTION: i32 = 4;
    /// Filtered by a class (no longer served).
    pub const CLASS_FILTER: i32 = 8;
    /// Lite pull.
    pub const LITE_PULL: i32 = 16;

    /// Whether the commit offset is to be stored.
    #[must_use]
    pub const fn commits_offset(self) -> bool {
        self.0 & Self::COMMIT_OFFSET != 0
    }

    /// Whether the broker may hold the request.
    #[must_use]
    pub const fn may_suspend(self) -> bool {
        self.0 & Self::SUSPEND != 0
    }

    /// Whether the request's own subscription counts.
    #[must_use]
    pub const fn has_subscription(self) -> bool {
        self.0 & Self::SUBSCRIPTION != 0
    }

    /// Whether a class filter is meant.
    #[must_use]
    pub const fn has_class_filter(self) -> bool {
        self.0 & Self::CLASS_FILTER != 0
    }

    /// Whether this is a lite pull.
    #[must_use]
    pub const fn is_lite_pull(self) -> bool {
        self.0 & Self::LITE_PULL != 0
    }

    /// The same flag without these bits.
    #[must_use]
    pub const fn without(self, bits: i32) -> Self {
        Self(self.0 & !bits)
    }

    /// The same flag with these bits.
    #[must_use]
    pub const fn with(self, bits: i32) -> Self {
        Self(self.0 | bits)
    }
}
