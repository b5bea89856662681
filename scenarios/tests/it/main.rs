//! The claims of this package as named tests, each over a few seeds; `cargo sim fuzz` runs as many as one likes.
//!
//! A test only asks: the runs happen in children of a worker process, this executable started again (see `sim::testing`).
#![cfg(madsim)]

mod claims;
mod command_line;
mod determinism;
mod mutants;
mod probes;
mod rare_choices;
mod seeds;
mod sweep;
mod tidy;

use sim::testing::Stand;

const STAND: Stand = Stand::new(scenarios::registry, "worker");

/// Serves the other tests; by itself it does nothing.
#[test]
fn worker() {
    STAND.serve();
}
