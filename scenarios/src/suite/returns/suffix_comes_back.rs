//! A master returns without the end of its log, gets it back from its slave, and no reader is alive to say how far it was: what counts is the
//! master's file, and it speaks of messages that were not there when it was read.

use super::{MASTER, Return, Returns, SLAVE, power_loss};
use crate::breach::Breach;
use crate::draw::GROUP;
use crate::evidence::Evidence;
use crate::node_config::BROKER_PORT;
use crate::plan::Plan;
use crate::suite::stage::WARM_UP;
use crate::suite::telling::{between, dead, join, sends, without_power};
use sim::fault::Kind;
use sim::fault::firewall::FirewallDrop;
use std::time::Duration;

const READER: &str = "consumer-1";
/// How often the reader tells its progress: soon, so that the master's file has it before the log is synced.
const PERSIST: Duration = Duration::from_secs(1);
/// Longer than one period in which a slave copies its master's progress (10 s).
const COPY_OLD: Duration = Duration::from_secs(12);

/// The scenario.
pub const SCENARIO: Returns = Returns {
    name: "progress_stays_with_a_suffix_that_comes_back",
    claim: "a master that gets the end of its log back from its slave keeps the progress that it had written in it, with no reader alive",
    plan,
    judge,
};

fn plan(story: &Return) -> Plan {
    let mut story = story.one_master(1, story.draw.cluster.replication);
    story.draw.cluster.recover_from_slave = true;
    let shifts = story.draw.shifts;
    // All of a flush interval (10 s).
    let ends = WARM_UP + Duration::from_secs(8) + shifts[0] + shifts[1] + shifts[2];
    let back = ends + Duration::from_secs(3) + shifts[1] / 2;
    let reader_back = back + Duration::from_secs(15);
    let duration = reader_back + Duration::from_secs(15);
    let mut plan = story.draw.plan(1, 1, duration);
    plan.clients.consumers[0].persist_interval = PERSIST;
    let every = Duration::from_millis(200);
    plan.operations = vec![
        join(READER, Duration::ZERO),
        sends("producer-1", Duration::from_secs(2), ends, every),
        sends("producer-1", reader_back, duration, every),
    ];
    plan.faults = vec![without_power(MASTER, ends, back), dead(READER, ends + shifts[2] / 8, reader_back)];
    if story.early {
        // The slave's copy of the progress stays old; its log does not, which has a port of its own.
        let drops = FirewallDrop { from: SLAVE.into(), to: MASTER.into(), port: Some(BROKER_PORT) };
        plan.faults.push(between(Kind::FirewallDrop(drops), ends - COPY_OLD, ends));
    }
    plan
}

fn judge(plan: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (outage, back) = power_loss(evidence)?;
    assert_eq!(plan.clients.groups(), [GROUP]);
    let gone = evidence.outages(READER).into_iter().next().ok_or("the reader lived on")?.from;
    if gone > back {
        return Err("the reader outlived the outage".into());
    }
    let away = evidence.fault_times(&plan.faults[1]);
    let returned = away.first().ok_or("the reader did not return")?.1;
    for queue in evidence.queues.keys() {
        let shown = evidence.commits_seen(MASTER, GROUP, queue);
        if !shown.iter().any(|(at, offset)| *at < outage.from && *offset > 0) {
            let summary = format!("queue {}: nothing was committed", queue.id);
            return Err(Breach::new(summary));
        }
        if !shown.iter().any(|(at, _)| (back..returned).contains(at)) {
            let summary = format!("queue {}: nobody looked before the reader was back", queue.id);
            return Err(Breach::new(summary));
        }
    }
    Ok(())
}
