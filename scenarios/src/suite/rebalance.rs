//! Suite `rebalance`: members of a group come and go under faults; no message is skipped, and each queue ends with one owner.

use crate::draw;
use crate::neighbour::{crash_point, neighbour, prioritised};
use crate::plan::{Operation, Plan};
use crate::run;
use crate::simpler::{rescheduled, simpler};
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;

/// Three or four members that join and leave at drawn times, up to two faults.
#[derive(Debug, Clone, Copy)]
pub struct MembersComeAndGo;

impl Scenario for MembersComeAndGo {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "members_come_and_go_without_a_skipped_message"
    }

    fn suite(&self) -> &'static str {
        "rebalance"
    }

    fn claim(&self) -> &'static str {
        "while members of a group join, leave and die, no message is skipped, and each queue has exactly one owner once the group has settled"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::rebalance_profile().boxed()
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
