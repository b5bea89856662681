//! I4: progress that a group has committed does not go back by a crash, and never runs ahead of what was consumed.
//!
//! *M* is a master's table, *S* its slave's, as the observer reads them with QUERY_CONSUMER_OFFSET about once a second.
//!
//! - After a crash or power loss at *t* the recovered *M* is at least what *M* showed before *t* − 5 s
//!   (`flushConsumerOffsetInterval`) − one write − the time for which a fault held up the disk, or the least that it showed later: a
//!   client may seek back. A life that was shorter than that persisted nothing: then *M* is at least what it had to be when it started.
//!   If the power loss took a suffix of the queue (asynchronous flush), *M* is lowered to what is left of the queue: whoever kept a
//!   higher offset would skip the messages that come next.
//! - With `recoverFromSlaveOnStart`, *M* after the return is at least every *S* that was shown while the master was away, if the slave
//!   could be reached when the master came back. Without it (Apache's classic master) that progress may be lost.
//! - At the end no committed offset is above the end of its queue, and each message below it that the group subscribes to was finished
//!   by it, consumed or handed back: a commit never skips. Messages of a lost suffix are consumed by nobody any more and do not count; nor
//!   do those that their master has removed because they had expired ([`super::i16_only_expired_goes`]), whose group may have been behind.

use crate::breach::{Breach, Subject};
use crate::disk_losses;
use crate::evidence::{Death, Evidence, Outage, slaves_of};
use crate::faults::disk_held;
use crate::operation::Queue;
use crate::plan::Plan;
use indexmap::IndexSet;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I4 committed offsets";

/// `flushConsumerOffsetInterval` 5 s, and a second for the write and its sync.
pub const PERSIST_WINDOW: Duration = Duration::from_secs(6);
/// A fault this close to a master's return may have kept it from its slave.
const REACH_WINDOW: Duration = Duration::from_secs(20);

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for group in plan.clients.groups().iter().filter(|group| crate::plan::is_clustering(plan, group)) {
        let finished = evidence.finished(group);
        for queue in evidence.queues.keys() {
            violations.extend(recovered(plan, evidence, group, queue));
            violations.extend(not_ahead(evidence, group, queue, &finished));
        }
    }
    violations
}

/// The least that a table may hold after each of a node's `outages` (in order of time), given what it showed. `window`: how long it may
/// take until what was shown is on the disk. `lost`: the first offset of the suffix that power losses took from the queue.
pub fn recovered_floors(
    commits: &[(Duration, i64)],
    outages: &[Outage],
    window: Duration,
    lost: Option<i64>,
) -> Vec<i64> {
    let mut floor = 0;
    let mut started = Duration::ZERO;
    let floor_after = |outage: &Outage| {
        for (at, shown) in commits.iter().filter(|(at, _)| (started..=outage.from).contains(at)) {
            let is_persisted = *at + window <= outage.from;
            floor = if is_persisted { *shown } else { floor.min(*shown) };
        }
        if let Some(lost) = lost
            && outage.death == Death::PowerLoss
        {
            // Nothing of the suffix can be consumed any more: the table is lowered to the recovered end of the queue.
            floor = floor.min(lost);
        }
        started = outage.until.unwrap_or(Duration::MAX);
        floor
    };
    outages.iter().map(floor_after).collect()
}

