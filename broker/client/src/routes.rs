//! What the name servers last told: queues of topics, addresses of brokers.
use protocol::MessageQueue;
use protocol::body::{BrokerData, TopicRouteData};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Broker id of a master.
pub(crate) const MASTER_ID: i64 = 0;

const PERM_READ: i32 = 4;
const PERM_WRITE: i32 = 2;

/// A broker to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) addr: String,
    /// Not the master: it must not be told progress by a pull.
    pub(crate) is_slave: bool,
}

/// The route table of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    topics: BTreeMap<String, Topic>,
    /// Broker name → broker id → address, as in the newest route that names the broker.
    brokers: BTreeMap<String, BTreeMap<i64, String>>,
}

#[derive(Clone, Debug)]
struct Topic {
    route: TopicRouteData,
    /// Made once a route: each send asks for them.
    publish_queues: Arc<[MessageQueue]>,
}

impl Routes {
    /// Puts a newly fetched route in place. Returns whether the topic's route differs from the one before. A route stays when the
    /// name servers no longer know the topic: one that has just started knows none.
    pub(crate) fn put(&mut self, topic: &str, mut route: TopicRouteData) -> bool {
        // Name servers list brokers in no fixed order.
        route.queue_datas.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
        route.broker_datas.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
        for broker in &route.broker_datas {
            self.brokers.insert(broker.broker_name.clone(), broker.broker_addrs.clone());
        }
        let changed = self.route(topic) != Some(&route);
        let publish_queues = publish_queues(topic, &route).into();
        self.topics.insert(topic.into(), Topic { route, publish_queues });
        self.forget_offline_brokers();
        changed
    }

    fn route(&self, topic: &str) -> Option<&TopicRouteData> {
        self.topics.get(topic).map(|topic| &topic.route)
    }

    /// Forgets the routes of topics that nobody here uses any more, and then the brokers that no route names.
    pub(crate) fn retain_topics(&mut self, used: &BTreeSet<String>) {
        self.topics.retain(|topic, _| used.contains(topic));
        self.forget_offline_brokers();
    }

    fn forget_offline_brokers(&mut self) {
        let live: BTreeSet<&str> = self
            .topics
            .values()
            .flat_map(|topic| &topic.route.broker_datas)
            .map(|broker| broker.broker_name.as_str())
            .collect();
        self.brokers.retain(|name, _| live.contains(name.as_str()));
    }

    /// Queues that a producer may send to, by broker name and queue id: those of writable brokers with a master. A configured order
    /// (`brokerA:8;brokerB:8`) comes first.
    pub(crate) fn publish_queues(&self, topic: &str) -> Arc<[MessageQueue]> {
        self.topics.get(topic).map(|topic| topic.publish_queues.clone()).unwrap_or_default()
    }

    /// Queues that a consumer reads. `None`: the topic has no route.
    pub(crate) fn subscribe_queues(&self, topic: &str) -> Option<Vec<MessageQueue>> {
        let readable = self.route(topic)?.queue_datas.iter().filter(|data| data.perm & PERM_READ != 0);
        Some(readable.flat_map(|data| queues(topic, &data.broker_name, data.read_queue_nums)).collect())
    }

    /// Address of a broker's master.
    pub(crate) fn master(&self, broker: &str) -> Option<&str> {
        self.brokers.get(broker)?.get(&MASTER_ID).map(String::as_str)
    }

    /// Where to read: the broker of that id; else, for a slave, the one of the next id; else the lowest id there is.
    pub(crate) fn replica(&self, broker: &str, id: i64) -> Option<Replica> {
        let addrs = self.brokers.get(broker)?;
        let next = || if id == MASTER_ID { None } else { addrs.get_key_value(&id.saturating_add(1)) };
        let (chosen, addr) = addrs.get_key_value(&id).or_else(next).or_else(|| addrs.first_key_value())?;
        Some(Replica { addr: addr.clone(), is_slave: *chosen != MASTER_ID })
    }

