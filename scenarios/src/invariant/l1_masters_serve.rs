//! L1: after the faults have stopped, each broker name has a master that takes messages with SEND_OK again.

use crate::breach::{Breach, Subject};
use crate::evidence::Snapshot;
use crate::plan::Plan;

/// Stable name.
pub const NAME: &str = "L1 masters serve";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let masters = plan.cluster.masters().into_iter();
    masters
        .filter(|master| !look.serving.contains(master))
        .map(|master| Breach::new(format!("{master} has not answered SEND_OK")).about(Subject::Lives(master)))
        .collect()
}
