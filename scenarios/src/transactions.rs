//! Messages that are sent in a transaction. What becomes of one stands in its name, so whoever is asked knows it, and judges do:
//! `producer-1.0.17!c` is committed by its producer at once, `producer-1.0.18!r2` is rolled back by whoever is asked for the second time.

use crate::kinds::Kind;
use crate::operation::{Ask, Decision, Recorder, Told};
use crate::plan::{Operation, Plan};
use crate::producers::{message, note_failure, stored};
use client::{SendOutcome, TransactionListener, TransactionProducer, TransactionState};
use protocol::StoredMessage;
use protocol::message::property::TRANSACTION_CHECK_TIMES;
use remoting::BoxFuture;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// `transactionTimeOut` of the plans' brokers: shorter than RocketMQ's, so that producers are asked within a run.
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// `transactionCheckInterval`, shorter too.
pub const CHECK_EVERY: Duration = Duration::from_secs(3);
/// `transactionCheckMax`: more than any run has looks, so that none is given up.
pub const CHECKS_MAX: u32 = 1_000;
/// The group of the producers that send in transactions.
pub const GROUP: &str = "transactions";

/// After a broker's return a producer is known to it by its next heartbeat (30 s), to an address of its route by then.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// Whether it is committed; else it is rolled back.
    pub commits: bool,
    /// Decided when it is asked for so often; 0: by its producer, at once.
    pub asked: u32,
}

impl Fate {
    /// Of the text in a name; none if that is none.
    pub fn of(text: &str) -> Option<Fate> {
        let commits = text.starts_with('c');
        let asked = text.strip_prefix(['c', 'r'])?;
        Some(Fate { commits, asked: if asked.is_empty() { 0 } else { asked.parse().ok()? } })
    }

    /// What is said of it when it was asked for so often.
    pub fn said(self, asked: u32) -> Decision {
        match self.commits {
            _ if asked < self.asked => Decision::Unknown,
            true => Decision::Commit,
            false => Decision::RollBack,
        }
    }
}

impl Display for Fate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(if self.commits { "c" } else { "r" })?;
        if self.asked > 0 { write!(out, "{}", self.asked) } else { Ok(()) }
    }
}

fn as_state(decision: Decision) -> TransactionState {
    match decision {
        Decision::Commit => TransactionState::Commit,
        Decision::RollBack => TransactionState::RollBack,
        Decision::Unknown => TransactionState::Unknown,
    }
}

fn fates(plan: &Plan) -> impl Iterator<Item = Fate> + '_ {
    let fates = plan.operations.iter().filter_map(|operation| match operation {
        Operation::Send { kinds, .. } if kinds.batch < 2 => Some(&kinds.fates),
        _ => None,
    });
    fates.flatten().filter_map(|text| Fate::of(text))
}

/// Whether some messages of the plan are sent in a transaction.
pub fn has_transactions(plan: &Plan) -> bool {
    fates(plan).next().is_some()
}

/// How long after its send a transaction may be open: until its producer is known again, it has been asked for, and a look later.
pub fn open_max(plan: &Plan) -> Duration {
    let Some(asked) = fates(plan).map(|fate| fate.asked.max(1)).max() else { return Duration::ZERO };
    let local = plan.operations.iter().filter_map(|operation| match operation {
        Operation::Send { kinds, .. } => Some(kinds.local * 2),
        _ => None,
    });
    local.max().unwrap_or_default() + KNOWN_WITHIN + TIMEOUT + CHECK_EVERY * (asked + 2)
}

/// Sends one message in a transaction and records what is known of its half, and what the producer decides.
pub async fn send(
    producer: &TransactionProducer,
    client: &str,
    key: &str,
    body_bytes: u32,
    local: Duration,
    recorder: &Recorder,
) {
    let kind = Kind::of(key);
    let mut pending = Some(recorder.invoke(client, Ask::Send { key: key.to_owned() }));
    let run_local = |half: &SendOutcome| {
        if let Some(pending) = pending.take() {
            pending.ok(stored(half, true, kind, 0));
        }
        async move {
            rt::time::sleep(local).await;
            decide(client, key, 0, recorder)
        }
    };
    let result = producer.send(message(key, body_bytes), run_local).await;
    let Some(pending) = pending else { return };
    match result {
        Ok(outcome) => pending.ok(stored(&outcome.half, false, kind, 0)),
        Err(error) => note_failure(pending, &error),
    }
}

/// What its name says, once that is in the history: no broker can know it before.
fn decide(client: &str, key: &str, asked: u32, recorder: &Recorder) -> TransactionState {
    let decision = Kind::of(key).fate.map_or(Decision::Unknown, |fate| fate.said(asked));
    recorder.invoke(client, Ask::Decide { key: key.to_owned(), asked }).ok(Told::Decided(decision));
    as_state(decision)
}

/// Answers brokers that ask.
pub struct Teller {
    /// Its node.
    pub client: String,
    /// Where it records what it says.
    pub recorder: Recorder,
}

impl TransactionListener for Teller {
    fn check(&self, message: StoredMessage) -> BoxFuture<'static, TransactionState> {
        let key = message.properties.keys().next().unwrap_or_default();
        let asked = message.properties.get(TRANSACTION_CHECK_TIMES).and_then(|times| times.parse().ok()).unwrap_or(0);
        let state = decide(&self.client, key, asked, &self.recorder);
        Box::pin(async move { state })
    }
}

#[cfg(test)]
mod tests {
    use super::Fate;
    use crate::operation::Decision;

    #[test]
    fn a_name_says_what_becomes_of_its_transaction() {
        for (text, commits, asked) in [("c", true, 0), ("r", false, 0), ("c1", true, 1), ("r12", false, 12)] {
            let fate = Fate { commits, asked };
            assert_eq!((Fate::of(text), fate.to_string().as_str()), (Some(fate), text));
        }
        assert_eq!(["", "x", "cc", "1"].map(Fate::of), [None; 4]);
    }

    #[test]
    fn who_is_asked_says_it_in_the_end_and_keeps_saying_it() {
        let fate = Fate { commits: true, asked: 2 };
        assert_eq!([0, 1, 2, 3].map(|asked| fate.said(asked)), {
            use Decision::{Commit, Unknown};
            [Unknown, Unknown, Commit, Commit]
        });
        assert_eq!(Fate { commits: false, asked: 0 }.said(0), Decision::RollBack);
    }
}
