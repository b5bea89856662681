use std::time::Duration;

use protocol::body::{DataVersion, QueueData, TopicConfig, TopicQueueMappingInfo, TopicRouteData};

use super::{BrokerKey, Registered, Registration, RouteTable, UnitTopics, keep_zone};
use crate::error::RegisterRefused;

/// A registration of broker `b` with topics `T` and `U`, to be varied.
fn broker(id: i64, addr: &str, connection: u64) -> Registration {
    Registration {
        cluster: "C".to_owned(),
        name: "b".to_owned(),
        addr: addr.to_owned(),
        broker_id: id,
        ha_server_addr: format!("{addr}-ha"),
        zone: None,
        expiry: Duration::from_secs(120),
        acting_master: Some(false),
        data_version: DataVersion { counter: 1, state_version: 0, timestamp: 0 },
        topics: ["T", "U"].map(|topic| (topic.to_owned(), TopicConfig::new(topic, 4))).into(),
        mappings: [].into(),
        filter_servers: None,
        delete_missing_topics: false,
        connection,
    }
}

fn with_version(registration: Registration, state_version: i64, counter: i64) -> Registration {
    Registration { data_version: DataVersion { counter, state_version, timestamp: 0 }, ..registration }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A table whose contradictions fail the test after each step.
#[derive(Default)]
struct Table(RouteTable);

impl Table {
    fn register(&mut self, registration: Registration, seconds: u64) -> Result<Registered, RegisterRefused> {
        let registered = self.0.register(registration, at(seconds));
        self.0.check_invariants();
        registered
    }

    fn unregister(&mut self, addr: &str, connection: u64) -> bool {
        let removed = self.0.unregister(&BrokerKey::new("b", addr), connection);
        self.0.check_invariants();
        removed
    }

    fn connection_lost(&mut self, connection: u64) {
        self.0.connection_lost(connection);
        self.0.check_invariants();
    }

    fn expire(&mut self, seconds: u64) -> Vec<String> {
        let expired = self.0.expire(at(seconds)).into_iter().map(|(key, _)| key.addr).collect();
        self.0.check_invariants();
        expired
    }

    /// The route as one line: `addresses by id | permission and queues by broker`.
    fn route(&self, topic: &str) -> String {
        self.0.route(topic, false).map_or_else(|| "none".to_owned(), |route| line(&route))
    }
}

fn line(route: &TopicRouteData) -> String {
    let brokers: Vec<_> = route.broker_datas.iter().flat_map(|broker| &broker.broker_addrs).collect();
    let addrs: Vec<_> = brokers.iter().map(|(id, addr)| format!("{id}={addr}")).collect();
    let queues: Vec<_> = route
        .queue_datas
        .iter()
        .map(|q| format!("{} perm {} queues {}", q.broker_name, q.perm, q.read_queue_nums))
        .collect();
    format!("{} | {}", addrs.join(" "), queues.join(", "))
}

fn key(addr: &str) -> BrokerKey {
    BrokerKey::new("b", addr)
}

#[test]
fn master_and_slave_register_and_a_slave_learns_its_master() {
    let mut table = Table::default();
    assert_eq!(table.register(broker(0, "A", 1), 0), Ok(Registered::default()));
    let registered = table.register(broker(1, "B", 2), 1).unwrap();
    assert_eq!(registered.master_addr.as_deref(), Some("A"));
    assert_eq!(registered.ha_server_addr.as_deref(), Some("A-ha"));
    assert_eq!(table.route("T"), "0=A 1=B | b perm 6 queues 4");
    assert_eq!(table.route("X"), "none");
}

#[test]
fn a_slave_changes_no_topic_while_there_is_a_master() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    let mut slave = broker(1, "B", 2);
    slave.topics.insert("T".to_owned(), TopicConfig::new("T", 8));
    slave.topics.insert("V".to_owned(), TopicConfig::new("V", 8));
    table.register(slave, 1).unwrap();
    assert_eq!(table.route("T"), "0=A 1=B | b perm 6 queues 4");
    assert_eq!(table.route("V"), "none");
}

#[test]
fn a_single_topic_before_the_full_registration_is_refused_and_leaves_nothing() {
    let mut table = Table::default();
    let mut single = broker(0, "A", 1);
    single.topics.remove("U");
    assert_eq!(table.register(single.clone(), 0), Err(RegisterRefused::SingleTopicFirst));
    assert!(table.0.cluster_info().cluster_addr_table.is_empty());
    table.register(broker(0, "A", 1), 1).unwrap();
    single.topics.insert("T".to_owned(), TopicConfig::new("T", 8));
    table.register(with_version(single, 0, 2), 2).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 8");
    assert_eq!(table.route("U"), "0=A | b perm 6 queues 4");
}

