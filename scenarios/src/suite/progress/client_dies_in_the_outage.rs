//! A consumer dies while the master is away, and starts again before the master is back: it goes on from what the slave knows.
//!
//! *S* is at least what the master had committed one sync period before its end; and once the client's route lists the slave only,
//! the client's own updates go there. So it repeats at most
//! - what was consumed since one sync period before the master's end, if it dies before it has found the slave;
//! - what was consumed in the last persist interval and one call, if it dies later.

use super::Progress;
use super::reading::{Reading, none_below};
use super::slave_copy::AGE_MAX;
use super::story::{MASTER, Story, USUAL};
use crate::breach::Breach;
use crate::evidence::{Evidence, Outage};
use crate::operation::Queue;
use crate::plan::Plan;
use crate::suite::telling::dead;
use std::time::Duration;

/// `persistConsumerOffsetInterval` and one call.
pub const TOLD_WITHIN: Duration = Duration::from_secs(6);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "client_that_dies_during_the_outage_repeats_a_bounded_part",
    claim: "a client that dies and returns while the master is away repeats no more than its slave can have missed",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let after = Duration::from_secs(3);
    let dies = if story.early { story.master_ends + after } else { story.readers_moved() + TOLD_WITHIN + after };
    let dies = dies + story.shifts[1];
    let alive = dies + Duration::from_secs(3);
    let back = alive.max(story.readers_moved()) + Duration::from_secs(40) + story.shifts[2];
    let mut plan = story.with_backlog(USUAL, back, back + Duration::from_secs(20));
    plan.faults.push(dead("consumer-1", dies, alive));
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let death = reading.death_of("consumer-1")?;
    // Afterwards a master that does not ask its slave may send the client back further: `apaches_rule`.
    let until = if plan.cluster.recover_from_slave { evidence.ended_at } else { back };
    let again = reading.queues().flat_map(|queue| reading.of_queue(queue));
    if !again.into_iter().any(|delivery| delivery.at > death) {
        return Err("nothing was delivered after the client's return".into());
    }
    none_below(
        &reading,
        |delivery| delivery.at > death && delivery.at < until,
        |queue| slave_floor(&reading, &outage, death, queue),
    )
}

/// The least that the slave can answer after the death of the client at `death`.
pub fn slave_floor(reading: &Reading<'_>, outage: &Outage, death: Duration, queue: &Queue) -> i64 {
    let copied = reading.greatest_shown(MASTER, queue, Duration::ZERO, outage.from.saturating_sub(AGE_MAX));
    // When readers have moved for sure shows in their deliveries: before, they had nobody to read from.
    let moved = reading
        .queues()
        .flat_map(|queue| reading.of_queue(queue))
        .find(|delivery| delivery.at > outage.from + Duration::from_secs(5))
        .map(|delivery| delivery.at);
    let told = match moved {
        Some(moved) if moved + TOLD_WITHIN < death => reading.reached(queue, death - TOLD_WITHIN, None),
        _ => 0,
    };
    copied.max(told).min(reading.intact_below(queue))
}
