//! What clients asked and what they were told, with the virtual time of each step: the evidence of every verdict.
//!
//! An operation is invoked, and ends as `Ok`, `Fail` (it certainly had no effect) or `Unknown` (it may have had its effect, or may
//! have it later). A time-out is `Unknown`, never `Fail`. An operation whose client died has no end; it counts as `Unknown`.

use crate::fault::signals::Signals;
use crate::verdict::{EventId, Evidence, seconds};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// An operation of a client, numbered in order of invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(pub usize);

/// One step. `I` is what a client asks, `O` what it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<I, O> {
    /// Virtual time since the start of the run, on the world's clock.
    #[serde(with = "crate::duration")]
    pub at: Duration,
    /// What happened.
    pub what: What<I, O>,
}

/// What happened in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What<I, O> {
    /// A client asks.
    Invoke {
        /// Who.
        client: String,
        /// Names the operation in its later event.
        operation: OperationId,
        /// For what.
        input: I,
    },
    /// It had its effect.
    Ok {
        /// The operation.
        operation: OperationId,
        /// What the client was told.
        output: O,
    },
    /// It had no effect and never will.
    Fail {
        /// The operation.
        operation: OperationId,
        /// The reason the client was told.
        reason: String,
    },
    /// It may have had its effect, or may have it later.
    Unknown {
        /// The operation.
        operation: OperationId,
        /// The reason the client was told.
        reason: String,
    },
    /// Something happened to a node: `started`, `power loss`, `became master`.
    Node {
        /// Which.
        node: String,
        /// What.
        event: String,
    },
}

/// The steps of a run in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History<I, O> {
    /// In order of time.
    pub events: Vec<Event<I, O>>,
}

impl<I, O> Default for History<I, O> {
    fn default() -> Self {
        History { events: Vec::new() }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a, O> {
    /// With an answer.
    Ok(&'a O),
    /// Without effect.
    Fail(&'a str),
    /// Nobody knows; also an operation that never ended.
    Unknown,
}

impl<'a, O> Outcome<'a, O> {
    /// The answer, if there was one.
    pub fn ok(&self) -> Option<&'a O> {
        match self {
            Outcome::Ok(answer) => Some(answer),
            Outcome::Fail(_) | Outcome::Unknown => None,
        }
    }
}

/// An operation with both its ends.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a, I, O> {
    /// Its number.
    pub id: OperationId,
    /// Who asked.
    pub client: &'a str,
    /// For what.
    pub input: &'a I,
    /// The event of its invocation.
    pub invoked: EventId,
    /// When it was invoked.
    pub invoked_at: Duration,
    /// The event of its end and when it was; none if it never ended.
    pub ended: Option<(EventId, Duration)>,
    /// How it ended.
    pub outcome: Outcome<'a, O>,
}

impl<I, O> Operation<'_, I, O> {
    /// Both ends, for a violation.
    pub fn events(&self) -> impl Iterator<Item = EventId> {
        [Some(self.invoked), self.ended.map(|(event, _)| event)].into_iter().flatten()
    }
}

impl<I, O> History<I, O> {
    /// Each operation with its end, in order of invocation.
    ///
    /// # Panics
    /// If an operation ends twice or without having been invoked, or the numbers do not rise: the history was not written by a
    /// [`Recorder`].
    pub fn operations(&self) -> Vec<Operation<'_, I, O>> {
        // An operation has two events as a rule.
        let mut operations: Vec<Operation<'_, I, O>> = Vec::with_capacity(self.events.len() / 2 + 1);
        for (index, event) in self.events.iter().enumerate() {
            let here = EventId(index);
            let (id, outcome) = match &event.what {
                What::Invoke { client, operation, input } => {
                    let in_order = operations.last().is_none_or(|last| last.id < *operation);
                    assert!(in_order, "operations are numbered in order of invocation, {operation:?} is not");
                    let (invoked, invoked_at) = (here, event.at);
                    operations.push(Operation {
                        id: *operation,
                        client,
                        input,
                        invoked,
                        invoked_at,
                        ended: None,
                        outcome: Outcome::Unknown,
                    });
                    continue;
                }
                What::Ok { operation, output } => (operation, Outcome::Ok(output)),
                What::Fail { operation, reason } => (operation, Outcome::Fail(reason)),
                What::Unknown { operation, .. } => (operation, Outcome::Unknown),
                What::Node { .. } => continue,
            };
            let place = place_of(&operations, *id);
            let operation = &mut operations[place.expect("an operation is invoked before it ends")];
            assert!(operation.ended.is_none(), "{id:?} ends twice");
            operation.ended = Some((here, event.at));
            operation.outcome = outcome;
        }
        operations
    }
}

