//! A member that leaves in order stores its progress before it tells anyone, so who takes its queues begins where it has ended.

use super::Service;
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Operation, Plan};
use crate::suite::stage::{Draw, WARM_UP};
use crate::suite::telling::{deliveries, join, none, sends};
use std::collections::BTreeSet;
use std::time::Duration;

/// What was done so shortly before may not be noted as progress yet.
const NOTED_WITHIN: Duration = Duration::from_millis(500);
/// So seldom that a queue's last message is older than that when a member leaves, and no later pull has told of it.
const EVERY: Duration = Duration::from_millis(300);
/// Between two who leave: until then the queues that the first departure shifted are settled.
const APART: Duration = Duration::from_secs(14);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "what_a_member_has_done_before_it_leaves_is_not_repeated",
    claim: "messages that a member had consumed half a second before it left in order are delivered to nobody else afterwards",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let until = WARM_UP + Duration::from_secs(42);
    let mut plan = draw.plan(2, 3, until);
    let first = WARM_UP + Duration::from_secs(8) + draw.shifts[0];
    let second = first + APART + draw.shifts[1];
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        join("consumer-2", Duration::ZERO),
        join("consumer-3", Duration::ZERO),
        sends("producer-1", WARM_UP, until, EVERY),
        sends("producer-2", WARM_UP + EVERY / 2, until, EVERY),
        Operation::Leave { consumer: "consumer-1".into(), at: first },
        Operation::Leave { consumer: "consumer-2".into(), at: second },
    ];
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let deliveries = deliveries(&operations);
    for operation in &plan.operations {
        let Operation::Leave { consumer, at } = operation else { continue };
        let left = evidence.started_at + *at;
        let of_member = deliveries.iter().filter(|delivery| delivery.client == consumer);
        let done: BTreeSet<&str> = of_member
            .filter(|delivery| delivery.done.is_some_and(|done| done + NOTED_WITHIN <= left))
            .map(|delivery| delivery.key)
            .collect();
        if done.is_empty() {
            let summary = format!("{consumer} had nothing to leave behind");
            return Err(Breach::new(summary));
        }
        let later = |client: &str, at: Duration| client != consumer && at > left;
        none(deliveries.iter().find(|one| later(one.client, one.at) && done.contains(one.key)).map(|one| {
            let queue = format!("{} queue {}", one.queue.broker, one.queue.id);
            Breach::of_message(
                one.key,
                format!(
                    "{} of {queue}, done by {consumer} before it left, came to {} at {:?}",
                    one.key, one.client, one.at
                ),
            )
        }))?;
    }
    Ok(())
}
