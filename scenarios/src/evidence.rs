//! What a run leaves behind for the judges: the history, and what the observer read when the run had settled (or had failed to).

use crate::breach::Breach;
use crate::expiry::{Expired, Removal};
use crate::faults::disk_held;
use crate::kinds::Kind;
use crate::ledger::{HALF_TOPIC, Ledger, SCHEDULE_TOPIC, TIMER_TOPIC};
use crate::operation::{Ask, HALF_QUEUE, History, Queue, TIMER_QUEUE, Told};
use crate::plan::{Cluster, Flush, Plan, TOPIC};
use indexmap::IndexSet;
use sim::fault::Fault;
use sim::history::{Operation, Outcome, What};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Node event: the program was started.
pub const STARTED: &str = "started";
/// Node event: the process ended, by a crash, an orderly stop, or because it gave up.
pub const PROCESS_ENDED: &str = "process ended";
/// Node event: the process had ended because a sync failed, and with it the pages that were not written are gone.
pub const SYNC_FAILED: &str = "gave up after a failed sync";
/// Node event: the machine lost its power.
pub const POWER_LOST: &str = "power lost";

/// What an asynchronous flush may still owe to the disk: `flushCommitLogThoroughInterval` 10 s, `flushIntervalCommitLog` 0.5 s, and a
/// second for the sync itself.
pub const FLUSH_WINDOW: Duration = Duration::from_millis(11_500);

/// Everything that the safety invariants may look at.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What clients and observer asked and were told, and what happened to nodes.
    pub history: History,
    /// World time at which the cluster was up and the plan's clock started.
    pub started_at: Duration,
    /// World time at which all faults were healed.
    pub healed_at: Duration,
    /// World time of the last look.
    pub ended_at: Duration,
    /// The last look at the cluster.
    pub last: Snapshot,
    /// What each master holds in each queue at the end.
    pub queues: BTreeMap<Queue, QueueContents>,
    /// Commit logs as they lie on the disks at the end, by broker node.
    pub logs: BTreeMap<String, LogCopy>,
    /// What each master's log says at the end, by its name; empty if all messages of the plan are plain.
    pub ledgers: BTreeMap<String, Ledger>,
    /// What each broker node did in the safety phase.
    pub work: BTreeMap<String, Work>,
    /// For each liveness invariant what was still unmet at the last look.
    pub unmet: BTreeMap<&'static str, Vec<Breach>>,
    /// What brokers removed because it had expired, in order of time. Queues and ledgers are those of logs that begin with it.
    pub removals: Vec<Removal>,
    digest: OnceCell<Digest>,
}

/// What judges ask often, read out of the history once.
#[derive(Debug, Clone, Default)]
struct Digest {
    /// By node, group and queue.
    commits: BTreeMap<(String, String, Queue), Commits>,
    first_lost: BTreeMap<Queue, i64>,
    /// Deliveries of messages that had waited, for a delay or the end of a transaction: the place and when.
    delayed: BTreeMap<Queue, Vec<(i64, Duration)>>,
    /// Keys that an offset named when it was delivered and does not name at the end.
    renamed: BTreeMap<(Queue, i64), BTreeSet<String>>,
}

impl Digest {
    fn lost(&mut self, queue: &Queue, offset: i64) {
        self.first_lost.entry(queue.clone()).and_modify(|first| *first = offset.min(*first)).or_insert(offset);
    }
}

/// What a node showed as committed for one group and queue: time of the answer, offset. In order of time.
pub type Commits = Vec<(Duration, i64)>;

