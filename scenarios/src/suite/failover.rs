//! Suite `failover`: whatever happens to servers, clients, disks, clocks and links, each promise holds and the cluster comes back.

use crate::draw;
use crate::neighbour::{crash_point, neighbour, prioritised};
use crate::plan::{Operation, Plan};
use crate::run;
use crate::simpler::{rescheduled, simpler};
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;

/// Two name servers, three or four brokers, four clients, 20 messages a second, up to six faults.
#[derive(Debug, Clone, Copy)]
pub struct NothingPromisedIsLost;

impl Scenario for NothingPromisedIsLost {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "nothing_promised_is_lost_across_fail_over"
    }

    fn suite(&self) -> &'static str {
        "failover"
    }

    fn claim(&self) -> &'static str {
        "across any few faults every acknowledged message, committed offset and route is what its durability mode promises, and all is served again"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::fail_over_profile().boxed()
    }

    fn simpler(&self, plan: &Plan) -> Vec<Plan> {
        simpler(plan)
    }

    fn operations(&self, plan: &Plan) -> Option<usize> {
        Some(plan.operations.iter().map(Operation::size).sum())
    }

    fn rescheduled(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        Some(rescheduled(plan, seed))
    }

    fn prioritised(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        Some(prioritised(plan, seed))
    }

    fn crash_point(&self, plan: &Plan, point: u64, points: u64) -> Option<Plan> {
        Some(crash_point(plan, point, points))
    }

    fn mutated(&self, plan: &Plan, other: &Plan, seed: u64) -> Option<Plan> {
        let fresh = sim::scenario::draw(&self.strategy(), Scenario::name(self), seed);
        Some(neighbour(plan, &[other, &fresh], seed))
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
