//! The few events that tell the story of a violation: its proofs, and what stands near them in time and in meaning.

use super::{Ending, OperationLine, Recording};
use crate::verdict::{EventId, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// One line of the story.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) at: Duration,
    /// Its event of the history, which orders what happens at one time.
    pub(crate) event: EventId,
    pub(crate) text: String,
    pub(crate) proves: bool,
}

/// A story.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tale {
    /// In order of time.
    pub(crate) moments: Vec<Moment>,
    /// What the proofs are about.
    pub(crate) about: BTreeSet<String>,
}

/// Tells a run in about `count` lines; all proofs are among them.
pub(crate) fn telling(recording: &Recording, violations: &[Violation], count: usize) -> Tale {
    let proofs: BTreeSet<EventId> =
        violations.iter().flat_map(|violation| &violation.evidence).map(|proof| proof.event).collect();
    let times: Vec<Duration> =
        violations.iter().flat_map(|violation| &violation.evidence).map(|proof| proof.at).collect();
    let is_proof = |event: &EventId| proofs.contains(event);
    let proving =
        |operation: &&OperationLine| is_proof(&operation.events.0) || operation.events.1.as_ref().is_some_and(is_proof);
    let mut about: BTreeSet<String> =
        recording.operations.iter().filter(proving).flat_map(|operation| operation.about.clone()).collect();
    // A verdict without proofs still names what it is about.
    let named: BTreeSet<&str> = violations.iter().flat_map(|violation| words(&violation.summary)).collect();
    if about.is_empty() {
        let names = recording.operations.iter().flat_map(|operation| &operation.about);
        about.extend(names.filter(|name| named.contains(name.as_str())).cloned());
    }
    let distance = |at: Duration| times.iter().map(|time| time.abs_diff(at)).min().unwrap_or_default();
    let mut happened: Vec<(bool, Duration, Moment)> = Vec::new();
    for event in &recording.events {
        let text = format!("{}: {}", event.node, event.text);
        let moment = Moment { at: event.at, event: event.event, text, proves: is_proof(&event.event) };
        happened.push((!moment.proves, distance(event.at), moment));
    }
    let mut asked: Vec<(bool, Duration, Moment)> = Vec::new();
    for operation in &recording.operations {
        let common = operation.about.iter().filter(|name| about.contains(*name)).count();
        let proves = proving(&operation);
        if common == 0 && !proves {
            continue;
        }
        let at = operation.ended.unwrap_or(operation.asked);
        let event = operation.events.1.unwrap_or(operation.events.0);
        let far = distance(at) / u32::try_from(common.max(1)).expect("an operation is about few things");
        asked.push((!proves, far, Moment { at, event, text: operation.to_text(), proves }));
    }
    let mut moments = nearest(happened, count / 3);
    let left = count.saturating_sub(moments.len());
    moments.extend(nearest(asked, left));
    moments.sort();
    Tale { moments, about }
}

/// All that prove something, and of the others the nearest, `count` together if that is more.
fn nearest(mut ranked: Vec<(bool, Duration, Moment)>, count: usize) -> Vec<Moment> {
    ranked.sort();
    let proofs = ranked.iter().filter(|(is_other, ..)| !is_other).count();
    ranked.into_iter().take(count.max(proofs)).map(|(.., moment)| moment).collect()
}

/// The words of a sentence, without what stands around them.
fn words(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')']))
}

impl OperationLine {
    /// One line: who, what, and how it ended.
    pub(crate) fn to_text(&self) -> String {
        let OperationLine { client, ask, told, .. } = self;
        match (self.ending, self.ended) {
            (Ending::Ok, _) => format!("{client}: {ask} → {told}"),
            (Ending::Fail, _) => format!("{client}: {ask} → failed: {told}"),
            (Ending::Unknown, Some(_)) => format!("{client}: {ask} → unknown: {told}"),
            (Ending::Unknown, None) => format!("{client}: {ask} → no end"),
        }
    }
}

#[cfg(test)]
mod tests;
