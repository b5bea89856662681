//! A master returns twice. The first time by Apache's rule: it asks nobody for the end of its log, and takes messages, while its slave, which
//! has that end, is away. The second time it asks its slave: that one's log is longer, and is another one.

use super::{MASTER, Return, Returns, SLAVE, power_loss};
use crate::breach::Breach;
use crate::evidence::Evidence;
use crate::kinds::Kinds;
use crate::machines::APACHES;
use crate::plan::{Operation, Plan, Replication};
use crate::suite::stage::WARM_UP;
use crate::suite::telling::{between, dead, sends, without_power};
use sim::fault::Kind;
use sim::fault::reconfigure::{Ending, Reconfigure};
use std::time::Duration;

/// Once nothing more comes, all is synced within that (`flushCommitLogThoroughInterval`, 10 s).
const SYNCED: Duration = Duration::from_secs(12);
/// Messages of the end that is lost, and of what takes its place: fewer, so that the slave stays the longer one. All have the same
/// length (numbers of one digit), so that records of one log could stand behind those of the other.
const LOST: u32 = 10;
const INSTEAD: u32 = 3;

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "returning_master_takes_nothing_of_another_history",
    claim: "a slave whose log is longer than its master's and another one gives nothing to it, and follows it",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    // An answer promises no copy: by Apache's rule the copy of a lost message is cut.
    let mut story = story.one_master(1, Replication::Async);
    story.draw.cluster.recover_from_slave = true;
    let shifts = story.draw.shifts;
    let last = WARM_UP + SYNCED;
    let ends = last + Duration::from_millis(1_200) + shifts[0] / 8;
    let back = ends + Duration::from_secs(3);
    let instead = back + Duration::from_secs(3) + shifts[1];
    let ends_again = instead + SYNCED;
    let back_again = ends_again + Duration::from_secs(5);
    let slave_back = ends_again + Duration::from_secs(1) + shifts[2] / 2;
    let duration = back_again + Duration::from_secs(15);
    let mut plan = story.draw.plan(1, 0, duration);
    plan.operations = vec![
        sends("producer-1", Duration::from_secs(5), WARM_UP, Duration::from_millis(300)),
        few(last, LOST),
        few(instead, INSTEAD),
        few(back_again + Duration::from_secs(8), LOST),
    ];
    let by_apaches_rule = Reconfigure { node: MASTER.into(), configuration: APACHES.into(), by: Ending::Crash };
    plan.faults = vec![
        without_power(MASTER, ends, back),
        dead(SLAVE, ends + Duration::from_millis(50), slave_back),
        // Begins and ends while the master is down.
        between(Kind::Reconfigure(by_apaches_rule), ends + Duration::from_secs(1), ends_again + Duration::from_secs(1)),
        if story.draw.power {
            without_power(MASTER, ends_again, back_again)
        } else {
            dead(MASTER, ends_again, back_again)
        },
    ];
    plan
}

fn few(at: Duration, count: u32) -> Operation {
    let every = Duration::from_millis(100);
    Operation::Send { producer: "producer-1".into(), at, count, every, body_bytes: 100, kinds: Kinds::default() }
}

fn judge(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (_, back) = power_loss(evidence)?;
    let again = evidence.outages(MASTER).into_iter().find(|outage| outage.from > back);
    let again = again.and_then(|outage| outage.until).ok_or("the master returned only once")?;
    let slave = evidence.outages(SLAVE).into_iter().next().and_then(|outage| outage.until).ok_or("the slave stayed")?;
    if slave < again { Ok(()) } else { Err("the slave was not there to be asked".into()) }
}
