//! A member with a backlog in memory hears that there is another one and gives half of the queues up: what it still holds of them is
//! the new owner's.

use super::Service;
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::operation::Queue;
use crate::plan::Plan;
use crate::suite::stage::{Draw, WARM_UP};
use crate::suite::telling::{deliveries, join, none, sends};
use std::collections::BTreeMap;
use std::time::Duration;

/// Brokers tell the members at once, and a member rebalances a second after the last time at the most.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(5);
/// So slow that the messages in memory of one member take many times as long.
const WORK: Duration = Duration::from_secs(1);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "queue_that_was_given_up_is_left_alone",
    claim: "five seconds after another member began to consume a queue, its former owner consumes nothing of it, whatever it holds",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let until = WARM_UP + Duration::from_secs(30);
    let mut plan = draw.plan(2, 2, until);
    plan.clients = plan.clients.working(WORK);
    let every = Duration::from_millis(50);
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        join("consumer-2", WARM_UP + Duration::from_secs(15) + draw.shifts[0]),
        sends("producer-1", WARM_UP, until, every),
        sends("producer-2", WARM_UP + every / 2, until, every),
    ];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let deliveries = deliveries(&operations);
    let mut taken: BTreeMap<&Queue, Duration> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| delivery.client == "consumer-2") {
        taken.entry(delivery.queue).or_insert(delivery.at);
    }
    if taken.is_empty() {
        return Err("the new member got nothing".into());
    }
    let mut former = deliveries.iter().filter(|delivery| delivery.client == "consumer-1");
    none(former.find_map(|delivery| {
        let taken = taken.get(delivery.queue).filter(|taken| delivery.at > **taken + GIVEN_UP_WITHIN)?;
        let queue = format!("{} queue {}", delivery.queue.broker, delivery.queue.id);
        Some(Breach::of_message(
            delivery.key,
            format!(
                "{} of {queue}, taken by another at {taken:?}, came to its former owner at {:?}",
                delivery.key, delivery.at
            ),
        ))
    }))
}
