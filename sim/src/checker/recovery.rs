//! Bounded recovery: once the faults have healed, the system serves again within a stated time.

use crate::verdict::EventId;
use std::fmt;
use std::time::Duration;

/// A service was asked and answered (or not), as a client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// When it was made.
    pub invoked_at: Duration,
    /// When it succeeded; none for a failure or an unknown end.
    pub served_at: Option<Duration>,
    /// The proof.
    pub event: EventId,
}

/// Why the bound was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Late {
    /// Nobody asked after the healing, or all who asked did so before the bound had passed without an answer due yet: the run was
    /// too short to judge, which is a fault of the scenario.
    NotTried,
    /// The first success came after the bound.
    First {
        /// How long after the healing.
        after: Duration,
        /// The proof.
        event: EventId,
    },
    /// No attempt succeeded; the proofs are all attempts after the healing.
    Never {
        /// The proofs.
        events: Vec<EventId>,
    },
    /// Once the bound had passed, this attempt still failed.
    Again {
        /// How long after the healing it was made.
        after: Duration,
        /// The proof.
        event: EventId,
    },
}

impl Late {
    /// The proofs, a few.
    pub fn events(&self) -> Vec<EventId> {
        match self {
            Late::NotTried => Vec::new(),
            Late::First { event, .. } | Late::Again { event, .. } => vec![*event],
            Late::Never { events } => events.iter().take(1).chain(events.last()).copied().collect(),
        }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = crate::duration::format;
        match self {
            Late::NotTried => {
                write!(out, "nobody tried for as long as the bound after the healing: the run is too short to judge")
            }
            Late::First { after, .. } => write!(out, "the first success came {} after the healing", text(*after)),
            Late::Never { events } => write!(out, "none of {} attempts after the healing succeeded", events.len()),
            Late::Again { after, .. } => write!(out, "an attempt made {} after the healing failed", text(*after)),
        }
    }
}

/// The first attempt to succeed must do so by `healed_at + bound`, and every attempt made later must succeed.
pub fn check(healed_at: Duration, bound: Duration, attempts: &[Attempt]) -> Result<Duration, Late> {
    let due = healed_at + bound;
    let later: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.invoked_at >= healed_at).collect();
    let Some(first) = later.iter().filter_map(|attempt| Some((attempt.served_at?, attempt.event))).min() else {
        let judged = later.iter().any(|attempt| attempt.invoked_at >= due);
        let events = later.iter().map(|attempt| attempt.event).collect();
        return Err(if judged { Late::Never { events } } else { Late::NotTried });
    };
    let after = first.0 - healed_at;
    if first.0 > due {
        return Err(Late::First { after, event: first.1 });
    }
    match later.iter().find(|attempt| attempt.invoked_at >= due && attempt.served_at.is_none()) {
        Some(attempt) => Err(Late::Again { after: attempt.invoked_at - healed_at, event: attempt.event }),
        None => Ok(after),
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, Late, check};
    use crate::verdict::EventId;
    use std::time::Duration;

    /// Attempts as (invoked, served) in seconds; the system heals at 10 and has 5 seconds.
    fn verdict(attempts: &[(u64, Option<u64>)]) -> Result<u64, Late> {
        let attempt = |(index, (invoked, served)): (usize, &(u64, Option<u64>))| Attempt {
            invoked_at: Duration::from_secs(*invoked),
            served_at: served.map(Duration::from_secs),
            event: EventId(index),
        };
        let attempts: Vec<_> = attempts.iter().enumerate().map(attempt).collect();
        check(Duration::from_secs(10), Duration::from_secs(5), &attempts).map(|after| after.as_secs())
    }

    #[test]
    fn within_the_bound() {
        assert_eq!(verdict(&[(3, None), (11, None), (13, Some(14)), (16, Some(17))]), Ok(4));
        assert_eq!(
            verdict(&[(10, Some(10)), (12, None), (15, Some(16))]),
            Ok(0),
            "failures inside the bound are forgiven"
        );
    }

    #[test]
    fn too_late_never_or_not_lasting() {
        assert_eq!(
            verdict(&[(11, None), (15, Some(16))]),
            Err(Late::First { after: Duration::from_secs(6), event: EventId(1) })
        );
        assert_eq!(verdict(&[(11, None), (20, None)]), Err(Late::Never { events: vec![EventId(0), EventId(1)] }));
        assert_eq!(
            verdict(&[(11, Some(12)), (20, None)]),
            Err(Late::Again { after: Duration::from_secs(10), event: EventId(1) })
        );
    }

    #[test]
    fn a_run_that_ends_too_early_proves_nothing() {
        assert_eq!(verdict(&[(3, Some(4)), (11, None)]), Err(Late::NotTried));
        assert_eq!(verdict(&[]), Err(Late::NotTried));
    }
}
