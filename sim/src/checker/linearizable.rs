//! Linearizability by Wing and Gong's search with Lowe's memory: is there an order of the operations, each between its
//! invocation and its end, in which a sequential model gives every answer that was given?
//!
//! An operation with an unknown end may take effect at any time after its invocation, or never. A failed one has no effect; leave
//! it out.

pub mod queue;

use crate::history::{History, Outcome};
use crate::verdict::EventId;
use std::collections::BTreeSet;

/// A sequential object.
pub trait Model {
    /// Its state.
    type State: Clone + Ord;
    /// What a client asks.
    type Input;
    /// What it is told.
    type Output;
    /// The state at the start.
    fn initial(&self) -> Self::State;
    /// The state after `input`, if the object may then answer `output`. An unknown answer (`None`) is always possible.
    fn step(&self, state: &Self::State, input: &Self::Input, output: Option<&Self::Output>) -> Option<Self::State>;
}

/// One operation with the places of its ends in the history.
#[derive(Debug, Clone)]
pub struct Call<I, O> {
    /// What was asked.
    pub input: I,
    /// What was told; none if unknown.
    pub output: Option<O>,
    /// Place of the invocation.
    pub invoked: EventId,
    /// Place of the end; none if unknown.
    pub returned: Option<EventId>,
}

/// What the search says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An order exists.
    Linearizable,
    /// None exists. `events` are both ends of the operation that no order could explain where the search got furthest.
    Impossible {
        /// The unexplained operation's events.
        events: Vec<EventId>,
    },
    /// Given up after that many configurations: the history is too concurrent for this budget.
    Undecided,
}

/// The operations of a history; failed ones are left out.
pub fn calls<I: Clone, O: Clone>(history: &History<I, O>) -> Vec<Call<I, O>> {
    let known = |outcome: &Outcome<'_, O>| !matches!(outcome, Outcome::Fail(_));
    let call = |operation: &crate::history::Operation<'_, I, O>| {
        let answer = match operation.outcome {
            Outcome::Ok(output) => Some((output.clone(), operation.ended.map(|(event, _)| event))),
            Outcome::Fail(_) | Outcome::Unknown => None,
        };
        let (output, returned) = answer.map_or((None, None), |(output, event)| (Some(output), event));
        Call { input: operation.input.clone(), output, invoked: operation.invoked, returned }
    };
    history.operations().iter().filter(|operation| known(&operation.outcome)).map(call).collect()
}

/// Searches for an order, looking at no more than `budget` configurations.
pub fn check<M: Model>(model: &M, calls: &[Call<M::Input, M::Output>], budget: usize) -> Verdict {
    assert!(calls.is_sorted_by_key(|call| call.invoked), "calls come in order of invocation");
    let answered = calls.iter().filter(|call| call.returned.is_some()).count();
    let mut seen: BTreeSet<(Vec<u64>, M::State)> = BTreeSet::new();
    let mut stack =
        vec![Configuration { done: vec![0; calls.len().div_ceil(64)], state: model.initial(), answered: 0 }];
    let mut furthest: Option<(usize, EventId)> = None;
    while let Some(here) = stack.pop() {
        if here.answered == answered {
            return Verdict::Linearizable;
        }
        if seen.len() >= budget {
            return Verdict::Undecided;
        }
        if !seen.insert((here.done.clone(), here.state.clone())) {
            continue;
        }
        let deadline = here.deadline(calls);
        furthest = furthest.max(Some((here.answered, deadline)));
        stack.extend(here.successors(model, calls, deadline));
    }
    Verdict::Impossible { events: furthest.map_or_else(Vec::new, |(_, end)| with_invocation(end, calls)) }
}

/// A prefix of an order: which operations are in it, and the state they lead to.
struct Configuration<S> {
    done: Vec<u64>,
    state: S,
    answered: usize,
}

impl<S> Configuration<S> {
    fn has(&self, index: usize) -> bool {
        self.done[index / 64] & 1 << (index % 64) != 0
    }

    /// The earliest end among the operations left: whatever was invoked after it cannot come before it.
    fn deadline<I, O>(&self, calls: &[Call<I, O>]) -> EventId {
        let left = calls.iter().enumerate().filter(|(index, _)| !self.has(*index));
        left.filter_map(|(_, call)| call.returned).min().expect("an answered operation is left")
    }

    fn successors<M: Model<State = S>>(
        &self,
        model: &M,
        calls: &[Call<M::Input, M::Output>],
        deadline: EventId,
    ) -> Vec<Configuration<S>> {
        let mut successors = Vec::new();
        for (index, call) in calls.iter().enumerate().take_while(|(_, call)| call.invoked < deadline) {
            if self.has(index) {
                continue;
            }
            if let Some(state) = model.step(&self.state, &call.input, call.output.as_ref()) {
                let mut done = self.done.clone();
                done[index / 64] |= 1 << (index % 64);
                successors.push(Configuration {
                    done,
                    state,
                    answered: self.answered + usize::from(call.returned.is_some()),
                });
            }
        }
        // Popped from the end: operations that ended earlier are tried first.
        successors.reverse();
        successors
    }
}

fn with_invocation<I, O>(end: EventId, calls: &[Call<I, O>]) -> Vec<EventId> {
    let call = calls.iter().find(|call| call.returned == Some(end)).expect("the deadline is the end of a call");
    vec![call.invoked, end]
}

/// A register: the last value written is the one read; compare-and-set tells whether it set.
#[derive(Debug, Clone, Copy)]
pub struct Register<V> {
    /// The value at the start.
    pub initial: V,
}

/// What a client asks of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterInput<V> {
    /// Its value.
    Read,
    /// To hold this.
    Write(V),
    /// To hold `to` if it holds `from`.
    CompareAndSet {
        /// Expected.
        from: V,
        /// Wanted.
        to: V,
    },
}

/// What a register answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterOutput<V> {
    /// Its value.
    Value(V),
    /// Done.
    Written,
    /// Whether the expected value was there.
    Swapped(bool),
}

impl<V: Clone + Ord> Model for Register<V> {
    type State = V;
    type Input = RegisterInput<V>;
    type Output = RegisterOutput<V>;

    fn initial(&self) -> V {
        self.initial.clone()
    }

    fn step(&self, state: &V, input: &RegisterInput<V>, output: Option<&RegisterOutput<V>>) -> Option<V> {
        let (next, answer) = match input {
            RegisterInput::Read => (state.clone(), RegisterOutput::Value(state.clone())),
            RegisterInput::Write(value) => (value.clone(), RegisterOutput::Written),
            RegisterInput::CompareAndSet { from, to } if state == from => (to.clone(), RegisterOutput::Swapped(true)),
            RegisterInput::CompareAndSet { .. } => (state.clone(), RegisterOutput::Swapped(false)),
        };
        let explained = match (output, &answer) {
            (None, _) | (Some(RegisterOutput::Written), RegisterOutput::Written) => true,
            (Some(RegisterOutput::Value(told)), RegisterOutput::Value(held)) => told == held,
            (Some(RegisterOutput::Swapped(told)), RegisterOutput::Swapped(did)) => told == did,
            (Some(_), _) => false,
        };
        explained.then_some(next)
    }
}

#[cfg(test)]
mod literature;
#[cfg(test)]
mod tests;
