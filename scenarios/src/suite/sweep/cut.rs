//! A master comes back shorter than its slave, and the slave ends at one exact point of its work since, the cut of its log among it.
//!
//! Asynchronous flush, and Apache's rule: the master does not ask for what it lost. The slave cuts its log to what both have, and from then
//! on nothing of the rest may come back: not its records, and not a claim that they are there. (The master cuts too: the torn end of what
//! the disk kept.) All records are of one length, so that each new one ends where an old one began, and what is left of old ones looks like
//! more of the log.

use super::{MASTER, SLAVE, Sweep, WARM_UP, between, sends, stage};
use crate::plan::{Cluster, Flush, Plan, Replication};
use sim::fault::Kind;
use sim::fault::crash::Crash;
use sim::fault::power_loss::PowerLoss;
use std::time::Duration;

/// The sweep.
pub static SWEEP: Sweep = Sweep {
    name: "a_slave_that_was_cut_stays_cut",
    claim: "wherever a slave ends that cuts its log to that of its master, its store opens again, and nothing of what was cut is in it",
    nodes: &[SLAVE],
    power: false,
    from: BACK,
    operations_drawn: 195,
    packets_drawn: 28,
    story,
    judge: None,
};

/// What makes a record as long as one of a probe, whose name has 8 letters more and whose body 60.
const BODY_BYTES: u32 = 68;
/// Names of the same length: ten messages a burst.
const BURST: u32 = 10;
const EVERY: Duration = Duration::from_millis(20);
/// The first burst is synced by then, and the next thorough flush comes at 50 s (`flushCommitLogThoroughInterval`, 10 s).
const LOST: Duration = Duration::from_secs(41);
/// Less than what is flushed before (`flushCommitLogLeastPages`, 4 pages).
const LOST_BURSTS: u32 = 5;
/// The slave's process ends. Once it is started again, what it has is synced, and its checkpoint says so.
const SLAVE_ENDS: Duration = Duration::from_secs(43);
/// The master loses what it had not synced.
const DARK: Duration = Duration::from_secs(46);
const BACK: Duration = Duration::from_secs(47);
/// The slave meets its master at once.
const SLAVE_STARTS: Duration = Duration::from_millis(47_500);
const DURATION: Duration = Duration::from_secs(54);

fn story() -> Plan {
    let mut plan = stage(Flush::Async, Replication::Async, 1, DURATION);
    // A disk may keep all of what was not synced; by this seed it does not.
    plan.schedule.seed = 2;
    plan.cluster = Cluster { segment_kib: 64, recover_from_slave: false, ..plan.cluster };
    plan.operations.push(sends(1, WARM_UP, BURST, EVERY, BODY_BYTES));
    let lost = (0..LOST_BURSTS).map(|burst| sends(1, LOST + EVERY * BURST * burst, BURST, EVERY, BODY_BYTES));
    plan.operations.extend(lost);
    plan.operations.push(sends(1, BACK + Duration::from_secs(1), BURST, EVERY, BODY_BYTES));
    plan.faults = vec![
        between(SLAVE_ENDS, SLAVE_STARTS, Kind::Crash(Crash { node: SLAVE.into() })),
        between(DARK, BACK, Kind::PowerLoss(PowerLoss { node: MASTER.into() })),
    ];
    plan
}
