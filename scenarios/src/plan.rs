//! What one run does, as plain data: the cluster, its network, its clients, what they do and what goes wrong, and when.
//!
//! A plan holds everything that a run depends on; running it looks at no seed but the plan's own schedule seed.

use crate::kinds::{Failing, Kinds};
use serde::{Deserialize, Serialize};
use sim::fault::Fault;
use std::time::Duration;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How tasks and network delays are chosen.
    pub schedule: Schedule,
    /// The servers.
    pub cluster: Cluster,
    /// The links between all nodes.
    pub network: Network,
    /// The clients that exist.
    pub clients: Clients,
    /// What clients do, in any order of time.
    pub operations: Vec<Operation>,
    /// What goes wrong. Times count from the moment when the cluster is up.
    pub faults: Vec<Fault>,
    /// Length of the safety phase; then all faults are healed and liveness is demanded.
    #[serde(with = "sim::duration")]
    pub duration: Duration,
    /// Whether the marked places of the code ([`rt::buggify!`], [`rt::dawdle!`]) make choices that are legal but rare: small reads, late
    /// tasks, early rounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rare_choices: bool,
}

/// How ready tasks are picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Seed of the world: picks, latencies, every stream of entropy.
    pub seed: u64,
    /// The policy.
    pub policy: Policy,
}

/// The rule by which the next ready task is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Each ready task with equal chance.
    Random,
    /// Tasks have random priorities, changed at a few random moments (probabilistic concurrency testing).
    Priority,
}

/// The servers of a run. Names: `names-1`, …; `broker-a`, `broker-b`, … (masters); `broker-a-slave-1`, ….
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Name servers, 1 or more.
    pub name_servers: u32,
    /// Slaves of each master: one entry a master.
    pub slaves: Vec<u32>,
    /// When a send is answered, as to the disk.
    pub flush: Flush,
    /// When a send is answered, as to other brokers.
    pub replication: Replication,
    /// Queues that the topic has on each master.
    pub queues: u32,
    /// Size of a commit-log file in KiB: small, so that files roll over within a run.
    pub segment_kib: u32,
    /// Whether a returning master first learns from its slaves what it may have lost (`recoverFromSlaveOnStart`). Off is what
    /// Apache's classic master does.
    pub recover_from_slave: bool,
    /// Whether reads move to a slave when the master is far behind, as the broker suggests (`slaveReadEnable`).
    pub slave_read: bool,
    /// When brokers remove what has expired; none: not within a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// When brokers remove old segments of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// How old the newest message of a segment must be (`hotfireFileReservedTime`).
    #[serde(with = "sim::duration")]
    pub reserved: Duration,
    /// From the end of one look to the next (`cleanResourceInterval`).
    #[serde(with = "sim::duration")]
    pub interval: Duration,
    /// Whether any hour is one at which segments go (`deleteWhen`); else they go when an operator asks, or the disk fills up.
    pub at_any_hour: bool,
}

/// `flushDiskType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// Answered once synced.
    Sync,
    /// Answered from the page cache, synced within the flush interval.
    Async,
}

/// `brokerRole` of the masters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replication {
    /// Answered without waiting for a slave.
    Async,
    /// Answered once `in_sync_replicas` brokers, the master included, have it.
    Sync {
        /// Copies, the master's included.
        in_sync_replicas: u32,
    },
}

/// The network of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Least one-way delay.
    #[serde(with = "sim::duration")]
    pub latency_min: Duration,
    /// Greatest one-way delay.
    #[serde(with = "sim::duration")]
    pub latency_max: Duration,
    /// Whether name servers are configured by host name and not by address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_name: bool,
}

/// The clients of a run, each on a node of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// Nodes `producer-1`, ….
    pub producers: u32,
    /// Nodes `consumer-1`, …, in order.
    pub consumers: Vec<Consumer>,
}

/// One push consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// Its group.
    pub group: String,
    /// Where the group's progress is kept.
    pub model: Model,
    /// How often progress is persisted; a long time leaves it to the commit flags of pulls.
    #[serde(with = "sim::duration")]
    pub persist_interval: Duration,
    /// How long its listener works on a message: none, one or two times that, by the message's offset, so that messages are
    /// finished in another order than they came.
    #[serde(default, with = "sim::duration", skip_serializing_if = "Duration::is_zero")]
    pub work: Duration,
    /// The tags that its group subscribes to; empty: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether it asks for its tags by an SQL92 expression over properties.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_sql: bool,
    /// What its listener cannot consume at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// Message model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// One member gets a message; progress is at the broker.
    Clustering,
    /// Each member gets it; progress is in a local file.
    Broadcasting,
}