#[test]
fn a_lost_change_is_mended_by_the_next_full_registration() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    // The change of T (version 2) was lost; that of U (version 3) came.
    let mut single = with_version(broker(0, "A", 1), 0, 3);
    single.topics.remove("T");
    table.register(single, 1).unwrap();
    let mut full = with_version(broker(0, "A", 1), 0, 3);
    full.topics.insert("T".to_owned(), TopicConfig::new("T", 8));
    table.register(full, 2).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 8");
}

#[test]
fn a_promoted_slave_keeps_one_id() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    table.register(broker(1, "B", 2), 0).unwrap();
    table.register(with_version(broker(0, "B", 2), 1, 1), 1).unwrap();
    assert_eq!(table.route("T"), "0=B | b perm 6 queues 4");
    // The old master's goodbye and the end of its connection change nothing.
    assert!(!table.unregister("A", 1));
    table.connection_lost(1);
    assert_eq!(table.route("T"), "0=B | b perm 6 queues 4");
}

#[test]
fn a_deposed_master_is_passed_over_however_many_topics_it_made() {
    let mut table = Table::default();
    table.register(with_version(broker(0, "B", 2), 2, 1), 0).unwrap();
    let registered = table.register(with_version(broker(0, "A", 3), 1, 900), 1).unwrap();
    assert!(registered.outdated);
    assert_eq!(table.route("T"), "0=B | b perm 6 queues 4");
    // Without epochs, as in a classic pair, the last one to register is the master.
    let registered = table.register(with_version(broker(0, "A", 3), 2, 1), 2).unwrap();
    assert!(!registered.outdated);
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
}

#[test]
fn a_late_goodbye_of_an_old_life_removes_nothing() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    table.register(broker(0, "A", 2), 1).unwrap();
    assert!(!table.unregister("A", 1));
    table.connection_lost(1);
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
    assert!(table.unregister("A", 2));
    assert_eq!(table.route("T"), "none");
}

#[test]
fn a_heartbeat_moves_the_registration_to_its_connection() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    assert!(table.0.heartbeat(&key("A"), 2, at(1)).is_some());
    table.connection_lost(1);
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
    table.connection_lost(2);
    assert_eq!(table.route("T"), "none");
    assert_eq!(table.0.heartbeat(&key("A"), 3, at(2)), None, "a heartbeat does not register");
}

#[test]
fn silence_ends_a_registration_after_its_own_time() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    table.register(Registration { expiry: at(10), ..broker(1, "B", 2) }, 0).unwrap();
    assert!(table.expire(10).is_empty());
    assert_eq!(table.expire(11), ["B"]);
    table.0.heartbeat(&key("A"), 1, at(100));
    assert!(table.expire(220).is_empty());
    assert_eq!(table.expire(221), ["A"]);
    assert_eq!(table.route("T"), "none");
    assert!(table.0.topics().is_empty() && table.0.cluster_info().broker_addr_table.is_empty());
}

#[test]
fn both_brokers_of_a_name_dead_at_once_leave_nothing() {
    let mut table = Table::default();
    let mapping = TopicQueueMappingInfo { topic: "T".to_owned(), ..TopicQueueMappingInfo::default() };
    table.register(Registration { mappings: [("T".to_owned(), mapping)].into(), ..broker(0, "A", 1) }, 0).unwrap();
    table.register(broker(1, "B", 2), 0).unwrap();
    assert_eq!(table.expire(121), ["A", "B"]);
    assert_eq!(table.route("T"), "none");
}

#[test]
fn a_reordered_older_registration_of_the_same_master_changes_nothing() {
    let mut table = Table::default();
    table.register(with_version(broker(0, "A", 1), 0, 5), 0).unwrap();
    let mut older = with_version(broker(0, "A", 1), 0, 4);
    older.topics.insert("T".to_owned(), TopicConfig::new("T", 1));
    table.register(older.clone(), 1).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
    // Over a new connection it is a new life of the broker, whatever its version.
    table.register(Registration { connection: 2, ..older }, 2).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 1");
}

#[test]
fn permission_changed_here_lasts_until_the_broker_changes_something() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    assert_eq!(table.0.wipe_write_permission("b"), 2);
    assert_eq!(table.route("T"), "0=A | b perm 4 queues 4");
    table.register(broker(0, "A", 1), 30).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 4 queues 4");
    table.register(with_version(broker(0, "A", 1), 0, 2), 60).unwrap();
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
    table.0.wipe_write_permission("b");
    assert_eq!(table.0.add_write_permission("b"), 2);
    assert_eq!(table.route("T"), "0=A | b perm 6 queues 4");
    assert_eq!(table.0.wipe_write_permission("nobody"), 0);
}

