//! Suite `service`: what users get beyond the promise that nothing is lost: sends that are answered at once or go to another master,
//! messages that come once and soon, queues that change hands without a repetition.
//!
//! Each claim would fail in a run where anything may go wrong, so nothing does but what the claim is about. That is why a defect which
//! the other suites forgive, because the cluster heals it, is one here.

use super::story_claim::{StoryClaim, StorySuite};
use crate::breach::Breach;
use crate::draw;
use crate::evidence::Evidence;
use crate::kinds::Kinds;
use crate::operation::{Ask, Queue, Told};
use crate::plan::{Cluster, Network, Operation, Plan, Schedule};
use crate::variation::Story;
use proptest::array::uniform3;
use proptest::prelude::{Strategy, any};
use proptest::strategy::BoxedStrategy;
use sim::history;
use sim::scenario::Registry;
use std::time::Duration;

pub mod calm_cluster;
pub mod found_after_a_return;
pub mod given_up;
pub mod join_in_an_outage;
pub mod one_name_server;
pub mod orderly_leave;
pub mod other_master;

/// By then each slave replicates: it learns of its master when it registers again (`registerNameServerPeriod`, 30 s).
pub const WARM_UP: Duration = Duration::from_secs(35);

/// The drawn part of a run.
#[derive(Debug, Clone)]
pub struct Draw {
    /// Picks, latencies.
    pub schedule: Schedule,
    /// Servers and durability.
    pub cluster: Cluster,
    /// Links.
    pub network: Network,
    /// Whether a machine that ends falls silent; otherwise only its process ends.
    pub power: bool,
    /// Small shifts of what happens.
    pub shifts: [Duration; 3],
    /// Whether the marked places make rare choices.
    pub rare_choices: bool,
}

impl Draw {
    /// A plan with so many clients of each kind that does nothing yet.
    pub fn plan(&self, producers: u32, consumers: usize, duration: Duration) -> Plan {
        Plan {
            schedule: self.schedule,
            cluster: self.cluster.clone(),
            network: self.network,
            clients: draw::clients(producers, consumers),
            operations: Vec::new(),
            faults: Vec::new(),
            duration,
            rare_choices: self.rare_choices,
        }
    }
}

/// One scenario of the suite.
pub type Service = StoryClaim<Draw>;

static SUITE: StorySuite<Draw> = StorySuite { name: "service", draw: strategy, variation: Story { lists: &[] } };

fn strategy() -> BoxedStrategy<Draw> {
    let shifts = uniform3((0_u64..4_000).prop_map(Duration::from_millis));
    (draw::schedule(), draw::cluster(), draw::network(), any::<bool>(), shifts, any::<bool>())
        .prop_map(|(schedule, cluster, network, power, shifts, rare_choices)| Draw {
            schedule,
            cluster,
            network,
            power,
            shifts,
            rare_choices,
        })
        .boxed()
}

/// Every scenario of the suite.
pub const ALL: &[Service] = &[
    calm_cluster::SCENARIO,
    orderly_leave::SCENARIO,
    given_up::SCENARIO,
    join_in_an_outage::SCENARIO,
    other_master::SCENARIO,
    one_name_server::SCENARIO,
    found_after_a_return::SCENARIO,
];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    SUITE.register(registry, ALL)
}

/// A producer's messages in `from..until`, one each `every`.
pub fn sends(producer: &str, from: Duration, until: Duration, every: Duration) -> Operation {
    let count = until.saturating_sub(from).as_millis() / every.as_millis();
    let count = u32::try_from(count).expect("a run is short");
    Operation::Send { producer: producer.into(), at: from, count, every, body_bytes: 100, kinds: Kinds::default() }
}

/// A consumer that joins.
pub fn joins(consumer: &str, at: Duration) -> Operation {
    Operation::Join { consumer: consumer.into(), at }
}

/// A listener's call.
pub struct Delivery<'a> {
    /// To whom.
    pub client: &'a str,
    /// From where.
    pub queue: &'a Queue,
    /// Offset there.
    pub offset: i64,
    /// Which message.
    pub key: &'a str,
    /// When the call began.
    pub at: Duration,
    /// When the listener was done, if it was.
    pub done: Option<Duration>,
}

/// All deliveries of messages that the plan's producers sent, in order of time.
pub fn deliveries<'a>(operations: &'a [history::Operation<'a, Ask, Told>]) -> Vec<Delivery<'a>> {
    let of = |operation: &'a history::Operation<'a, Ask, Told>| {
        let Ask::Consume { queue, offset, key, .. } = operation.input else { return None };
        let (client, at, done) = (operation.client, operation.invoked_at, operation.ended.map(|(_, at)| at));
        key.starts_with("producer-").then_some(Delivery { client, queue, offset: *offset, key, at, done })
    };
    operations.iter().filter_map(of).collect()
}

/// Fails with the first reason that there is.
pub fn none(breach: Option<Breach>) -> Result<(), Breach> {
    breach.map_or(Ok(()), Err)
}

/// Fails unless each send that a producer of the plan began in the safety phase was promised, within `limit`.
pub fn each_send_is_promised(evidence: &Evidence, limit: Duration, copies_max: u32) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let of_plan = operations.iter().filter(|operation| operation.client.starts_with("producer-"));
    let wrong = of_plan.filter_map(|operation| {
        let Ask::Send { key } = operation.input else { return None };
        match (&operation.outcome, operation.ended) {
            (history::Outcome::Ok(Told::Stored { promised: true, other_copies_max, .. }), Some((_, ended)))
                if ended - operation.invoked_at <= limit && *other_copies_max <= copies_max =>
            {
                None
            }
            (outcome, ended) => {
                let took = ended.map(|(_, ended)| ended - operation.invoked_at);
                let summary = format!("{key}, sent at {:?}, took {took:?} to {outcome:?}", operation.invoked_at);
                Some(Breach::new(summary).of_events(operation.events()))
            }
        }
    });
    none(wrong.into_iter().next())
}