/// One look at the running cluster.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Broker addresses by name server node and then `broker name#id`, for the topic's route.
    pub routes: BTreeMap<String, BTreeMap<String, String>>,
    /// Broker names with queues to send to, as a client sees them after a route refresh of its own.
    pub client_route: Vec<String>,
    /// Live consumers with the queues that they own, by group.
    pub owners: BTreeMap<String, BTreeMap<String, Vec<Queue>>>,
    /// End of each broker node's log, as its disk shows it; absent while the node is down.
    pub log_ends: BTreeMap<String, i64>,
    /// Nodes whose disk is damaged.
    pub damaged: BTreeSet<String>,
    /// Offset behind the last message of each queue, at its master; absent while it does not answer.
    pub queue_ends: BTreeMap<Queue, i64>,
    /// Bytes of each broker node's log that its queues do not show yet; absent while it does not answer.
    pub dispatch_behind: BTreeMap<String, u64>,
    /// Offsets of each queue that some member of the group has consumed, by group.
    pub consumed: BTreeMap<String, BTreeMap<Queue, Vec<i64>>>,
    /// What masters have removed by now because it had expired.
    pub expired: Expired,
    /// Committed offsets at the master, by group.
    pub committed: BTreeMap<String, BTreeMap<Queue, i64>>,
    /// Masters that answered a probe with SEND_OK since the faults were healed.
    pub serving: Vec<String>,
    /// What only a look at messages that are not plain shows; none if all are.
    pub kinds: Option<KindsSeen>,
}

/// The part of a look that is about messages with a tag, a delay, or a listener that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindsSeen {
    /// Masters whose log could be read.
    pub logs_read: BTreeSet<String>,
    /// Offsets of each queue whose message the group is not owed, by group that subscribes to tags.
    pub not_owed: BTreeMap<String, BTreeMap<Queue, BTreeSet<i64>>>,
    /// Messages that wait for their delay, as text.
    pub waiting: Vec<Breach>,
    /// Messages in retry topics that no listener has finished, as text.
    pub unfinished_retries: Vec<Breach>,
    /// Failures of listeners that are so recent that the message may still be on its way back to a broker.
    pub handed_back_lately: usize,
    /// The end of the queue of each delay level that has one, by master.
    pub level_ends: BTreeMap<String, BTreeMap<i32, i64>>,
    /// How far each delay level was delivered, by broker node; absent while it does not answer.
    pub delays: BTreeMap<String, BTreeMap<i32, i64>>,
    /// Transactions that are not resolved, as text.
    pub open_transactions: Vec<Breach>,
    /// Offsets behind the last half message and the last op message, by master.
    pub transaction_ends: BTreeMap<String, [i64; 2]>,
    /// How far both are done with, by broker node; absent while it does not answer.
    pub transactions: BTreeMap<String, [i64; 2]>,
}

impl Snapshot {
    /// Whether the group is owed the message at an offset of a queue.
    pub fn is_owed(&self, group: &str, queue: &Queue, offset: i64) -> bool {
        self.not_owed(group, queue).is_none_or(|offsets| !offsets.contains(&offset))
    }

    /// The last offset of a queue whose message the group is not owed.
    pub fn last_not_owed(&self, group: &str, queue: &Queue) -> Option<i64> {
        self.not_owed(group, queue).and_then(|offsets| offsets.last()).copied()
    }

    fn not_owed(&self, group: &str, queue: &Queue) -> Option<&BTreeSet<i64>> {
        self.kinds.as_ref()?.not_owed.get(group)?.get(queue)
    }
}

/// The messages of one queue, in order of offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueContents {
    /// Smallest offset.
    pub min: i64,
    /// Offset behind the last message.
    pub max: i64,
    /// What was read, in the order in which the broker gave it.
    pub messages: Vec<StoredKey>,
}

/// One stored message, as far as judges look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Queue offset.
    pub offset: i64,
    /// Commit-log offset.
    pub physical: i64,
    /// The key of the run; empty for a message that no client of the plan sent.
    pub key: String,
    /// Whether the body is the one that was sent.
    pub body_intact: bool,
}

/// A commit log as it lies on a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCopy {
    /// Offset of the first byte kept.
    pub start: i64,
    /// The bytes from `start` to the end of the last record.
    pub bytes: Vec<u8>,
}

impl LogCopy {
    /// Offset behind the last record.
    pub fn end(&self) -> i64 {
        self.start + i64::try_from(self.bytes.len()).expect("a log of a run fits in memory")
    }

