//! I9: a half message, or one that was rolled back, is never seen.
//!
//! In every durability mode, whatever ends and whatever is lost: as long as no producer has decided to commit a transaction,
//!
//! - its message is given to no listener, from the topic or from a retry topic;
//! - the log of no broker node, master or slave, has a record of it anywhere but among the half messages.
//!
//! A producer's decision is in the history before the broker can hear of it. What happens after a commit is not this invariant's: a message
//! that was committed once is never rolled back, because all that are asked say the same.

use crate::breach::{Breach, Subject};
use crate::evidence::Evidence;
use crate::kinds::Kind;
use crate::ledger::{HALF_TOPIC, Ledger};
use crate::operation::{Ask, Decision, Told};
use crate::plan::Plan;
use crate::transactions::has_transactions;
use sim::history::{Operation, Outcome};
use sim::verdict::EventId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Stable name.
pub const NAME: &str = "I9 only what is committed is seen";

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    if !has_transactions(plan) {
        return Vec::new();
    }
    let operations = evidence.history.operations();
    let committed = committed(&operations);
    let mut violations = given_early(&operations, &committed);
    let slaves = evidence.logs.iter().filter(|(node, _)| !evidence.ledgers.contains_key(*node));
    let slaves = slaves.map(|(node, log)| (node, Cow::Owned(Ledger::of(log.clone()))));
    let masters = evidence.ledgers.iter().map(|(node, ledger)| (node, Cow::Borrowed(ledger)));
    for (node, ledger) in masters.chain(slaves) {
        violations.extend(stored_early(node, &ledger, &committed));
    }
    violations
}

/// When each transaction was first decided to be committed.
fn committed<'a>(operations: &[Operation<'a, Ask, Told>]) -> BTreeMap<&'a str, EventId> {
    let mut committed: BTreeMap<&str, EventId> = BTreeMap::new();
    for operation in operations {
        if let (Ask::Decide { key, .. }, Outcome::Ok(Told::Decided(Decision::Commit))) =
            (operation.input, &operation.outcome)
        {
            let first = committed.entry(key).or_insert(operation.invoked);
            *first = operation.invoked.min(*first);
        }
    }
    committed
}

fn given_early(operations: &[Operation<'_, Ask, Told>], committed: &BTreeMap<&str, EventId>) -> Vec<Breach> {
    let mut violations = Vec::new();
    for operation in operations {
        let (Ask::Consume { key, queue, offset, .. } | Ask::ConsumeAgain { key, queue, offset, .. }) = operation.input
        else {
            continue;
        };
        let is_half = committed.get(key.as_str()).is_none_or(|decided| *decided > operation.invoked);
        if Kind::of(key).fate.is_some() && is_half {
            let summary = format!(
                "{key} of {} queue {} offset {offset} was given to {}, and nobody had committed it",
                queue.broker, queue.id, operation.client
            );
            violations.push(Breach::new(summary).of_events(operation.events()));
        }
    }
    violations
}

fn stored_early(node: &str, ledger: &Ledger, committed: &BTreeMap<&str, EventId>) -> Vec<Breach> {
    let mut violations = Vec::new();
    for (topic, entry) in ledger.all() {
        let key = entry.key.as_str();
        if topic != HALF_TOPIC && Kind::of(key).fate.is_some() && !committed.contains_key(key) {
            let at = entry.physical;
            let summary = format!("{key} is in {topic} at {node} log offset {at}, and nobody has committed it");
            violations.push(Breach::of_message(key, summary).about(Subject::Lives(node.to_owned())));
        }
    }
    violations
}
