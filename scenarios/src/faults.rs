//! What the faults of a plan can excuse.

use crate::evidence::Evidence;
use crate::plan::Plan;
use sim::fault::{Fault, Kind};
use std::time::Duration;

/// How long faults of the plan may hold up this node's disk, at most.
pub fn disk_held(plan: &Plan, node: &str) -> Duration {
    plan.faults.iter().filter(|fault| holds_disk(fault, node)).map(|_| plan.duration).max().unwrap_or_default()
}

/// Whether the fault may hold up syncs of this node's disk.
fn holds_disk(fault: &Fault, node: &str) -> bool {
    let holds = matches!(
        fault.fault,
        Kind::SlowDisk(_)
            | Kind::StalledDisk(_)
            | Kind::DiskFails(_)
            | Kind::Pause(_)
            | Kind::SlowCpu(_)
            | Kind::ClockFreeze(_)
            | Kind::ClockDrift(_)
            | Kind::DiskFull(_)
            | Kind::Suspend(_)
            | Kind::OpenFiles(_)
            | Kind::Quota(_)
    );
    holds && fault.fault.nodes().contains(&node)
}

/// Whether anything in `from..until` may have kept this broker from its slaves or from the name servers: a fault that was on, or a
/// broker or name server that was down.
pub fn disturbs_between(plan: &Plan, evidence: &Evidence, from: Duration, until: Duration, broker: &str) -> bool {
    let others = plan.cluster.brokers().into_iter().chain(plan.cluster.names()).filter(|node| node != broker);
    let down = others
        .flat_map(|node| evidence.outages(&node))
        .any(|outage| outage.from <= until && outage.until.is_none_or(|back| back >= from));
    let on = plan
        .faults
        .iter()
        .filter(|fault| hinders_calls(fault))
        .any(|fault| evidence.fault_times(fault).iter().any(|(begin, end)| *begin <= until && *end >= from));
    down || on
}

/// Whether calls between nodes may fail or time out while the fault is on. A node that is down shows in its outages.
fn hinders_calls(fault: &Fault) -> bool {
    !matches!(
        fault.fault,
        Kind::Crash(_)
            | Kind::PowerLoss(_)
            | Kind::Stop(_)
            | Kind::CrashPoint(_)
            | Kind::OutOfMemory(_)
            | Kind::RollingRestart(_)
            | Kind::Reconfigure(_)
            | Kind::ClockStep(_)
    )
}
