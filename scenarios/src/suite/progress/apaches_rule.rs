//! Where Apache's own rule loses progress, and the twin that shows the cure.
//!
//! A reader gets on from the slave while the master is away, tells the slave, and dies. Then the master returns with its old file.
//! Apache's master asks nobody, and its slave overwrites its own newer table with the master's: the progress is gone, and when the
//! reader comes back it consumes again what it had consumed. With `hotfireRecoverFromSlave` the returning master first takes in what its
//! slaves hold.

use super::Progress;
use super::client_dies_in_the_outage::TOLD_WITHIN;
use super::reading::{Reading, none_below};
use super::story::{MASTER, SLAVE, Story, USUAL};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::dead;
use std::time::Duration;

/// Apache's rule: the loss is real. A claim about what a user may *not* rely on: it fails if no progress is lost.
pub const LOST: Progress = Progress {
    name: "with_apaches_rule_progress_made_at_the_slave_is_lost",
    claim: "without hotfireRecoverFromSlave, progress that only the slave knew is lost with the master's return, and messages are repeated",
    plan: plan_by_apaches_rule,
    judge: judge_lost,
};

/// The option on: no such loss.
pub const RETURNS: Progress = Progress {
    name: "progress_made_at_the_slave_returns_with_the_master",
    claim: "with hotfireRecoverFromSlave, a returning master has at least the progress that its slave took while it was away",
    plan: plan_with_merge,
    judge: judge_returns,
};

fn plan_by_apaches_rule(story: &Story) -> Plan {
    plan(&Story { recover_from_slave: false, ..*story })
}

fn plan_with_merge(story: &Story) -> Plan {
    plan(&Story { recover_from_slave: true, ..*story })
}

fn plan(story: &Story) -> Plan {
    let dies = story.readers_moved() + TOLD_WITHIN + Duration::from_secs(4);
    let back = dies + Duration::from_secs(3) + story.shifts[1];
    let alive = back + Duration::from_secs(25) + story.shifts[2];
    let mut plan = story.with_backlog(USUAL, back, alive + Duration::from_secs(25));
    plan.faults.push(dead("consumer-1", dies, alive));
    plan
}

fn judge_lost(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let death = reading.death_of("consumer-1")?;
    let (mut lost, mut repeated) = (false, false);
    for queue in reading.queues() {
        let known = reading.greatest_shown(SLAVE, queue, outage.from, back);
        let shown = reading.shown(MASTER, queue);
        let first = shown.iter().find(|(at, _)| *at > back).ok_or("nobody asked the returned master")?;
        lost |= first.1 < known;
        repeated |= reading.of_queue(queue).any(|delivery| delivery.at > death && delivery.offset < known);
    }
    match (lost, repeated) {
        (false, _) => Err("no queue lost progress with the master's return".into()),
        (true, false) => Err("progress was lost, but nothing was repeated".into()),
        (true, true) => Ok(()),
    }
}

fn judge_returns(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let death = reading.death_of("consumer-1")?;
    let known = |queue: &_| reading.greatest_shown(SLAVE, queue, outage.from, back).min(reading.intact_below(queue));
    let mut got_on = false;
    for queue in reading.queues() {
        let shown = reading.shown(MASTER, queue);
        let first = shown.iter().find(|(at, _)| *at > back).ok_or("nobody asked the returned master")?;
        if first.1 < known(queue) {
            let summary =
                format!("queue {}: the master returned with {}, the slave had {}", queue.id, first.1, known(queue));
            return Err(Breach::new(summary)
                .about(reading.read_at(MASTER, queue, first.0))
                .about(reading.first_shown(SLAVE, queue, known(queue))));
        }
        got_on |= known(queue) > reading.greatest_shown(MASTER, queue, Duration::ZERO, outage.from);
    }
    if !got_on {
        return Err("the slave never knew more than the master".into());
    }
    none_below(&reading, |delivery| delivery.at > death, known)
}
