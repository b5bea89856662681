//! States of the whole cluster that a run went through, in few words: what a guided campaign looks for besides probes.
//!
//! A state is a tuple of what tells fail-overs apart: which brokers run, how the last send to each broker name ended, whether a group gets on, and
//! how a slave's copy of its progress stands to the master's. Two runs in one state may still differ in everything else; a state that no
//! run reached is one that no run can have broken.

use crate::evidence::{Evidence, POWER_LOST, PROCESS_ENDED, STARTED, SYNC_FAILED};
use crate::operation::{Ask, Queue, Told};
use crate::plan::Plan;
use sim::history::{OperationId, What};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A group that consumed nothing for so long stands still.
const STANDS_AFTER: Duration = Duration::from_secs(5);

/// What is looked at; its text is the state.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Letters of the brokers that run, in order of the plan.
    up: String,
    /// How the last send ended: promised, stored, failed, unknown.
    sent: char,
    /// Whether messages are consumed.
    gets_on: bool,
    /// The slave's copy of the progress, against the master's: behind, equal, ahead; none known yet.
    copy: Option<std::cmp::Ordering>,
}

/// Every state of the run.
pub fn states(plan: &Plan, evidence: &Evidence) -> BTreeSet<String> {
    let mut walk = Walk::new(plan);
    let mut last = walk.state.clone();
    let mut seen = BTreeSet::from([last.clone()]);
    for event in &evidence.history.events {
        walk.step(event.at, &event.what);
        // Few events change it.
        if walk.state != last {
            last.clone_from(&walk.state);
            seen.insert(last.clone());
        }
    }
    seen.iter().map(State::text).collect()
}

impl State {
    fn text(&self) -> String {
        let copy = match self.copy {
            None => "unknown",
            Some(std::cmp::Ordering::Less) => "behind",
            Some(std::cmp::Ordering::Equal) => "equal",
            Some(std::cmp::Ordering::Greater) => "ahead",
        };
        let gets_on = if self.gets_on { "gets on" } else { "stands" };
        format!("up {} sent {} {gets_on} copy {copy}", self.up, self.sent)
    }
}

struct Walk<'a> {
    brokers: Vec<String>,
    masters: BTreeSet<String>,
    is_up: Vec<bool>,
    asked: BTreeMap<OperationId, (&'a str, &'a str, &'a Queue)>,
    sending: BTreeSet<OperationId>,
    consumed_at: Duration,
    /// What each node showed last, by group and queue, the masters' apart.
    at_master: BTreeMap<(&'a str, &'a Queue), i64>,
    state: State,
}

impl<'a> Walk<'a> {
    fn new(plan: &Plan) -> Walk<'a> {
        let brokers = plan.cluster.brokers();
        Walk {
            is_up: vec![false; brokers.len()],
            brokers,
            masters: plan.cluster.masters().into_iter().collect(),
            asked: BTreeMap::new(),
            sending: BTreeSet::new(),
            consumed_at: Duration::ZERO,
            at_master: BTreeMap::new(),
            state: State { sent: '-', ..State::default() },
        }
    }

    fn step(&mut self, at: Duration, what: &'a What<Ask, Told>) {
        match what {
            What::Node { node, event } => self.node(node, event),
            What::Invoke { operation, input, .. } => match input {
                Ask::ReadCommitted { node, group, queue } => {
                    self.asked.insert(*operation, (node, group, queue));
                }
                Ask::Consume { .. } | Ask::ConsumeAgain { .. } | Ask::Decide { .. } | Ask::ReadDelays { .. } => {}
                Ask::Send { .. } => drop(self.sending.insert(*operation)),
            },
            What::Ok { operation, output } => match output {
                Told::Stored { promised, .. } | Told::Delayed { promised, .. } => {
                    self.state.sent = if *promised { 'p' } else { 's' }
                }
                Told::Consumed | Told::Later => self.consumed_at = at,
                Told::Decided(_) | Told::Delays(_) => {}
                Told::Committed(offset) => self.committed(*operation, *offset),
            },
            What::Fail { operation, .. } if self.sending.contains(operation) => self.state.sent = 'f',
            What::Unknown { operation, .. } if self.sending.contains(operation) => self.state.sent = 'u',
            What::Fail { .. } | What::Unknown { .. } => {}
        }
        self.state.gets_on = at.saturating_sub(self.consumed_at) < STANDS_AFTER;
    }

    fn node(&mut self, node: &str, event: &str) {
        let Some(place) = self.brokers.iter().position(|broker| broker == node) else { return };
        match event {
            STARTED => self.is_up[place] = true,
            PROCESS_ENDED | POWER_LOST | SYNC_FAILED => self.is_up[place] = false,
            _ => return,
        }
        let letter = |place: usize| char::from(b'a' + u8::try_from(place).expect("a plan has few brokers"));
        self.state.up = (0..self.brokers.len()).filter(|place| self.is_up[*place]).map(letter).collect();
    }

    fn committed(&mut self, operation: OperationId, offset: Option<i64>) {
        let Some((node, group, queue)) = self.asked.remove(&operation) else { return };
        let offset = offset.unwrap_or(-1);
        if self.masters.contains(node) {
            self.at_master.insert((group, queue), offset);
        } else if let Some(known) = self.at_master.get(&(group, queue)) {
            self.state.copy = Some(offset.cmp(known));
        }
    }
}
