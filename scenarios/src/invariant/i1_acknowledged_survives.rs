//! I1: no acknowledged message is lost.
//!
//! SEND_OK for a message *m* at time *t* promises that the master's queue holds *m* at its offset for ever, except
//!
//! | flush | replication before the answer | what may take *m* |
//! |---|---|---|
//! | sync | any | nothing |
//! | async | none | a power loss of the master within the flush window after *t*; and then everything above *m* in the log goes too |
//! | async | `inSyncReplicas` ≥ 2 | as above, and each slave lost power within its flush window after *t*, or its disk was damaged or replaced before the returning master could ask it |
//!
//! In every mode it may go with its segment when that has expired. What may go so is [`super::i16_only_expired_goes`]'s to say; here it counts
//! as held, and its queue as beginning with it, so each message that no removal took must be where it was.
//!
//! A weaker answer (flush or slave time-out) is as async flush without replication. So is any answer without `hotfireRecoverFromSlave`: by Apache's
//! rule a master that returns without its last records does not ask for them, and its slave's copy of them is cut or overwritten. The flush window is
//! `flushCommitLogThoroughInterval` (10 s) plus one flush and its wait; it grows by the time that a fault holds the disk.

use crate::breach::Breach;
use crate::disk_losses;
use crate::evidence::{Evidence, FLUSH_WINDOW, Send, Stored, sends, slaves_of};
use crate::faults::disk_held;
use crate::plan::{Flush, Plan};
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I1 acknowledged message survives";

/// A returning master has asked its slaves within that, or has not been able to.
const ASK_WINDOW: Duration = Duration::from_secs(30);

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let operations = evidence.history.operations();
    let sends = sends(&operations);
    let mut violations = Vec::new();
    for send in &sends {
        let Some(stored) = &send.stored else { continue };
        if evidence.holds(stored, send.key) {
            continue;
        }
        if let Err(reason) = may_be_lost(plan, evidence, &sends, stored) {
            let summary = format!(
                "{} was acknowledged as {} queue {} offset {} and is gone: {reason}",
                send.key, stored.queue.broker, stored.queue.id, stored.offset
            );
            violations.push(Breach::new(summary).of_events(send.operation.events()));
        }
    }
    violations
}

/// Whether the table above lets this message go; if not, why not.
fn may_be_lost(plan: &Plan, evidence: &Evidence, sends: &[Send<'_>], stored: &Stored<'_>) -> Result<(), String> {
    if plan.cluster.flush == Flush::Sync && stored.promised {
        return Err("it was synced before the answer".into());
    }
    let master = &stored.queue.broker;
    let Some(loss) = loss_within_window(plan, evidence, master, stored) else {
        return Err(format!("{master} did not lose power before its next sync"));
    };
    if stored.promised && plan.cluster.is_replicated_before_ack() && plan.cluster.recover_from_slave {
        let slaves = slaves_of(&plan.cluster, master);
        let back = evidence.outages(master).iter().find(|outage| outage.from == loss).and_then(|outage| outage.until);
        let asked_by = back.unwrap_or(loss) + ASK_WINDOW;
        let lost = |slave: &str| {
            loss_within_window(plan, evidence, slave, stored).is_some()
                || !disk_losses::keeps(&evidence.history, slave, stored.asked_at, asked_by)
        };
        if let Some(slave) = slaves.iter().find(|slave| !lost(slave)) {
            return Err(format!("{slave} had it and did not lose power before its next sync"));
        }
    }
    let survivor = sends.iter().find(|other| {
        other.stored.is_some_and(|other_stored| {
            other_stored.queue.broker == *master
                && other.operation.invoked_at > stored.at
                && other_stored.at < loss
                && evidence.holds(&other_stored, other.key)
        })
    });
    match survivor {
        Some(survivor) => Err(format!("{}, which stands above it in the log, survived", survivor.key)),
        None => Ok(()),
    }
}

/// The first power loss of a node that may have come before the sync of a message. The message was written between the producer's
/// question and its answer, which may have been on its way when the power went. A process that has ended syncs nothing: the time in
/// which none ran is not part of the window.
fn loss_within_window(plan: &Plan, evidence: &Evidence, node: &str, stored: &Stored<'_>) -> Option<Duration> {
    let window = FLUSH_WINDOW + disk_held(plan, node);
    let mut losses = evidence.power_losses(node).into_iter();
    losses.find(|loss| *loss >= stored.asked_at && evidence.time_alive(node, stored.at, *loss) <= window)
}
