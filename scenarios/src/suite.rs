//! The scenarios: each name is a claim.

use sim::scenario::Registry;

pub mod expiry;
pub mod failover;
pub mod hostile;
pub mod kinds;
pub mod late;
pub mod progress;
pub mod rebalance;
pub mod returns;
pub mod service;
pub mod stage;
pub mod story_claim;
pub mod sweep;
pub mod telling;
pub mod transaction;

/// Everything that `cargo sim` and the tests can run.
pub fn registry() -> Registry {
    let registry = Registry::new("cargo sim")
        .with(failover::NothingPromisedIsLost)
        .with(hostile::NothingPromisedIsLost)
        .with(rebalance::MembersComeAndGo)
        .with(kinds::EachKindKeepsItsPromise)
        .with(expiry::OnlyWhatExpiredGoes)
        .with(transaction::EachTransactionEndsOnce);
    let registry = service::register(sweep::register(progress::register(registry)));
    returns::register(registry.with(late::LateMember))
}
