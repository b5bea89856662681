//! Suite `late`: a consumer that comes when messages wait. The example of `FIRST_SCENARIO.md`.

use crate::breach::Breach;
use crate::draw;
use crate::evidence::Evidence;
use crate::operation::Ask;
use crate::plan::{Operation, Plan};
use crate::run;
use crate::variation::Story;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;
use std::time::Duration;

/// When the first consumer comes.
const COMES: Duration = Duration::from_secs(20);
/// How long it may take until it has its first message: a dozen round trips (two name servers, a heartbeat to each broker, members, offsets,
/// the pull) of 40 ms at most, and tasks that are late in half of the runs. `FIRST_SCENARIO.md` tells how this number was found.
const PATIENCE: Duration = Duration::from_secs(3);

/// The scenario.
#[derive(Debug, Clone, Copy)]
pub struct LateMember;

impl Scenario for LateMember {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "a_late_member_soon_gets_its_first_message"
    }

    fn suite(&self) -> &'static str {
        "late"
    }

    fn claim(&self) -> &'static str {
        "a consumer that comes when messages wait gets its first one within three seconds"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        draw::fail_over_profile().prop_map(late).boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Story { lists: &[] }
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, Some((self.name(), soon)))
    }
}

/// The plan with one consumer, which comes late, and without faults.
fn late(mut plan: Plan) -> Plan {
    plan.faults.clear();
    plan.clients.consumers.truncate(1);
    plan.operations.retain(|operation| matches!(operation, Operation::Send { .. }));
    plan.operations.push(Operation::Join { consumer: "consumer-1".into(), at: COMES });
    plan
}

fn soon(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let came = evidence.started_at + COMES;
    let operations = evidence.history.operations();
    let first = operations.iter().find(|operation| matches!(operation.input, Ask::Consume { .. }));
    let first = first.ok_or("nothing was consumed")?;
    let waited = first.invoked_at - came;
    if waited > PATIENCE {
        Err(Breach::new(format!("the first message came after {waited:?}")).of_events(first.events()))
    } else {
        Ok(())
    }
}
