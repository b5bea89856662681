//! A seed is a run: the same in another process, alone and as one of a batch.

use crate::STAND;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Fingerprint of each task's report, run in this order by a process of its own.
fn fingerprints(tasks: Vec<Task>) -> BTreeMap<String, u64> {
    let limits = Limits { jobs: NonZeroUsize::MIN, ..Limits::of_this_machine() };
    let mut process = Process::start(&STAND.launch()).expect("this executable starts");
    let mut fingerprints = BTreeMap::new();
    let ran = process.run(tasks, limits, false, |run| {
        fingerprints.insert(format!("{:?}", run.task), run.report.fingerprint());
        ControlFlow::Continue(())
    });
    ran.expect("the worker answers");
    fingerprints
}

#[test]
fn a_seed_gives_the_same_run_in_any_process_and_any_order() {
    let names = scenarios::registry().entries().map(|entry| entry.name()).collect::<Vec<_>>();
    let task = |(name, seed): (&&str, u64)| Task::Seed { scenario: (*name).to_owned(), seed };
    let tasks: Vec<Task> = names.iter().zip(100..).map(task).collect();
    let forwards = fingerprints(tasks.clone());
    assert_eq!(forwards.len(), names.len());
    assert_eq!(fingerprints(tasks.into_iter().rev().collect()), forwards);
}
