//! What was stored and replicated before the master's end is consumed while it is away, as soon as the readers' routes list the slave
//! only (`slaveReadEnable`).

use super::Progress;
use super::reading::Reading;
use super::story::{Story, USUAL};
use crate::breach::{Breach, Subject};
use crate::evidence::{Evidence, sends};
use crate::plan::Plan;
use std::time::Duration;

/// Without a wait for the slave, a message is on it that long after the answer.
const REPLICATED_WITHIN: Duration = Duration::from_secs(1);
/// From the first pull at the slave to the last message of the backlog.
const BACKLOG_MAX: Duration = Duration::from_secs(5);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "consumption_goes_on_from_the_slave_while_the_master_is_away",
    claim: "messages that were replicated before the master ended are consumed while it is away, once routes have dropped it",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let back = story.readers_moved() + BACKLOG_MAX + story.shifts[1];
    story.with_backlog(USUAL, back, back + Duration::from_secs(20))
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let waits = plan.cluster.is_replicated_before_ack();
    let mut from_slave = 0;
    for send in sends(&evidence.history.operations()) {
        let Some(stored) = send.stored else { continue };
        let replicated = if waits && stored.promised { stored.at } else { stored.at + REPLICATED_WITHIN };
        if replicated >= outage.from {
            continue;
        }
        let first = reading.of_queue(stored.queue).find(|delivery| delivery.key == send.key);
        if first.is_none_or(|delivery| delivery.at >= back) {
            let summary = format!(
                "{} was on the slave at {:.3} s and not consumed until the master returned at {:.3} s",
                send.key,
                replicated.as_secs_f64(),
                back.as_secs_f64()
            );
            return Err(Breach::new(summary).about(Subject::Message(send.key.to_owned())));
        }
        from_slave += u32::from(first.is_some_and(|delivery| delivery.at > outage.from));
    }
    if from_slave > 0 { Ok(()) } else { Err("nothing was left to consume from the slave".into()) }
}
