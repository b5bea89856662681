//! A master returns without the end of its log and does not ask for it. Its slave has that end; when it connects again, the master has
//! appended nothing: all that both have is the same, and yet one of them is longer. If the two do not agree then, nobody sees it before the
//! next message, which has no copy.

use super::{MASTER, Return, Returns, power_loss};
use crate::breach::Breach;
use crate::evidence::{Evidence, sends as all_sends};
use crate::plan::{Plan, Replication};
use crate::suite::stage::WARM_UP;
use crate::suite::telling::{each_send_is_promised, sends, without_power};
use std::time::Duration;

/// Longer than it takes a slave to find that its connection is dead, and to connect again (20 s of silence, 5 s).
const SILENCE: Duration = Duration::from_secs(40);
/// Far below the pause after which a slave tries again (5 s).
const ANSWERED_WITHIN: Duration = Duration::from_millis(1_500);

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "longer_slave_follows_its_master_again",
    claim: "a slave that has more than its master gives that up and follows before the next message: that one has its copy at once",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let mut story = story.one_master(1, Replication::Sync { in_sync_replicas: 2 });
    story.draw.cluster.recover_from_slave = false;
    let shifts = story.draw.shifts;
    let ends = WARM_UP + Duration::from_secs(5) + shifts[0];
    // Later than the last attempt of the call that was under way.
    let back = ends + Duration::from_secs(4) + shifts[1];
    let resumed = back + SILENCE + shifts[2];
    let duration = resumed + Duration::from_secs(10);
    let mut plan = story.draw.plan(1, 0, duration);
    let every = Duration::from_millis(100);
    plan.operations =
        vec![sends("producer-1", Duration::from_secs(5), ends, every), sends("producer-1", resumed, duration, every)];
    plan.faults = vec![without_power(MASTER, ends, back)];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (_, back) = power_loss(evidence)?;
    let operations = evidence.history.operations();
    let sends = all_sends(&operations);
    let of_plan = sends.iter().filter(|send| send.operation.client.starts_with("producer-"));
    match of_plan.map(|send| send.operation.invoked_at).find(|asked| *asked > back) {
        Some(first) if first < back + SILENCE => Err("the producer was not silent".into()),
        Some(first) => each_send_is_promised(evidence, first, ANSWERED_WITHIN, 0),
        None => Err("nothing was sent after the silence".into()),
    }
}
