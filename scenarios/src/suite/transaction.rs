//! Suite `transaction`: the promises of suites `failover` and `kinds` for messages that are sent in a transaction, committed or rolled back
//! at once or when a broker asks.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

/// The cluster and the faults of [`super::kinds::EachKindKeepsItsPromise`], with producers of one group that any broker may ask.
#[derive(Debug, Clone, Copy)]
pub struct EachTransactionEndsOnce;

impl Scenario for EachTransactionEndsOnce {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "each_transaction_ends_once_and_as_its_producer_says"
    }

    fn suite(&self) -> &'static str {
        "transaction"
    }

    fn claim(&self) -> &'static str {
        "across any few faults each half message is committed once or rolled back, as its producers say, and nobody sees it before"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::transaction_profile().boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
