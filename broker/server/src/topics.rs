//! The topics of a broker: which exist, which are the system's, how a send creates one.
use crate::config::ClusterConfig;
use crate::names::{DLQ_PREFIX, RETRY_PREFIX};
use crate::topic_requests::is_batch;
use crate::transaction::{HALF_TOPIC, OP_TOPIC, UNDECIDED_TOPIC};
use protocol::body::{DataVersion, TopicConfig};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bits of a topic's permission.
pub(crate) mod perm {
    pub const INHERIT: i32 = 1;
    pub const WRITE: i32 = 2;
    pub const READ: i32 = 4;
    pub const READ_WRITE: i32 = READ | WRITE;
}

/// The template of topics created by a send.
pub(crate) const TEMPLATE_TOPIC: &str = "TBW102";
/// Where messages of a delay level wait.
pub(crate) const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

/// System topics by fixed name, whether or not they exist here.
const SYSTEM_NAMES: &[&str] = &[
    TEMPLATE_TOPIC,
    SCHEDULE_TOPIC,
    "BenchmarkTest",
    HALF_TOPIC,
    "RMQ_SYS_TRACE_TOPIC",
    OP_TOPIC,
    UNDECIDED_TOPIC,
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC",
];

/// Topics into which a client must not send.
const NO_CLIENT_SEND: &[&str] = &[
    SCHEDULE_TOPIC,
    store::TIMER_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    UNDECIDED_TOPIC,
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];

/// The table as text: `config/topics.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TopicTableText {
    pub data_version: DataVersion,
    pub topic_config_table: BTreeMap<String, TopicConfig>,
}

/// All topics of a broker.
#[derive(Debug)]
pub(crate) struct TopicTable {
    topics: BTreeMap<String, TopicConfig>,
    /// Names that this broker made for itself.
    system: BTreeSet<String>,
    version: DataVersion,
    auto_create: bool,
    /// Counts changes, so that a writer knows whether its snapshot is still the newest.
    changes: u64,
}

impl TopicTable {
    /// The system's topics only.
    pub fn new(cluster: &ClusterConfig) -> TopicTable {
        let mut table = TopicTable {
            topics: BTreeMap::new(),
            system: BTreeSet::new(),
            version: DataVersion::default(),
            auto_create: cluster.auto_create_topic,
            changes: 0,
        };
        for config in system_topics(cluster) {
            table.system.insert(config.topic_name.clone());
            table.topics.insert(config.topic_name.clone(), config);
        }
        table
    }

    /// Lays the topics of a file over the system's.
    pub fn load(&mut self, text: TopicTableText) {
        self.topics.extend(text.topic_config_table.into_iter().filter(|(name, config)| *name == config.topic_name));
        self.version = text.data_version;
    }

    pub fn get(&self, topic: &str) -> Option<&TopicConfig> {
        self.topics.get(topic)
    }

    #[cfg(test)]
    fn version(&self) -> &DataVersion {
        &self.version
    }

    /// Topics whose queues hold batches as they were sent.
    pub fn batch_topics(&self) -> impl Iterator<Item = &str> {
        self.topics.values().filter(|topic| is_batch(&topic.attributes)).map(|topic| topic.topic_name.as_str())
    }

    /// Whether a topic belongs to the system: operators must not change it.
    pub fn is_system(&self, topic: &str) -> bool {
        SYSTEM_NAMES.contains(&topic) || topic.starts_with("rmq_sys_") || self.system.contains(topic)
    }

    pub fn system_topics(&self) -> &BTreeSet<String> {
        &self.system
    }

    /// The topic a message is sent to, created from `template` if the template allows it. The flag says whether it is new.
    pub fn for_send(
        &mut self,
        topic: &str,
        template: &str,
        wanted_queues: i32,
        sys_flag: i32,
        now_ms: i64,
    ) -> Option<(TopicConfig, bool)> {
        if let Some(found) = self.topics.get(topic) {
            return Some((found.clone(), false));
        }
        let source = self.topics.get(template)?;
        // Without auto-creation the template may still be there, from a file of other days.
        if source.perm & perm::INHERIT == 0 || (template == TEMPLATE_TOPIC && !self.auto_create) {
            return None;
        }
        let queues = wanted_queues.min(source.write_queue_nums).max(0);
        let config = TopicConfig {
            topic_filter_type: source.topic_filter_type,
            topic_sys_flag: sys_flag,
            perm: source.perm & !perm::INHERIT,
            ..plain(topic, queues, perm::READ_WRITE)
        };
        self.put(config.clone(), now_ms);
        Some((config, true))
    }

    /// The topic, created as given if it does not exist. The flag says whether it is new.
    pub fn ensure(&mut self, config: TopicConfig, now_ms: i64) -> (TopicConfig, bool) {
        if let Some(found) = self.topics.get(&config.topic_name) {
            return (found.clone(), false);
        }
        self.put(config.clone(), now_ms);
        (config, true)
    }

    /// Creates or replaces a topic; false if it is the same already.
    pub fn update(&mut self, config: TopicConfig, now_ms: i64) -> bool {
        if self.topics.get(&config.topic_name) == Some(&config) {
            return false;
        }
        self.put(config, now_ms);
        true
    }

    /// Forgets a topic; false if there was none.
    pub fn delete(&mut self, topic: &str, now_ms: i64) -> bool {
        let existed = self.topics.remove(topic).is_some();
        if existed {
            self.raise_version(now_ms);
        }
        existed
    }

