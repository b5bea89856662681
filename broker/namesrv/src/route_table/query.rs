//! What clients and administrators ask, and what administrators change.

use std::collections::{BTreeMap, BTreeSet};

use protocol::body::{BrokerData, BrokerMemberGroup, ClusterInfo, QueueData, TopicRouteData};

use super::{BrokerKey, RouteTable, TopicRow, WRITE};

/// Read and write.
const READ_WRITE: i32 = 6;
/// Topics by which brokers once looked for their group: shown as they are, without an acting master.
const SYNC_BROKER_MEMBER_PREFIX: &str = "rmq_sys_SYNC_BROKER_MEMBER_";

/// Which topics of the unit lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitTopics {
    /// Topics of a unit.
    Unit,
    /// Topics with subscriptions from units.
    WithUnitSubscription,
    /// Topics of no unit with subscriptions from units.
    WithUnitSubscriptionOnly,
}

impl UnitTopics {
    const fn matches(self, topic_sys_flag: i32) -> bool {
        let (unit, subscription) = (topic_sys_flag & 1 != 0, topic_sys_flag & 2 != 0);
        match self {
            Self::Unit => unit,
            Self::WithUnitSubscription => subscription,
            Self::WithUnitSubscriptionOnly => !unit && subscription,
        }
    }
}

impl RouteTable {
    /// Where a topic lives. `acting_master`: show a slave in the place of a missing master where its broker allows it.
    #[must_use]
    pub fn route(&self, topic: &str, acting_master: bool) -> Option<TopicRouteData> {
        let rows = self.topics.get(topic)?;
        let queue_datas: Vec<QueueData> = rows.values().map(TopicRow::queue_data).collect();
        let mut broker_datas: Vec<BrokerData> =
            rows.keys().filter_map(|name| self.brokers.get(name)).cloned().collect();
        let filter_server_table = self.filter_servers(&broker_datas);
        if acting_master && !topic.starts_with(SYNC_BROKER_MEMBER_PREFIX) {
            for broker in &mut broker_datas {
                show_acting_master(broker, rows);
            }
        }
        Some(TopicRouteData {
            broker_datas,
            filter_server_table,
            order_topic_conf: None,
            queue_datas,
            topic_queue_mapping_by_broker: self.mappings.get(topic).cloned(),
        })
    }

    fn filter_servers(&self, brokers: &[BrokerData]) -> BTreeMap<String, Vec<String>> {
        let mut table = BTreeMap::new();
        for broker in brokers {
            for addr in broker.broker_addrs.values() {
                let live = self.live.get(&BrokerKey::new(&broker.broker_name, addr));
                if let Some(live) = live.filter(|live| !live.filter_servers.is_empty()) {
                    table.insert(addr.clone(), live.filter_servers.clone());
                }
            }
        }
        table
    }

    /// All brokers and clusters.
    #[must_use]
    pub fn cluster_info(&self) -> ClusterInfo {
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect();
        ClusterInfo {
            broker_addr_table: self.brokers.clone(),
            cluster_addr_table: self.clusters.iter().map(|(cluster, set)| (cluster.clone(), names(set))).collect(),
        }
    }

    /// Members of a broker name; without addresses if it is not known.
    #[must_use]
    pub fn member_group(&self, cluster: &str, name: &str) -> BrokerMemberGroup {
        BrokerMemberGroup {
            broker_addrs: self.brokers.get(name).map(|broker| broker.broker_addrs.clone()).unwrap_or_default(),
            broker_name: name.to_owned(),
            cluster: cluster.to_owned(),
        }
    }

    /// All topics.
    #[must_use]
    pub fn topics(&self) -> Vec<String> {
        self.topics.keys().cloned().collect()
    }

    /// Topics that some broker of a cluster serves.
    #[must_use]
    pub fn topics_of_cluster(&self, cluster: &str) -> Vec<String> {
        let Some(names) = self.clusters.get(cluster) else { return Vec::new() };
        self.topics_where(|rows| rows.keys().any(|name| names.contains(name)))
    }