    /// One address of each broker group of the topic (the master, else the lowest id), starting with the group that `draw`, a random
    /// number, points at: whom to ask about the members of a consumer group.
    pub(crate) fn group_addrs(&self, topic: &str, draw: usize) -> Vec<String> {
        let Some(route) = self.route(topic) else { return Vec::new() };
        let addrs = route.broker_datas.iter().filter_map(|broker| broker.broker_addrs.first_key_value());
        let mut addrs: Vec<String> = addrs.map(|(_, addr)| addr.clone()).collect();
        if !addrs.is_empty() {
            let start = draw % addrs.len();
            addrs.rotate_left(start);
        }
        addrs
    }

    /// Names of the topic's broker groups that have a master.
    pub(crate) fn masters_of(&self, topic: &str) -> Vec<String> {
        let Some(route) = self.route(topic) else { return Vec::new() };
        let brokers = route.broker_datas.iter().filter_map(|broker| broker.broker_addrs.get(&MASTER_ID));
        brokers.cloned().collect()
    }

    /// Addresses of all brokers of all routes; of masters only, if `masters_only`. No address twice.
    pub(crate) fn all_addrs(&self, masters_only: bool) -> BTreeSet<String> {
        let all = self.brokers.values().flatten();
        all.filter(|(id, _)| !masters_only || **id == MASTER_ID).map(|(_, addr)| addr.clone()).collect()
    }
}

fn publish_queues(topic: &str, route: &TopicRouteData) -> Vec<MessageQueue> {
    if let Some(order) = route.order_topic_conf.as_deref().filter(|order| !order.is_empty()) {
        let parts = order.split(';').filter_map(|part| part.split_once(':'));
        let counted = parts.filter_map(|(name, count)| Some((name.trim(), count.trim().parse().ok()?)));
        return counted.flat_map(|(name, count)| queues(topic, name, count)).collect();
    }
    let has_master =
        |name: &str| broker_of(route, name).is_some_and(|broker| broker.broker_addrs.contains_key(&MASTER_ID));
    let writable = route.queue_datas.iter().filter(|data| data.perm & PERM_WRITE != 0 && has_master(&data.broker_name));
    writable.flat_map(|data| queues(topic, &data.broker_name, data.write_queue_nums)).collect()
}

fn broker_of<'a>(route: &'a TopicRouteData, name: &str) -> Option<&'a BrokerData> {
    route.broker_datas.iter().find(|broker| broker.broker_name == name)
}

/// More queues than this for one topic at one broker are a lie.
const QUEUES_MAX: i32 = 65_536;

fn queues(topic: &str, broker: &str, count: i32) -> impl Iterator<Item = MessageQueue> {
    let (topic, broker_name) = (topic.to_owned(), broker.to_owned());
    (0..count.min(QUEUES_MAX)).map(move |queue_id| MessageQueue {
        topic: topic.clone(),
        broker_name: broker_name.clone(),
        queue_id,
    })
}

#[cfg(test)]
mod tests {
    use super::{Replica, Routes};
    use protocol::body::{BrokerData, QueueData, TopicRouteData};
    use std::collections::{BTreeMap, BTreeSet};

    /// `a:6:2/3:0,1` = broker a, perm 6, 2 write and 3 read queues, ids 0 and 1.
    fn route(brokers: &[&str]) -> TopicRouteData {
        let mut route = TopicRouteData::default();
        for text in brokers {
            let parts: Vec<&str> = text.split(':').collect();
            let (write, read) = parts[2].split_once('/').unwrap();
            let ids = parts[3].split(',').filter(|id| !id.is_empty());
            route.queue_datas.push(QueueData {
                broker_name: parts[0].into(),
                perm: parts[1].parse().unwrap(),
                write_queue_nums: write.parse().unwrap(),
                read_queue_nums: read.parse().unwrap(),
                ..QueueData::default()
            });
            let addrs: BTreeMap<i64, String> =
                ids.map(|id| (id.parse().unwrap(), format!("{}{id}", parts[0]))).collect();
            route.broker_datas.push(BrokerData {
                broker_name: parts[0].into(),
                broker_addrs: addrs,
                ..BrokerData::default()
            });
        }
        route
    }

