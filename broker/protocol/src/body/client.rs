//! What clients say about themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::body;
use crate::message::{MessageQueue, hash_code};

/// How a consumer gets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ConsumeType {
    /// Pull consumer.
    #[default]
    #[serde(rename = "CONSUME_ACTIVELY")]
    Actively,
    /// Push consumer.
    #[serde(rename = "CONSUME_PASSIVELY")]
    Passively,
    /// Pop consumer.
    #[serde(rename = "CONSUME_POP")]
    Pop,
}

/// Whether members share the messages or each gets all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MessageModel {
    /// Each member gets all.
    Broadcasting,
    /// Members share.
    #[default]
    Clustering,
}

/// Where a group without progress starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ConsumeFromWhere {
    /// At the end.
    #[default]
    #[serde(rename = "CONSUME_FROM_LAST_OFFSET")]
    LastOffset,
    /// Obsolete, as [`Self::LastOffset`].
    #[serde(rename = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST")]
    LastOffsetAndFromMinWhenBootFirst,
    /// Obsolete, as [`Self::LastOffset`].
    #[serde(rename = "CONSUME_FROM_MIN_OFFSET")]
    MinOffset,
    /// Obsolete, as [`Self::LastOffset`].
    #[serde(rename = "CONSUME_FROM_MAX_OFFSET")]
    MaxOffset,
    /// At the beginning.
    #[serde(rename = "CONSUME_FROM_FIRST_OFFSET")]
    FirstOffset,
    /// At a store time.
    #[serde(rename = "CONSUME_FROM_TIMESTAMP")]
    Timestamp,
}

body! {
    /// Body of HEART_BEAT.
    HeartbeatData {
        /// Client id.
        #[serde(rename = "clientID")]
        client_id: String,
        /// Consumer groups of the client.
        consumer_data_set: Vec<ConsumerData>,
        /// Hash of the whole; 0: not used. 5.x.
        heartbeat_fingerprint: i32,
        /// Producer groups of the client.
        producer_data_set: Vec<ProducerData>,
        /// Whether the subscriptions were left out; 5.x.
        without_sub: bool,
    }

    /// A producer group.
    ProducerData {
        /// Group.
        group_name: String,
    }

    /// A consumer group.
    ConsumerData {
        /// Where a group without progress starts.
        consume_from_where: ConsumeFromWhere,
        /// Pull, push or pop.
        consume_type: ConsumeType,
        /// Group.
        group_name: String,
        /// Sharing or broadcasting.
        message_model: MessageModel,
        /// Subscriptions.
        subscription_data_set: Vec<SubscriptionData>,
        /// Unit mode.
        unit_mode: bool,
    }

    /// Answer to GET_CONSUMER_LIST_BY_GROUP.
    ConsumerListBody {
        /// Client ids.
        consumer_id_list: Vec<String>,
    }

    /// Body of LOCK_BATCH_MQ.
    LockBatchRequestBody {
        /// Client id.
        client_id: String,
        /// Group.
        consumer_group: String,
        /// Queues wanted.
        mq_set: Vec<MessageQueue>,
        /// Whether other replicas are left alone; 5.x.
        only_this_broker: bool,
    }

    /// Answer to LOCK_BATCH_MQ.
    LockBatchResponseBody {
        /// Queues locked.
        #[serde(rename = "lockOKMQSet")]
        lock_ok_mq_set: Vec<MessageQueue>,
    }

    /// Body of UNLOCK_BATCH_MQ.
    UnlockBatchRequestBody {
        /// Client id.
        client_id: String,
        /// Group.
        consumer_group: String,
        /// Queues to let go.
        mq_set: Vec<MessageQueue>,
        /// Whether other replicas are left alone; 5.x.
        only_this_broker: bool,
    }

    /// Answer to INVOKE_BROKER_TO_RESET_OFFSET and body of RESET_CONSUMER_CLIENT_OFFSET.
    ResetOffsetBody {
        /// New offset by queue.
        offset_table: BTreeMap<MessageQueue, i64>,
    }

    /// Body of CHECK_CLIENT_CONFIG.
    CheckClientRequestBody {
        /// Client id.
        client_id: String,
        /// Group.
        group: String,
        /// Namespace.
        namespace: Option<String>,
        /// Subscription to check.
        subscription_data: SubscriptionData,
    }
}

/// What a group wants of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionData {
    /// Whether a class filters; no longer served.
    pub class_filter_mode: bool,
    /// Java hash of each tag.
    pub code_set: BTreeSet<i32>,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// Expression as written.
    pub sub_string: String,
    /// When it was made, milliseconds (nanoseconds in Go): the larger is newer.
    pub sub_version: i64,
    /// Tags.
    pub tags_set: BTreeSet<String>,
    /// Topic.
    pub topic: String,
}

impl SubscriptionData {
    /// Matches every message.
    pub const ALL: &'static str = "*";

    /// A subscription by tags: `*`, empty, or `a || b`.
    #[must_use]
    pub fn by_tags(topic: impl Into<String>, expression: &str, version: i64) -> Self {
        let is_all = expression.trim().is_empty() || expression.trim() == Self::ALL;
        let tags_set: BTreeSet<String> = if is_all {
            BTreeSet::new()
        } else {
            expression.split("||").map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        };
        Self {
            class_filter_mode: false,
            code_set: tags_set.iter().map(|tag| hash_code(tag)).collect(),
            expression_type: "TAG".to_owned(),
            sub_string: if is_all { Self::ALL.to_owned() } else { expression.to_owned() },
            sub_version: version,
            tags_set,
            topic: topic.into(),
        }
    }

    /// The type of a subscription by an SQL92 expression over properties.
    pub const SQL: &'static str = "SQL92";

    /// A subscription by an SQL92 expression over properties.
    #[must_use]
    pub fn by_sql(topic: impl Into<String>, expression: impl Into<String>, version: i64) -> Self {
        Self {
            expression_type: Self::SQL.to_owned(),
            sub_string: expression.into(),
            sub_version: version,
            topic: topic.into(),
            ..Self::default()
        }
    }

    /// Whether this is a subscription by tags, not by an expression over properties.
    #[must_use]
    pub fn is_tag_type(&self) -> bool {
        self.expression_type.is_empty() || self.expression_type == "TAG"
    }

    /// Whether a consume queue entry with this tags code may match. The exact test is on the tag itself.
    #[must_use]
    pub fn may_match(&self, tags_code: i64) -> bool {
        self.code_set.is_empty()
            || self.sub_string == Self::ALL
            || i32::try_from(tags_code).is_ok_and(|code| self.code_set.contains(&code))
    }

    /// Whether a message with these tags matches.
    #[must_use]
    pub fn matches(&self, tags: Option<&str>) -> bool {
        self.tags_set.is_empty() || tags.is_some_and(|tags| self.tags_set.contains(tags))
    }
}

/// What a member left out means.
impl Default for SubscriptionData {
    fn default() -> Self {
        Self {
            class_filter_mode: false,
            code_set: BTreeSet::new(),
            expression_type: "TAG".to_owned(),
            sub_string: String::new(),
            sub_version: 0,
            tags_set: BTreeSet::new(),
            topic: String::new(),
        }
    }
}
