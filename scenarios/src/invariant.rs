//! The oracle: one property a file, named as in the literature of the project (I1 … I15, L1 … L3), each stated per durability mode
//! so that it says exactly what may be lost or repeated, and why.
//!
//! A *safety* invariant judges the evidence when the run is over. A *liveness* invariant says of one look at the cluster what is
//! still unmet; after the faults have healed the run goes on until nothing is unmet or the bound has passed.

use crate::evidence::{Evidence, Snapshot};
use crate::plan::Plan;
use sim::verdict::Violation;

pub mod i10_delay_progress;
pub mod i10_delayed_in_time;
pub mod i11_replicas_agree;
pub mod i13_routes_agree;
pub mod i14_no_end_without_a_cause;
pub mod i15_only_subscribed;
pub mod i1_acknowledged_survives;
pub mod i2_no_excess_copies;
pub mod i3_queue_order;
pub mod i4_committed_offsets;
pub mod i4_nothing_skipped;
pub mod i5_one_owner;
pub mod i6_comes_again;
pub mod i6_delivered_in_the_end;
pub mod l1_masters_serve;
pub mod l2_replication_catches_up;
pub mod l3_queues_are_served;

/// Judges a finished run.
pub type Judge = fn(&Plan, &Evidence) -> Vec<Violation>;
/// What is unmet at one look.
pub type Unmet = fn(&Plan, &Snapshot) -> Vec<String>;

/// The safety invariants: stable name and judge.
pub const SAFETY: &[(&str, Judge)] = &[
    (i1_acknowledged_survives::NAME, i1_acknowledged_survives::judge),
    (i2_no_excess_copies::NAME, i2_no_excess_copies::judge),
    (i3_queue_order::NAME, i3_queue_order::judge),
    (i4_committed_offsets::NAME, i4_committed_offsets::judge),
    (i4_nothing_skipped::NAME, i4_nothing_skipped::judge),
    (i6_comes_again::NAME, i6_comes_again::judge),
    (i10_delayed_in_time::NAME, i10_delayed_in_time::judge),
    (i10_delay_progress::NAME, i10_delay_progress::judge),
    (i11_replicas_agree::NAME, i11_replicas_agree::judge),
    (i14_no_end_without_a_cause::NAME, i14_no_end_without_a_cause::judge),
    (i15_only_subscribed::NAME, i15_only_subscribed::judge),
];

/// The liveness invariants: stable name and what is unmet.
pub const LIVENESS: &[(&str, Unmet)] = &[
    (l1_masters_serve::NAME, l1_masters_serve::unmet),
    (i13_routes_agree::NAME, i13_routes_agree::unmet),
    (i5_one_owner::NAME, i5_one_owner::unmet),
    (l2_replication_catches_up::NAME, l2_replication_catches_up::unmet),
    (l3_queues_are_served::NAME, l3_queues_are_served::unmet),
    (i6_delivered_in_the_end::NAME, i6_delivered_in_the_end::unmet),
    (i10_delayed_in_time::NAME, i10_delayed_in_time::unmet),
    (i10_delay_progress::NAME, i10_delay_progress::unmet),
];

/// All violations of a run, safety first, in the order of the tables above.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Violation> {
    let mut violations: Vec<Violation> = SAFETY.iter().flat_map(|(_, judge)| judge(plan, evidence)).collect();
    for (name, _) in LIVENESS {
        let Some(unmet) = evidence.unmet.get(name).filter(|unmet| !unmet.is_empty()) else { continue };
        let waited = evidence.ended_at.saturating_sub(evidence.healed_at).as_secs();
        let shown = unmet.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
        let more = if unmet.len() > 5 { format!("; and {} more", unmet.len() - 5) } else { String::new() };
        violations.push(Violation::new(*name, format!("{waited} s after the faults were healed: {shown}{more}")));
    }
    violations
}

#[cfg(test)]
mod tests;
