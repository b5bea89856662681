//! The marked choices of the servers' and clients' code (`buggify!`, `dawdle!`): each is made in some run, and breaks nothing.

use crate::STAND;
use proptest::strategy::Strategy;
use scenarios::draw::fail_over_profile;
use scenarios::plan::Plan;
use serde_json::Value;
use sim::plan::Case;
use sim::scenario::draw;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// A quarter of the places make rare choices in a run, each at a quarter of its turns; the rarest turn is a slave's second connection.
const SEEDS: u64 = 80;
const SCENARIO: &str = "nothing_promised_is_lost_across_fail_over";

fn sites_in(directory: &Path, sites: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).expect("a folder of the tree") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sites_in(&path, sites);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            for mark in ["buggify!(", "dawdle!("] {
                let names =
                    text.split(mark).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
                sites.extend(names.map(str::to_owned));
            }
        }
    }
}

/// What the seed draws, with rare choices.
fn plan(seed: u64) -> Value {
    let mut plan: Plan = draw(&fail_over_profile().boxed(), SCENARIO, seed);
    plan.rare_choices = true;
    serde_json::to_value(plan).expect("a plan is plain data")
}

#[test]
fn each_rare_choice_is_made_and_breaks_nothing() {
    let mut missing = BTreeSet::new();
    sites_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../broker"), &mut missing);
    assert!(missing.len() >= 40, "{}", missing.len());
    let tasks = (0..SEEDS).map(|seed| Task::Plan(Case::new(SCENARIO, None, None, plan(seed)))).collect();
    let mut process = Process::start(&STAND.launch()).expect("this executable starts");
    let ran = process.run(tasks, Limits::of_this_machine(), false, |run| {
        assert!(run.report.is_clean(), "{:?}: {:?}", run.task, run.report.violations);
        missing.retain(|site| run.report.probes.get(site).is_none_or(|made| *made == 0));
        ControlFlow::Continue(())
    });
    ran.expect("the worker answers");
    assert!(missing.is_empty(), "never made in {SEEDS} runs: {missing:?}");
}
