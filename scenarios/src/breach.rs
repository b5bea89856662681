//! What a judge says when a promise is broken: one sentence, and what it speaks of, so that the events that prove it can be shown.

use crate::evidence::{POWER_LOST, PROCESS_ENDED, STARTED, SYNC_FAILED};
use crate::operation::{Ask, History, Queue, Told};
use sim::history::{Operation, Outcome, What};
use sim::verdict::{EventId, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// More would hide what counts.
const PROOFS_MAX: usize = 12;

/// A broken promise in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// What happened, with the names and numbers of this run.
    pub summary: String,
    about: Vec<Subject>,
}

/// Something that a sentence speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// An event that the judge has at hand.
    Event(EventId),
    /// A message, by its key: sent and delivered.
    Message(String),
    /// What was stored at an offset of a queue, or delivered from there.
    Place(Queue, i64),
    /// What the observer read at a time as committed.
    Reading {
        /// The node that was asked.
        node: String,
        /// The group.
        group: String,
        /// The queue.
        queue: Queue,
        /// When the answer came.
        at: Duration,
    },
    /// The first time that a node showed an offset as committed.
    FirstShown {
        /// The node that was asked.
        node: String,
        /// The group.
        group: String,
        /// The queue.
        queue: Queue,
        /// The offset.
        offset: i64,
    },
    /// The delay offsets that the observer read at a node at a time.
    DelaysRead(String, Duration),
    /// A node's ends and starts.
    Lives(String),
}

impl Breach {
    /// A sentence about a message.
    pub fn of_message(key: &str, summary: String) -> Breach {
        Breach::new(summary).about(Subject::Message(key.to_owned()))
    }

    /// A sentence that speaks of nothing yet.
    pub fn new(summary: impl Into<String>) -> Breach {
        Breach { summary: summary.into(), about: Vec::new() }
    }

    /// It speaks of that too.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Breach {
        self.about.push(subject);
        self
    }

    /// It speaks of these events too.
    #[must_use]
    pub fn of_events(mut self, events: impl IntoIterator<Item = EventId>) -> Breach {
        self.about.extend(events.into_iter().map(Subject::Event));
        self
    }

    /// The sentence goes on.
    #[must_use]
    pub fn and(mut self, words: &str) -> Breach {
        self.summary.push_str(words);
        self
    }

    /// Something stands before the sentence.
    #[must_use]
    pub fn after(mut self, words: &str) -> Breach {
        self.summary.insert_str(0, words);
        self
    }

    /// The violation of an invariant, with the events that prove it.
    pub fn violates(self, invariant: &str, history: &History) -> Violation {
        let proofs = history.evidence(self.events(history).into_iter().take(PROOFS_MAX));
        Violation::new(invariant, self.summary).because(proofs)
    }

    fn events(&self, history: &History) -> BTreeSet<EventId> {
        let operations = history.operations();
        let of = |subject: &Subject| -> Vec<EventId> {
            let both_ends = |operation: &Operation<'_, Ask, Told>| operation.events().collect::<Vec<_>>();
            let answers = |asked: Ask, is_meant: &dyn Fn(Duration, &Told) -> bool| {
                let answered = operations.iter().filter(|operation| *operation.input == asked);
                let answered = answered.filter_map(|operation| Some((operation.outcome.ok()?, operation.ended?)));
                let meant = answered.filter(|(told, (_, at))| is_meant(*at, told)).map(|(_, (event, _))| event);
                meant.collect::<Vec<EventId>>()
            };
            match subject {
                Subject::Event(event) => vec![*event],
                Subject::Message(key) => {
                    operations.iter().filter(|operation| is_of(operation, key)).flat_map(both_ends).collect()
                }
                Subject::Place(queue, offset) => {
                    let there = operations.iter().filter(|operation| stands_at(operation, queue, *offset));
                    there.flat_map(both_ends).collect()
                }
                Subject::Reading { node, group, queue, at } => {
                    let asked = Ask::ReadCommitted { node: node.clone(), group: group.clone(), queue: queue.clone() };
                    answers(asked, &|when, _| when == *at)
                }
                Subject::FirstShown { node, group, queue, offset } => {
                    let asked = Ask::ReadCommitted { node: node.clone(), group: group.clone(), queue: queue.clone() };
                    let shown = answers(asked, &|_, told| *told == Told::Committed(Some(*offset)));
                    shown.into_iter().take(1).collect()
                }
                Subject::DelaysRead(node, at) => {
                    answers(Ask::ReadDelays { node: node.clone() }, &|when, _| when == *at)
                }
                Subject::Lives(node) => lives(history, node),
            }
        };
        self.about.iter().flat_map(of).collect()
    }
}

impl From<String> for Breach {
    fn from(summary: String) -> Breach {
        Breach::new(summary)
    }
}