    /// Topics by their unit flags, as the first broker says them.
    #[must_use]
    pub fn unit_topics(&self, which: UnitTopics) -> Vec<String> {
        self.topics_where(|rows| rows.values().next().is_some_and(|row| which.matches(row.registered.topic_sys_flag)))
    }

    fn topics_where(&self, wanted: impl Fn(&BTreeMap<String, TopicRow>) -> bool) -> Vec<String> {
        self.topics.iter().filter(|(_, rows)| wanted(rows)).map(|(topic, _)| topic.clone()).collect()
    }

    /// Names that every broker serves as topics: clusters and brokers; with them, one broker's address.
    #[must_use]
    pub fn system_topics(&self) -> (Vec<String>, Option<String>) {
        let names = self.clusters.keys().chain(self.brokers.keys()).cloned().collect();
        let addr = self.brokers.values().next().and_then(BrokerData::preferred_addr).map(str::to_owned);
        (names, addr)
    }

    /// Removes a topic, or a cluster's rows of it. A broker that still has the topic brings it back.
    pub fn delete_topic(&mut self, topic: &str, cluster: Option<&str>) {
        let Some(cluster) = cluster else {
            self.topics.remove(topic);
            return;
        };
        let names = self.clusters.get(cluster).cloned().unwrap_or_default();
        if let Some(rows) = self.topics.get_mut(topic) {
            rows.retain(|name, _| !names.contains(name));
            if rows.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    /// Enters a topic on behalf of its brokers. Rows of brokers that are not known are passed over.
    pub fn register_topic(&mut self, topic: &str, queue_datas: Vec<QueueData>) {
        for registered in queue_datas.into_iter().filter(|queues| self.brokers.contains_key(&queues.broker_name)) {
            let rows = self.topics.entry(topic.to_owned()).or_default();
            rows.insert(registered.broker_name.clone(), TopicRow { registered, perm_here: None });
        }
    }

    /// Takes the permission to send from every topic of a broker, until it registers a change; returns how many.
    pub fn wipe_write_permission(&mut self, name: &str) -> usize {
        self.change_permission(name, |perm| perm & !WRITE)
    }

    /// Gives every topic of a broker the permission to read and send, until it registers a change; returns how many.
    pub fn add_write_permission(&mut self, name: &str) -> usize {
        self.change_permission(name, |_| READ_WRITE)
    }

    fn change_permission(&mut self, name: &str, change: impl Fn(i32) -> i32) -> usize {
        let rows = self.topics.values_mut().filter_map(|rows| rows.get_mut(name));
        rows.map(|row| row.perm_here = Some(change(row.perm()))).count()
    }
}

/// Gives the smallest slave the master's id, if there is no master and nobody may send.
fn show_acting_master(broker: &mut BrokerData, rows: &BTreeMap<String, TopicRow>) {
    let may_send = rows.get(&broker.broker_name).is_some_and(|row| row.perm() & WRITE != 0);
    if !broker.enable_acting_master || may_send {
        return;
    }
    if let Some((id, addr)) = broker.broker_addrs.pop_first() {
        broker.broker_addrs.insert(if id > 0 { 0 } else { id }, addr);
    }
}

/// Keeps of a route what a client of this zone is to see: brokers of the zone, and brokers without a master.
pub fn keep_zone(route: &mut TopicRouteData, zone: &str) {
    let is_kept = |broker: &BrokerData| {
        broker.master_addr().is_none() || broker.zone_name.as_deref().is_some_and(|z| z.eq_ignore_ascii_case(zone))
    };
    let (kept, dropped): (Vec<_>, Vec<_>) =
        std::mem::take(&mut route.broker_datas).into_iter().partition(|broker| is_kept(broker));
    for broker in &dropped {
        route.queue_datas.retain(|queues| queues.broker_name != broker.broker_name);
        route.filter_server_table.retain(|addr, _| !broker.broker_addrs.values().any(|a| a == addr));
    }
    route.broker_datas = kept;
}
