//! The twin of the sweep with asynchronous flush: all that stands behind an answer is the copy at the slave.
//!
//! The slave does not hear its master, and goes on telling it how far it is: old news, which must wake nobody. The producers stand still for
//! a while, so that they also find answers that a master gives when it has waited in vain for the copy. Then the master loses its power,
//! and what it had not synced yet is only where a copy is.

use super::{MASTER, SLAVE, Sweep, WARM_UP, between, sends, stage};
use crate::plan::{Flush, Plan, Replication};
use sim::fault::Kind;
use sim::fault::one_way::OneWay;
use sim::fault::pause::Pause;
use std::time::Duration;

/// The sweep.
pub static SWEEP: Sweep = Sweep {
    name: "what_only_the_master_has_is_not_promised",
    claim: "whenever a master that its slave does not hear loses power, each message that it had promised is at the slave",
    nodes: &[MASTER],
    power: true,
    from: AWAKE,
    operations_drawn: 80,
    packets_drawn: 32,
    story,
    judge: None,
};

const PRODUCERS: u32 = 6;
const EVERY: Duration = Duration::from_millis(200);
/// From then on the slave hears nothing.
const UNHEARD: Duration = Duration::from_millis(34_500);
/// The producers stand still: longer than a master waits for a copy (3 s), and than a producer for an answer.
const ASLEEP: Duration = Duration::from_millis(34_900);
const AWAKE: Duration = Duration::from_millis(38_900);
/// The slave tells again how far it is 5 s after the last news (`haSendHeartbeatInterval`).
const DURATION: Duration = Duration::from_secs(42);

fn story() -> Plan {
    let mut plan = stage(Flush::Async, Replication::Sync { in_sync_replicas: 2 }, PRODUCERS, DURATION);
    let shift = |producer: u32| Duration::from_millis(u64::from(producer) * 30);
    plan.operations = (1..=PRODUCERS).map(|it| sends(it, WARM_UP + shift(it), 40, EVERY, 100)).collect();
    plan.faults = vec![between(UNHEARD, DURATION, Kind::OneWay(OneWay { from: MASTER.into(), to: SLAVE.into() }))];
    plan.faults.extend(
        (1..=PRODUCERS).map(|it| between(ASLEEP, AWAKE, Kind::Pause(Pause { node: format!("producer-{it}") }))),
    );
    plan
}
