//! The configuration text of each node: what an operator would write into `namesrv.conf` and `broker.conf`.

use crate::plan::{Cluster, Flush, Plan, Replication};
use crate::transactions::{CHECK_EVERY, CHECKS_MAX, TIMEOUT};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

/// Where name servers listen.
pub const NAMESRV_PORT: u16 = 9876;
/// Where brokers listen.
pub const BROKER_PORT: u16 = 10911;
/// Where slaves copy the log.
pub const HA_PORT: u16 = 10912;
/// Where a broker's store is.
pub const STORE: &str = "/data/store";

/// `namesrv.conf`.
pub fn name_server() -> String {
    format!("listenPort={NAMESRV_PORT}\nkvConfigPath=/data/kvConfig.json\n")
}

/// `broker.conf` of a broker node, with the list of name servers. `addresses` has every node's address.
///
/// # Panics
/// If the node is not a broker of the cluster, or has no address.
pub fn broker(cluster: &Cluster, node: &str, name_servers: &[String], addresses: &BTreeMap<String, IpAddr>) -> String {
    let (broker_name, id) = identity(cluster, node);
    let role = match (id, cluster.replication) {
        (0, Replication::Async) => "ASYNC_MASTER",
        (0, Replication::Sync { .. }) => "SYNC_MASTER",
        _ => "SLAVE",
    };
    let replicas = match cluster.replication {
        Replication::Async => 1,
        Replication::Sync { in_sync_replicas } => in_sync_replicas,
    };
    let flush = if cluster.flush == Flush::Sync { "SYNC_FLUSH" } else { "ASYNC_FLUSH" };
    let settings = [
        ("brokerClusterName", "HotfireCluster".to_owned()),
        ("brokerName", broker_name),
        ("brokerId", id.to_string()),
        ("brokerRole", role.to_owned()),
        ("flushDiskType", flush.to_owned()),
        ("inSyncReplicas", replicas.to_string()),
        ("brokerIP1", addresses[node].to_string()),
        ("listenPort", BROKER_PORT.to_string()),
        ("haListenPort", HA_PORT.to_string()),
        ("namesrvAddr", name_servers.join(";")),
        ("storePathRootDir", STORE.to_owned()),
        ("mappedFileSizeCommitLog", (cluster.segment_kib * 1024).to_string()),
        ("maxHashSlotNum", "100".to_owned()),
        ("maxIndexNum", "1000".to_owned()),
        ("mappedFileSizeConsumeQueue", "2000".to_owned()),
        ("autoCreateTopicEnable", "false".to_owned()),
        // No acknowledged message may go because a quota is small: what may be lost is what the durability modes say.
        ("cleanFileForciblyEnable", "false".to_owned()),
        ("enablePropertyFilter", "true".to_owned()),
        ("slaveReadEnable", cluster.slave_read.to_string()),
        ("hotfireRecoverFromSlave", cluster.recover_from_slave.to_string()),
    ];
    let retention = cluster.retention.into_iter().flat_map(|retention| {
        // The world begins in the afternoon.
        let hours: Vec<String> =
            if retention.at_any_hour { 0..24 } else { 4..5 }.map(|hour| hour.to_string()).collect();
        [
            ("hotfireFileReservedTime", retention.reserved.as_millis().to_string()),
            ("cleanResourceInterval", retention.interval.as_millis().to_string()),
            ("deleteWhen", hours.join(";")),
        ]
    });
    let mut text = String::new();
    for (key, value) in settings.into_iter().chain(retention) {
        writeln!(text, "{key}={value}").expect("a String takes everything");
    }
    text
}

/// More of `broker.conf`: producers are asked soon, and over and over.
pub fn short_checks() -> String {
    let [timeout, period] = [TIMEOUT, CHECK_EVERY].map(|time| time.as_millis());
    format!("transactionTimeOut={timeout}\ntransactionCheckInterval={period}\ntransactionCheckMax={CHECKS_MAX}\n")
}

/// `host:port` of every name server, as the plan's nodes are told.
pub fn name_server_list(plan: &Plan, addresses: &BTreeMap<String, IpAddr>) -> Vec<String> {
    let host = |name: String| if plan.network.by_name { name } else { addresses[&name].to_string() };
    plan.cluster.names().into_iter().map(|name| format!("{}:{NAMESRV_PORT}", host(name))).collect()
}

/// Broker name and broker id of a node.
///
/// # Panics
/// If the node is not a broker of the cluster.
pub fn identity(cluster: &Cluster, node: &str) -> (String, i64) {
    let names = cluster.masters();
    for (index, master) in names.iter().enumerate() {
        if node == master {
            return (master.clone(), 0);
        }
        if let Some(place) = cluster.slaves_of(index).iter().position(|slave| slave == node) {
            return (master.clone(), i64::try_from(place).expect("a plan has few slaves") + 1);
        }
    }
    panic!("{node} is not a broker of this plan");
}

#[cfg(test)]
mod tests {
    use super::{broker, identity};
    use crate::plan::{Cluster, Flush, Replication, Retention};
    use std::time::Duration;

    #[test]
    fn a_slave_shares_its_masters_name() {
        let cluster = Cluster {
            name_servers: 1,
            slaves: vec![0, 2],
            flush: Flush::Sync,
            replication: Replication::Sync { in_sync_replicas: 2 },
            queues: 4,
            segment_kib: 64,
            recover_from_slave: true,
            slave_read: true,
            retention: Some(Retention {
                reserved: Duration::from_secs(20),
                interval: Duration::from_secs(5),
                at_any_hour: false,
            }),
        };
        assert_eq!(identity(&cluster, "broker-b-slave-2"), ("broker-b".to_owned(), 2));
        assert_eq!(identity(&cluster, "broker-a"), ("broker-a".to_owned(), 0));
        let addresses = ["names-1", "broker-b", "broker-b-slave-2"];
        let addresses =
            addresses.iter().zip(1_u8..).map(|(name, last)| ((*name).to_owned(), [10, 0, 0, last].into())).collect();
        insta::assert_snapshot!(broker(&cluster, "broker-b-slave-2", &["10.0.0.1:9876".to_owned()], &addresses), @r"
        brokerClusterName=HotfireCluster
        brokerName=broker-b
        brokerId=2
        brokerRole=SLAVE
        flushDiskType=SYNC_FLUSH
        inSyncReplicas=2
        brokerIP1=10.0.0.3
        listenPort=10911
        haListenPort=10912
        namesrvAddr=10.0.0.1:9876
        storePathRootDir=/data/store
        mappedFileSizeCommitLog=65536
        maxHashSlotNum=100
        maxIndexNum=1000
        mappedFileSizeConsumeQueue=2000
        autoCreateTopicEnable=false
        cleanFileForciblyEnable=false
        enablePropertyFilter=true
        slaveReadEnable=true
        hotfireRecoverFromSlave=true
        hotfireFileReservedTime=20000
        cleanResourceInterval=5000
        deleteWhen=4
        ");
    }
}
