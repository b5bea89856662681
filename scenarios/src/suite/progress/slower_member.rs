//! While the master is away a slow member takes queues over before the fast one that had them has told the slave how far it was. The slow
//! one starts from the slave's old copy and tells less than the slave knows by then: what was done stays done.

use super::Progress;
use super::reading::Reading;
use super::story::{NEVER, SLAVE, Story, USUAL, paused};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::join;
use std::time::Duration;

/// Several persist intervals go by until the slow member is through with what the fast one had done in less than one.
const SLOW: Duration = Duration::from_secs(5);

/// So long after the slow one has come the fast one hears of it, gives queues up and tells what it had done.
const HEARS_LATE: Duration = Duration::from_secs(3);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "slower_member_does_not_set_the_slaves_copy_back",
    claim: "while a master is away, what one member told its slave is not taken back by another one that is behind",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let story = Story { recover_from_slave: true, ..*story };
    let joins = story.readers_moved() + story.shifts[1];
    let back = joins + HEARS_LATE + Duration::from_secs(6) + story.shifts[2];
    let mut plan = story.with_backlog(NEVER, back, back + Duration::from_secs(20));
    let mut slow = plan.clients.consumers[0].clone();
    (slow.persist_interval, slow.work) = (USUAL, SLOW);
    plan.clients.consumers.push(slow);
    plan.operations.push(join("consumer-2", joins));
    plan.faults.push(paused("consumer-1", joins - Duration::from_secs(1), joins + HEARS_LATE));
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let mut behind = false;
    for queue in reading.queues() {
        let mut before = 0;
        for (at, offset) in reading.shown(SLAVE, queue).iter().filter(|(at, _)| (outage.from..back).contains(at)) {
            if *offset < before {
                let summary = format!(
                    "queue {} at {:.3} s: the slave shows {offset}, after it had shown {before}",
                    queue.id,
                    at.as_secs_f64()
                );
                let (now, then) = (reading.read_at(SLAVE, queue, *at), reading.first_shown(SLAVE, queue, before));
                return Err(Breach::new(summary).about(now).about(then));
            }
            before = *offset;
        }
        let slow = reading.of_queue(queue).filter(|delivery| delivery.client == "consumer-2" && delivery.at < back);
        behind |= slow.into_iter().any(|delivery| delivery.offset < before);
    }
    if behind { Ok(()) } else { Err("the second member was never behind the slave's copy".into()) }
}
