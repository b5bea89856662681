//! A second member joins while the master is away and the first one stands still with a backlog; the first may leave again before the
//! master is back. Queues change hands by the slave's word. Nothing is skipped, and a new owner starts no lower than the slave's copy.

use super::Progress;
use super::reading::{Reading, none_below};
use super::slave_copy::AGE_MAX;
use super::story::{MASTER, Story, USUAL, paused};
use crate::breach::{Breach, Subject};
use crate::evidence::Evidence;
use crate::plan::{Operation, Plan};
use crate::suite::telling::join;
use std::time::Duration;

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "rebalance_during_the_outage_skips_nothing",
    claim: "when queues change owners while the master is away, each message is consumed, and few are repeated",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let joins = story.readers_moved() + story.shifts[1];
    let resumes = joins + Duration::from_secs(10);
    let back = resumes + Duration::from_secs(60) + story.shifts[2];
    let duration = back + Duration::from_secs(20);
    let mut plan = story.with_backlog(USUAL, back, duration);
    plan.clients.consumers.push(plan.clients.consumers[0].clone());
    plan.operations.push(join("consumer-2", joins));
    if story.early {
        let at = resumes + Duration::from_secs(25);
        plan.operations.push(Operation::Leave { consumer: "consumer-1".into(), at });
    }
    plan.faults[0] = paused("consumer-1", story.master_ends - Duration::from_secs(5), resumes);
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, _) = reading.outage()?;
    for (queue, contents) in &evidence.queues {
        let skipped = contents
            .messages
            .iter()
            // Whoever had consumed a message of a lost suffix is told the end of the queue, and what came to stand below is passed over.
            .filter(|message| !evidence.was_reused(queue, message.offset, &message.key))
            .find(|message| !reading.of_queue(queue).any(|delivery| delivery.key == message.key));
        if let Some(skipped) = skipped {
            let summary = format!("{} at queue {} offset {} was skipped", skipped.key, queue.id, skipped.offset);
            return Err(Breach::new(summary).about(Subject::Message(skipped.key.clone())));
        }
    }
    let before = outage.from.saturating_sub(AGE_MAX);
    none_below(
        &reading,
        |delivery| delivery.at > outage.from,
        |queue| reading.greatest_shown(MASTER, queue, Duration::ZERO, before).min(reading.intact_below(queue)),
    )
}
