//! Suite `rebalance`: members of a group come and go under faults; no message is skipped, and each queue ends with one owner.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

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

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
