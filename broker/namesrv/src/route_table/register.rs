//! A broker registers.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::body::{BrokerData, DataVersion, QueueData, TopicConfig, TopicQueueMappingInfo};

use super::{BrokerKey, ConnectionNumber, Live, RouteTable, TopicRow, WRITE};
use crate::error::RegisterRefused;

const MASTER_ID: i64 = 0;

/// What a broker says about itself.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Cluster.
    pub cluster: String,
    /// Broker name.
    pub name: String,
    /// Address that clients connect to.
    pub addr: String,
    /// 0 is the master.
    pub broker_id: i64,
    /// Address that slaves connect to.
    pub ha_server_addr: String,
    /// Zone.
    pub zone: Option<String>,
    /// After this silence it counts as dead.
    pub expiry: Duration,
    /// Whether a slave may stand in for a missing master; `None`: the broker is too old to say.
    pub acting_master: Option<bool>,
    /// Version of its topics.
    pub data_version: DataVersion,
    /// Its topics: all of them, or those that changed.
    pub topics: BTreeMap<String, TopicConfig>,
    /// Its parts of static topics.
    pub mappings: BTreeMap<String, TopicQueueMappingInfo>,
    /// Its filter servers; `None`: as before.
    pub filter_servers: Option<Vec<String>>,
    /// Whether topics that it lacks are to be removed.
    pub delete_missing_topics: bool,
    /// The connection it came over.
    pub connection: ConnectionNumber,
}

/// What a broker learns from its registration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registered {
    /// A slave: its master's address for clients.
    pub master_addr: Option<String>,
    /// A slave: its master's address for slaves.
    pub ha_server_addr: Option<String>,
    /// The registration was passed over, since the id belongs to an address with a higher state version (master epoch).
    pub outdated: bool,
}

/// What a registration found.
struct Found {
    /// The id had no address.
    is_first: bool,
    /// The version is another than the one this address registered before.
    is_changed: bool,
    /// It speaks for the topics: the master, or the smallest slave of a name that may have an acting master.
    decides_topics: bool,
    /// A slave that speaks for the topics.
    is_prime_slave: bool,
}

impl RouteTable {
    /// A broker registers, or says again what it said.
    ///
    /// # Errors
    /// The registration is refused; nothing has changed.
    pub fn register(&mut self, registration: Registration, now: Duration) -> Result<Registered, RegisterRefused> {
        let key = BrokerKey::new(&registration.name, &registration.addr);
        if self.is_outdated(&registration) {
            self.remove(&key);
            return Ok(Registered { outdated: true, ..Registered::default() });
        }
        if self.is_overtaken(&registration, &key) {
            self.heartbeat(&key, registration.connection, now);
            return Ok(Registered::default());
        }
        let holder = self.brokers.get(&registration.name).and_then(|b| b.broker_addrs.get(&registration.broker_id));
        if holder.is_none() && registration.topics.len() == 1 {
            return Err(RegisterRefused::SingleTopicFirst);
        }
        let found = self.enter(&registration, &key);
        if found.decides_topics {
            self.enter_topics(&registration, &found);
        }
        self.enter_live(&registration, key, now);
        Ok(self.master_of(&registration))
    }

    /// Whether another address holds the id with a higher state version: a deposed master that made more topic changes than its
    /// successor would look newer by any other part of the version.
    fn is_outdated(&self, registration: &Registration) -> bool {
        let broker = self.brokers.get(&registration.name);
        let holder = broker.and_then(|broker| broker.broker_addrs.get(&registration.broker_id));
        holder.filter(|addr| **addr != registration.addr).is_some_and(|addr| {
            let live = self.live.get(&BrokerKey::new(&registration.name, addr));
            live.is_some_and(|live| live.data_version.state_version > registration.data_version.state_version)
        })
    }

    /// Whether a later registration of the same master over the same connection was served first: requests of one connection run
    /// beside each other, and a master's own version only grows while it lives.
    fn is_overtaken(&self, registration: &Registration, key: &BrokerKey) -> bool {
        let broker = self.brokers.get(&registration.name);
        let is_same_master = registration.broker_id == MASTER_ID
            && broker.and_then(BrokerData::master_addr) == Some(registration.addr.as_str());
        is_same_master
            && self.live.get(key).is_some_and(|live| {
                live.connection == registration.connection && live.data_version > registration.data_version
            })
    }

