//! Master and slave end; the master returns first, without the end of its log, which was acknowledged and which only the slave has. When
//! the slave comes it fails once more, at some packet: perhaps it has told how long its log is, and does not give it.

use super::{MASTER, Return, Returns, SLAVE, power_loss};
use crate::breach::Breach;
use crate::evidence::{Evidence, sends as all_sends};
use crate::plan::{Plan, Replication};
use crate::suite::stage::WARM_UP;
use crate::suite::telling::{between, dead, sends, without_power};
use sim::fault::Kind;
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::isolate::Isolate;
use std::time::Duration;

/// Longer than a start that need not ask anybody takes (four time-outs of 3 s).
const ALONE: Duration = Duration::from_secs(14);
/// By then the slave that failed is back.
const SLAVE_AWAY: Duration = Duration::from_secs(8);
/// Packets that the slave sends before the answer that brings the end back, at least: it looks for its master, registers, and tells its log.
const BEFORE: u64 = 8;
/// How many more it may be, and a few after it.
const AROUND: u64 = 12;

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "master_that_returns_alone_waits_for_what_its_slave_has",
    claim: "a master that returns before its slave loses nothing that only the slave has, however the slave fails until it has it back",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let story = story.one_master(1, Replication::Sync { in_sync_replicas: 2 });
    let shifts = story.draw.shifts;
    let ends = WARM_UP + Duration::from_secs(5) + shifts[0];
    let back = ends + Duration::from_secs(2) + shifts[1];
    let slave_back = back + ALONE + shifts[2];
    let again = slave_back + SLAVE_AWAY;
    let mut plan = story.draw.plan(2, 0, again + Duration::from_secs(12));
    let every = Duration::from_millis(40);
    plan.operations = vec![
        sends("producer-1", WARM_UP, ends + Duration::from_secs(1), every),
        sends("producer-2", WARM_UP + every / 2, ends + Duration::from_secs(1), every),
        sends("producer-1", back + Duration::from_secs(1), plan.duration, Duration::from_millis(500)),
    ];
    let silent = if story.draw.power {
        between(Kind::Isolate(Isolate { node: SLAVE.into() }), ends + shifts[2] / 4, slave_back)
    } else {
        dead(SLAVE, ends + shifts[2] / 4, slave_back)
    };
    let nth = BEFORE + story.point % AROUND;
    let point = CrashPoint { node: SLAVE.into(), at: Counted::Packet, nth, power: false };
    plan.faults = vec![
        without_power(MASTER, ends, back),
        silent,
        // Not before it runs again: the end of a node forgets the point.
        between(Kind::CrashPoint(point), slave_back + Duration::from_millis(1), again),
    ];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (outage, _) = power_loss(evidence)?;
    let lately = outage.from.saturating_sub(Duration::from_secs(1));
    let operations = evidence.history.operations();
    let mut promised =
        all_sends(&operations).into_iter().filter_map(|send| send.stored).filter(|stored| stored.promised);
    if !promised.any(|stored| (lately..outage.from).contains(&stored.at)) {
        return Err("nothing was acknowledged that the master may have lost".into());
    }
    Ok(())
}
