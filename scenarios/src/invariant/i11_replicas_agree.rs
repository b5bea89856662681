//! I11: a slave's log is byte for byte a prefix of its master's.
//!
//! Over the range that both have on disk at the end, no byte differs. (A slave that joined empty starts at the start of the master's
//! last file, so the copies need not start together.) A slave is never longer than its master once both have met: a suffix that the
//! master lost is either fetched back from the slave or cut there before another byte is appended. A slave whose disk was damaged is left
//! out: nobody reads its whole copy, so nobody finds each rotten bit.

use crate::breach::{Breach, Subject};
use crate::disk_losses;
use crate::evidence::{Evidence, slaves_of};
use crate::plan::Plan;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I11 replicas agree";

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for master in plan.cluster.masters() {
        let Some(log) = evidence.logs.get(&master) else { continue };
        let is_sound = |slave: &String| !disk_losses::is_damaged(&evidence.history, slave, Duration::MAX);
        for slave in slaves_of(&plan.cluster, &master).into_iter().filter(is_sound) {
            let Some(copy) = evidence.logs.get(&slave) else { continue };
            let summary = if let Some(offset) = log.first_difference(copy) {
                format!("{slave} and {master} hold different bytes at log offset {offset}")
            } else if copy.end() > log.end() {
                format!("{slave} ends at {}, behind its master's end {}", copy.end(), log.end())
            } else {
                continue;
            };
            violations.push(Breach::new(summary).about(Subject::Lives(slave)).about(Subject::Lives(master.clone())));
        }
    }
    violations
}
