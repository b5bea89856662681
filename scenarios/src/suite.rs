//! The scenarios: each name is a claim.

use sim::scenario::Registry;

pub mod failover;
pub mod rebalance;

/// Everything that `cargo sim` and the tests can run.
pub fn registry() -> Registry {
    Registry::new("cargo sim").with(failover::NothingPromisedIsLost).with(rebalance::MembersComeAndGo)
}
