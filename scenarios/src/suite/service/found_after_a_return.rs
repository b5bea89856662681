//! A broker is stopped while the name server does not hear it, and is back when the network is. Its goodbye still lies in a send buffer
//! and comes after the registration of its new life, and so does the end of its old connection. Neither speaks of the broker that runs.

use super::Service;
use crate::breach::Breach;
use crate::evidence::{Evidence, sends as all_sends};
use crate::plan::{Operation, Plan, Replication};
use crate::suite::stage::Draw;
use crate::suite::telling::{between, each_send_is_promised, sends};
use sim::fault::Kind;
use sim::fault::one_way::OneWay;
use sim::fault::stop::Stop;
use std::time::Duration;

/// The only broker.
const BROKER: &str = "broker-a";
/// A route is fetched and a message sent, both at the first attempt.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// From the stop on the name server hears nothing for so long. A goodbye sent at the start of it is sent again 200 ms later, then at
/// doubled intervals, so about 6.2 s after the stop.
const UNHEARD: Duration = Duration::from_millis(4_500);
/// A program that gives up its goodbye (`unregisterBroker`, 3 s) is started again so long after it has ended.
const DOWN: Duration = Duration::from_millis(1_500);
/// Until the broker registers again of itself (`registerNameServerPeriod`, 30 s) nothing but its first registration speaks for it.
const UNTIL_THE_NEXT_REGISTRATION: Duration = Duration::from_secs(30);
/// Producers that each ask for the route once.
const PRODUCERS: u32 = 14;

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "broker_that_is_back_is_found_whatever_comes_late_from_its_former_life",
    claim: "once a broker has come back, each producer that starts finds it, though goodbye and end of its old connection come late",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let mut draw = draw.clone();
    (draw.cluster.replication, draw.cluster.slaves, draw.cluster.name_servers) = (Replication::Async, vec![0], 1);
    let stops = Duration::from_secs(8) + draw.shifts[0];
    let from = stops + Duration::from_secs(10);
    let until = from + UNTIL_THE_NEXT_REGISTRATION;
    let mut plan = draw.plan(PRODUCERS, 0, until + Duration::from_secs(2));
    let apart = (until - from) / PRODUCERS;
    plan.operations = (0..PRODUCERS).map(|number| first_send(number, from + apart * number)).collect();
    let unheard = Kind::OneWay(OneWay { from: BROKER.into(), to: "names-1".into() });
    let stop = Kind::Stop(Stop { node: BROKER.into(), grace: Duration::from_secs(10) });
    plan.faults = vec![
        between(unheard, stops, stops + UNHEARD + draw.shifts[1] / 4),
        between(stop, stops, stops + DOWN + draw.shifts[2] / 4),
    ];
    plan
}

fn first_send(number: u32, at: Duration) -> Operation {
    let every = Duration::from_millis(100);
    sends(&format!("producer-{}", number + 1), at, at + every, every)
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let outage = evidence.outages(BROKER).into_iter().next().ok_or("the broker did not end")?;
    let first = all_sends(&operations).iter().map(|send| send.operation.invoked_at).min().ok_or("nobody sent")?;
    match outage.until {
        Some(back) if back < first => each_send_is_promised(evidence, Duration::ZERO, ANSWERED_WITHIN, 0),
        back => Err(Breach::new(format!("the broker was back at {back:?}, after the first send at {first:?}"))),
    }
}
