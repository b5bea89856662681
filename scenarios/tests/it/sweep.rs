//! Each story of suite `sweep`, ended at every single point of it.

use crate::STAND;
use scenarios::plan::Plan;
use scenarios::suite::sweep::failed_sync::{self, EachFailedSync};
use scenarios::suite::sweep::{Sweep, cut, each_crash_point, many_queues, unheard_master};
use sim::plan::Case;
use sim::report::Report;
use sim::scenario::Scenario;
use sim::worker::process::Process;
use sim::worker::{Limits, Run, Task};
use std::ops::ControlFlow;
use std::time::Duration;

fn task(scenario: &str, plan: &Plan) -> Task {
    let plan = serde_json::to_value(plan).expect("a plan is plain data");
    Task::Plan(Case::new(scenario, None, None, plan))
}

fn run(process: &mut Process, tasks: Vec<Task>) -> Vec<Run> {
    let mut runs = Vec::new();
    let ran = process.run(tasks, Limits::of_this_machine(), true, |run| {
        runs.push(run);
        ControlFlow::Continue(())
    });
    ran.expect("the worker answers");
    runs
}

fn process() -> Process {
    Process::start(&STAND.launch()).expect("this executable starts")
}

/// The reports of the runs that no crash point ends: until points count, and to the end of the story.
fn calm(process: &mut Process, sweep: &Sweep) -> [Report; 2] {
    sweep.calm().map(|plan| run(process, vec![task(sweep.name, &plan)]).pop().expect("one task, one run").report)
}

/// Demands that each point of the story is reached and that nothing is violated there; there are at least so many.
fn holds_at_each_point(sweep: &Sweep, least: usize) -> Report {
    let mut process = process();
    let [before, whole] = calm(&mut process, sweep);
    assert!(whole.is_clean(), "without a crash: {:?}", whole.violations);
    let all = sweep.points(&before, &whole);
    let count = all.len();
    assert!(count >= least, "only {count} points: the story is too short to say much");
    let tasks: Vec<Task> = all.into_iter().map(|point| task(sweep.name, &sweep.plan(point))).collect();
    let runs = run(&mut process, tasks);
    for run in &runs {
        assert!(run.report.is_clean(), "{:?}: {:?}", run.task, run.report.violations);
        let reached = run.report.effects.iter().any(|effect| effect.kind == "crash_point" && effect.amount > 0);
        assert!(reached, "not reached: {:?}", run.task);
    }
    assert_eq!(runs.len(), count);
    whole
}

#[test]
fn no_crash_point_loses_an_acknowledged_message() {
    holds_at_each_point(&each_crash_point::SWEEP, 500);
}

#[test]
fn what_only_the_master_has_is_not_promised() {
    let whole = holds_at_each_point(&unheard_master::SWEEP, 100);
    assert!(whole.probes.contains_key("server.put.weak_answer"), "the slave has heard all: {:?}", whole.probes);
}

#[test]
fn silent_queues_keep_what_the_checkpoint_claims() {
    holds_at_each_point(&many_queues::SWEEP, 100);
}

#[test]
fn a_slave_that_was_cut_stays_cut() {
    let whole = holds_at_each_point(&cut::SWEEP, 100);
    assert!(whole.probes.contains_key("replication.slave_truncated"), "nothing was cut: {:?}", whole.probes);
}

#[test]
fn a_failed_sync_is_believed_by_nobody() {
    let name = Scenario::name(&EachFailedSync);
    let plans = (1..=failed_sync::SYNCS).map(|nth| failed_sync::plan(nth, Duration::ZERO));
    let runs = run(&mut process(), plans.map(|plan| task(name, &plan)).collect());
    assert_eq!(runs.len() as u64, failed_sync::SYNCS);
    for run in &runs {
        assert!(run.report.is_clean(), "{:?}: {:?}", run.task, run.report.violations);
        assert!(run.report.effects.iter().all(|effect| effect.amount > 0), "no failed sync: {:?}", run.task);
    }
}
