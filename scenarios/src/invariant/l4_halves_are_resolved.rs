//! L4: each half message is resolved, and its rooms are left behind.
//!
//! After the faults have stopped, at each master, in every durability mode and whatever was lost:
//!
//! - an op message says of each half message of the log that it is decided. None is given up: the brokers of a plan may ask more often than a
//!   run has time for;
//! - a half whose producers say commit has a final message behind it. Only one that was stored with less than SEND_OK need not: its producer
//!   rolls it back without asking the program, or, if that is not heard, says commit when it is asked. That the final message comes to its
//!   readers is [`super::i6_delivered_in_the_end`];
//! - the committed offsets of `CID_RMQ_SYS_TRANS` are at the ends of both queues, so neither grows any more, and a restart reads none of it
//!   again. A slave's copy follows.

use crate::breach::{Breach, Subject};
use crate::evidence::{Snapshot, slaves_of};
use crate::plan::Plan;
use crate::transactions::has_transactions;

/// Stable name.
pub const NAME: &str = "L4 halves are resolved";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let Some(kinds) = look.kinds.as_ref().filter(|_| has_transactions(plan)) else { return Vec::new() };
    let mut unmet = kinds.open_transactions.clone();
    for master in plan.cluster.masters() {
        let end = kinds.transaction_ends.get(&master);
        for node in slaves_of(&plan.cluster, &master).into_iter().chain([master]) {
            let done = kinds.transactions.get(&node);
            if end.is_none() || done != end {
                let summary = format!("halves and ops end at {end:?}, and {node} is done with them up to {done:?}");
                unmet.push(Breach::new(summary).about(Subject::Lives(node)));
            }
        }
    }
    unmet
}
