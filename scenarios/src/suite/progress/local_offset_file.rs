//! A broadcasting consumer keeps its progress in a file, replaced as a whole every persist interval. Its node ends by a crash, a
//! power loss, or at the n-th disk operation, which may stand between the write of the new file and its rename. After the return it
//! goes on from the old or the new file: it never starts anew, never skips, and repeats no more than one interval and one write.

use super::Progress;
use super::reading::{Reading, none_below};
use super::story::{Story, USUAL, broadcasting, sends};
use crate::breach::{Breach, Subject};
use crate::evidence::Evidence;
use crate::plan::Plan;
use crate::suite::telling::{between, dead, join};
use sim::fault::Kind;
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::power_loss::PowerLoss;
use std::time::Duration;

const VICTIM: &str = "consumer-1";
/// The persist interval and one write.
const WRITTEN_WITHIN: Duration = Duration::from_secs(6);

/// The scenario.
pub const SCENARIO: Progress = Progress {
    name: "local_progress_survives_a_client_crash",
    claim: "a broadcasting client that crashes or loses power goes on from progress that is 5 s and one write old at most",
    plan,
    judge,
};

fn plan(story: &Story) -> Plan {
    let (dies, alive) = (story.master_ends, story.master_ends + Duration::from_secs(15));
    let duration = alive + Duration::from_secs(20) + story.shifts[1];
    let mut plan = story.plan(2, USUAL, duration);
    broadcasting(&mut plan);
    plan.operations =
        vec![join(VICTIM, Duration::ZERO), join("consumer-2", Duration::ZERO), sends(Duration::ZERO, duration)];
    let power_loss = Kind::PowerLoss(PowerLoss { node: VICTIM.into() });
    // A replacement of the file is about ten disk operations, every 5 s.
    let nth = 1 + u64::try_from(story.shifts[2].as_millis() % 20).expect("small");
    let point = CrashPoint { node: VICTIM.into(), at: Counted::DiskOperation, nth, power: story.power };
    plan.faults = vec![match (story.early, story.power) {
        (true, _) => between(Kind::CrashPoint(point), dies, alive),
        (false, true) => between(power_loss, dies, alive),
        (false, false) => dead(VICTIM, dies, alive),
    }];
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let reading = Reading::of(plan, evidence);
    let death = reading.death_of(VICTIM)?;
    for queue in reading.queues() {
        if reading.reached(queue, death.saturating_sub(WRITTEN_WITHIN), Some(VICTIM)) == 0 {
            let summary = format!("queue {}: nothing was consumed early enough", queue.id);
            return Err(Breach::new(summary));
        }
        let (end, reached) = (evidence.queues[queue].max, reading.reached(queue, evidence.ended_at, Some(VICTIM)));
        if reached < end {
            let summary = format!("queue {}: {VICTIM} skipped offset {reached} of {end}", queue.id);
            return Err(Breach::new(summary).about(Subject::Place(queue.clone(), reached)));
        }
    }
    none_below(
        &reading,
        |delivery| delivery.client == VICTIM && delivery.at > death,
        |queue| reading.reached(queue, death.saturating_sub(WRITTEN_WITHIN), Some(VICTIM)),
    )
}
