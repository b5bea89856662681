//! Rare branches of the servers that only a whole cluster reaches: each probe is demanded of the run that is made to reach it.

use crate::STAND;
use scenarios::plan::{Flush, Plan, Replication};
use scenarios::suite::sweep;
use sim::fault::disk_error::{DiskFails, DiskOperation};
use sim::fault::disk_full::DiskFull;
use sim::fault::power_loss::PowerLoss;
use sim::fault::stalled_disk::StalledDisk;
use sim::fault::{Fault, Kind, Moment};
use sim::plan::Case;
use sim::report::Report;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::ops::ControlFlow;
use std::time::Duration;

/// The send sequence of the sweep with this instead of a crash point.
fn sequence(fault: Kind) -> Plan {
    let [_, mut plan] = sweep::each_crash_point::SWEEP.calm();
    plan.faults =
        vec![Fault { fault, start: Moment::At(Duration::from_millis(34_500)), lasts: Duration::from_secs(7) }];
    plan
}

fn run(plan: &Plan) -> Report {
    let plan = serde_json::to_value(plan).expect("a plan is plain data");
    let case = Case::new("nothing_promised_is_lost_across_fail_over", None, None, plan);
    let mut report = None;
    let mut process = Process::start(&STAND.launch()).expect("this executable starts");
    let ran = process.run(vec![Task::Plan(case)], Limits::of_this_machine(), false, |run| {
        report = Some(run.report);
        ControlFlow::Continue(())
    });
    ran.expect("the worker answers");
    report.expect("one task, one run")
}

fn reaches(plan: &Plan, probes: &[&str]) {
    let report = run(plan);
    assert!(report.is_clean(), "{:?}", report.violations);
    for probe in probes {
        assert!(report.probes.contains_key(*probe), "{probe} was not reached, but {:?}", report.probes);
    }
}

fn master() -> String {
    sweep::MASTER.to_owned()
}

#[test]
fn a_full_disk_refuses_messages_and_takes_them_again() {
    reaches(&sequence(Kind::DiskFull(DiskFull { node: master() })), &["store.append.no_space", "store.segment.rolled"]);
}

#[test]
fn a_stalled_disk_makes_a_weak_answer() {
    reaches(
        &sequence(Kind::StalledDisk(StalledDisk { node: master() })),
        &["store.flush.timeout", "server.put.weak_answer"],
    );
}

#[test]
fn a_failed_sync_poisons_the_store_and_the_server_is_started_again() {
    let fails = DiskFails { node: master(), operation: DiskOperation::Sync, path_contains: None, nth: None };
    reaches(&sequence(Kind::DiskFails(fails)), &["store.poisoned"]);
}

#[test]
fn a_slave_cuts_what_its_master_has_lost() {
    let mut plan = sequence(Kind::PowerLoss(PowerLoss { node: master() }));
    (plan.cluster.flush, plan.cluster.replication) = (Flush::Async, Replication::Async);
    // Apache's rule: the master does not ask its slave for what it lost.
    plan.cluster.recover_from_slave = false;
    reaches(&plan, &["store.truncated", "replication.slave_truncated"]);
}
