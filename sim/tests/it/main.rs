//! `sim` end to end, on small systems of its own.
#![cfg(madsim)]

mod campaigns;
mod clock_bugs;
mod command_line;
#[path = "../../examples/counter.rs"]
#[expect(dead_code, reason = "the example's main is not a test's")]
mod counter;
mod crash_states;
mod deaths;
mod dependencies;
mod determinism;
mod determinism_proofs;
mod disk_faults;
mod doors;
mod faults;
mod key_value;
#[path = "../../examples/key_value/main.rs"]
#[expect(dead_code, reason = "the example's main is not a test's")]
mod key_value_example;
mod leaks;
mod leftovers;
mod mutants;
mod network_faults;
mod persistence_bugs;
mod recorded;
mod report;

use sim::scenario::Registry;
use sim::testing::Stand;

/// Every scenario of these tests.
fn registry() -> Registry {
    let registry = Registry::new("cargo sim")
        .with(counter::simulated::Counter { synced: true })
        .with(counter::simulated::Counter { synced: false })
        .with(faults::EveryFault)
        .with(faults::IdleFault);
    let registry = deaths::Death::ALL.into_iter().fold(registry, Registry::with);
    let registry = leaks::Leak::ALL.into_iter().fold(registry, Registry::with);
    leftovers::Leftover::ALL.into_iter().fold(registry, Registry::with)
}

const STAND: Stand = Stand::new(registry, "worker");

#[test]
fn worker() {
    STAND.serve();
}

#[test]
fn counter_never_goes_back() {
    STAND.holds("counter_never_goes_back", 40);
}

#[test]
fn a_missing_sync_is_found() {
    STAND.finds("counter_without_sync", "the sum never goes back", 200);
}

#[test]
fn a_failing_test_says_what_to_look_at() {
    let failed = std::panic::catch_unwind(|| STAND.holds("counter_without_sync", 200)).expect_err("a sync is missing");
    let said = failed.downcast_ref::<String>().expect("a message");
    let file = said.lines().find_map(|line| line.strip_prefix("reproduce: cargo sim replay ")).expect("a small case");
    let small = sim::plan::Case::load(std::path::Path::new(file)).expect("it is there");
    assert_eq!(small.plan["faults"].as_array().map(Vec::len), Some(1), "{said}");
    assert!(said.contains("the sum never goes back") && said.contains("  fault: "), "{said}");
    assert!(said.contains("reproduce: cargo sim run counter_without_sync --seed "), "{said}");
    assert!(!STAND.replay(std::path::Path::new(file)).is_clean());
}
