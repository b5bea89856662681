//! Small tables of text, and what brokers tell each other about themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, SubscriptionData, body};

body! {
    /// A table of texts: runtime information of a broker, configuration of a namespace.
    KvTable {
        /// The table.
        table: BTreeMap<String, String>,
    }

    /// A list of topics.
    TopicList {
        /// Address of one broker.
        broker_addr: Option<String>,
        /// Topics.
        topic_list: Vec<String>,
    }

    /// A list of groups.
    GroupList {
        /// Groups.
        group_list: Vec<String>,
    }

    /// Answer to GET_BROKER_MEMBER_GROUP.
    BrokerMemberGroupBody {
        /// The group.
        broker_member_group: BrokerMemberGroup,
    }

    /// A master and its slaves, by address.
    BrokerMemberGroup {
        /// Address by broker id.
        broker_addrs: BTreeMap<i64, String>,
        /// Broker name.
        broker_name: String,
        /// Cluster.
        cluster: String,
    }

    /// Answer to QUERY_SUBSCRIPTION_BY_CONSUMER.
    QuerySubscriptionResponseBody {
        /// Group.
        group: String,
        /// Subscription, if the group is online.
        subscription_data: Option<SubscriptionData>,
        /// Topic.
        topic: String,
    }

    /// Body of GET_ALL_MESSAGE_REQUEST_MODE.
    MessageRequestModeSerializeWrapper {
        /// Mode by group, by topic.
        message_request_mode_map: BTreeMap<String, BTreeMap<String, SetMessageRequestModeRequestBody>>,
    }

    /// Body of SET_MESSAGE_REQUEST_MODE.
    SetMessageRequestModeRequestBody {
        /// Group.
        consumer_group: String,
        /// Pull or pop.
        mode: MessageRequestMode,
        /// How many neighbours' queues a popping client shares.
        pop_share_queue_num: i32,
        /// Topic.
        topic: String,
    }

    /// Body of GET_TIMER_METRICS and `timermetrics`.
    TimerMetricsSerializeWrapper {
        /// Version of the table.
        data_version: Option<DataVersion>,
        /// Waiting messages by topic.
        timing_count: BTreeMap<String, TimerMetric>,
    }

    /// Waiting timer messages of one topic.
    TimerMetric {
        /// How many.
        count: i64,
        /// Last change, Unix milliseconds.
        time_stamp: i64,
    }

    /// Answer to GET_BROKER_HA_STATUS.
    HaRuntimeInfo {
        /// The slave's side.
        ha_client_runtime_info: HaClientRuntimeInfo,
        /// The master's side, a row a slave.
        ha_connection_info: Vec<HaConnectionRuntimeInfo>,
        /// Slaves that keep up.
        in_sync_slave_nums: i32,
        /// Whether this broker is the master.
        master: bool,
        /// End of the master's log.
        master_commit_log_max_offset: i64,
    }

    /// A slave as its master sees it.
    HaConnectionRuntimeInfo {
        /// Address.
        addr: String,
        /// How far behind, bytes.
        diff: i64,
        /// Whether it keeps up.
        in_sync: bool,
        /// What it has acknowledged.
        slave_ack_offset: i64,
        /// Position of the stream.
        transfer_from_where: i64,
        /// Rate.
        transferred_byte_in_second: i64,
    }

    /// A slave as it sees itself.
    HaClientRuntimeInfo {
        /// Last read, Unix milliseconds.
        last_read_timestamp: i64,
        /// Last write, Unix milliseconds.
        last_write_timestamp: i64,
        /// The master's address.
        master_addr: Option<String>,
        /// How far the master has flushed.
        master_flush_offset: i64,
        /// End of this broker's log.
        max_offset: i64,
        /// Rate.
        transferred_byte_in_second: i64,
    }
}

/// How a group asks for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MessageRequestMode {
    /// By offsets.
    #[default]
    Pull,
    /// By receipts.
    Pop,
}
