//! The scenarios: each name is a claim.

use sim::scenario::Registry;

pub mod failover;
pub mod hostile;
pub mod kinds;
pub mod late;
pub mod progress;
pub mod rebalance;
pub mod service;
pub mod story_claim;
pub mod sweep;

/// Everything that `cargo sim` and the tests can run.
pub fn registry() -> Registry {
    let registry = Registry::new("cargo sim")
        .with(failover::NothingPromisedIsLost)
        .with(hostile::NothingPromisedIsLost)
        .with(rebalance::MembersComeAndGo)
        .with(kinds::EachKindKeepsItsPromise);
    service::register(progress::register(registry).with(sweep::EachCrashPoint)).with(late::LateMember)
}
