//! Many queues that get one message each, around the sync of all queues that comes once a minute.
//!
//! A queue that gets another message shows that entries before it are missing, and recovery makes them anew from the log. So what the
//! checkpoint claims wrongly is seen only in a queue that is silent since: here each one is. The disk stands still while the sync of the
//! queues is on, so that messages come in the middle of it.

use super::{MASTER, Sweep, between, sends, stage};
use crate::plan::{Cluster, Flush, Plan, Replication};
use sim::fault::Kind;
use sim::fault::stalled_disk::StalledDisk;
use std::time::Duration;

/// The sweep.
pub static SWEEP: Sweep = Sweep {
    name: "silent_queues_keep_what_the_checkpoint_claims",
    claim: "whenever a master loses power around a sync of its queues, also those that got no message since show each message that they had",
    nodes: &[MASTER],
    power: true,
    from: MOVES,
    operations_drawn: 450,
    packets_drawn: 105,
    story,
    judge: None,
};

/// Queues, and messages: no queue gets two.
const QUEUES: u32 = 64;
/// A log file holds three of the messages.
const BODY_BYTES: u32 = 1000;
const EARLY: Duration = Duration::from_secs(50);
/// The sync of all queues (`flushConsumeQueueThoroughInterval`, 60 s after the start) begins in between.
const STANDS: Duration = Duration::from_secs(57);
const MOVES: Duration = Duration::from_secs(62);
const DURATION: Duration = Duration::from_secs(66);

fn story() -> Plan {
    let mut plan = stage(Flush::Async, Replication::Sync { in_sync_replicas: 2 }, 1, DURATION);
    plan.cluster = Cluster { queues: QUEUES, ..plan.cluster };
    plan.operations = vec![
        sends(1, EARLY, 34, Duration::from_millis(40), BODY_BYTES),
        sends(1, STANDS + Duration::from_millis(500), 15, Duration::from_millis(300), BODY_BYTES),
        sends(1, MOVES + Duration::from_millis(100), 15, Duration::from_millis(200), BODY_BYTES),
    ];
    plan.faults = vec![between(STANDS, MOVES, Kind::StalledDisk(StalledDisk { node: MASTER.into() }))];
    plan
}
