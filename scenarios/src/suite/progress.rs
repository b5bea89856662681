//! Suite `progress`: how far a group got in its queues, when its master dies after offsets were committed via pull flags.
//!
//! Three copies of it exist: the client's memory *C*, the master's table *M* with its file, the slave's table *S* with its file. *M*
//! learns from the commit flag of pulls and from the client's periodic update; *S* is copied from *M*, and takes updates while the
//! name servers list no master. Each scenario below is one sentence that a user of RocketMQ may rely on, or
//! ([`apaches_rule`]) one that he may not rely on with Apache's broker.
//!
//! All of them play on one [`story`]: a master with a slave, a consumer that is a few seconds behind when the master ends, an outage
//! that is longer than its readers need to find the slave, and the master's return. The kind of end, both durability modes, the
//! network, the schedule and every time of the story are drawn.

use super::story_claim::{StoryClaim, StorySuite};
use crate::variation;
use proptest::strategy::Strategy;
use sim::scenario::Registry;
use story::Story;

pub mod apaches_rule;
pub mod client_dies_in_the_outage;
pub mod commit_flag_at_the_master;
pub mod commit_flag_at_the_slave;
pub mod local_offset_file;
pub mod power_loss;
pub mod reading;
pub mod reading_from_the_slave;
pub mod rebalance_in_the_outage;
pub mod regained_by_live_clients;
pub mod slave_copy;
pub mod slower_member;
pub mod story;

/// One scenario of the suite.
pub type Progress = StoryClaim<Story>;

static SUITE: StorySuite<Story> = StorySuite {
    name: "progress",
    draw: || story::strategy().boxed(),
    variation: variation::Story { lists: &["faults"] },
};

/// Every scenario of the suite.
pub const ALL: &[Progress] = &[
    commit_flag_at_the_master::SCENARIO,
    commit_flag_at_the_slave::SCENARIO,
    slave_copy::SCENARIO,
    reading_from_the_slave::SCENARIO,
    regained_by_live_clients::SCENARIO,
    client_dies_in_the_outage::SCENARIO,
    rebalance_in_the_outage::SCENARIO,
    power_loss::SCENARIO,
    local_offset_file::SCENARIO,
    apaches_rule::LOST,
    apaches_rule::RETURNS,
    slower_member::SCENARIO,
];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    SUITE.register(registry, ALL)
}
