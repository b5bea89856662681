//! I2, of transactions: a commit stores one final message, however often it is told and whoever tells it.
//!
//! A broker stores the final message and next to it in the log the op message that says that the half is decided. Only if it ends (crash,
//! power loss, fail-over to a slave that has no more) or cannot write between the two is the half open again after its return, and its
//! producer, asked, says the same once more. So in every durability mode the final messages of one send, at all masters, are no more than
//!
//! - one for each half that its attempts can have left (as of any message, see [`super::i2_no_excess_copies`]), and
//! - one more for each final message which another one follows at the same master although no op message stands between it and the next half
//!   or final message of the transaction; as many as the times that this master came back after the send.
//!
//! A lost suffix of the log (asynchronous flush) takes an op message with all that stands behind it: what is left says the same.

use crate::breach::{Breach, Subject};
use crate::evidence::{Evidence, sends};
use crate::invariant::i2_no_excess_copies::attempts_left;
use crate::kinds::Kind;
use crate::ledger::Ledger;
use crate::plan::{Plan, TOPIC};
use crate::transactions::has_transactions;
use std::collections::BTreeMap;

/// Stable name.
pub const NAME: &str = "I2 one final message";

/// What stands in a log of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Half,
    Final,
    Op,
}

/// The steps of each transaction, in the order of the log.
fn steps(ledger: &Ledger) -> BTreeMap<&str, BTreeMap<i64, Step>> {
    let mut steps: BTreeMap<&str, BTreeMap<i64, Step>> = BTreeMap::new();
    let mut halves: BTreeMap<i64, &str> = BTreeMap::new();
    for (offset, half) in ledger.halves() {
        halves.insert(offset, &half.key);
        steps.entry(&half.key).or_default().insert(half.physical, Step::Half);
    }
    for (half, at) in ledger.decided() {
        if let Some(key) = halves.get(&half) {
            steps.entry(key).or_default().insert(at, Step::Op);
        }
    }
    for entry in ledger.finals(TOPIC).filter(|entry| Kind::of(&entry.key).fate.is_some()) {
        steps.entry(&entry.key).or_default().insert(entry.physical, Step::Final);
    }
    steps
}

/// How many final messages there are, and how many of them another one follows that were not closed by their op message.
fn finals(steps: &BTreeMap<i64, Step>) -> (usize, usize) {
    let steps: Vec<Step> = steps.values().copied().collect();
    let places: Vec<usize> = (0..steps.len()).filter(|place| steps[*place] == Step::Final).collect();
    let followed = places.split_last().map_or(&[][..], |(_, followed)| followed);
    let is_open = |place: &&usize| steps[**place + 1] != Step::Op;
    (places.len(), followed.iter().filter(is_open).count())
}

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    if !has_transactions(plan) {
        return Vec::new();
    }
    let of = |(master, ledger): (&String, _)| (evidence.outages(master), steps(ledger));
    let masters: Vec<_> = evidence.ledgers.iter().map(of).collect();
    let mut violations = Vec::new();
    for send in sends(&evidence.history.operations()) {
        let (mut found, mut allowed) = (0, attempts_left(&send) as usize);
        for (outages, steps) in &masters {
            let Some(steps) = steps.get(send.key) else { continue };
            let (finals, open) = finals(steps);
            let asked_at = send.operation.invoked_at;
            let returns = outages.iter().filter(|outage| outage.from >= asked_at).count();
            found += finals;
            allowed += open.min(returns);
        }
        if found > allowed {
            let summary = format!("{} has {found} final messages; {allowed} were possible", send.key);
            let breach = Breach::of_message(send.key, summary);
            let masters = plan.cluster.masters().into_iter();
            violations.push(masters.fold(breach, |breach, master| breach.about(Subject::Lives(master))));
        }
    }
    violations
}
