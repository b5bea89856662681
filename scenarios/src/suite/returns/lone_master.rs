//! The slave of a SYNC_MASTER ends, the master goes on alone, and then loses its power. What it took alone may be gone, so it must have
//! promised none of it.

use super::{MASTER, Return, Returns, SLAVE, power_loss};
use crate::breach::Breach;
use crate::evidence::{Evidence, sends as all_sends};
use crate::machines::IMPATIENT;
use crate::plan::{Plan, Replication};
use crate::suite::stage::WARM_UP;
use crate::suite::telling::{between, dead, none, sends, without_power};
use sim::fault::Kind;
use sim::fault::reconfigure::{Ending, Reconfigure};
use std::time::Duration;

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "lone_master_promises_nothing_of_what_it_may_lose",
    claim: "what a synchronous master takes without its slave it stores, and says that there is no copy",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let story = story.one_master(1, Replication::Sync { in_sync_replicas: 2 });
    let shifts = story.draw.shifts;
    let gone = WARM_UP + Duration::from_secs(3) + shifts[0];
    let ends = gone + Duration::from_secs(5) + shifts[1];
    let back = ends + Duration::from_secs(3);
    let slave_back = back + shifts[2];
    let duration = slave_back + Duration::from_secs(20);
    let mut plan = story.draw.plan(1, 0, duration);
    plan.operations = vec![sends("producer-1", WARM_UP, duration, Duration::from_millis(250))];
    let impatient = Reconfigure {
        node: MASTER.into(),
        configuration: IMPATIENT.into(),
        by: Ending::Stop { grace: Duration::from_secs(3) },
    };
    plan.faults = vec![
        between(Kind::Reconfigure(impatient), Duration::from_secs(1), duration),
        dead(SLAVE, gone, slave_back),
        without_power(MASTER, ends, back),
    ];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (outage, _) = power_loss(evidence)?;
    let gone = evidence.outages(SLAVE).into_iter().next().ok_or("the slave did not end")?.from;
    let operations = evidence.history.operations();
    let alone: Vec<_> = all_sends(&operations)
        .into_iter()
        .filter_map(|send| Some((send.key, send.stored?)))
        .filter(|(_, stored)| stored.asked_at > gone && stored.at < outage.from)
        .collect();
    if alone.is_empty() {
        return Err("the master took nothing without its slave".into());
    }
    none(alone.into_iter().find(|(_, stored)| stored.promised).map(|(key, stored)| {
        Breach::of_message(
            key,
            format!("{key}, sent at {:?}, was answered with SEND_OK while the slave was away", stored.asked_at),
        )
    }))
}
