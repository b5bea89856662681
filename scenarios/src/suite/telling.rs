//! The words in which stories are told: what clients do, what goes wrong, and what came to listeners of it.

use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::kinds::Kinds;
use crate::operation::{Ask, Queue, Told};
use crate::plan::Operation;
use sim::fault::crash::Crash;
use sim::fault::power_loss::PowerLoss;
use sim::fault::{Fault, Kind, Moment};
use sim::history;
use std::time::Duration;

/// A producer's messages in `from..until`, one each `every`.
pub fn sends(producer: &str, from: Duration, until: Duration, every: Duration) -> Operation {
    let count = until.saturating_sub(from).as_millis() / every.as_millis();
    let count = u32::try_from(count).expect("a run is short");
    Operation::Send { producer: producer.into(), at: from, count, every, body_bytes: 100, kinds: Kinds::default() }
}

/// A consumer that joins.
pub fn join(consumer: &str, at: Duration) -> Operation {
    Operation::Join { consumer: consumer.into(), at }
}

/// A fault in `from..until`.
pub fn between(fault: Kind, from: Duration, until: Duration) -> Fault {
    Fault { fault, start: Moment::At(from), lasts: until - from }
}

/// A node whose process is gone in `from..until`.
pub fn dead(node: &str, from: Duration, until: Duration) -> Fault {
    between(Kind::Crash(Crash { node: node.into() }), from, until)
}

/// A machine without power in `from..until`.
pub fn without_power(node: &str, from: Duration, until: Duration) -> Fault {
    between(Kind::PowerLoss(PowerLoss { node: node.into() }), from, until)
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
pub fn none(breach: Option<impl Into<Breach>>) -> Result<(), Breach> {
    breach.map_or(Ok(()), |breach| Err(breach.into()))
}

/// Demands that each send that a producer of the plan began after `from` was promised within `limit`, and left no more than `copies_max`
/// other copies.
///
/// # Errors
/// With the first that was not.
pub fn each_send_is_promised(
    evidence: &Evidence,
    from: Duration,
    limit: Duration,
    copies_max: u32,
) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let of_plan =
        operations.iter().filter(|operation| operation.client.starts_with("producer-") && operation.invoked_at >= from);
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
