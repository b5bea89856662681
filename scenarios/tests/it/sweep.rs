//! One send sequence, ended at every single point of its work.

use crate::STAND;
use scenarios::plan::Plan;
use scenarios::suite::sweep::{EachCrashPoint, MASTER, SLAVE, calm, plan, points};
use sim::fault::crash_point::CrashPoint;
use sim::plan::Case;
use sim::scenario::Scenario;
use sim::worker::process::Process;
use sim::worker::{Limits, Run, Task};
use std::ops::ControlFlow;
use std::time::Instant;

fn task(plan: &Plan) -> Task {
    let plan = serde_json::to_value(plan).expect("a plan is plain data");
    Task::Plan(Case::new(Scenario::name(&EachCrashPoint), None, None, plan))
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

#[test]
fn no_crash_point_loses_an_acknowledged_message() {
    let mut process = Process::start(&STAND.launch()).expect("this executable starts");
    let [warm_up, whole] =
        calm().map(|plan| run(&mut process, vec![task(&plan)]).pop().expect("one task, one run").report);
    assert!(whole.is_clean(), "without a crash: {:?}", whole.violations);
    let all: Vec<CrashPoint> = [MASTER, SLAVE].into_iter().flat_map(|node| points(&warm_up, &whole, node)).collect();
    let count = all.len();
    assert!(count >= 500, "only {count} points: the sequence is too short to say much");
    let started = Instant::now();
    let runs = run(&mut process, all.into_iter().map(|point| task(&plan(point))).collect());
    let mut reached = 0;
    for run in &runs {
        assert!(run.report.is_clean(), "{:?}: {:?}", run.task, run.report.violations);
        reached += run.report.effects.iter().filter(|effect| effect.amount > 0).count();
    }
    assert_eq!(runs.len(), count);
    assert_eq!(reached, count, "each point was reached");
    println!("{count} crash points in {:.0} s", started.elapsed().as_secs_f64());
}
