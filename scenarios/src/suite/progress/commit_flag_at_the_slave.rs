//! A slave serves the pulls of a reader whose master is away, and commits nothing that they say: its copy comes from the master and
//! from updates. (The client clears the flag, and the slave would not heed it.) With updates switched off, *S* stands still.

use super::Progress;
use super::reading::Reading;
use super::story::{NEVER, SLAVE, Story};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::Plan;
use std::time::Duration;

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "slave_commits_nothing_that_a_pull_says",
    claim: "while a slave serves a reader's pulls, its copy of the progress stays what the master and updates made it",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let back = story.readers_moved() + Duration::from_secs(10) + story.shifts[1];
    story.with_backlog(NEVER, back, back + Duration::from_secs(20))
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let (outage, back) = reading.outage()?;
    let mut got_on = false;
    for queue in reading.queues() {
        let before = reading.reached(queue, outage.from, None);
        let shown = reading.greatest_shown(SLAVE, queue, outage.from, back);
        if shown > before {
            let summary =
                format!("queue {}: the slave shows {shown}, the master can have had {before} at most", queue.id);
            return Err(Breach::new(summary).about(reading.first_shown(SLAVE, queue, shown)));
        }
        got_on |= reading.of_queue(queue).any(|delivery| delivery.at > outage.from && delivery.at < back);
    }
    if got_on { Ok(()) } else { Err("nothing was consumed from the slave".into()) }
}
