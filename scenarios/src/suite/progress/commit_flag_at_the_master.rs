//! The client's periodic update is switched off, so that only pulls carry progress: what a pull says was consumed is stored.
//!
//! A pull says what was consumed when it left. It comes back with the next message of its queue, which the workload sends at least
//! every second even over the slow network; the next pull then says more. So *M* trails *C* by that and a pull's way.

use super::Progress;
use super::reading::Reading;
use super::story::{MASTER, NEVER, Story, sends};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::join;
use std::time::Duration;

const TRAILS_MAX: Duration = Duration::from_secs(3);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "commit_flag_of_a_pull_is_stored_at_the_master",
    claim: "what a pull says was consumed, the master has committed, though no update was ever sent",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let back = story.master_ends + Duration::from_secs(5) + story.shifts[1];
    let duration = back + Duration::from_secs(20);
    let mut plan = story.plan(1, NEVER, duration);
    plan.operations = vec![join("consumer-1", Duration::ZERO), sends(Duration::ZERO, duration)];
    plan.faults = vec![story.master_away(back)];
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, _) = reading.outage()?;
    let mut is_told = false;
    for queue in reading.queues() {
        for (at, offset) in reading.shown(MASTER, queue).iter().filter(|(at, _)| *at < outage.from) {
            let long_ago = at.saturating_sub(TRAILS_MAX);
            // A pull leaves when the one before it comes back with messages, and tells what was consumed by then.
            let deliveries = reading.of_queue(queue).map(|delivery| delivery.at).filter(|at| *at <= long_ago);
            let left = deliveries.max().unwrap_or_default().saturating_sub(Duration::from_nanos(1));
            let consumed = reading.reached(queue, left, None);
            if *offset < consumed {
                let summary = format!(
                    "queue {} at {:.3} s: committed {offset}, though {consumed} were consumed {TRAILS_MAX:?} before",
                    queue.id,
                    at.as_secs_f64()
                );
                return Err(Breach::new(summary).about(reading.read_at(MASTER, queue, *at)));
            }
            is_told |= consumed > 0;
        }
    }
    if is_told { Ok(()) } else { Err("too little was consumed before the master ended".into()) }
}
