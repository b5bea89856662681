//! The events that a verdict speaks of, where its judge has not named them: found by the names, places and times in its own words.

use crate::operation::{Ask, History, Queue, Told};
use crate::plan::Plan;
use sim::history::{Operation, Outcome, What};
use sim::verdict::{EventId, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// More would hide what counts.
const PROOFS_MAX: usize = 12;
/// What stands before a committed offset in a verdict; other numbers are counts.
const SAYS_AN_OFFSET: [&str; 6] = ["is", "shown", "shows", "committed", "offset", "have"];

/// Adds proofs to a violation that has none.
#[must_use]
pub fn proven(violation: Violation, plan: &Plan, history: &History) -> Violation {
    if !violation.evidence.is_empty() {
        return violation;
    }
    let words = Words::of(&violation.summary, plan);
    let operations = history.operations();
    let mut events = BTreeSet::new();
    events.extend(words.node_events(history));
    for operation in &operations {
        if words.names(operation) {
            events.extend(operation.events());
        }
    }
    events.extend(words.readings(&operations).into_iter().flat_map(|operation| operation.events().last()));
    let proofs = history.evidence(events.into_iter().take(PROOFS_MAX));
    violation.because(proofs)
}

/// What a sentence names.
#[derive(Debug, Default)]
struct Words<'a> {
    all: BTreeSet<&'a str>,
    queue: Option<Queue>,
    /// After `at`: `33.210 s`, in milliseconds.
    times: Vec<u128>,
    offsets: BTreeSet<i64>,
    /// Of a message.
    place: Option<i64>,
}

impl<'a> Words<'a> {
    fn of(summary: &'a str, plan: &Plan) -> Words<'a> {
        // One finding is enough: what follows is more of the same.
        let first = summary.split("; ").next().unwrap_or_default();
        let list: Vec<&str> =
            first.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')', '.'])).collect();
        let mut words = Words { all: list.iter().copied().collect(), ..Words::default() };
        let masters = plan.cluster.masters();
        for (place, pair) in list.windows(2).enumerate() {
            if let ("queue", Ok(id)) = (pair[0], pair[1].parse()) {
                let before = place.checked_sub(1).map(|before| list[before]);
                let named = masters.iter().find(|master| before == Some(master.as_str()));
                let broker = named.or(masters.first()).cloned().unwrap_or_default();
                words.queue.get_or_insert(Queue { broker, id });
            } else if let ("s", Some(milliseconds)) = (pair[1], milliseconds(pair[0])) {
                words.times.push(milliseconds);
            } else if SAYS_AN_OFFSET.contains(&pair[0])
                && let Ok(number) = pair[1].parse()
            {
                words.offsets.insert(number);
                words.place = words.place.or((pair[0] == "offset").then_some(number));
            }
        }
        words
    }

    fn is_time(&self, at: Duration) -> bool {
        // Printed times are rounded.
        let rounded = (at.as_micros() + 500) / 1_000;
        self.times.contains(&rounded)
    }

    /// Ends and starts at the times that are named.
    fn node_events(&self, history: &History) -> Vec<EventId> {
        let events = history.events.iter().enumerate();
        events
            .filter(|(_, event)| matches!(event.what, What::Node { .. }) && self.is_time(event.at))
            .map(|(place, _)| EventId(place))
            .collect()
    }

    /// A send or a delivery of a message that is named, by its key or by its place.
    fn names(&self, operation: &Operation<'_, Ask, Told>) -> bool {
        let stands_there =
            |queue: &Queue, offset: i64| self.queue.as_ref() == Some(queue) && self.place == Some(offset);
        let is_there = match (operation.input, &operation.outcome) {
            (Ask::Consume { queue, offset, .. }, _) | (_, Outcome::Ok(Told::Stored { queue, offset, .. })) => {
                stands_there(queue, *offset)
            }
            _ => false,
        };
        let is_named = match operation.input {
            Ask::Send { key } | Ask::Consume { key, .. } | Ask::ConsumeAgain { key, .. } => {
                self.all.contains(key.as_str())
            }
            Ask::ReadCommitted { .. } | Ask::ReadDelays { .. } => false,
        };
        is_named || is_there
    }

    /// The first time that each node showed one of the offsets for the queue, and what was read at a time that is named.
    fn readings<'o>(&self, operations: &'o [Operation<'o, Ask, Told>]) -> Vec<&'o Operation<'o, Ask, Told>> {
        let mut shown = BTreeSet::new();
        let mut readings = Vec::new();
        for operation in operations {
            let (Ask::ReadCommitted { node, queue, .. }, Outcome::Ok(Told::Committed(Some(offset)))) =
                (operation.input, &operation.outcome)
            else {
                continue;
            };
            let Some((_, at)) = operation.ended.filter(|_| self.queue.as_ref() == Some(queue)) else { continue };
            let is_first = self.offsets.contains(offset) && shown.insert((node, *offset));
            if is_first || self.is_time(at) {
                readings.push(operation);
            }
        }
        readings
    }
}

