//! Master and clients lose power together, so that nobody alive knows the progress: what counts is the master's file, written every
//! `flushConsumerOffsetInterval` (5 s), synced, with its backup beside it. The slave is not asked.

use super::Progress;
use super::reading::{Reading, none_below};
use super::story::{MASTER, Story, USUAL, sends};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::{between, join};
use sim::fault::Kind;
use sim::fault::power_loss::PowerLoss;
use std::time::Duration;

/// The flush interval and one write.
const WRITTEN_WITHIN: Duration = Duration::from_secs(6);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "progress_survives_power_loss_of_the_master",
    claim: "after a power loss of the master and all clients it has each commit that was older than 5 s and one write",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let mut story = *story;
    (story.power, story.recover_from_slave) = (true, false);
    let back = story.master_ends + Duration::from_secs(4) + story.shifts[1];
    let duration = back + Duration::from_secs(50);
    let mut plan = story.plan(2, USUAL, duration);
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        join("consumer-2", Duration::ZERO),
        sends(Duration::ZERO, story.master_ends),
        sends(back + Duration::from_secs(20), duration),
    ];
    plan.faults = vec![story.master_away(back)];
    for consumer in ["consumer-1", "consumer-2"] {
        let kind = Kind::PowerLoss(PowerLoss { node: consumer.into() });
        plan.faults.push(between(kind, story.master_ends, back + Duration::from_secs(15)));
    }
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let floor = |queue: &_| {
        let written = outage.from.saturating_sub(WRITTEN_WITHIN);
        reading.greatest_shown(MASTER, queue, Duration::ZERO, written).min(reading.intact_below(queue))
    };
    for queue in reading.queues() {
        let floor = floor(queue);
        if floor == 0 {
            let summary = format!("nothing was committed in queue {} early enough", queue.id);
            return Err(Breach::new(summary));
        }
        let shown = reading.shown(MASTER, queue);
        let first = shown.iter().find(|(at, _)| *at > back).ok_or("nobody asked the returned master")?;
        if first.1 < floor {
            let summary = format!("queue {}: {} was recovered, {floor} had been committed in time", queue.id, first.1);
            return Err(Breach::new(summary)
                .about(reading.read_at(MASTER, queue, first.0))
                .about(reading.first_shown(MASTER, queue, floor)));
        }
    }
    none_below(&reading, |delivery| delivery.at > outage.from, floor)
}
