//! One send sequence, sync-flush and sync-replicated, whose master or slave ends at one exact point of its work.

use super::{MASTER, SLAVE, Sweep, WARM_UP, sends, stage};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::plan::{Flush, Plan, Replication};
use std::time::Duration;

/// The sweep.
pub static SWEEP: Sweep = Sweep {
    name: "no_crash_point_loses_an_acknowledged_message",
    claim: "wherever in a synced, replicated sequence of sends a broker ends, each acknowledged message stays and its store opens again",
    nodes: &[MASTER, SLAVE],
    power: false,
    from: WARM_UP,
    operations_drawn: 200,
    packets_drawn: 200,
    story,
    judge: Some(each_is_at_both),
};

/// Messages of the sequence.
const MESSAGES: u32 = 60;
const EVERY: Duration = Duration::from_millis(40);
/// The node stays down until the sequence is over.
const DURATION: Duration = Duration::from_secs(42);

fn story() -> Plan {
    let mut plan = stage(Flush::Sync, Replication::Sync { in_sync_replicas: 2 }, 1, DURATION);
    plan.operations.push(sends(1, WARM_UP, MESSAGES, EVERY, 100));
    plan
}

/// The invariants say that each acknowledged message is at the master; here also that the logs of both are the same to the end.
fn each_is_at_both(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (master, slave) = (&evidence.logs[MASTER], &evidence.logs[SLAVE]);
    if master.end() != slave.end() {
        let summary = format!("the master's log ends at {}, its slave's at {}", master.end(), slave.end());
        return Err(Breach::new(summary));
    }
    Ok(())
}
