//! The oracle: one property a file, named as in the literature of the project (I1 … I16, L1 … L4), each stated per durability mode
//! so that it says exactly what may be lost or repeated, and why.
//!
//! A *safety* invariant judges the evidence when the run is over. A *liveness* invariant says of one look at the cluster what is
//! still unmet; after the faults have healed the run goes on until nothing is unmet or the bound has passed.

use crate::breach::Breach;
use crate::evidence::{Evidence, Snapshot};
use crate::plan::Plan;
use sim::verdict::Violation;

pub mod i10_delay_progress;
pub mod i10_delayed_in_time;
pub mod i11_replicas_agree;
pub mod i13_routes_agree;
pub mod i14_no_end_without_a_cause;
pub mod i15_only_subscribed;
pub mod i16_only_expired_goes;
pub mod i1_acknowledged_survives;
pub mod i2_no_excess_copies;
pub mod i2_one_final_message;
pub mod i3_queue_order;
pub mod i4_committed_offsets;
pub mod i4_nothing_skipped;
pub mod i5_one_owner;
pub mod i6_comes_again;
pub mod i6_delivered_in_the_end;
pub mod i9_only_what_is_committed;
pub mod l1_masters_serve;
pub mod l2_replication_catches_up;
pub mod l3_queues_are_served;
pub mod l4_halves_are_resolved;

/// Judges a finished run.
pub type Judge = fn(&Plan, &Evidence) -> Vec<Breach>;
/// What is unmet at one look.
pub type Unmet = fn(&Plan, &Snapshot) -> Vec<Breach>;

/// More of what is unmet would hide what counts.
const SHOWN_MAX: usize = 5;

/// The safety invariants: stable name and judge.
pub const SAFETY: &[(&str, Judge)] = &[
    (i1_acknowledged_survives::NAME, i1_acknowledged_survives::judge),
    (i2_no_excess_copies::NAME, i2_no_excess_copies::judge),
    (i2_one_final_message::NAME, i2_one_final_message::judge),
    (i3_queue_order::NAME, i3_queue_order::judge),
    (i4_committed_offsets::NAME, i4_committed_offsets::judge),
    (i4_nothing_skipped::NAME, i4_nothing_skipped::judge),
    (i6_comes_again::NAME, i6_comes_again::judge),
    (i9_only_what_is_committed::NAME, i9_only_what_is_committed::judge),
    (i10_delayed_in_time::NAME, i10_delayed_in_time::judge),
    (i10_delay_progress::NAME, i10_delay_progress::judge),
    (i11_replicas_agree::NAME, i11_replicas_agree::judge),
    (i14_no_end_without_a_cause::NAME, i14_no_end_without_a_cause::judge),
    (i15_only_subscribed::NAME, i15_only_subscribed::judge),
    (i16_only_expired_goes::NAME, i16_only_expired_goes::judge),
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
    (l4_halves_are_resolved::NAME, l4_halves_are_resolved::unmet),
];

/// All violations of a run, safety first, in the order of the tables above.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Violation> {
    let history = &evidence.history;
    let mut violations = Vec::new();
    for (name, judge) in SAFETY {
        violations.extend(judge(plan, evidence).into_iter().map(|breach| breach.violates(name, history)));
    }
    for (name, _) in LIVENESS {
        let Some([first, others @ ..]) = evidence.unmet.get(name).map(Vec::as_slice) else { continue };
        let waited = evidence.ended_at.saturating_sub(evidence.healed_at).as_secs();
        let shown = others.iter().take(SHOWN_MAX - 1).map(|breach| format!("; {}", breach.summary)).collect::<String>();
        let hidden = (others.len() + 1).saturating_sub(SHOWN_MAX);
        let more = if hidden > 0 { format!("; and {hidden} more") } else { String::new() };
        let breach = first.clone().after(&format!("{waited} s after the faults were healed: "));
        violations.push(breach.and(&shown).and(&more).violates(name, history));
    }
    violations
}

#[cfg(test)]
mod tests;
