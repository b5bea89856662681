//! How the plans of the suites are varied: any of it where anything may happen, and less where a claim tells one story.

use crate::neighbour::{crash_point, neighbour, prioritised};
use crate::plan::{Operation, Plan};
use crate::simpler::{rescheduled, simpler, simpler_story};
use sim::variation::Variation;

/// Clients and faults are drawn, and any of them may be another one.
#[derive(Debug, Clone, Copy)]
pub struct Anything;

impl Variation<Plan> for Anything {
    fn simpler(&self, plan: &Plan) -> Vec<Plan> {
        simpler(plan)
    }

    fn operations(&self, plan: &Plan) -> Option<usize> {
        Some(operations(plan))
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

    fn mutated(&self, plan: &Plan, others: [&Plan; 2], seed: u64) -> Option<Plan> {
        Some(neighbour(plan, &others, seed))
    }
}

/// A claim about one story, which operations and faults tell: they stay, with fewer messages and on a plainer stage, and the schedule is what may
/// be another one.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    /// The lists that do not tell it.
    pub lists: &'static [&'static str],
}

impl Variation<Plan> for Story {
    fn simpler(&self, plan: &Plan) -> Vec<Plan> {
        simpler_story(plan)
    }

    fn lists(&self) -> &'static [&'static str] {
        self.lists
    }

    fn operations(&self, plan: &Plan) -> Option<usize> {
        Some(operations(plan))
    }

    fn rescheduled(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        Some(rescheduled(plan, seed))
    }

    fn prioritised(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        Some(prioritised(plan, seed))
    }

    fn mutated(&self, plan: &Plan, _others: [&Plan; 2], seed: u64) -> Option<Plan> {
        Some(rescheduled(plan, seed))
    }
}

fn operations(plan: &Plan) -> usize {
    plan.operations.iter().map(Operation::size).sum()
}
