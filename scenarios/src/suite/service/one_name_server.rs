//! One of two name servers is gone for good. Who starts later may choose it, and then must ask the other one.

use super::Service;
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Operation, Plan, Replication};
use crate::suite::stage::Draw;
use crate::suite::telling::{dead, each_send_is_promised, sends, without_power};
use std::time::Duration;

/// The name server that goes.
const GOES: &str = "names-1";
/// Finding out that a name server is silent is part of the call (`sendMsgTimeout`, 3 s).
const ANSWERED_WITHIN: Duration = Duration::from_millis(3_200);
/// Each chooses the name server that it asks first.
const PRODUCERS: u32 = 8;
const APART: Duration = Duration::from_secs(2);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "who_starts_finds_the_brokers_by_the_other_name_server",
    claim: "while one of two name servers is gone or silent, who starts finds the brokers by the other one",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let mut draw = draw.clone();
    (draw.cluster.replication, draw.cluster.slaves) = (Replication::Async, vec![0, 0]);
    let goes = Duration::from_secs(4) + draw.shifts[0];
    let from = goes + Duration::from_secs(2);
    let until = from + APART * PRODUCERS;
    let mut plan = draw.plan(PRODUCERS, 0, until + ANSWERED_WITHIN);
    plan.operations = (0..PRODUCERS).map(|number| first_sends(number, from + APART * number)).collect();
    let end = plan.duration;
    plan.faults = vec![if draw.power { without_power(GOES, goes, end) } else { dead(GOES, goes, end) }];
    plan
}

fn first_sends(number: u32, at: Duration) -> Operation {
    let every = Duration::from_millis(500);
    sends(&format!("producer-{}", number + 1), at, at + every * 2, every)
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    evidence.outages(GOES).first().ok_or("the name server did not end")?;
    each_send_is_promised(evidence, Duration::ZERO, ANSWERED_WITHIN, 0)
}
