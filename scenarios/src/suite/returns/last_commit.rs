//! A reader has read more than its master still has after a power loss. The last that it does in its life is to tell the master how far it
//! is: it dies before it hears that there is no such offset.

use super::{MASTER, Return, Returns, each_is_delivered, power_loss};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Operation, Plan, Replication};
use crate::suite::telling::{between, join, sends, without_power};
use sim::fault::Kind;
use sim::fault::crash_point::{Counted, CrashPoint};
use std::time::Duration;

const DIES: &str = "consumer-1";
/// By then the reader is dead, or has left: retransmission to the returned machine and its refusal, a new connection, and a commit.
const GONE: Duration = Duration::from_secs(16);
/// How often a reader tells its progress (`persistConsumerOffsetInterval`): sooner than it pulls again after a lost connection (1 s).
const PERSIST: Duration = Duration::from_millis(500);

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "last_commit_of_a_reader_passes_over_nothing",
    claim: "whatever a reader that read a lost suffix committed before it died, who comes next gets each message that is stored from then on",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let story = story.one_master(0, Replication::Async);
    let shifts = story.draw.shifts;
    let ends = Duration::from_secs(20) + shifts[0] + shifts[2];
    let back = ends + Duration::from_secs(2) + shifts[1] / 2;
    let gone = back + GONE;
    let resumed = gone + Duration::from_secs(2);
    let joins = resumed + Duration::from_secs(6);
    let duration = joins + Duration::from_secs(15);
    let mut plan = story.draw.plan(1, 2, duration);
    plan.clients.consumers.iter_mut().for_each(|consumer| consumer.persist_interval = PERSIST);
    plan.operations = vec![
        join(DIES, Duration::ZERO),
        sends("producer-1", Duration::from_secs(2), ends, Duration::from_millis(200)),
        // It stays away, dead or not.
        Operation::Leave { consumer: DIES.into(), at: gone },
        // Few: they end below what was lost.
        sends("producer-1", resumed, resumed + Duration::from_secs(4), Duration::from_millis(500)),
        join("consumer-2", joins),
    ];
    // Of a machine that falls silent the broker would keep the reader, and its queues, for 120 s.
    let point = CrashPoint { node: DIES.into(), at: Counted::Packet, nth: story.point, power: false };
    plan.faults = vec![without_power(MASTER, ends, back), between(Kind::CrashPoint(point), back, duration)];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (_, back) = power_loss(evidence)?;
    each_is_delivered(evidence, back + GONE)
}
