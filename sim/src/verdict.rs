//! What a checker answers: the invariant that was violated, and the events that prove it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Position of an event in its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub usize);

/// One event of the history as evidence: where it stands, when it was, and one readable line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Position in the history.
    pub event: EventId,
    /// Virtual time since the start of the run.
    #[serde(with = "crate::duration")]
    pub at: Duration,
    /// The event, readable.
    pub text: String,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Short stable name of the invariant; shrinking keeps it, tables group by it.
    pub invariant: String,
    /// What happened, in one or two sentences with the names and numbers of this run.
    pub summary: String,
    /// The events that prove it, in order of time.
    pub evidence: Vec<Evidence>,
}

impl Violation {
    /// A violation without evidence yet.
    pub fn new(invariant: impl Into<String>, summary: impl Into<String>) -> Violation {
        Violation { invariant: invariant.into(), summary: summary.into(), evidence: Vec::new() }
    }

    /// What went wrong, without the numbers of this run and without what else went wrong: two violations with one cause are one finding.
    pub fn cause(&self) -> String {
        let first = self.summary.split(';').next().unwrap_or_default();
        let mut cause = String::with_capacity(first.len());
        for character in first.chars() {
            match character {
                digit if digit.is_ascii_digit() && cause.ends_with('#') => {}
                digit if digit.is_ascii_digit() => cause.push('#'),
                other => cause.push(other),
            }
        }
        cause
    }

    /// Whether both are one finding: the same invariant, violated by the same cause.
    pub fn is_like(&self, other: &Violation) -> bool {
        self.invariant == other.invariant && self.cause() == other.cause()
    }

    /// Adds the proving events, in order of time.
    #[must_use]
    pub fn because(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Violation {
        self.evidence.extend(evidence);
        self.evidence.sort_by_key(|proof| proof.event);
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {}", self.invariant, self.summary)?;
        for proof in &self.evidence {
            write!(out, "\n    {:>12}  #{:<5} {}", seconds(proof.at), proof.event.0, proof.text)?;
        }
        Ok(())
    }
}

/// Virtual time with a fixed number of digits, so that columns line up.
pub(crate) fn seconds(at: Duration) -> String {
    format!("{}.{:06}", at.as_secs(), at.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::Violation;

    #[test]
    fn one_cause_has_many_numbers_and_company() {
        let cause = |summary: &str| Violation::new("I1", summary).cause();
        assert_eq!(cause("p-1.0.34 is lost: offset 7 of queue 12; and 3 more"), "p-#.#.# is lost: offset # of queue #");
        assert_eq!(
            cause("p-2.0.5 is lost: offset 123 of queue 1"),
            cause("p-1.0.34 is lost: offset 7 of queue 12; broker-b waits")
        );
        assert_ne!(cause("a is lost"), cause("b is lost"));
    }
}
