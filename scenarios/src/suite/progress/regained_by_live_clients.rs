//! A client that stayed alive brings its progress back to the returned master: from its next route refresh on it tells the master
//! again. Whether the master asked its slave makes no difference to that.

use super::Progress;
use super::reading::Reading;
use super::story::{MASTER, Story, USUAL};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use std::time::Duration;

/// Recovery and first registration.
const BOOT_MAX: Duration = Duration::from_secs(10);
/// `pollNameServerInterval`, `persistConsumerOffsetInterval`, one call.
const REGAIN_MAX: Duration = Duration::from_secs(30 + 5 + 1);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "progress_is_regained_after_the_masters_return",
    claim: "one route refresh, one persist interval and one call after the master's return, it has what live clients had consumed",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let back = story.readers_moved() + Duration::from_secs(6) + story.shifts[1];
    story.with_backlog(USUAL, back, back + BOOT_MAX + REGAIN_MAX + Duration::from_secs(6))
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (_, back) = reading.outage()?;
    let due = back + BOOT_MAX + REGAIN_MAX;
    for queue in reading.queues() {
        let consumed = reading.reached(queue, back, None);
        let late: Vec<(Duration, i64)> =
            reading.shown(MASTER, queue).iter().copied().filter(|(at, _)| *at >= due).collect();
        if late.is_empty() {
            return Err("nobody asked the master after the bound".into());
        }
        if let Some((at, offset)) = late.iter().find(|(_, offset)| *offset < consumed) {
            let summary = format!(
                "queue {} at {:.3} s: the master shows {offset}, {consumed} were consumed when it returned at {:.3} s",
                queue.id,
                at.as_secs_f64(),
                back.as_secs_f64()
            );
            return Err(Breach::new(summary).about(reading.read_at(MASTER, queue, *at)));
        }
    }
    Ok(())
}
