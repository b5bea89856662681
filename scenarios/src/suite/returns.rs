//! Suite `returns`: a master that lost power comes back, to a slave that has more than it or is not there, and to readers that have read
//! more than it still has.
//!
//! With asynchronous flush a power loss takes the end of the log. Who else has it, who is there to be asked, and who acts first after the
//! return: each claim tells one such story. Suite `failover` draws them too, one in many thousands of runs each, for they take several
//! things that happen within moments of each other, and somebody who does nothing for a while.

use super::stage::{self, Draw};
use super::story_claim::{StoryClaim, StorySuite};
use crate::breach::Breach;
use crate::evidence::{Death, Evidence, Outage, sends};
use crate::plan::{Flush, Replication};
use crate::suite::telling::{deliveries, none};
use crate::variation;
use proptest::prelude::{Strategy, any};
use proptest::strategy::BoxedStrategy;
use sim::scenario::Registry;
use std::collections::BTreeSet;
use std::time::Duration;

pub mod apaches_return;
pub mod last_commit;
pub mod lone_master;
pub mod reader_above_the_end;
pub mod returns_alone;
pub mod silent_producers;
pub mod suffix_comes_back;

/// The only master.
pub const MASTER: &str = "broker-a";
/// Its slave.
pub const SLAVE: &str = "broker-a-slave-1";

/// The drawn part of a run.
#[derive(Debug, Clone)]
pub struct Return {
    /// Schedule, links, times.
    pub draw: Draw,
    /// At which point of its work a node ends, where the story has such a node.
    pub point: u64,
    /// Which of two courses the scenario takes.
    pub early: bool,
}

/// So many points lie in the part of a node's work that a story is about.
const POINTS_MAX: u64 = 40;

fn strategy() -> BoxedStrategy<Return> {
    (stage::strategy(), 1..=POINTS_MAX, any::<bool>())
        .prop_map(|(draw, point, early)| Return { draw, point, early })
        .boxed()
}

impl Return {
    /// The same with one master, that many slaves, and asynchronous flush: a power loss of the master takes what it had not synced.
    #[must_use]
    pub fn one_master(&self, slaves: u32, replication: Replication) -> Return {
        let mut story = self.clone();
        let cluster = &mut story.draw.cluster;
        (cluster.slaves, cluster.flush, cluster.replication) = (vec![slaves], Flush::Async, replication);
        story
    }
}

/// One scenario of the suite.
pub type Returns = StoryClaim<Return>;

static SUITE: StorySuite<Return> =
    StorySuite { name: "returns", draw: strategy, variation: variation::Story { lists: &[] } };

/// Every scenario of the suite.
pub const ALL: &[Returns] = &[
    returns_alone::SCENARIO,
    lone_master::SCENARIO,
    apaches_return::SCENARIO,
    silent_producers::SCENARIO,
    last_commit::SCENARIO,
    suffix_comes_back::SCENARIO,
    reader_above_the_end::SCENARIO,
];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    SUITE.register(registry, ALL)
}

/// The master's outage at a power loss, and when it returned.
///
/// # Errors
/// If the run had none that ended: then it shows nothing.
pub fn power_loss(evidence: &Evidence) -> Result<(Outage, Duration), String> {
    let outages = evidence.outages(MASTER);
    let outage = outages.iter().find(|outage| outage.death == Death::PowerLoss).ok_or("the master kept its power")?;
    let back = outage.until.ok_or("the master never returned")?;
    Ok((*outage, back))
}

/// Demands that each message that a producer of the plan was told of, and asked for after `from`, came to a listener.
///
/// Invariants cannot see that where readers had read a suffix that is lost: they ask by offset, for what comes to stand at the offset of a lost
/// message may be passed over by whoever had read that one. Stored after all readers know better, it may not.
///
/// # Errors
/// With the first that did not, or if there was none.
pub fn each_is_delivered(evidence: &Evidence, from: Duration) -> Result<(), Breach> {
    let operations = evidence.history.operations();
    let delivered: BTreeSet<&str> = deliveries(&operations).into_iter().map(|delivery| delivery.key).collect();
    let sends = sends(&operations);
    let owed = sends.iter().filter(|send| send.operation.client.starts_with("producer-"));
    let mut owed =
        owed.filter_map(|send| Some((send.key, send.stored.filter(|stored| stored.asked_at > from)?))).peekable();
    if owed.peek().is_none() {
        return Err("nothing was sent once all readers knew where they were".into());
    }
    none(owed.find(|(key, _)| !delivered.contains(key)).map(|(key, stored)| {
        Breach::of_message(
            key,
            format!("{key} was stored at queue {} offset {}, and no reader got it", stored.queue.id, stored.offset),
        )
    }))
}