/// Where an operation stands among those invoked so far.
fn place_of<I, O>(operations: &[Operation<'_, I, O>], id: OperationId) -> Option<usize> {
    // A recorder leaves out no number, a history made by hand may.
    let dense = id.0.checked_sub(operations.first()?.id.0)?;
    match operations.get(dense) {
        Some(operation) if operation.id == id => Some(dense),
        _ => operations.binary_search_by_key(&id, |operation| operation.id).ok(),
    }
}

impl<I: Debug, O: Debug> History<I, O> {
    /// The events as evidence of a violation.
    pub fn evidence(&self, events: impl IntoIterator<Item = EventId>) -> Vec<Evidence> {
        events
            .into_iter()
            .map(|event| Evidence { event, at: self.events[event.0].at, text: self.describe(event) })
            .collect()
    }

    /// One line: who, what, how it ended.
    pub fn describe(&self, event: EventId) -> String {
        match &self.events[event.0].what {
            What::Invoke { client, operation, input } => format!("{client} op {} asks {input:?}", operation.0),
            What::Ok { operation, output } => format!("op {} ok {output:?}", operation.0),
            What::Fail { operation, reason } => format!("op {} failed: {reason}", operation.0),
            What::Unknown { operation, reason } => format!("op {} unknown: {reason}", operation.0),
            What::Node { node, event } => format!("{node}: {event}"),
        }
    }

    /// The whole history, one line an event.
    pub fn to_text(&self) -> String {
        let line = |index: usize| {
            format!("{:>12}  #{index:<5} {}\n", seconds(self.events[index].at), self.describe(EventId(index)))
        };
        (0..self.events.len()).map(line).collect()
    }
}

/// Writes a history while the run goes on. Clones write the same one.
#[derive(Debug)]
pub struct Recorder<I, O> {
    shared: Arc<Mutex<State<I, O>>>,
    signals: Signals,
}

#[derive(Debug)]
struct State<I, O> {
    history: History<I, O>,
    operations: usize,
}

impl<I, O> Clone for Recorder<I, O> {
    fn clone(&self) -> Self {
        Recorder { shared: Arc::clone(&self.shared), signals: self.signals.clone() }
    }
}

/// Room for the events of a usual run: memory that is not written costs nothing, and a history that grows is copied again and again.
const EVENTS_USUAL: usize = 16_384;

impl<I, O> Recorder<I, O> {
    /// An empty history. Node events also go to `signals`, as `NODE EVENT`, so that a fault may start after one.
    pub fn new(signals: &Signals) -> Recorder<I, O> {
        let history = History { events: Vec::with_capacity(EVENTS_USUAL) };
        let state = State { history, operations: 0 };
        Recorder { shared: Arc::new(Mutex::new(state)), signals: signals.clone() }
    }

    /// A client asks. The guard records how it ends.
    pub fn invoke(&self, client: &str, input: I) -> Pending<I, O> {
        let mut state = self.lock();
        let operation = OperationId(state.operations);
        state.operations += 1;
        state.push(What::Invoke { client: client.to_owned(), operation, input });
        drop(state);
        Pending { recorder: self.clone(), operation }
    }

    /// Something happened to a node.
    pub fn node(&self, node: &str, event: &str) {
        self.lock().push(What::Node { node: node.to_owned(), event: event.to_owned() });
        self.signals.occurred(&format!("{node} {event}"));
    }

    /// The signals given to [`new`](Self::new).
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// What was recorded so far, by a look that ends before it returns.
    pub fn look<T>(&self, look: impl FnOnce(&History<I, O>) -> T) -> T {
        look(&self.lock().history)
    }

    /// Takes the history out; what is recorded afterwards goes to an empty one.
    pub fn take(&self) -> History<I, O> {
        std::mem::take(&mut self.lock().history)
    }

    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        self.shared.lock().expect("no code that can panic runs under this lock")
    }
}

