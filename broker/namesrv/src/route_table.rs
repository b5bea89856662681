//! The route table: what brokers have said about themselves, and what clients may conclude.
//!
//! Pure: `now` is the time since the name server started, connections are numbers (larger is newer), and what is to be done outside
//! is returned. Everything is one atomic step, so that a route never shows half a registration.

mod query;
mod register;
mod unregister;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::body::{BrokerData, DataVersion, QueueData, TopicConfig, TopicQueueMappingInfo};

pub use query::{UnitTopics, keep_zone};
pub use register::{Registered, Registration};

/// Permission bit of sending.
const WRITE: i32 = TopicConfig::PERM_WRITE;

/// A connection, by number: larger is newer.
pub type ConnectionNumber = u64;

/// Who registered: a broker name and one of its addresses. Broker names are unique across clusters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BrokerKey {
    /// Broker name.
    pub name: String,
    /// Address.
    pub addr: String,
}

impl BrokerKey {
    /// A key.
    #[must_use]
    pub fn new(name: impl Into<String>, addr: impl Into<String>) -> Self {
        Self { name: name.into(), addr: addr.into() }
    }
}

/// A registered address.
#[derive(Debug, Clone)]
struct Live {
    heard_at: Duration,
    expiry: Duration,
    data_version: DataVersion,
    /// The newest connection over which it was heard: only its end, or a newer one's word, ends the registration.
    connection: ConnectionNumber,
    ha_server_addr: String,
    filter_servers: Vec<String>,
}

/// What a broker said about a topic, and what was changed here since.
#[derive(Debug, Clone)]
struct TopicRow {
    registered: QueueData,
    /// Set by an administrator or by the loss of a master; holds until the broker registers a changed version.
    perm_here: Option<i32>,
}

impl TopicRow {
    fn queue_data(&self) -> QueueData {
        QueueData { perm: self.perm(), ..self.registered.clone() }
    }

    fn perm(&self) -> i32 {
        self.perm_here.unwrap_or(self.registered.perm)
    }
}

/// All routes.
#[derive(Debug, Clone, Default)]
pub struct RouteTable {
    /// Topic to broker name to queues.
    topics: BTreeMap<String, BTreeMap<String, TopicRow>>,
    /// Broker name to addresses; never without one.
    brokers: BTreeMap<String, BrokerData>,
    /// Cluster to broker names.
    clusters: BTreeMap<String, BTreeSet<String>>,
    live: BTreeMap<BrokerKey, Live>,
    /// Static topics: topic to broker name to mapping.
    mappings: BTreeMap<String, BTreeMap<String, TopicQueueMappingInfo>>,
}

impl RouteTable {
    /// A table that knows nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A broker gave a sign of life. Unknown brokers stay unknown: they have to register.
    pub fn heartbeat(&mut self, key: &BrokerKey, connection: ConnectionNumber, now: Duration) -> Option<DataVersion> {
        let live = self.live.get_mut(key)?;
        live.heard_at = live.heard_at.max(now);
        // A broker that reconnected is alive on the new connection; the end of the old one must not remove it.
        live.connection = live.connection.max(connection);
        Some(live.data_version)
    }

    /// Whether this address of the name is registered.
    #[must_use]
    pub fn is_live(&self, key: &BrokerKey) -> bool {
        self.live.contains_key(key)
    }

    /// Panics if the tables contradict each other.
    pub fn check_invariants(&self) {
        for (name, broker) in &self.brokers {
            assert!(!broker.broker_addrs.is_empty(), "broker {name} has no address");
            let addrs: BTreeSet<_> = broker.broker_addrs.values().collect();
            assert_eq!(addrs.len(), broker.broker_addrs.len(), "an address of broker {name} has two ids");
            for addr in addrs {
                assert!(self.live.contains_key(&BrokerKey::new(name, addr)), "{addr} of broker {name} is not live");
            }
            assert!(self.clusters.values().any(|names| names.contains(name)), "broker {name} is in no cluster");
        }
        for key in self.live.keys() {
            let broker = self.brokers.get(&key.name);
            assert!(broker.is_some_and(|b| b.broker_addrs.values().any(|a| *a == key.addr)), "{key:?} has no id");
        }
        for (topic, rows) in &self.topics {
            assert!(!rows.is_empty(), "topic {topic} has no row");
            assert!(rows.keys().all(|name| self.brokers.contains_key(name)), "topic {topic} names a lost broker");
        }
        for (cluster, names) in &self.clusters {
            assert!(!names.is_empty(), "cluster {cluster} has no broker");
            assert!(names.iter().all(|name| self.brokers.contains_key(name)), "cluster {cluster} names a lost broker");
        }
        for (topic, rows) in &self.mappings {
            assert!(rows.keys().all(|name| self.brokers.contains_key(name)), "mapping of {topic} names a lost broker");
        }
    }
}

#[cfg(test)]
mod tests;
