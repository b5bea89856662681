//! What a broker knows about topics, groups and offsets: the tables it keeps in files, registers and hands to slaves.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::body;
use crate::header::TopicFilterType;

/// Version of a table: who has the newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVersion {
    /// Counts the changes.
    pub counter: i64,
    /// Master epoch under a controller, else 0.
    pub state_version: i64,
    /// Time of the last change, Unix milliseconds.
    pub timestamp: i64,
}

impl DataVersion {
    /// The version of a table made at this time.
    #[must_use]
    pub const fn new(now_ms: i64) -> Self {
        Self { counter: 0, state_version: 0, timestamp: now_ms }
    }

    /// Marks one more change.
    pub const fn advance(&mut self, state_version: i64, now_ms: i64) {
        self.counter = self.counter.saturating_add(1);
        self.state_version = state_version;
        self.timestamp = now_ms;
    }
}

/// By state version, then counter, then time: a clock that was set back does not make a table older.
impl Ord for DataVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.state_version, self.counter, self.timestamp).cmp(&(other.state_version, other.counter, other.timestamp))
    }
}

impl PartialOrd for DataVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Settings of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfig {
    /// Attributes; 5.x.
    pub attributes: BTreeMap<String, String>,
    /// Whether the topic is ordered.
    pub order: bool,
    /// Permission bits: 4 read, 2 write, 1 inherit.
    pub perm: i32,
    /// Queues to read from.
    pub read_queue_nums: i32,
    /// Single or multiple tags.
    pub topic_filter_type: TopicFilterType,
    /// Topic.
    pub topic_name: String,
    /// System flag: 1 unit, 2 has unit subscriptions.
    pub topic_sys_flag: i32,
    /// Queues to write to.
    pub write_queue_nums: i32,
}

impl TopicConfig {
    /// Queues of a topic for which nobody said how many.
    pub const QUEUE_NUMS_DEFAULT: i32 = 16;
    /// Permission bit: clients may pull.
    pub const PERM_READ: i32 = 4;
    /// Permission bit: clients may send.
    pub const PERM_WRITE: i32 = 2;
    /// Permission bit: topics made on the fly take over these settings.
    pub const PERM_INHERIT: i32 = 1;

    /// A readable and writable topic.
    #[must_use]
    pub fn new(topic: impl Into<String>, queue_nums: i32) -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: Self::PERM_READ | Self::PERM_WRITE,
            read_queue_nums: queue_nums,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_name: topic.into(),
            topic_sys_flag: 0,
            write_queue_nums: queue_nums,
        }
    }

    /// The same topic with these permission bits.
    #[must_use]
    pub const fn with_perm(mut self, perm: i32) -> Self {
        self.perm = perm;
        self
    }

    /// Whether clients may pull.
    #[must_use]
    pub const fn is_readable(&self) -> bool {
        self.perm & Self::PERM_READ != 0
    }

    /// Whether clients may send.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.perm & Self::PERM_WRITE != 0
    }
}

/// What a member left out means.
impl Default for TopicConfig {
    fn default() -> Self {
        Self::new(String::new(), Self::QUEUE_NUMS_DEFAULT)
    }
}

