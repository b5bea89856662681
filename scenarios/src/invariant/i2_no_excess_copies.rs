//! I2: nothing is stored or delivered more often than at-least-once allows.
//!
//! *Stored*: a call makes up to `1 + retries` attempts under one key; the copies of a key in all queues of all masters never exceed
//! the attempts that are not known to have failed. A call that certainly failed left no copy. Of a delayed message its records in the
//! queues of levels and timer count; how often each of them is delivered is [`super::i10_delay_progress`]. Of a message in a transaction its
//! halves count that nobody had asked for yet; how often it is committed is [`super::i2_one_final_message`].
//!
//! *Delivered*: a message is delivered to a group again only from an offset that the broker asked could rightly answer to a new
//! owner. Per queue, a consumer's deliveries between two steps back are one *run*, which started at the offset that its owner read.
//! That offset is at least the smallest one which any broker of that name held in the time that the reading may have taken: what
//! the observer saw committed there, less what a crash may take (commits of the last `flushConsumerOffsetInterval`, 5 s, and one
//! write), less what a slave had not copied yet.

use crate::breach::Breach;
use crate::evidence::{Evidence, Outage, Send, longest_fault, sends, slaves_of};
use crate::faults::disk_held;
use crate::invariant::i4_committed_offsets::{PERSIST_WINDOW, recovered_floors};
use crate::kinds::Kind;
use crate::ledger::Ledger;
use crate::operation::{Ask, Queue, Told};
use crate::plan::{Plan, TOPIC};
use indexmap::IndexMap;
use sim::history::{Operation, Outcome};
use sim::verdict::EventId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I2 no excess copies";

/// Attempts of one call whose answer never came: `1 + retryTimesWhenSendFailed`.
const ATTEMPTS_MAX: u32 = 3;
/// From reading an offset to the first delivery: first pull delay, a pull that hangs until its time-out (30 s), its repetition.
const READ_TO_DELIVERY_MAX: Duration = Duration::from_secs(40);

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let operations = evidence.history.operations();
    let mut violations = stored_copies(evidence, &operations);
    violations.extend(deliveries_again(plan, evidence, &operations));
    violations
}

fn stored_copies(evidence: &Evidence, operations: &[Operation<'_, Ask, Told>]) -> Vec<Breach> {
    let mut copies: IndexMap<&str, u32> = IndexMap::new();
    let delivered = evidence.queues.values().flat_map(|contents| &contents.messages);
    for message in delivered.filter(|message| !Kind::of(&message.key).is_moved()) {
        *copies.entry(&message.key).or_default() += 1;
    }
    let delayed = evidence.ledgers.values().flat_map(Ledger::delayed).map(|(_, _, entry)| entry);
    let timed = evidence.ledgers.values().flat_map(Ledger::timed).map(|(_, entry)| entry);
    let waiting = delayed.chain(timed).filter(|entry| Kind::of(&entry.key).fate.is_none());
    let halves = evidence.ledgers.values().flat_map(Ledger::halves).map(|(_, entry)| entry);
    let halves = halves.filter(|entry| entry.checks == 0);
    for entry in waiting.chain(halves).filter(|entry| entry.waits_for.as_deref() == Some(TOPIC)) {
        *copies.entry(&entry.key).or_default() += 1;
    }
    let mut violations = Vec::new();
    for send in sends(operations) {
        let allowed = attempts_left(&send);
        let found = copies.get(send.key).copied().unwrap_or(0);
        if found > allowed {
            let summary = format!("{} is stored {found} times; its attempts can have left {allowed} at most", send.key);
            violations.push(Breach::new(summary).of_events(send.operation.events()));
        }
    }
    violations
}

/// Copies that the attempts of a call can have left, at most.
pub fn attempts_left(send: &Send<'_>) -> u32 {
    match (&send.stored, &send.operation.outcome) {
        (Some(stored), _) => 1 + stored.other_copies_max,
        (None, Outcome::Fail(_)) => 0,
        (None, _) => ATTEMPTS_MAX,
    }
}

/// One delivery of a queue's message to a consumer.
struct Delivery<'a> {
    at: Duration,
    event: EventId,
    client: &'a str,
    offset: i64,
    key: &'a str,
}

