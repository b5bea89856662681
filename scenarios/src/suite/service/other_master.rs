//! One of two masters is away. Nobody refuses a message for it: who meets the dead one goes on to the other within the same call.

use super::Service;
use crate::breach::Breach;
use crate::evidence::{Evidence, sends as all_sends};
use crate::plan::{Plan, Replication};
use crate::suite::stage::Draw;
use crate::suite::telling::{each_send_is_promised, sends};
use sim::fault::crash::Crash;
use sim::fault::power_loss::PowerLoss;
use sim::fault::{Fault, Kind, Moment};
use std::time::Duration;

/// The master that ends.
const ENDS: &str = "broker-a";
/// Attempts of one call after the first (`retryTimesWhenSendFailed`).
const RETRIES: u32 = 2;
/// `sendMsgTimeout`, and what a busy machine adds.
const SEND_TIMEOUT: Duration = Duration::from_millis(3_200);
/// Shorter than it takes to find out that a silent machine is gone: until the end producers meet it with each second message.
const AWAY: Duration = Duration::from_secs(30);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "sends_go_on_at_the_other_master",
    claim: "while one of two masters is gone or silent, each send is promised within its time-out",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let mut draw = draw.clone();
    (draw.cluster.replication, draw.cluster.slaves) = (Replication::Async, vec![0, 0]);
    let ends = Duration::from_secs(8) + draw.shifts[0];
    let until = ends + AWAY;
    let mut plan = draw.plan(2, 0, until + Duration::from_secs(8));
    let from = Duration::from_secs(2);
    plan.operations = ["producer-1", "producer-2"]
        .map(|producer| sends(producer, from, plan.duration, Duration::from_millis(200)))
        .to_vec();
    let fault = match draw.power {
        true => Kind::PowerLoss(PowerLoss { node: ENDS.into() }),
        false => Kind::Crash(Crash { node: ENDS.into() }),
    };
    plan.faults = vec![Fault { fault, start: Moment::At(ends), lasts: AWAY + draw.shifts[1] }];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let outage = evidence.outages(ENDS).into_iter().next().ok_or("the master did not end")?;
    let during = all_sends(&operations).iter().filter(|send| send.operation.invoked_at > outage.from).count();
    if during == 0 {
        return Err("nothing was sent while the master was away".into());
    }
    each_send_is_promised(evidence, Duration::ZERO, SEND_TIMEOUT, RETRIES)
}
