//! What brokers and name servers tell each other.

use super::header;
use crate::offset::PhysicalOffset;

header! {
    /// REGISTER_BROKER (103).
    RegisterBrokerRequest {
        /// Broker name, shared by a master and its slaves.
        broker_name: String = "brokerName",
        /// Address that clients connect to.
        broker_addr: String = "brokerAddr",
        /// Cluster.
        cluster_name: String = "clusterName",
        /// Address that slaves connect to.
        ha_server_addr: String = "haServerAddr",
        /// 0 is the master.
        broker_id: i64 = "brokerId",
        /// After this silence the broker counts as dead, milliseconds; 5.x.
        heartbeat_timeout_millis: Option<i64> = "heartbeatTimeoutMillis",
        /// Whether a slave may stand in for a missing master; 5.x. Its presence tells a 5.x broker.
        enable_acting_master: Option<bool> = "enableActingMaster",
        /// Whether the body is the compressed binary form.
        compressed: bool = "compressed" or false,
        /// Checksum of the body as sent; 0: unchecked.
        body_crc32: i32 = "bodyCrc32" or 0,
        /// Zone of the broker.
        zone_name: Option<String> = "__ZONE_NAME",
    }

    /// Answer to REGISTER_BROKER; filled for slaves of a live master.
    RegisterBrokerResponse {
        /// The master's address for slaves.
        ha_server_addr: Option<String> = "haServerAddr",
        /// The master's address for clients.
        master_addr: Option<String> = "masterAddr",
    }

    /// UNREGISTER_BROKER (104).
    UnregisterBrokerRequest {
        /// Broker name.
        broker_name: String = "brokerName",
        /// Address that clients connect to.
        broker_addr: String = "brokerAddr",
        /// Cluster.
        cluster_name: String = "clusterName",
        /// Broker id.
        broker_id: i64 = "brokerId",
    }

    /// QUERY_DATA_VERSION (322).
    QueryDataVersionRequest {
        /// Broker name.
        broker_name: String = "brokerName",
        /// Address that clients connect to.
        broker_addr: String = "brokerAddr",
        /// Cluster.
        cluster_name: String = "clusterName",
        /// Broker id.
        broker_id: i64 = "brokerId",
    }

    /// Answer to QUERY_DATA_VERSION.
    QueryDataVersionResponse {
        /// Whether the name server knows another version.
        changed: bool = "changed",
    }

    /// BROKER_HEARTBEAT (904), to name servers and controllers.
    BrokerHeartbeatRequest {
        /// Cluster.
        cluster_name: String = "clusterName",
        /// Address that clients connect to.
        broker_addr: String = "brokerAddr",
        /// Broker name.
        broker_name: String = "brokerName",
        /// Broker id; controllers only.
        broker_id: Option<i64> = "brokerId",
        /// Master epoch; controllers only.
        epoch: Option<i32> = "epoch",
        /// End of the commit log; controllers only.
        max_offset: Option<PhysicalOffset> = "maxOffset",
        /// Confirmed end; controllers only.
        confirm_offset: Option<PhysicalOffset> = "confirmOffset",
        /// After this silence the broker counts as dead, milliseconds. The wire spells it this way.
        heartbeat_timeout_millis: Option<i64> = "heartbeatTimeoutMills",
        /// Smaller is elected first; controllers only.
        election_priority: Option<i32> = "electionPriority",
    }

    /// GET_BROKER_MEMBER_GROUP (901).
    GetBrokerMemberGroupRequest {
        /// Cluster.
        cluster_name: String = "clusterName",
        /// Broker name.
        broker_name: String = "brokerName",
    }

    /// NOTIFY_MIN_BROKER_ID_CHANGE (905), name server to brokers, oneway.
    NotifyMinBrokerIdChangeRequest {
        /// The smallest id of the group now.
        min_broker_id: Option<i64> = "minBrokerId",
        /// Broker name.
        broker_name: Option<String> = "brokerName",
        /// Address of the broker with the smallest id.
        min_broker_addr: Option<String> = "minBrokerAddr",
        /// Address of the broker that went away.
        offline_broker_addr: Option<String> = "offlineBrokerAddr",
        /// That broker's address for slaves.
        ha_broker_addr: Option<String> = "haBrokerAddr",
    }
}
