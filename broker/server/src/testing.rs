//! What the unit tests of this package share.
use crate::config::ClusterConfig;
use std::time::Duration;

/// A cluster with RocketMQ's defaults.
pub(crate) fn cluster() -> ClusterConfig {
    ClusterConfig {
        cluster_name: "DefaultCluster".to_owned(),
        broker_name: "broker-a".to_owned(),
        in_sync_replicas: 1,
        default_topic_queue_nums: 8,
        auto_create_topic: true,
        auto_create_group: true,
        cluster_topic: true,
        broker_topic: true,
        trace_topic: None,
        delay_levels: vec![Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(10)],
        region_id: "DefaultRegion".to_owned(),
        trace_on: true,
        recover_from_slave: true,
    }
}