    /// Becomes the master's table, in one step, with its version; so equal versions mean equal tables. True if anything differs.
    pub fn become_copy(&mut self, text: TopicTableText) -> bool {
        if text.data_version == self.version {
            return false;
        }
        self.topics = text.topic_config_table;
        self.version = text.data_version;
        self.changes += 1;
        true
    }

    pub fn text(&self) -> TopicTableText {
        TopicTableText { data_version: self.version, topic_config_table: self.topics.clone() }
    }

    fn put(&mut self, config: TopicConfig, now_ms: i64) {
        self.topics.insert(config.topic_name.clone(), config);
        self.raise_version(now_ms);
    }

    /// A number that differs whenever the table differs.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn raise_version(&mut self, now_ms: i64) {
        self.version.counter += 1;
        self.version.timestamp = now_ms;
        self.changes += 1;
    }
}

/// Whether clients may send there at all.
pub(crate) fn clients_may_send(topic: &str) -> bool {
    !NO_CLIENT_SEND.contains(&topic)
}

/// A topic with as many read as write queues and nothing special.
pub(crate) fn plain(topic: &str, queues: i32, perm: i32) -> TopicConfig {
    TopicConfig::new(topic, queues).with_perm(perm)
}

/// Where a group's failed messages come back.
pub(crate) fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// Where a group's given-up messages end.
pub(crate) fn dead_letter_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

fn system_topics(cluster: &ClusterConfig) -> Vec<TopicConfig> {
    let own = |enabled: bool| perm::INHERIT | if enabled { perm::READ_WRITE } else { 0 };
    let levels = i32::try_from(cluster.delay_levels.len()).expect("few levels");
    let mut topics = vec![
        plain("SELF_TEST_TOPIC", 1, perm::READ_WRITE),
        plain("BenchmarkTest", 1024, perm::READ_WRITE),
        plain(&cluster.cluster_name, 16, own(cluster.cluster_topic)),
        plain(&cluster.broker_name, 1, own(cluster.broker_topic)),
        plain("OFFSET_MOVED_EVENT", 1, perm::READ_WRITE),
        plain(SCHEDULE_TOPIC, levels, perm::READ_WRITE),
        plain(&format!("{}_REPLY_TOPIC", cluster.cluster_name), 1, perm::READ_WRITE),
        plain(&format!("rmq_sys_SYNC_BROKER_MEMBER_{}", cluster.broker_name), 1, perm::INHERIT),
        plain(HALF_TOPIC, 1, perm::READ_WRITE),
        plain(OP_TOPIC, 1, perm::READ_WRITE),
    ];
    if cluster.auto_create_topic {
        topics.push(plain(TEMPLATE_TOPIC, cluster.default_topic_queue_nums, perm::INHERIT | perm::READ_WRITE));
    }
    topics.extend(cluster.trace_topic.as_deref().map(|name| plain(name, 1, perm::READ_WRITE)));
    topics
}

#[cfg(test)]
mod tests {
    use super::{TopicTable, perm, plain};
    use crate::testing::cluster;

    #[test]
    fn a_send_creates_its_topic_from_a_template_that_is_inherited_from() {
        let check = |auto_create: bool, template: &str, wanted: i32, expected: Option<(i32, i32)>| {
            let mut table =
                TopicTable::new(&crate::config::ClusterConfig { auto_create_topic: auto_create, ..cluster() });
            let got =
                table.for_send("T", template, wanted, 0, 7).map(|(config, _)| (config.write_queue_nums, config.perm));
            assert_eq!(got, expected, "{auto_create} {template} {wanted}");
            assert_eq!(table.get("T").is_some(), expected.is_some());
            assert_eq!(table.version().counter, i64::from(expected.is_some()));
        };
        check(true, "TBW102", 4, Some((4, perm::READ_WRITE)));
        check(true, "TBW102", 400, Some((8, perm::READ_WRITE)));
        check(true, "TBW102", -1, Some((0, perm::READ_WRITE)));
        check(true, "BenchmarkTest", 4, None);
        check(true, "absent", 4, None);
        check(false, "TBW102", 4, None);
    }

    #[test]
    fn a_template_left_over_in_the_file_creates_nothing_while_auto_creation_is_off() {
        let with = TopicTable::new(&cluster()).text();
        let mut table = TopicTable::new(&crate::config::ClusterConfig { auto_create_topic: false, ..cluster() });
        table.load(with);
        assert_eq!(table.for_send("T", "TBW102", 4, 0, 7), None);
    }

    #[test]
    fn an_existing_topic_is_not_changed_by_a_send() {
        let mut table = TopicTable::new(&cluster());
        assert!(table.update(plain("T", 2, perm::READ), 1));
        assert!(!table.update(plain("T", 2, perm::READ), 2));
        assert_eq!(table.for_send("T", "TBW102", 4, 0, 3), Some((plain("T", 2, perm::READ), false)));
        assert_eq!(table.version().timestamp, 1);
    }

    #[test]
    fn a_copy_has_the_masters_version_and_is_not_copied_again() {
        let mut master = TopicTable::new(&cluster());
        master.update(plain("T", 2, perm::READ), 1);
        let mut slave = TopicTable::new(&cluster());
        slave.update(plain("only here", 2, perm::READ), 1);
        slave.update(plain("only here", 3, perm::READ), 2);
        assert!(slave.become_copy(master.text()));
        assert_eq!(slave.text(), master.text());
        assert!(!slave.become_copy(master.text()));
    }
}
