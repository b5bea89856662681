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