/// `33.210` as 33,210.
fn milliseconds(word: &str) -> Option<u128> {
    let (whole, part) = word.split_once('.')?;
    (part.len() == 3).then_some(())?;
    Some(whole.parse::<u128>().ok()? * 1_000 + part.parse::<u128>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::proven;
    use crate::draw;
    use crate::operation::{Ask, History, Queue, Told};
    use crate::plan::Plan;
    use proptest::strategy::Strategy;
    use sim::history::{Event, OperationId, What};
    use sim::verdict::Violation;
    use std::time::Duration;

    fn plan() -> Plan {
        sim::scenario::draw(&draw::fail_over_profile().boxed(), "proof", 1)
    }

    /// Committed offsets that nodes showed for queue 3 of the first master, around a crash; and one message.
    fn history() -> History {
        let queue = |id| Queue { broker: "broker-a".into(), id };
        let mut steps = Vec::new();
        let mut read = |at: u64, node: &str, id: i32, offset: i64| {
            let operation = OperationId(steps.len());
            let input = Ask::ReadCommitted { node: node.into(), group: "g".into(), queue: queue(id) };
            steps.push((at, What::Invoke { client: "observer".into(), operation, input }));
            steps.push((at + 1, What::Ok { operation, output: Told::Committed(Some(offset)) }));
        };
        read(1_000, "broker-a", 3, 98);
        read(2_000, "broker-a", 3, 98);
        read(3_000, "broker-a-slave-1", 3, 121);
        read(4_000, "broker-a", 2, 121);
        read(5_000, "broker-a", 3, 98);
        let operation = OperationId(steps.len());
        let input = Ask::Send { key: "p-1.2.3".into() };
        steps.push((2_500, What::Node { node: "broker-a".into(), event: "process ended".into() }));
        steps.push((5_500, What::Invoke { client: "producer-1".into(), operation, input }));
        let event = |(at, what)| Event { at: Duration::from_millis(at), what };
        History { events: steps.into_iter().map(event).collect() }
    }

    fn proofs(summary: &str) -> Vec<String> {
        let violation = proven(Violation::new("I4", summary), &plan(), &history());
        violation.evidence.into_iter().map(|proof| format!("{} {}", proof.at.as_millis(), proof.text)).collect()
    }

    #[test]
    fn a_verdict_gets_the_events_that_its_words_speak_of() {
        let summary = "g at broker-a queue 3: after the crash at 2.500 s the committed offset is 98 (read at 5.001 s), but a slave had shown 121 while it was away; and more of queue 2";
        assert_eq!(
            proofs(summary),
            [
                "1001 op 0 ok Committed(Some(98))",
                "3001 op 4 ok Committed(Some(121))",
                "5001 op 8 ok Committed(Some(98))",
                "2500 broker-a: process ended",
            ],
            "in the order of events"
        );
        assert_eq!(
            proofs("p-1.2.3 at queue 3 offset 7 was skipped"),
            ["5500 producer-1 op 10 asks Send { key: \"p-1.2.3\" }"]
        );
        assert_eq!(proofs("98 of 121 queues answer"), [""; 0], "counts are no offsets");
    }

    #[test]
    fn what_a_judge_named_stays() {
        let named = Violation::new("I4", "queue 3 shows 98").because(history().evidence([sim::verdict::EventId(0)]));
        assert_eq!(proven(named.clone(), &plan(), &history()), named);
    }
}
