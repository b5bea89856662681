//! What clients and administrators ask a name server.

use super::header;

header! {
    /// GET_ROUTEINFO_BY_TOPIC (105).
    GetRouteInfoRequest {
        /// Topic.
        topic: String = "topic",
        /// Whether the body must be strict JSON.
        accept_standard_json_only: Option<bool> = "acceptStandardJsonOnly",
    }

    /// GET_TOPICS_BY_CLUSTER (224).
    GetTopicsByClusterRequest {
        /// Cluster.
        cluster: String = "cluster",
    }

    /// WIPE_WRITE_PERM_OF_BROKER (205).
    WipeWritePermissionRequest {
        /// Broker.
        broker_name: String = "brokerName",
    }

    /// Answer to WIPE_WRITE_PERM_OF_BROKER.
    WipeWritePermissionResponse {
        /// Topics touched.
        wipe_topic_count: i32 = "wipeTopicCount",
    }

    /// ADD_WRITE_PERM_OF_BROKER (327).
    AddWritePermissionRequest {
        /// Broker.
        broker_name: String = "brokerName",
    }

    /// Answer to ADD_WRITE_PERM_OF_BROKER.
    AddWritePermissionResponse {
        /// Topics touched.
        add_topic_count: i32 = "addTopicCount",
    }

    /// DELETE_TOPIC_IN_NAMESRV (216).
    DeleteTopicInNamesrvRequest {
        /// Topic.
        topic: String = "topic",
        /// Only in this cluster.
        cluster_name: Option<String> = "clusterName",
    }

    /// REGISTER_TOPIC_IN_NAMESRV (217).
    RegisterTopicInNamesrvRequest {
        /// Topic.
        topic: String = "topic",
    }

    /// PUT_KV_CONFIG (100).
    PutKvConfigRequest {
        /// Namespace.
        namespace: String = "namespace",
        /// Key.
        key: String = "key",
        /// Value.
        value: String = "value",
    }

    /// GET_KV_CONFIG (101).
    GetKvConfigRequest {
        /// Namespace.
        namespace: String = "namespace",
        /// Key.
        key: String = "key",
    }

    /// Answer to GET_KV_CONFIG.
    GetKvConfigResponse {
        /// Value.
        value: Option<String> = "value",
    }

    /// DELETE_KV_CONFIG (102).
    DeleteKvConfigRequest {
        /// Namespace.
        namespace: String = "namespace",
        /// Key.
        key: String = "key",
    }

    /// GET_KVLIST_BY_NAMESPACE (219).
    GetKvListByNamespaceRequest {
        /// Namespace.
        namespace: String = "namespace",
    }
}
