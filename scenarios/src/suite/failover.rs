//! Suite `failover`: whatever happens to servers, clients, disks, clocks and links, each promise holds and the cluster comes back.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

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

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