    fn routes(brokers: &[&str]) -> Routes {
        let mut routes = Routes::default();
        assert!(routes.put("T", route(brokers)));
        routes
    }

    fn names(queues: &[protocol::MessageQueue]) -> Vec<String> {
        queues.iter().map(|q| format!("{}{}", q.broker_name, q.queue_id)).collect()
    }

    #[test]
    fn producers_get_writable_queues_with_a_master_in_order() {
        let routes = routes(&["b:6:2/1:0,1", "a:2:1/4:0", "c:4:4/1:0", "d:6:4/1:1"]);
        assert_eq!(names(&routes.publish_queues("T")), ["a0", "b0", "b1"]);
        assert!(routes.publish_queues("X").is_empty());
    }

    #[test]
    fn consumers_get_readable_queues_with_or_without_a_master() {
        let routes = routes(&["b:6:2/1:0,1", "a:2:1/4:0", "d:4:4/2:1"]);
        assert_eq!(names(&routes.subscribe_queues("T").unwrap()), ["b0", "d0", "d1"]);
        assert_eq!(routes.subscribe_queues("X"), None);
    }

    #[test]
    fn configured_order_comes_first() {
        let mut ordered = route(&["a:6:4/4:0"]);
        ordered.order_topic_conf = Some("b:1; a:2;bad".into());
        let mut routes = Routes::default();
        routes.put("T", ordered);
        assert_eq!(names(&routes.publish_queues("T")), ["b0", "a0", "a1"]);
    }

    #[test]
    fn order_in_the_answer_is_no_change() {
        let mut routes = routes(&["a:6:1/1:0", "b:6:1/1:0"]);
        assert!(!routes.put("T", route(&["b:6:1/1:0", "a:6:1/1:0"])));
        assert!(routes.put("T", route(&["a:6:1/1:0"])));
    }

    #[test]
    fn a_missing_master_is_read_at_the_lowest_slave() {
        let routes = routes(&["a:6:1/1:1,2", "b:6:1/1:0,3"]);
        let check = |broker: &str, id, expected: Option<(&str, bool)>| {
            let expected = expected.map(|(addr, is_slave)| Replica { addr: addr.into(), is_slave });
            assert_eq!(routes.replica(broker, id), expected, "{broker} {id}");
        };
        check("a", 0, Some(("a1", true)));
        check("a", 2, Some(("a2", true)));
        check("b", 2, Some(("b3", true)));
        check("b", 1, Some(("b0", false)));
        check("x", 0, None);
        assert_eq!(routes.master("a"), None);
        assert_eq!(routes.master("b"), Some("b0"));
    }

    #[test]
    fn member_lists_are_asked_at_any_group() {
        let routes = routes(&["a:6:1/1:0,1", "b:6:1/1:2"]);
        assert_eq!(routes.group_addrs("T", 0), ["a0", "b2"]);
        assert_eq!(routes.group_addrs("T", 3), ["b2", "a0"]);
        assert!(routes.group_addrs("X", 0).is_empty());
    }

    #[test]
    fn a_forgotten_topic_takes_its_brokers_along() {
        let mut routes = routes(&["a:6:1/1:0"]);
        routes.put("U", route(&["b:6:1/1:0,1"]));
        assert_eq!(routes.all_addrs(false), BTreeSet::from(["a0".into(), "b0".into(), "b1".into()]));
        assert_eq!(routes.all_addrs(true), BTreeSet::from(["a0".into(), "b0".into()]));
        routes.retain_topics(&BTreeSet::from(["U".into()]));
        assert_eq!(routes.subscribe_queues("T"), None);
        assert_eq!(routes.all_addrs(false), BTreeSet::from(["b0".into(), "b1".into()]));
    }
}