impl From<&str> for Breach {
    fn from(summary: &str) -> Breach {
        Breach::new(summary)
    }
}

fn is_of(operation: &Operation<'_, Ask, Told>, wanted: &str) -> bool {
    match operation.input {
        Ask::Send { key } | Ask::Consume { key, .. } | Ask::ConsumeAgain { key, .. } | Ask::Decide { key, .. } => {
            key == wanted
        }
        Ask::ReadCommitted { .. } | Ask::ReadDelays { .. } => false,
    }
}

fn stands_at(operation: &Operation<'_, Ask, Told>, wanted: &Queue, place: i64) -> bool {
    match (operation.input, &operation.outcome) {
        (Ask::Consume { queue, offset, .. }, _) | (_, Outcome::Ok(Told::Stored { queue, offset, .. })) => {
            queue == wanted && *offset == place
        }
        _ => false,
    }
}

fn lives(history: &History, node: &str) -> Vec<EventId> {
    let is_end_or_start = |what: &str| [STARTED, PROCESS_ENDED, POWER_LOST, SYNC_FAILED].contains(&what);
    let events = history.events.iter().enumerate().filter(
        |(_, event)| matches!(&event.what, What::Node { node: of, event } if of == node && is_end_or_start(event)),
    );
    events.map(|(place, _)| EventId(place)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Breach, Subject};
    use crate::operation::{Ask, History, Queue, Told};
    use sim::history::{Event, OperationId, What};
    use std::time::Duration;

    fn queue(id: i32) -> Queue {
        Queue { broker: "broker-a".into(), id }
    }

    /// Committed offsets that nodes showed, around a crash; a message, sent and delivered.
    fn history() -> History {
        let mut steps = Vec::new();
        let mut operation = |at: u64, client: &str, input: Ask, output: Told| {
            let operation = OperationId(steps.len());
            steps.push((at, What::Invoke { client: client.into(), operation, input }));
            steps.push((at + 1, What::Ok { operation, output }));
        };
        for (at, node, id, offset) in [
            (1_000, "broker-a", 3, 98),
            (2_000, "broker-a", 3, 98),
            (3_000, "broker-a-slave-1", 3, 121),
            (4_000, "broker-a", 2, 98),
            (5_000, "broker-a", 3, 98),
        ] {
            let input = Ask::ReadCommitted { node: node.into(), group: "g".into(), queue: queue(id) };
            operation(at, "observer", input, Told::Committed(Some(offset)));
        }
        let stored = Told::Stored { queue: queue(3), offset: 7, promised: true, other_copies_max: 0 };
        operation(5_500, "producer-1", Ask::Send { key: "m".into() }, stored);
        let (group, key) = ("g".into(), "m".into());
        let input = Ask::Consume { group, queue: queue(3), offset: 7, key, reconsume_times: 0 };
        operation(6_000, "consumer-1", input, Told::Consumed);
        for (at, node, event) in [(2_500, "broker-a", "process ended"), (2_600, "broker-a", "said something")] {
            steps.push((at, What::Node { node: node.into(), event: event.into() }));
        }
        let event = |(at, what)| Event { at: Duration::from_millis(at), what };
        History { events: steps.into_iter().map(event).collect() }
    }

    fn proofs(subject: Subject) -> Vec<u128> {
        let violation = Breach::new("it broke").about(subject).violates("I4", &history());
        violation.evidence.into_iter().map(|proof| proof.at.as_millis()).collect()
    }

    #[test]
    fn each_subject_has_its_events() {
        let (node, group, queue_3) = (|| "broker-a".to_owned(), || "g".to_owned(), || queue(3));
        let message = [5_500, 5_501, 6_000, 6_001];
        assert_eq!(proofs(Subject::Message("m".into())), message);
        assert_eq!(proofs(Subject::Place(queue(3), 7)), message);
        assert_eq!(proofs(Subject::Place(queue(2), 7)), [0; 0]);
        assert_eq!(proofs(Subject::Lives(node())), [2_500]);
        let at = Duration::from_millis(2_001);
        assert_eq!(proofs(Subject::Reading { node: node(), group: group(), queue: queue_3(), at }), [2_001]);
        let first_shown =
            |offset| proofs(Subject::FirstShown { node: node(), group: group(), queue: queue_3(), offset });
        assert_eq!(first_shown(98), [1_001]);
        assert_eq!(first_shown(121), [0; 0], "another node showed it");
    }

    #[test]
    fn the_events_stand_in_order_and_each_once() {
        let breach = Breach::of_message("m", "it".into()).after("so ").and(" broke").about(Subject::Place(queue(3), 7));
        let violation = breach.about(Subject::Lives("broker-a".into())).violates("I4", &history());
        assert_eq!(violation.summary, "so it broke");
        assert_eq!(violation.evidence.len(), 5);
        assert!(violation.evidence.is_sorted_by_key(|proof| proof.event));
    }
}
