//! A reader has read more than its master still has after a power loss, and lives on. The few messages that come later end below what it
//! had read: whoever does not go back where the master says gets none of them.

use super::{MASTER, Return, Returns, each_is_delivered, power_loss};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Plan, Replication};
use crate::suite::telling::{join, sends, without_power};
use std::time::Duration;

/// By then the reader has been told: a request hangs at the machine that was silent until its time-out (30 s), and a pull is answered.
const TOLD: Duration = Duration::from_secs(40);
/// `brokerSuspendMaxTimeMillis`, and then some.
const DELIVERED: Duration = Duration::from_secs(20);

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "reader_above_the_end_gets_what_comes_next",
    claim: "a live reader that had read a lost suffix gets each message that is stored once it was told so, the first as well as the last",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let story = story.one_master(0, Replication::Async);
    let shifts = story.draw.shifts;
    let ends = Duration::from_secs(20) + shifts[0] + shifts[2];
    let back = ends + Duration::from_secs(2) + shifts[1];
    let resumed = back + TOLD;
    let mut plan = story.draw.plan(1, 1, resumed + Duration::from_secs(3) + DELIVERED);
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        sends("producer-1", Duration::from_secs(2), ends, Duration::from_millis(200)),
        sends("producer-1", resumed, resumed + Duration::from_secs(3), Duration::from_millis(500)),
    ];
    plan.faults = vec![without_power(MASTER, ends, back)];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (_, back) = power_loss(evidence)?;
    each_is_delivered(evidence, back + TOLD)
}
