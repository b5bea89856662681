//! Nothing goes wrong, so nothing may be slow, weak or repeated: connections stand, nobody waits for a time-out, no wake-up is lost.

use super::Service;
use crate::breach::Breach;
use crate::evidence::{self, Evidence};
use crate::plan::Plan;
use crate::suite::stage::{Draw, WARM_UP};
use crate::suite::telling::{deliveries, each_send_is_promised, join, none, sends};
use std::collections::BTreeMap;
use std::time::Duration;

/// Far below each time-out and period on the way of a send (slave time-out 3 s, reconnection 5 s), far above what slow links and late
/// tasks add up to.
const ANSWERED_WITHIN: Duration = Duration::from_millis(1_500);
/// A pull that waits is woken by the message. (One that nobody wakes hangs for 15 s.)
const DELIVERED_WITHIN: Duration = Duration::from_secs(2);
/// Longer than silence may last on any connection (`haHousekeepingInterval`, 20 s).
const SENDING: Duration = Duration::from_secs(50);

/// The scenario.
pub const SCENARIO: Service = Service {
    name: "calm_cluster_answers_each_send_at_once_and_delivers_it_once",
    claim: "where nothing goes wrong, each send is promised at its first attempt and each message is delivered once and soon",
    plan,
    judge,
};

fn plan(draw: &Draw) -> Plan {
    let mut plan = draw.plan(2, 2, WARM_UP + SENDING);
    let every = Duration::from_millis(250);
    plan.operations = vec![
        join("consumer-1", Duration::ZERO),
        join("consumer-2", Duration::ZERO),
        sends("producer-1", WARM_UP, WARM_UP + SENDING, every),
        sends("producer-2", WARM_UP + every / 2, WARM_UP + SENDING, every),
    ];
    plan
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    each_send_is_promised(evidence, Duration::ZERO, ANSWERED_WITHIN, 0)?;
    let operations = evidence.history.operations();
    let sends = evidence::sends(&operations);
    let answered: BTreeMap<&str, Duration> =
        sends.iter().filter_map(|send| Some((send.key, send.stored.as_ref()?.at))).collect();
    let mut first: BTreeMap<&str, Duration> = BTreeMap::new();
    for delivery in deliveries(&operations) {
        if let Some(before) = first.insert(delivery.key, delivery.at) {
            let summary = format!("{} was delivered at {before:?} and again at {:?}", delivery.key, delivery.at);
            return Err(Breach::of_message(delivery.key, summary));
        }
    }
    if first.is_empty() {
        return Err("nothing was delivered".into());
    }
    none(first.into_iter().find_map(|(key, at)| {
        let late = at.saturating_sub(*answered.get(key)?);
        let summary = || format!("{key} was delivered {late:?} after the answer to its send");
        (late > DELIVERED_WITHIN).then(|| Breach::of_message(key, summary()))
    }))
}
