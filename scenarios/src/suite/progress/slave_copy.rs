//! A slave asks its master for the table every `slaveSyncPeriod` (10 s here, up to 63 s at Apache's broker), waits 3 s at most, and
//! the observer looks once a second.

use super::Progress;
use super::reading::Reading;
use super::story::{MASTER, SLAVE, Story, USUAL, sends};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::join;
use std::time::Duration;

/// How old the slave's copy may be: the period, one call, and the requests for the tables before it.
pub const AGE_MAX: Duration = Duration::from_secs(14);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "slave_copy_of_progress_follows_within_its_sync_period",
    claim: "what the master had committed one sync period ago, its slave shows, also once the master is gone",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let mut story = *story;
    story.master_ends += Duration::from_secs(15);
    let back = story.master_ends + Duration::from_secs(8) + story.shifts[1];
    let duration = back + Duration::from_secs(30);
    let mut plan = story.plan(2, USUAL, duration);
    plan.operations =
        vec![join("consumer-1", Duration::ZERO), join("consumer-2", story.shifts[2]), sends(Duration::ZERO, duration)];
    plan.faults = vec![story.master_away(back)];
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    for queue in reading.queues() {
        let shown = reading.shown(SLAVE, queue);
        for (at, offset) in shown.iter().filter(|(at, _)| *at < back) {
            let old_enough = at.min(&outage.from).saturating_sub(AGE_MAX);
            let floor = reading.greatest_shown(MASTER, queue, Duration::ZERO, old_enough);
            if *offset < floor {
                let summary = format!(
                    "queue {} at {:.3} s: the slave shows {offset}, the master showed {floor} {AGE_MAX:?} before",
                    queue.id,
                    at.as_secs_f64()
                );
                return Err(Breach::new(summary)
                    .about(reading.read_at(SLAVE, queue, *at))
                    .about(reading.first_shown(MASTER, queue, floor)));
            }
        }
        let last = shown.iter().rfind(|(at, _)| *at < outage.from);
        if last.is_none_or(|(_, offset)| *offset == 0) {
            let summary = format!("queue {}: the slave had no progress to follow", queue.id);
            return Err(Breach::new(summary));
        }
    }
    Ok(())
}
