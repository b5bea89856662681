//! Suite `kinds`: the promises of suite `failover` for messages that are not plain: delayed by a level or a timer, with tags, sent in batches,
//! and handed back by listeners that fail.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

/// The cluster and the faults of [`super::failover::NothingPromisedIsLost`]; a second group that subscribes to some tags only.
#[derive(Debug, Clone, Copy)]
pub struct EachKindKeepsItsPromise;

impl Scenario for EachKindKeepsItsPromise {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "each_kind_of_message_keeps_its_promise"
    }

    fn suite(&self) -> &'static str {
        "kinds"
    }

    fn claim(&self) -> &'static str {
        "across any few faults delayed messages come in time, groups get what they subscribe to and nothing else, and what a listener fails on comes again until it is consumed or buried"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::kinds_profile().boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