    /// Takes the address into the tables of brokers and clusters.
    fn enter(&mut self, registration: &Registration, key: &BrokerKey) -> Found {
        self.clusters.entry(registration.cluster.clone()).or_default().insert(registration.name.clone());
        let broker = self.brokers.entry(registration.name.clone()).or_insert_with(|| BrokerData {
            broker_name: registration.name.clone(),
            cluster: registration.cluster.clone(),
            ..BrokerData::default()
        });
        broker.enable_acting_master = registration.acting_master.unwrap_or(false);
        broker.zone_name.clone_from(&registration.zone);
        // A slave that became master keeps one id.
        broker.broker_addrs.retain(|id, addr| *addr != registration.addr || *id == registration.broker_id);
        let replaced = broker.broker_addrs.insert(registration.broker_id, registration.addr.clone());
        let smallest = broker.broker_addrs.first_key_value().map(|(id, _)| *id);
        let is_prime_slave = registration.acting_master.is_some()
            && registration.broker_id != MASTER_ID
            && smallest == Some(registration.broker_id);
        let is_first = replaced.is_none();
        if let Some(replaced) = replaced.filter(|addr| *addr != registration.addr) {
            self.live.remove(&BrokerKey::new(&registration.name, replaced));
        }
        let is_changed = self.live.get(key).is_none_or(|live| live.data_version != registration.data_version);
        let decides_topics = registration.broker_id == MASTER_ID || is_prime_slave;
        Found { is_first, is_changed, decides_topics, is_prime_slave }
    }

    fn enter_topics(&mut self, registration: &Registration, found: &Found) {
        if registration.delete_missing_topics && registration.mappings.is_empty() {
            self.retain_rows(&registration.name, |topic| registration.topics.contains_key(topic));
        }
        let strips_write = found.is_prime_slave && registration.acting_master == Some(true);
        for (topic, config) in &registration.topics {
            let registered = QueueData {
                broker_name: registration.name.clone(),
                perm: if strips_write { config.perm & !WRITE } else { config.perm },
                read_queue_nums: config.read_queue_nums,
                topic_sys_flag: config.topic_sys_flag,
                write_queue_nums: config.write_queue_nums,
            };
            let rows = self.topics.entry(topic.clone()).or_default();
            // What was changed here outlives the periodic repetition of what is known, and nothing else.
            let is_repetition = !found.is_first && !found.is_changed;
            let perm_here = rows.get(&registration.name).filter(|_| is_repetition).and_then(|row| row.perm_here);
            rows.insert(registration.name.clone(), TopicRow { registered, perm_here });
        }
        if found.is_changed || found.is_first {
            for (topic, mapping) in &registration.mappings {
                let rows = self.mappings.entry(topic.clone()).or_default();
                rows.insert(registration.name.clone(), mapping.clone());
            }
        }
    }

    fn enter_live(&mut self, registration: &Registration, key: BrokerKey, now: Duration) {
        let before = self.live.remove(&key);
        let filter_servers = registration
            .filter_servers
            .clone()
            .unwrap_or_else(|| before.as_ref().map_or_else(Vec::new, |live| live.filter_servers.clone()));
        let live = Live {
            heard_at: now,
            expiry: registration.expiry,
            data_version: registration.data_version,
            connection: before.map_or(0, |live| live.connection).max(registration.connection),
            ha_server_addr: registration.ha_server_addr.clone(),
            filter_servers,
        };
        self.live.insert(key, live);
    }

    /// What a slave learns about its master.
    fn master_of(&self, registration: &Registration) -> Registered {
        if registration.broker_id == MASTER_ID {
            return Registered::default();
        }
        let master = self.brokers.get(&registration.name).and_then(BrokerData::master_addr);
        let live = master.and_then(|addr| self.live.get(&BrokerKey::new(&registration.name, addr)));
        match (master, live) {
            (Some(addr), Some(live)) => Registered {
                master_addr: Some(addr.to_owned()),
                ha_server_addr: Some(live.ha_server_addr.clone()),
                outdated: false,
            },
            _ => Registered::default(),
        }
    }

    /// Keeps of a broker's topic rows those that `keep` wants.
    pub(super) fn retain_rows(&mut self, name: &str, keep: impl Fn(&str) -> bool) {
        self.topics.retain(|topic, rows| {
            if !keep(topic) {
                rows.remove(name);
            }
            !rows.is_empty()
        });
    }
}