#[test]
fn a_slave_stands_in_for_the_master_where_allowed() {
    let acting =
        |id, addr: &str, connection| Registration { acting_master: Some(true), ..broker(id, addr, connection) };
    let mut table = Table::default();
    table.register(acting(0, "A", 1), 0).unwrap();
    table.register(acting(1, "B", 2), 0).unwrap();
    table.connection_lost(1);
    assert_eq!(table.route("T"), "1=B | b perm 4 queues 4", "nobody may send without a master");
    assert_eq!(line(&table.0.route("T", true).unwrap()), "0=B | b perm 4 queues 4");
    table.register(acting(1, "B", 2), 1).unwrap();
    assert_eq!(table.route("T"), "1=B | b perm 4 queues 4");
    table.register(acting(0, "A", 3), 2).unwrap();
    assert_eq!(table.route("T"), "0=A 1=B | b perm 6 queues 4", "the master brings sending back");
}

#[test]
fn without_acting_master_a_lone_slave_keeps_its_permissions() {
    let mut table = Table::default();
    // A candidate of an election registers with id -1 and is the smallest of its group.
    table.register(broker(-1, "A", 1), 0).unwrap();
    assert_eq!(table.route("T"), "-1=A | b perm 6 queues 4");
    assert_eq!(line(&table.0.route("T", true).unwrap()), "-1=A | b perm 6 queues 4");
}

#[test]
fn topics_are_deleted_and_come_back() {
    let mut table = Table::default();
    table.register(broker(0, "A", 1), 0).unwrap();
    table.0.delete_topic("T", Some("other cluster"));
    assert_eq!(table.0.topics(), ["T", "U"]);
    table.0.delete_topic("T", Some("C"));
    table.0.delete_topic("U", None);
    assert!(table.0.topics().is_empty());
    table.register(broker(0, "A", 1), 30).unwrap();
    assert_eq!(table.0.topics(), ["T", "U"]);
    let mut fewer = with_version(broker(0, "A", 1), 0, 2);
    fewer.topics.remove("T");
    fewer.topics.insert("V".to_owned(), TopicConfig::new("V", 1));
    table.register(Registration { delete_missing_topics: true, ..fewer }, 60).unwrap();
    assert_eq!(table.0.topics(), ["U", "V"]);
}

#[test]
fn lists() {
    let mut table = Table::default();
    let mut with_units = broker(0, "A", 1);
    for (topic, topic_sys_flag) in [("unit", 1), ("both", 3), ("subscribed", 2)] {
        let config = TopicConfig { topic_sys_flag, ..TopicConfig::new(topic, 1) };
        with_units.topics.insert(topic.to_owned(), config);
    }
    table.register(with_units, 0).unwrap();
    table.register(Registration { name: "c".to_owned(), cluster: "D".to_owned(), ..broker(0, "Z", 2) }, 0).unwrap();
    assert_eq!(table.0.topics_of_cluster("D"), ["T", "U"]);
    assert!(table.0.topics_of_cluster("E").is_empty());
    assert_eq!(table.0.unit_topics(UnitTopics::Unit), ["both", "unit"]);
    assert_eq!(table.0.unit_topics(UnitTopics::WithUnitSubscription), ["both", "subscribed"]);
    assert_eq!(table.0.unit_topics(UnitTopics::WithUnitSubscriptionOnly), ["subscribed"]);
    let (names, addr) = table.0.system_topics();
    assert_eq!((names.join(" "), addr.as_deref()), ("C D b c".to_owned(), Some("A")));
    assert_eq!(table.0.member_group("C", "b").broker_addrs.len(), 1);
    assert!(table.0.member_group("C", "nobody").broker_addrs.is_empty());
    let queues = |name: &str| QueueData { broker_name: name.to_owned(), perm: 6, ..QueueData::default() };
    table.0.register_topic("static", vec![queues("b"), queues("nobody")]);
    table.0.check_invariants();
    assert_eq!(table.route("static"), "0=A | b perm 6 queues 0");
}

#[test]
fn zones_and_filter_servers() {
    let mut table = Table::default();
    let zoned = |name: &str, addr: &str, zone: &str| Registration {
        name: name.to_owned(),
        zone: Some(zone.to_owned()),
        filter_servers: Some(vec![format!("{addr}-filter")]),
        ..broker(0, addr, 1)
    };
    table.register(zoned("b", "A", "east"), 0).unwrap();
    table.register(zoned("c", "B", "west"), 0).unwrap();
    let mut route = table.0.route("T", false).unwrap();
    assert_eq!(route.filter_server_table.len(), 2);
    keep_zone(&mut route, "EAST");
    assert_eq!(line(&route), "0=A | b perm 6 queues 4");
    assert_eq!(route.filter_server_table.into_keys().collect::<Vec<_>>(), ["A"]);
    table.connection_lost(1);
    assert_eq!(table.route("T"), "none");
}