/// Something that a client or an operator does. Times count from the moment when the cluster is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// A producer sends messages one after the other, at fixed times.
    Send {
        /// The node.
        producer: String,
        /// First message.
        #[serde(with = "sim::duration")]
        at: Duration,
        /// Number of messages.
        count: u32,
        /// Time from one to the next.
        #[serde(with = "sim::duration")]
        every: Duration,
        /// Length of each body.
        body_bytes: u32,
        /// What the messages are.
        #[serde(default, skip_serializing_if = "Kinds::is_plain")]
        kinds: Kinds,
    },
    /// A consumer starts.
    Join {
        /// The node.
        consumer: String,
        /// When.
        #[serde(with = "sim::duration")]
        at: Duration,
    },
    /// A consumer shuts down in order.
    Leave {
        /// The node.
        consumer: String,
        /// When.
        #[serde(with = "sim::duration")]
        at: Duration,
    },
    /// An operator has a broker remove what has expired (DELETE_EXPIRED_COMMITLOG).
    RemoveExpired {
        /// The node.
        broker: String,
        /// When.
        #[serde(with = "sim::duration")]
        at: Duration,
    },
}

impl Operation {
    /// How many things the client does: each message counts.
    pub fn size(&self) -> usize {
        match self {
            Operation::Send { count, .. } => *count as usize,
            Operation::Join { .. } | Operation::Leave { .. } | Operation::RemoveExpired { .. } => 1,
        }
    }

    /// The node that does it, or that is told to.
    pub fn node(&self) -> &String {
        match self {
            Operation::Send { producer: node, .. }
            | Operation::Join { consumer: node, .. }
            | Operation::Leave { consumer: node, .. }
            | Operation::RemoveExpired { broker: node, .. } => node,
        }
    }
}

/// The topic that producers send to.
pub const TOPIC: &str = "Hotfire";

impl Cluster {
    /// Names of the masters, in order.
    pub fn masters(&self) -> Vec<String> {
        (0..self.slaves.len()).map(master_name).collect()
    }

    /// Names of the slaves of the master at `index`.
    pub fn slaves_of(&self, index: usize) -> Vec<String> {
        (1..=self.slaves[index]).map(|slave| format!("{}-slave-{slave}", master_name(index))).collect()
    }

    /// All broker nodes.
    pub fn brokers(&self) -> Vec<String> {
        (0..self.slaves.len()).flat_map(|index| [vec![master_name(index)], self.slaves_of(index)].concat()).collect()
    }

    /// All name-server nodes.
    pub fn names(&self) -> Vec<String> {
        (1..=self.name_servers).map(|number| format!("names-{number}")).collect()
    }

    /// Whether an acknowledged message is also on a slave.
    pub fn is_replicated_before_ack(&self) -> bool {
        matches!(self.replication, Replication::Sync { in_sync_replicas: 2.. })
    }
}

impl Clients {
    /// All producer nodes.
    pub fn producer_names(&self) -> Vec<String> {
        (1..=self.producers).map(|number| format!("producer-{number}")).collect()
    }

    /// All consumer nodes with what runs on them.
    pub fn consumer_names(&self) -> Vec<(String, &Consumer)> {
        self.consumers
            .iter()
            .enumerate()
            .map(|(index, consumer)| (format!("consumer-{}", index + 1), consumer))
            .collect()
    }

    /// The same clients with listeners that work so long.
    #[must_use]
    pub fn working(mut self, work: Duration) -> Clients {
        self.consumers.iter_mut().for_each(|consumer| consumer.work = work);
        self
    }

    /// The groups, each once.
    pub fn groups(&self) -> Vec<String> {
        let mut groups: Vec<String> = self.consumers.iter().map(|consumer| consumer.group.clone()).collect();
        groups.sort();
        groups.dedup();
        groups
    }
}

fn master_name(index: usize) -> String {
    assert!(index < 26, "a plan has at most 26 masters");
    format!("broker-{}", char::from(b'a' + u8::try_from(index).expect("at most 26")))
}

/// Whether the group shares the messages out among its members.
pub fn is_clustering(plan: &Plan, group: &str) -> bool {
    plan.clients.consumers.iter().any(|consumer| consumer.group == group && consumer.model == Model::Clustering)
}
