//! Suite `expiry`: the promises of suite `kinds` while brokers remove what has expired.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

/// The cluster, the messages and the faults of [`super::kinds::EachKindKeepsItsPromise`]; segments of some KiB that are reserved for some tens of
/// seconds, groups that are behind, and a slave that is away for long.
#[derive(Debug, Clone, Copy)]
pub struct OnlyWhatExpiredGoes;

impl Scenario for OnlyWhatExpiredGoes {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "only_what_has_expired_goes_and_nothing_above_it_is_skipped"
    }

    fn suite(&self) -> &'static str {
        "expiry"
    }

    fn claim(&self) -> &'static str {
        "across any few faults brokers remove what is older than they keep messages and what no slave, delay level or timer needs, and a group that was behind gets all that is left"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::expiry_profile().boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