    /// The offset of the first byte in which two copies differ, over the range that both have.
    pub fn first_difference(&self, other: &LogCopy) -> Option<i64> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        if start >= end {
            return None;
        }
        let (ours, theirs) = (self.between(start, end), other.between(start, end));
        // Equal copies are the rule, and whole slices compare fast.
        if ours == theirs {
            return None;
        }
        ours.iter()
            .zip(theirs)
            .position(|(our, their)| our != their)
            .map(|place| start + i64::try_from(place).expect("a log of a run fits in memory"))
    }

    fn between(&self, start: i64, end: i64) -> &[u8] {
        let place = |offset: i64| usize::try_from(offset - self.start).expect("not before the copy");
        &self.bytes[place(start)..place(end)]
    }
}

/// Countable work of a node: the points at which a [`CrashPoint`](sim::fault::crash_point::CrashPoint) can end it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Disk operations.
    pub disk_operations: u64,
    /// Segments sent.
    pub packets: u64,
}

impl Work {
    /// What came after `before`.
    #[must_use]
    pub fn since(&self, before: &Work) -> Work {
        Work { disk_operations: self.disk_operations - before.disk_operations, packets: self.packets - before.packets }
    }
}

/// How a node's life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process ended (crash, orderly stop, or it gave up); the page cache stayed.
    Process,
    /// Only synced bytes and a random part of the rest stayed: the power was lost, or a sync failed and the kernel dropped the
    /// pages that it could not write.
    PowerLoss,
}

/// A node's end and its return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When it ended.
    pub from: Duration,
    /// When it was started again; none: never.
    pub until: Option<Duration>,
    /// How it ended.
    pub death: Death,
}

/// A send with its answer.
#[derive(Debug, Clone, Copy)]
pub struct Send<'a> {
    /// The operation in the history.
    pub operation: &'a Operation<'a, Ask, Told>,
    /// The message's name.
    pub key: &'a str,
    /// Where it was stored, if the producer was told.
    pub stored: Option<Stored<'a>>,
}

/// The part of an answer that says where a message is.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// When the producer asked.
    pub asked_at: Duration,
    /// When it was told.
    pub at: Duration,
    /// The queue.
    pub queue: &'a Queue,
    /// The offset.
    pub offset: i64,
    /// Whether the answer was SEND_OK.
    pub promised: bool,
    /// Copies that earlier attempts may have left.
    pub other_copies_max: u32,
    /// Whether the queue is that of a delay level, the timer or the halves.
    pub is_delayed: bool,
}

