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

use crate::plan::Plan;
use crate::run::{self, Claim};
use crate::variation;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::{Registry, Scenario};
use sim::variation::Variation;
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
pub mod story;

/// One scenario of the suite: its plan is made from a drawn story, and its claim is judged over and above all invariants.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The claim's name.
    pub name: &'static str,
    /// The claim in one sentence.
    pub claim: &'static str,
    /// What happens.
    pub plan: fn(&Story) -> Plan,
    /// What must be true of the evidence.
    pub judge: Claim,
}

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
];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    ALL.iter().fold(registry, |registry, scenario| registry.with(*scenario))
}

impl Scenario for Progress {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        self.name
    }

    fn suite(&self) -> &'static str {
        "progress"
    }

    fn claim(&self) -> &'static str {
        self.claim
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let plan = self.plan;
        story::strategy().prop_map(move |story| plan(&story)).boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &variation::Story { lists: &["faults"] }
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, Some((self.name, self.judge)))
    }
}
