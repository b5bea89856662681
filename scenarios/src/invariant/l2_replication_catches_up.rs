//! L2: replication goes forward when the link is up: each slave's log reaches its master's end. (What the end of a damaged
//! log is, its disk does not show.)

use crate::breach::{Breach, Subject};
use crate::evidence::{Snapshot, slaves_of};
use crate::plan::Plan;

/// Stable name.
pub const NAME: &str = "L2 replication catches up";

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let mut unmet = Vec::new();
    for master in plan.cluster.masters() {
        let end = look.log_ends.get(&master);
        let is_sound = |slave: &String| !look.damaged.contains(slave);
        for slave in slaves_of(&plan.cluster, &master).into_iter().filter(is_sound) {
            let slave_end = look.log_ends.get(&slave);
            if end.is_none() || slave_end != end {
                let summary = format!("{slave} ends at {slave_end:?}, {master} at {end:?}");
                unmet.push(Breach::new(summary).about(Subject::Lives(slave)).about(Subject::Lives(master.clone())));
            }
        }
    }
    unmet
}