fn deliveries_again(plan: &Plan, evidence: &Evidence, operations: &[Operation<'_, Ask, Told>]) -> Vec<Breach> {
    let mut by_queue: BTreeMap<(&str, &Queue), Vec<Delivery<'_>>> = BTreeMap::new();
    for operation in operations {
        let Ask::Consume { group, queue, offset, key, reconsume_times: 0 } = operation.input else { continue };
        let delivery = Delivery {
            at: operation.invoked_at,
            event: operation.invoked,
            client: operation.client,
            offset: *offset,
            key,
        };
        by_queue.entry((group, queue)).or_default().push(delivery);
    }
    let mut violations = Vec::new();
    for ((group, queue), deliveries) in by_queue {
        if !crate::plan::is_clustering(plan, group) {
            continue;
        }
        let nodes = NodeProgress::of_nodes(plan, evidence, group, queue);
        for (run_start, run_offset, delivery) in repeated(&deliveries) {
            let floor = floor(plan, &nodes, run_start);
            // The offset that the owner read is at most the first that it delivered; judge the run by where it started.
            if run_offset < floor && delivery.offset < floor {
                let summary = format!(
                    "{} was delivered to {} of {group} again from {} queue {} offset {}; no broker could answer less than {floor}",
                    delivery.key, delivery.client, queue.broker, queue.id, delivery.offset
                );
                violations.push(Breach::new(summary).of_events([delivery.event]));
                break;
            }
        }
    }
    violations
}

/// Deliveries of a message that the group had before, each with time and offset of the start of its run.
fn repeated<'a>(deliveries: &'a [Delivery<'a>]) -> Vec<(Duration, i64, &'a Delivery<'a>)> {
    let mut seen: IndexMap<i64, &str> = IndexMap::new();
    let mut runs: BTreeMap<&str, (Duration, i64, i64)> = BTreeMap::new();
    let mut repeated = Vec::new();
    for delivery in deliveries {
        let run = runs.entry(delivery.client).or_insert((delivery.at, delivery.offset, delivery.offset));
        if delivery.offset < run.2 - IN_FLIGHT_WINDOW {
            *run = (delivery.at, delivery.offset, delivery.offset);
        }
        run.1 = run.1.min(delivery.offset);
        run.2 = run.2.max(delivery.offset);
        if seen.insert(delivery.offset, delivery.key) == Some(delivery.key) {
            repeated.push((run.0, run.1, delivery));
        }
    }
    repeated
}

/// A concurrent consumer reorders within what it has in flight; a larger step back is a new run.
const IN_FLIGHT_WINDOW: i64 = 64;

/// What one broker node showed of a group's progress in a queue, and what it may have been after its outages.
struct NodeProgress<'a> {
    commits: &'a [(Duration, i64)],
    outages: Vec<(Outage, i64)>,
}

impl<'a> NodeProgress<'a> {
    /// Of each node of the queue's broker name.
    fn of_nodes(plan: &Plan, evidence: &'a Evidence, group: &str, queue: &Queue) -> Vec<NodeProgress<'a>> {
        let nodes = [vec![queue.broker.clone()], slaves_of(&plan.cluster, &queue.broker)].concat();
        let of = |node: &String| {
            let commits = evidence.commits_seen(node, group, queue);
            let outages = evidence.outages(node);
            let floors = recovered_floors(
                commits,
                &outages,
                PERSIST_WINDOW + disk_held(plan, node),
                evidence.lost_from(plan, queue),
            );
            NodeProgress { commits, outages: outages.into_iter().zip(floors).collect() }
        };
        nodes.iter().map(of).collect()
    }

    /// The smallest offset that it may have answered between the two times.
    fn floor(&self, earliest: Duration, latest: Duration) -> i64 {
        let before = self.commits.partition_point(|(at, _)| *at <= earliest);
        let until = self.commits.partition_point(|(at, _)| *at <= latest);
        let before_offset = before.checked_sub(1).map_or(0, |last| self.commits[last].1);
        let within = self.commits[before..until].iter().map(|(_, offset)| *offset);
        let recovered = self
            .outages
            .iter()
            .filter(|(outage, _)| outage.until.is_none_or(|until| until >= earliest) && outage.from <= latest)
            .map(|(_, floor)| *floor);
        within.chain(recovered).fold(before_offset, i64::min)
    }
}

/// The smallest committed offset that a new owner may have been told shortly before `started`.
fn floor(plan: &Plan, nodes: &[NodeProgress<'_>], started: Duration) -> i64 {
    let earliest = started.saturating_sub(READ_TO_DELIVERY_MAX + longest_fault(plan));
    nodes.iter().map(|node| node.floor(earliest, started)).min().unwrap_or(0)
}
