//! I16: only what has expired is removed, and only when nobody needs it any more. What was removed so is not lost: the other
//! invariants take a log together with what was removed from it, and excuse a group that finds a message gone only if it is this
//! kind of gone.
//!
//! A broker may remove the oldest segment of its log if
//!
//! - the last message in it was stored `hotfireFileReservedTime` ago or longer, by the store time in the record and the clock of the broker
//!   that removes it, wherever faults have set that clock (what was copied keeps its age);
//! - it is the hour for it (`deleteWhen`), or an operator has asked, or a fault has filled the disk: that lets segments go at any hour,
//!   but not before their time, for plans run with `cleanFileForciblyEnable` off;
//! - each of its slaves that has a log at all has the segment, be it connected or away (`hotfireSlaveRetainTime` is a day), whoever was
//!   restarted in the meantime;
//! - each message in it that waits for a delay level or a timer has been delivered, at a slave too: it may have to stand in for its
//!   master.
//!
//! Durability: in every mode. Without retention in the plan nothing may be removed.

use crate::breach::{Breach, Subject};
use crate::evidence::Evidence;
use crate::expiry::{REMOVAL_ASKED, Removal};
use crate::plan::{Plan, Retention};
use sim::fault::Kind;
use sim::history::What;

/// Stable name.
pub const NAME: &str = "I16 only what has expired goes";

/// Store times are whole milliseconds, and so is the time from look to look.
const ROUNDING_MS: i64 = 2;

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for removal in &evidence.removals {
        let Some(reason) = reason_to_stay(plan, evidence, removal) else { continue };
        let Removal { node, start, end, by, .. } = removal;
        let summary =
            format!("{node} removed its log from {start} to {end} by {:.3} s, although {reason}", by.as_secs_f64());
        let breach = Breach::new(summary).about(Subject::Lives(node.clone()));
        let messages = removal.undelivered.iter().map(|key| Subject::Message(key.clone()));
        violations.push(messages.fold(breach, Breach::about));
    }
    violations
}

fn reason_to_stay(plan: &Plan, evidence: &Evidence, removal: &Removal) -> Option<String> {
    let Some(retention) = plan.cluster.retention else { return Some("nothing expires within a run".into()) };
    let reserved_ms = i64::try_from(retention.reserved.as_millis()).expect("a run is short");
    let newest_ms = removal.newest_ms.unwrap_or(i64::MIN);
    let age_ms = (removal.clock_ms + clock_ahead_ms(plan, evidence, removal)).saturating_sub(newest_ms);
    if age_ms + ROUNDING_MS < reserved_ms {
        return Some(format!("its last message was {age_ms} ms old; {reserved_ms} are reserved"));
    }
    if !may_remove_now(plan, evidence, &retention, removal) {
        return Some("it was not the hour, and nobody had asked".into());
    }
    if let Some((slave, slave_end)) = removal.slave_ends.iter().find(|(_, slave_end)| **slave_end < removal.end) {
        return Some(format!("{slave} has the log up to {slave_end} only"));
    }
    let waits = removal.undelivered.first()?;
    Some(format!("{waits} was not delivered"))
}

/// How much further the node's clock may have been between the two looks than at both of them, because a fault began and ended.
fn clock_ahead_ms(plan: &Plan, evidence: &Evidence, removal: &Removal) -> i64 {
    let steps = plan.faults.iter().filter_map(|fault| match &fault.fault {
        Kind::ClockStep(step) if step.node == removal.node && !step.back => Some((fault, step.by)),
        _ => None,
    });
    let between = |at: std::time::Duration| (removal.after..=removal.by).contains(&at);
    let ahead = steps
        .filter(|(fault, _)| evidence.fault_times(fault).iter().any(|(begin, end)| between(*begin) && between(*end)))
        .map(|(_, by)| i64::try_from(by.as_millis()).expect("a step is short"));
    ahead.sum()
}

fn may_remove_now(plan: &Plan, evidence: &Evidence, retention: &Retention, removal: &Removal) -> bool {
    let is_asked = || {
        let mut before = evidence.history.events.iter().take_while(|event| event.at <= removal.by);
        before.any(|event| {
            matches!(&event.what, What::Node { node, event } if *node == removal.node && event == REMOVAL_ASKED)
        })
    };
    let fills_disk = || {
        plan.faults.iter().any(|fault| {
            matches!(fault.fault, Kind::DiskFull(_) | Kind::Quota(_))
                && fault.fault.nodes().contains(&removal.node.as_str())
        })
    };
    retention.at_any_hour || is_asked() || fills_disk()
}
