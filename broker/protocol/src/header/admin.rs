//! Administration of a broker.

use super::{FieldKind, FieldValue, header};
use crate::frame::ExtFields;
use crate::offset::QueueOffset;

/// How many tags a topic's messages have; kept for the wire, nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum TopicFilterType {
    /// One tag a message.
    #[default]
    #[serde(rename = "SINGLE_TAG")]
    SingleTag,
    /// Several tags a message.
    #[serde(rename = "MULTI_TAG")]
    MultiTag,
}

impl FieldValue for TopicFilterType {
    const KIND: FieldKind = FieldKind::TopicFilter;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        let text = match self {
            Self::SingleTag => "SINGLE_TAG",
            Self::MultiTag => "MULTI_TAG",
        };
        fields.insert(key, text);
    }
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "SINGLE_TAG" => Some(Self::SingleTag),
            "MULTI_TAG" => Some(Self::MultiTag),
            _ => None,
        }
    }
}

header! {
    /// UPDATE_AND_CREATE_TOPIC (17).
    CreateTopicRequest {
        /// Topic.
        topic: String = "topic",
        /// Template topic; not used by brokers.
        default_topic: Option<String> = "defaultTopic",
        /// Queues to read from.
        read_queue_nums: i32 = "readQueueNums",
        /// Queues to write to.
        write_queue_nums: i32 = "writeQueueNums",
        /// Permission bits: 4 read, 2 write, 1 inherit.
        perm: i32 = "perm",
        /// Single or multiple tags.
        topic_filter_type: TopicFilterType = "topicFilterType",
        /// System flag of the topic: 1 unit, 2 has unit subscriptions.
        topic_sys_flag: Option<i32> = "topicSysFlag",
        /// Whether the topic is ordered.
        order: bool = "order" or false,
        /// Attribute changes, `+key=value,-key`.
        attributes: Option<String> = "attributes",
        /// Whether checks are skipped.
        force: bool = "force" or false,
    }

    /// DELETE_TOPIC_IN_BROKER (215).
    DeleteTopicRequest {
        /// Topic.
        topic: String = "topic",
    }

    /// GET_TOPIC_CONFIG (351).
    GetTopicConfigRequest {
        /// Topic.
        topic: String = "topic",
    }

    /// DELETE_SUBSCRIPTIONGROUP (207).
    DeleteSubscriptionGroupRequest {
        /// Group.
        group_name: String = "groupName",
        /// Whether its offsets go too.
        clean_offset: bool = "cleanOffset" or false,
        /// The same as 4.x clients say it.
        remove_offset: Option<bool> = "removeOffset",
    }

    /// GET_SUBSCRIPTIONGROUP_CONFIG (352).
    GetSubscriptionGroupConfigRequest {
        /// Group.
        group: String = "group",
    }

    /// UPDATE_AND_GET_GROUP_FORBIDDEN (353).
    UpdateGroupForbiddenRequest {
        /// Group.
        group: String = "group",
        /// Topic.
        topic: String = "topic",
        /// Whether the group may read the topic; absent: only ask.
        readable: Option<bool> = "readable",
    }

    /// Answer to GET_BROKER_CONFIG (26).
    GetBrokerConfigResponse {
        /// Version of the configuration, JSON.
        version: String = "version",
    }

    /// GET_TOPIC_STATS_INFO (202).
    TopicStatsRequest {
        /// Topic.
        topic: String = "topic",
    }

    /// GET_CONSUMER_CONNECTION_LIST (203).
    ConsumerConnectionRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
    }

    /// GET_PRODUCER_CONNECTION_LIST (204).
    ProducerConnectionRequest {
        /// Producer group.
        producer_group: String = "producerGroup",
    }

    /// GET_CONSUME_STATS (208).
    ConsumeStatsRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
        /// Only this topic.
        topic: Option<String> = "topic",
        /// Only these topics, joined by `;`; newer than 5.3.3.
        topic_list: Option<String> = "topicList",
    }

    /// INVOKE_BROKER_TO_RESET_OFFSET (222), administrator to broker, and RESET_CONSUMER_CLIENT_OFFSET (220), broker to consumer.
    ResetOffsetRequest {
        /// Consumer group.
        group: String = "group",
        /// Topic.
        topic: String = "topic",
        /// Queue; negative: all.
        queue_id: i32 = "queueId" or -1,
        /// Offset to set; counts with a queue only.
        offset: Option<QueueOffset> = "offset",
        /// Set to the offset of this store time, Unix milliseconds; negative: the end.
        timestamp: i64 = "timestamp",
        /// Whether progress may move forward as well.
        force: bool = "isForce" or false,
    }

    /// QUERY_TOPIC_CONSUME_BY_WHO (300).
    QueryTopicConsumeByWhoRequest {
        /// Topic.
        topic: String = "topic",
    }

    /// QUERY_TOPICS_BY_CONSUMER (343).
    QueryTopicsByConsumerRequest {
        /// Group.
        group: String = "group",
    }

    /// QUERY_SUBSCRIPTION_BY_CONSUMER (345).
    QuerySubscriptionByConsumerRequest {
        /// Group.
        group: String = "group",
        /// Topic.
        topic: Option<String> = "topic",
    }

    /// QUERY_CONSUME_TIME_SPAN (303).
    QueryConsumeTimeSpanRequest {
        /// Topic.
        topic: String = "topic",
        /// Group.
        group: String = "group",
    }

    /// GET_CONSUMER_RUNNING_INFO (307).
    ConsumerRunningInfoRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
        /// Client id.
        client_id: String = "clientId",
        /// Whether the thread dump is wanted.
        jstack_enable: Option<bool> = "jstackEnable",
    }

    /// VIEW_BROKER_STATS_DATA (315).
    ViewBrokerStatsDataRequest {
        /// Name of the statistic.
        stats_name: String = "statsName",
        /// Key within it.
        stats_key: String = "statsKey",
    }
}