impl<I, O> State<I, O> {
    fn push(&mut self, what: What<I, O>) {
        self.history.events.push(Event { at: rt::world::elapsed(), what });
    }
}

/// An operation that has not ended. Dropped (its client died, or gave up), it stays without an end and counts as unknown.
#[derive(Debug)]
#[must_use = "an operation that is not ended counts as unknown"]
pub struct Pending<I, O> {
    recorder: Recorder<I, O>,
    operation: OperationId,
}

impl<I, O> Pending<I, O> {
    /// Its number.
    pub fn id(&self) -> OperationId {
        self.operation
    }

    /// It had its effect.
    pub fn ok(self, output: O) {
        self.recorder.lock().push(What::Ok { operation: self.operation, output });
    }

    /// It had no effect and never will.
    pub fn fail(self, reason: impl Into<String>) {
        self.recorder.lock().push(What::Fail { operation: self.operation, reason: reason.into() });
    }

    /// It may have had its effect, or may have it later.
    pub fn unknown(self, reason: impl Into<String>) {
        self.recorder.lock().push(What::Unknown { operation: self.operation, reason: reason.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, History, OperationId, Outcome, What};
    use insta::assert_snapshot;
    use std::time::Duration;

    fn history() -> History<&'static str, u32> {
        let steps = [
            What::Invoke { client: "c1".into(), operation: OperationId(0), input: "read" },
            What::Invoke { client: "c2".into(), operation: OperationId(1), input: "write" },
            What::Node { node: "a".into(), event: "power loss".into() },
            What::Unknown { operation: OperationId(1), reason: "time-out".into() },
            What::Ok { operation: OperationId(0), output: 7 },
            What::Invoke { client: "c2".into(), operation: OperationId(2), input: "write" },
            What::Fail { operation: OperationId(2), reason: "refused".into() },
            What::Invoke { client: "c1".into(), operation: OperationId(3), input: "read" },
        ];
        let at = |index: usize| Duration::from_millis(index as u64 * 250);
        History { events: steps.into_iter().enumerate().map(|(index, what)| Event { at: at(index), what }).collect() }
    }

    #[test]
    fn each_operation_finds_its_end() {
        let history = history();
        let outcomes: Vec<_> =
            history.operations().iter().map(|operation| (operation.id.0, operation.outcome)).collect();
        assert_eq!(
            outcomes,
            [(0, Outcome::Ok(&7)), (1, Outcome::Unknown), (2, Outcome::Fail("refused")), (3, Outcome::Unknown)]
        );
        assert_eq!(history.operations()[3].ended, None);
    }

    #[test]
    fn it_reads_as_a_log() {
        assert_snapshot!(history().to_text(), @r#"
            0.000000  #0     c1 op 0 asks "read"
            0.250000  #1     c2 op 1 asks "write"
            0.500000  #2     a: power loss
            0.750000  #3     op 1 unknown: time-out
            1.000000  #4     op 0 ok 7
            1.250000  #5     c2 op 2 asks "write"
            1.500000  #6     op 2 failed: refused
            1.750000  #7     c1 op 3 asks "read"
        "#);
    }
}