/// All sends among the operations, in order of invocation.
pub fn sends<'a>(operations: &'a [Operation<'a, Ask, Told>]) -> Vec<Send<'a>> {
    let mut sends = Vec::new();
    for operation in operations {
        let Ask::Send { key } = operation.input else { continue };
        let stored = match (&operation.outcome, operation.ended) {
            (
                Outcome::Ok(
                    told @ (Told::Stored { queue, offset, promised, other_copies_max }
                    | Told::Delayed { queue, offset, promised, other_copies_max }),
                ),
                Some((_, at)),
            ) => Some(Stored {
                asked_at: operation.invoked_at,
                at,
                queue,
                offset: *offset,
                promised: *promised,
                other_copies_max: *other_copies_max,
                is_delayed: matches!(told, Told::Delayed { .. }),
            }),
            _ => None,
        };
        sends.push(Send { operation, key, stored });
    }
    sends
}

impl Evidence {
    /// What a node showed as committed, as the observer read it. The history must be whole by now.
    pub fn commits_seen(&self, node: &str, group: &str, queue: &Queue) -> &[(Duration, i64)] {
        let commits = &self.digest().commits;
        commits.get(&(node.to_owned(), group.to_owned(), queue.clone())).map_or(&[], Vec::as_slice)
    }

    /// The smallest offset of the queue that named a message once (as a delivery or an acknowledgement tells) and does not name it at
    /// the end.
    pub fn first_lost(&self, queue: &Queue) -> Option<i64> {
        self.digest().first_lost.get(queue).copied()
    }

    /// The smallest offset of the queue that may have been lost with a suffix of the log. As [`first_lost`](Self::first_lost); but a delayed
    /// message whose delivery was lost is delivered once more, often at the offset that it had, and then nothing shows that it was gone.
    pub fn lost_from(&self, plan: &Plan, queue: &Queue) -> Option<i64> {
        let first_lost = self.first_lost(queue);
        if plan.cluster.flush == Flush::Sync {
            return first_lost;
        }
        let losses = self.power_losses(&queue.broker);
        let window = FLUSH_WINDOW + disk_held(plan, &queue.broker);
        let is_in_doubt =
            |at: Duration| losses.iter().any(|loss| *loss >= at && self.time_alive(&queue.broker, at, *loss) <= window);
        let delayed = self.digest().delayed.get(queue).into_iter().flatten();
        delayed.filter(|(_, at)| is_in_doubt(*at)).map(|(offset, _)| *offset).chain(first_lost).min()
    }

    /// Keys of the messages of the topic that a listener of the group was done with, by consuming them or by handing them back.
    pub fn finished(&self, group: &str) -> IndexSet<&str> {
        let mut consumed = IndexSet::new();
        for operation in self.history.operations() {
            if let (Ask::Consume { group: of, key, .. }, Outcome::Ok(_)) = (operation.input, &operation.outcome)
                && of == group
            {
                consumed.insert(key.as_str());
            }
        }
        consumed
    }

    /// What masters had removed at the end because it had expired.
    pub fn expired(&self) -> Expired {
        Expired::of(&self.removals)
    }

    /// When a message of the topic may have been removed at its master, at the earliest; none: it never was.
    pub fn expired_at(&self, queue: &Queue, offset: i64) -> Option<Duration> {
        let key = (TOPIC.to_owned(), queue.id);
        let took = |removal: &&Removal| {
            removal.node == queue.broker && removal.ends.get(&key).is_some_and(|end| offset < *end)
        };
        self.removals.iter().find(took).map(|removal| removal.after)
    }

    /// Whether an offset, which names this message at the end, named another before, of a suffix that was lost.
    pub fn was_reused(&self, queue: &Queue, offset: i64, key: &str) -> bool {
        let renamed = &self.digest().renamed;
        // Empty in nearly every run, and asked for each message: no key is made for that.
        !renamed.is_empty()
            && renamed.get(&(queue.clone(), offset)).is_some_and(|keys| keys.iter().any(|named| named != key))
    }

    fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| {
            let mut digest = Digest::default();
            for operation in self.history.operations() {
                self.note(&mut digest, &operation);
            }
            digest.commits.values_mut().for_each(|seen| seen.sort_by_key(|(at, _)| *at));
            digest
        })
    }

    fn note(&self, digest: &mut Digest, operation: &Operation<'_, Ask, Told>) {
        match (operation.input, &operation.outcome, operation.ended) {
            (Ask::ReadCommitted { node, group, queue }, Outcome::Ok(Told::Committed(offset)), Some((_, at))) => {
                let key = (node.clone(), group.clone(), queue.clone());
                digest.commits.entry(key).or_default().push((at, offset.unwrap_or(0)));
            }
            (Ask::Send { key }, Outcome::Ok(Told::Stored { queue, offset, .. }), _)
                if self.is_lost(queue, *offset, key) =>
            {
                digest.lost(queue, *offset);
            }
            (Ask::Consume { queue, offset, key, .. }, ..) => {
                if self.is_lost(queue, *offset, key) {
                    digest.lost(queue, *offset);
                    digest.renamed.entry((queue.clone(), *offset)).or_default().insert(key.clone());
                } else if Kind::of(key).is_moved() {
                    digest.delayed.entry(queue.clone()).or_default().push((*offset, operation.invoked_at));
                }
            }
            _ => {}
        }
    }

    /// Whether a queue that is known at the end has another message, or none, where this one was.
    fn is_lost(&self, queue: &Queue, offset: i64, key: &str) -> bool {
        let at_the_end = self.queues.get(queue);
        at_the_end.is_some_and(|contents| offset >= contents.min && contents.key_at(offset) != Some(key))
    }

    /// The outages of a node, in order of time.
    pub fn outages(&self, node: &str) -> Vec<Outage> {
        let mut outages: Vec<Outage> = Vec::new();
        for event in &self.history.events {
            let What::Node { node: name, event: what } = &event.what else { continue };
            if name != node {
                continue;
            }
            let open = outages.last().is_some_and(|outage| outage.until.is_none());
            match what.as_str() {
                STARTED if open => outages.last_mut().expect("just looked").until = Some(event.at),
                POWER_LOST => outages.push(Outage { from: event.at, until: None, death: Death::PowerLoss }),
                PROCESS_ENDED if !open => outages.push(Outage { from: event.at, until: None, death: Death::Process }),
                SYNC_FAILED if open => outages.last_mut().expect("just looked").death = Death::PowerLoss,
                _ => {}
            }
        }
        outages
    }

    /// When a fault of the plan was on, as the history tells; a fault that never ended lasts to the end of the run.
    pub fn fault_times(&self, fault: &Fault) -> Vec<(Duration, Duration)> {
        let nodes = fault.fault.nodes().join(", ");
        let (begins, is_over) = (format!("{} begins", fault.fault.name()), format!("{} is over", fault.fault.name()));
        let mut times: Vec<(Duration, Option<Duration>)> = Vec::new();
        for event in &self.history.events {
            let What::Node { node, event: what } = &event.what else { continue };
            if *node != nodes {
                continue;
            }
            if *what == begins {
                times.push((event.at, None));
            } else if what.starts_with(&is_over)
                && let Some((_, end @ None)) = times.iter_mut().find(|(_, end)| end.is_none())
            {
                *end = Some(event.at);
            }
        }
        times.into_iter().map(|(begin, end)| (begin, end.unwrap_or(self.ended_at))).collect()
    }

    /// For how long a node's program ran in `from..until`; none if that is not after `from`.
    pub fn time_alive(&self, node: &str, from: Duration, until: Duration) -> Duration {
        let outages = self.outages(node);
        let next = outages.iter().skip(1).map(|outage| outage.from).chain([until]);
        let dead: Duration = outages
            .iter()
            .zip(next)
            .map(|(outage, next)| {
                // One outage goes over into the next: a dead machine loses its power.
                let back = outage.until.unwrap_or(next).min(until);
                back.saturating_sub(outage.from.max(from))
            })
            .sum();
        until.saturating_sub(from).saturating_sub(dead)
    }

    /// Times at which a node lost power.
    pub fn power_losses(&self, node: &str) -> Vec<Duration> {
        self.outages(node)
            .into_iter()
            .filter(|outage| outage.death == Death::PowerLoss)
            .map(|outage| outage.from)
            .collect()
    }

    /// Whether the message is where the producer was told.
    pub fn holds(&self, stored: &Stored<'_>, key: &str) -> bool {
        if stored.is_delayed {
            let ledger = self.ledgers.get(&stored.queue.broker);
            let (topic, id) = match stored.queue.id {
                HALF_QUEUE => (HALF_TOPIC, 0),
                TIMER_QUEUE => (TIMER_TOPIC, 0),
                level => (SCHEDULE_TOPIC, level),
            };
            let entry = ledger.and_then(|ledger| ledger.at(topic, id, stored.offset));
            return entry.is_some_and(|entry| entry.key == key);
        }
        self.queues.get(stored.queue).is_some_and(|contents| contents.key_at(stored.offset) == Some(key))
    }
}

impl QueueContents {
    /// The key of the message at an offset.
    pub fn key_at(&self, offset: i64) -> Option<&str> {
        // Offsets are dense unless an invariant is broken.
        let expected = usize::try_from(offset.checked_sub(self.min)?).ok().and_then(|place| self.messages.get(place));
        let found = expected.filter(|message| message.offset == offset);
        let found = found.or_else(|| self.messages.iter().find(|message| message.offset == offset));
        found.map(|message| message.key.as_str())
    }
}

/// The slave nodes of a broker name.
pub fn slaves_of(cluster: &Cluster, broker: &str) -> Vec<String> {
    let index = cluster.masters().iter().position(|name| name == broker);
    index.map(|index| cluster.slaves_of(index)).unwrap_or_default()
}

/// The longest fault of a plan that ends, or the whole safety phase if one never ends by itself.
pub fn longest_fault(plan: &Plan) -> Duration {
    if plan.faults.is_empty() { Duration::ZERO } else { plan.duration }
}
