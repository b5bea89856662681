//! Reading the evidence: how far the group had got, what brokers showed, where deliveries went on.

use crate::breach::{Breach, Subject};
use crate::draw::GROUP;
use crate::evidence::{Evidence, Outage};
use crate::operation::{Ask, Queue};
use crate::plan::{Plan, is_clustering};
use crate::suite::progress::story::MASTER;
use sim::history::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// One message handed to a listener.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// World time.
    pub at: Duration,
    /// To whom.
    pub client: String,
    /// Its offset in the queue.
    pub offset: i64,
    /// Which message.
    pub key: String,
}

/// What a claim looks at, sorted out once.
#[derive(Debug)]
pub struct Reading<'a> {
    evidence: &'a Evidence,
    /// Deliveries by queue in order of time.
    pub deliveries: BTreeMap<Queue, Vec<Delivery>>,
}

impl<'a> Reading<'a> {
    /// Sorts the evidence out.
    pub fn of(plan: &Plan, evidence: &'a Evidence) -> Reading<'a> {
        assert!(plan.clients.groups() == [GROUP] || !is_clustering(plan, GROUP), "a story has one group");
        let mut deliveries: BTreeMap<Queue, Vec<Delivery>> =
            evidence.queues.keys().map(|queue| (queue.clone(), Vec::new())).collect();
        for operation in evidence.history.operations() {
            let (Ask::Consume { queue, offset, key, .. }, Outcome::Ok(_)) = (operation.input, operation.outcome) else {
                continue;
            };
            let delivery = Delivery {
                at: operation.invoked_at,
                client: operation.client.into(),
                offset: *offset,
                key: key.clone(),
            };
            deliveries.entry(queue.clone()).or_default().push(delivery);
        }
        Reading { evidence, deliveries }
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.deliveries.keys()
    }

    /// *C* at a time: the lowest offset whose message was not consumed until then (by one client, if named). It stops at the first
    /// message that the master has lost since: what stands there now is new to everybody.
    pub fn reached(&self, queue: &Queue, until: Duration, client: Option<&str>) -> i64 {
        let consumed: BTreeMap<i64, &str> = self
            .of_queue(queue)
            .filter(|delivery| delivery.at <= until && client.is_none_or(|client| delivery.client == client))
            .map(|delivery| (delivery.offset, delivery.key.as_str()))
            .collect();
        let Some(contents) = self.evidence.queues.get(queue) else { return 0 };
        let open =
            contents.messages.iter().find(|message| consumed.get(&message.offset) != Some(&message.key.as_str()));
        open.map_or(contents.max, |message| message.offset)
    }

    /// The end of what the master has not lost: the lowest offset that names another message at the end than it did once, or the end
    /// of the queue. A committed offset is lowered to it, and nobody who is sent there repeats anything.
    pub fn intact_below(&self, queue: &Queue) -> i64 {
        let end = self.evidence.queues.get(queue).map_or(0, |contents| contents.max);
        self.evidence.first_lost(queue).unwrap_or(end)
    }

    /// Deliveries of a queue in order of time.
    pub fn of_queue(&self, queue: &Queue) -> impl Iterator<Item = &Delivery> {
        self.deliveries.get(queue).into_iter().flatten()
    }

    /// What a broker node showed as committed: time, offset.
    pub fn shown(&self, node: &str, queue: &Queue) -> &[(Duration, i64)] {
        self.evidence.commits_seen(node, GROUP, queue)
    }

    /// What it showed at a time, for a breach to speak of.
    pub fn read_at(&self, node: &str, queue: &Queue, at: Duration) -> Subject {
        Subject::Reading { node: node.into(), group: GROUP.into(), queue: queue.clone(), at }
    }

    /// When it first showed an offset, for a breach to speak of.
    pub fn first_shown(&self, node: &str, queue: &Queue, offset: i64) -> Subject {
        Subject::FirstShown { node: node.into(), group: GROUP.into(), queue: queue.clone(), offset }
    }

    /// The greatest offset that a node showed in a span of time; 0 if none.
    pub fn greatest_shown(&self, node: &str, queue: &Queue, from: Duration, until: Duration) -> i64 {
        let within = self.shown(node, queue).iter().filter(|(at, _)| *at >= from && *at <= until);
        within.map(|(_, offset)| *offset).max().unwrap_or(0)
    }

    /// The master's outage.
    ///
    /// # Errors
    /// If the run had none that ended: then it shows nothing.
    pub fn outage(&self) -> Result<(Outage, Duration), String> {
        let outage = self.evidence.outages(MASTER).into_iter().next().ok_or("the master never ended")?;
        let back = outage.until.ok_or("the master never returned")?;
        Ok((outage, back))
    }

    /// When a node that runs a client ended first.
    ///
    /// # Errors
    /// If it never did.
    pub fn death_of(&self, client: &str) -> Result<Duration, String> {
        let outage = self.evidence.outages(client).into_iter().next();
        outage.map(|outage| outage.from).ok_or_else(|| format!("{client} never ended"))
    }
}

/// Demands that in each queue no delivery of `which` is below its floor.
///
/// # Errors
/// With the first that is.
pub fn none_below(
    reading: &Reading<'_>,
    which: impl Fn(&Delivery) -> bool,
    floor: impl Fn(&Queue) -> i64,
) -> Result<(), Breach> {
    for queue in reading.queues() {
        let floor = floor(queue);
        if let Some(again) = reading.of_queue(queue).find(|delivery| which(delivery) && delivery.offset < floor) {
            let summary = format!(
                "{} was delivered to {} at {:.3} s from queue {} offset {}, below {floor}",
                again.key,
                again.client,
                again.at.as_secs_f64(),
                queue.id,
                again.offset
            );
            return Err(Breach::new(summary).about(Subject::Message(again.key.clone())));
        }
    }
    Ok(())
}
