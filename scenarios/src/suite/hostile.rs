//! Suite `hostile`: the promises of suite `failover` in a world where more goes wrong than crashes and cut links.

use crate::draw;
use crate::plan::Plan;
use crate::run;
use crate::variation::Anything;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;

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

    fn variation(&self) -> &dyn Variation<Plan> {
        &Anything
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}
