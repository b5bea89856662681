//! Suite `hostile`: the promises of suite `failover` in a world where more goes wrong than crashes and cut links.

use crate::draw;
use crate::neighbour::{crash_point, neighbour, prioritised};
use crate::plan::{Operation, Plan};
use crate::run;
use crate::simpler::{rescheduled, simpler};
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;

/// The cluster and the load of [`super::failover::NothingPromisedIsLost`], with firewalls, narrow links, names that do not resolve,
/// machines that sleep, processes without memory or files, disks that fail at any operation, and rolling restarts.
#[derive(Debug, Clone, Copy)]
pub struct NothingPromisedIsLost;

impl Scenario for NothingPromisedIsLost {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "nothing_promised_is_lost_in_a_hostile_world"
    }

    fn suite(&self) -> &'static str {
        "hostile"
    }

    fn claim(&self) -> &'static str {
        "firewalls, narrow links, wrong names, sleeping machines, full tables and failing disks take nothing that was promised, and all is served again"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::hostile_profile().boxed()
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
