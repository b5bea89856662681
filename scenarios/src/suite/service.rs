//! Suite `service`: what users get beyond the promise that nothing is lost: sends that are answered at once or go to another master,
//! messages that come once and soon, queues that change hands without a repetition.
//!
//! Each claim would fail in a run where anything may go wrong, so nothing does but what the claim is about. That is why a defect which
//! the other suites forgive, because the cluster heals it, is one here.

use super::story_claim::{StoryClaim, StorySuite};
use crate::suite::stage::{self, Draw};
use crate::variation::Story;
use sim::scenario::Registry;

pub mod calm_cluster;
pub mod found_after_a_return;
pub mod given_up;
pub mod join_in_an_outage;
pub mod one_name_server;
pub mod orderly_leave;
pub mod other_master;

/// One scenario of the suite.
pub type Service = StoryClaim<Draw>;

static SUITE: StorySuite<Draw> = StorySuite { name: "service", draw: stage::strategy, variation: Story { lists: &[] } };

/// Every scenario of the suite.
pub const ALL: &[Service] = &[
    calm_cluster::SCENARIO,
    orderly_leave::SCENARIO,
    given_up::SCENARIO,
    join_in_an_outage::SCENARIO,
    other_master::SCENARIO,
    one_name_server::SCENARIO,
    found_after_a_return::SCENARIO,
];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    SUITE.register(registry, ALL)
}