body! {
    /// All topics of a broker: body of GET_ALL_TOPIC_CONFIG and `topics.json`.
    TopicConfigSerializeWrapper {
        /// Version of the table.
        data_version: DataVersion,
        /// Version of the static topics' mappings; 5.x.
        mapping_data_version: Option<DataVersion>,
        /// Topics by name.
        topic_config_table: BTreeMap<String, TopicConfig>,
        /// Static topics: details by name; 5.x.
        topic_queue_mapping_detail_map: Option<BTreeMap<String, TopicQueueMappingDetail>>,
        /// Static topics: summaries by name; 5.x.
        topic_queue_mapping_info_map: Option<BTreeMap<String, TopicQueueMappingInfo>>,
    }

    /// A static topic at one broker, in short.
    TopicQueueMappingInfo {
        /// Broker name.
        bname: String,
        /// Physical queue by logical queue.
        curr_id_map: BTreeMap<i32, i32>,
        /// Whether the mapping was replaced.
        dirty: bool,
        /// Version of the mapping.
        epoch: i64,
        /// Scope.
        scope: Option<String>,
        /// Topic.
        topic: String,
        /// Logical queues.
        total_queues: i32,
    }

    /// A static topic at one broker.
    TopicQueueMappingDetail {
        /// Broker name.
        bname: String,
        /// Physical queue by logical queue.
        curr_id_map: BTreeMap<i32, i32>,
        /// Whether the mapping was replaced.
        dirty: bool,
        /// Version of the mapping.
        epoch: i64,
        /// History of each logical queue.
        hosted_queues: BTreeMap<i32, Vec<MessageQueueMapping>>,
        /// Scope.
        scope: Option<String>,
        /// Topic.
        topic: String,
        /// Logical queues.
        total_queues: i32,
    }

    /// One stretch of a logical queue.
    MessageQueueMapping {
        /// Broker name.
        bname: String,
        /// Physical end; −1: open.
        end_offset: i64,
        /// Generation.
        r#gen: i32,
        /// Logical offset of the start.
        logic_offset: i64,
        /// Physical queue.
        queue_id: i32,
        /// Physical start.
        start_offset: i64,
        /// Unix milliseconds; −1: open.
        time_of_end: i64,
        /// Unix milliseconds.
        time_of_start: i64,
    }

    /// All offsets of a broker: body of GET_ALL_CONSUMER_OFFSET and `consumerOffset.json`.
    ConsumerOffsetSerializeWrapper {
        /// Version of the table.
        data_version: DataVersion,
        /// Topics by group; derived, sent by brokers.
        group_topic_map: Option<BTreeMap<String, BTreeSet<String>>>,
        /// Offset by queue, by `topic@group`.
        offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
    }

    /// Progress of the delay levels: body of GET_ALL_DELAY_OFFSET and `delayOffset.json`.
    DelayOffsetSerializeWrapper {
        /// Version of the table.
        data_version: Option<DataVersion>,
        /// Queue offset by level.
        offset_table: BTreeMap<i32, i64>,
    }

    /// All consumer groups of a broker: body of GET_ALL_SUBSCRIPTIONGROUP_CONFIG and `subscriptionGroup.json`.
    SubscriptionGroupWrapper {
        /// Version of the table.
        data_version: DataVersion,
        /// Forbidden bits by topic, by group; 5.x.
        forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
        /// Groups by name.
        subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
    }

    /// When a group's failed message comes again.
    GroupRetryPolicy {
        /// Explicit steps.
        customized_retry_policy: Option<CustomizedRetryPolicy>,
        /// Growing steps.
        exponential_retry_policy: Option<ExponentialRetryPolicy>,
        /// Which of them.
        #[serde(rename = "type")]
        kind: GroupRetryPolicyType,
    }

    /// Explicit retry steps.
    CustomizedRetryPolicy {
        /// Waits in milliseconds.
        next: Vec<i64>,
    }

    /// Growing retry steps.
    ExponentialRetryPolicy {
        /// First wait in milliseconds.
        initial: i64,
        /// Longest wait in milliseconds.
        max: i64,
        /// Growth.
        multiplier: i64,
    }

    /// What a group is allowed to subscribe to.
    SimpleSubscriptionData {
        /// Expression.
        expression: String,
        /// `TAG` or `SQL92`.
        expression_type: String,
        /// Topic.
        topic: String,
        /// Version.
        version: i64,
    }
}

/// Kind of a group's retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum GroupRetryPolicyType {
    /// Growing steps.
    Exponential,
    /// Explicit steps.
    #[default]
    Customized,
}

/// Settings of a consumer group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupConfig {
    /// Attributes; 5.x.
    pub attributes: BTreeMap<String, String>,
    /// Broker to read from.
    pub broker_id: i64,
    /// Whether the group may broadcast.
    pub consume_broadcast_enable: bool,
    /// Whether the group may consume.
    pub consume_enable: bool,
    /// Whether the group may start at the smallest offset.
    pub consume_from_min_enable: bool,
    /// Whether the group consumes in order; 5.x.
    pub consume_message_orderly: bool,
    /// Longest consumption of one message, minutes; 5.x.
    pub consume_timeout_minute: i32,
    /// Group.
    pub group_name: String,
    /// When a failed message comes again; 5.x.
    pub group_retry_policy: GroupRetryPolicy,
    /// System flag; 5.x.
    pub group_sys_flag: i32,
    /// Whether members are told of changes.
    pub notify_consumer_ids_changed_enable: bool,
    /// How often a message is tried.
    pub retry_max_times: i32,
    /// Queues of the retry topic.
    pub retry_queue_nums: i32,
    /// Allowed subscriptions; 5.x.
    pub subscription_data_set: Option<Vec<SimpleSubscriptionData>>,
    /// Broker to read from when the master lags.
    pub which_broker_when_consume_slowly: i64,
}

impl SubscriptionGroupConfig {
    /// The settings of a group for which nobody said anything.
    #[must_use]
    pub fn new(group: impl Into<String>) -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: group.into(),
            group_retry_policy: GroupRetryPolicy::default(),
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

/// What a member left out means.
impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self::new(String::new())
    }
}
