//! Routes and the cluster's shape, as name servers tell them.

use std::collections::BTreeMap;

use super::{TopicQueueMappingInfo, body};

body! {
    /// Where a topic lives: answer to GET_ROUTEINFO_BY_TOPIC.
    TopicRouteData {
        /// Brokers.
        broker_datas: Vec<BrokerData>,
        /// Filter servers by broker address; no longer used.
        filter_server_table: BTreeMap<String, Vec<String>>,
        /// `brokerName:queues;…` of an ordered topic.
        order_topic_conf: Option<String>,
        /// Queues per broker.
        queue_datas: Vec<QueueData>,
        /// Static topics: the mapping of each broker.
        topic_queue_mapping_by_broker: Option<BTreeMap<String, TopicQueueMappingInfo>>,
    }

    /// A topic's queues at one broker name.
    QueueData {
        /// Broker name.
        broker_name: String,
        /// Permission bits: 4 read, 2 write, 1 inherit.
        perm: i32,
        /// Queues to read from.
        read_queue_nums: i32,
        /// System flag of the topic.
        topic_sys_flag: i32,
        /// Queues to write to.
        write_queue_nums: i32,
    }

    /// A master and its slaves.
    BrokerData {
        /// Address by broker id; 0 is the master.
        broker_addrs: BTreeMap<i64, String>,
        /// Broker name.
        broker_name: String,
        /// Cluster.
        cluster: String,
        /// Whether a slave may stand in for a missing master.
        enable_acting_master: bool,
        /// Zone.
        zone_name: Option<String>,
    }

    /// Answer to GET_BROKER_CLUSTER_INFO.
    ClusterInfo {
        /// Brokers by name.
        broker_addr_table: BTreeMap<String, BrokerData>,
        /// Broker names by cluster.
        cluster_addr_table: BTreeMap<String, Vec<String>>,
    }
}

impl BrokerData {
    /// Address of the master, else of the smallest id: whom a client turns to when any will do.
    #[must_use]
    pub fn preferred_addr(&self) -> Option<&str> {
        self.broker_addrs.first_key_value().map(|(_, addr)| addr.as_str())
    }

    /// Address of the master.
    #[must_use]
    pub fn master_addr(&self) -> Option<&str> {
        self.broker_addrs.get(&0).map(String::as_str)
    }
}

impl QueueData {
    /// Whether clients may pull.
    #[must_use]
    pub const fn is_readable(&self) -> bool {
        self.perm & 4 != 0
    }

    /// Whether clients may send.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.perm & 2 != 0
    }
}
