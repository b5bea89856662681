//! A member joins while one broker is silent. It cannot learn where that broker's queues start, and must not take that for "nowhere".

use super::Service;
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Flush, Plan, Replication};
use crate::suite::stage::Draw;
use crate::suite::telling::{deliveries, join, none, sends};
use sim::fault::power_loss::PowerLoss;
use sim::fault::{Fault, Kind, Moment};
use std::collections::BTreeSet;
use std::time::Duration;

/// The broker that is silent for a while.
const SILENT: &str = "broker-b";
/// What was done that long before is in the broker's file: told within 5 s (`persistConsumerOffsetInterval`), written within another 5 s
/// (`flushConsumerOffsetInterval`), and then some.
const STORED_WITHIN: Duration = Duration::from_secs(15);
/// Longer than a question about an offset may take (5 s), so that one is given up.
const AWAY: Duration = Duration::from_secs(14);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "member_that_joins_while_a_broker_is_silent_repeats_nothing_old",
    claim: "a member that cannot learn the progress of a queue does not begin it anew: what was done 15 s before comes to nobody again",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let mut draw = draw.clone();
    (draw.cluster.replication, draw.cluster.slaves) = (Replication::Async, vec![0, 0]);
    draw.cluster.flush = Flush::Sync;
    let ends = Duration::from_secs(25) + draw.shifts[0];
    let back = ends + AWAY + draw.shifts[1];
    let until = back + Duration::from_secs(12);
    let mut plan = draw.plan(1, 2, until);
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        join("consumer-2", ends + Duration::from_secs(1) + draw.shifts[2] / 2),
        sends("producer-1", Duration::from_secs(2), until, Duration::from_millis(100)),
    ];
    let fault = Kind::PowerLoss(PowerLoss { node: SILENT.into() });
    plan.faults = vec![Fault { fault, start: Moment::At(ends), lasts: back - ends }];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let deliveries = deliveries(&operations);
    let outage = evidence.outages(SILENT).into_iter().next().ok_or("the broker did not end")?;
    let of_broker = deliveries.iter().filter(|delivery| delivery.queue.broker == SILENT);
    let old: BTreeSet<&str> = of_broker
        .filter(|delivery| delivery.done.is_some_and(|done| done + STORED_WITHIN <= outage.from))
        .map(|delivery| delivery.key)
        .collect();
    if old.is_empty() {
        return Err("nothing was done before the outage".into());
    }
    none(deliveries.iter().find(|one| one.at > outage.from && old.contains(one.key)).map(|one| {
        let queue = format!("{} queue {}", one.queue.broker, one.queue.id);
        Breach::of_message(
            one.key,
            format!("{} of {queue}, done long before the outage, came to {} at {:?}", one.key, one.client, one.at),
        )
    }))
}
