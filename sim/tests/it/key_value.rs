//! Holds `sim/KEY_VALUE.md` honest: the store keeps its claim, and the bug that the page explains is found where and as it says.

use crate::key_value_example::registry;
use sim::report::Report;
use sim::testing::Stand;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::ops::ControlFlow;

const STAND: Stand = Stand::new(registry, "key_value::worker");
const PAGE: &str = include_str!("../../KEY_VALUE.md");
/// The scenario with the bug, and how many seeds the page looks through.
const BUG: &str = "key_value_reads_in_one_round";
const PAGE_SEEDS: u64 = 40;

#[test]
fn worker() {
    STAND.serve();
}

#[test]
fn the_store_behaves_like_one_copy() {
    STAND.holds("key_value_behaves_like_one_copy", 300);
}

fn report(seed: u64) -> Report {
    let task = Task::Seed { scenario: BUG.to_owned(), seed };
    let mut report = None;
    let mut worker = Process::start(&STAND.launch()).expect("the worker starts");
    let done = worker.run(vec![task], Limits::of_this_machine(), false, |run| {
        report = Some(run.report);
        ControlFlow::Continue(())
    });
    done.expect("the worker answers");
    report.expect("one task, one run")
}

#[test]
fn the_bug_is_found_at_the_seed_and_with_the_lines_of_the_page() {
    let seed = STAND.finds(BUG, "one copy", PAGE_SEEDS);
    assert!(PAGE.contains(&format!("fuzz {BUG} --seeds {PAGE_SEEDS}\n")), "the page looks through other seeds");
    let report = report(seed);
    let said: String = report.violations.iter().map(|violation| format!("  {violation}\n")).collect();
    let effects = report.effects.iter().map(|effect| effect.fault.clone());
    let shown = [format!("{BUG} at seed {seed}"), format!("run {BUG} --seed {seed}\n")].into_iter().chain(effects);
    for line in said.lines().map(str::to_owned).chain(shown) {
        assert!(PAGE.contains(&line), "the page does not show {line:?}; seed {seed} says\n{said}");
    }
}