fn recovered(plan: &Plan, evidence: &Evidence, group: &str, queue: &Queue) -> Vec<Breach> {
    let master = &queue.broker;
    let commits = evidence.commits_seen(master, group, queue);
    let lost = evidence.lost_from(plan, queue);
    let outages = evidence.outages(master);
    let floors = recovered_floors(commits, &outages, PERSIST_WINDOW + disk_held(plan, master), lost);
    let mut violations = Vec::new();
    for (outage, mut floor) in outages.into_iter().zip(floors) {
        let Some(back) = outage.until else { continue };
        let Some((at, shown)) = commits.iter().find(|(at, _)| *at >= back) else { continue };
        let mut witness = master.clone();
        let mut source = format!("{master} had shown {floor} long enough before");
        if let Some((slave, slave_floor)) = slave_floor(plan, evidence, group, queue, &outage) {
            let slave_floor = match lost {
                Some(lost) if outage.death == Death::PowerLoss => slave_floor.min(lost),
                _ => slave_floor,
            };
            if slave_floor > floor {
                (floor, witness) = (slave_floor, slave);
                source = format!("a slave had shown {floor} while it was away");
            }
        }
        if *shown < floor {
            let death = if outage.death == Death::PowerLoss { "power loss" } else { "crash" };
            let summary = format!(
                "{group} at {master} queue {}: after the {death} at {:.3} s the committed offset is {shown} (read at {:.3} s), but {source}",
                queue.id,
                outage.from.as_secs_f64(),
                at.as_secs_f64()
            );
            let (group, queue) = (group.to_owned(), queue.clone());
            let read = Subject::Reading { node: master.clone(), group: group.clone(), queue: queue.clone(), at: *at };
            let floor = Subject::FirstShown { node: witness, group, queue, offset: floor };
            violations.push(Breach::new(summary).about(read).about(floor).about(Subject::Lives(master.clone())));
        }
    }
    violations
}

/// The most that a slave which could be reached had shown while the master was away, and which one it was.
fn slave_floor(plan: &Plan, evidence: &Evidence, group: &str, queue: &Queue, outage: &Outage) -> Option<(String, i64)> {
    let back = outage.until?;
    if !plan.cluster.recover_from_slave
        || crate::faults::disturbs_between(
            plan,
            evidence,
            back.saturating_sub(REACH_WINDOW),
            back + REACH_WINDOW,
            &queue.broker,
        )
    {
        return None;
    }
    let shown = |slave: &String| {
        if disk_losses::is_damaged(&evidence.history, slave, back) {
            return None;
        }
        // A slave with a new disk has forgotten.
        let from = disk_losses::replaced(&evidence.history, slave, back).unwrap_or_default().max(outage.from);
        let commits = evidence.commits_seen(slave, group, queue).iter();
        commits.filter(|(at, _)| *at >= from && *at <= back).map(|(_, offset)| *offset).max()
    };
    let slaves = slaves_of(&plan.cluster, &queue.broker).into_iter();
    slaves.filter_map(|slave| Some((shown(&slave)?, slave))).max().map(|(offset, slave)| (slave, offset))
}

fn not_ahead(evidence: &Evidence, group: &str, queue: &Queue, finished: &IndexSet<&str>) -> Vec<Breach> {
    let Some(committed) = evidence.last.committed.get(group).and_then(|queues| queues.get(queue)).copied() else {
        return Vec::new();
    };
    let contents = &evidence.queues[queue];
    let (node, of) = (queue.broker.clone(), group.to_owned());
    let shown = Subject::FirstShown { node, group: of, queue: queue.clone(), offset: committed };
    if committed > contents.max {
        let summary = format!(
            "{group} at {} queue {}: committed {committed}, the queue ends at {}",
            queue.broker, queue.id, contents.max
        );
        return vec![Breach::new(summary).about(shown)];
    }
    let expired = evidence.expired().below_of(queue);
    let skipped = contents.messages.iter().find(|message| {
        (expired..committed).contains(&message.offset)
            && evidence.last.is_owed(group, queue, message.offset)
            && !finished.contains(message.key.as_str())
            && !evidence.was_reused(queue, message.offset, &message.key)
    });
    let Some(skipped) = skipped else { return Vec::new() };
    let summary = format!(
        "{group} at {} queue {}: committed {committed}, but {} at offset {} was never finished",
        queue.broker, queue.id, skipped.key, skipped.offset
    );
    vec![Breach::new(summary).about(shown).about(Subject::Message(skipped.key.clone()))]
}
