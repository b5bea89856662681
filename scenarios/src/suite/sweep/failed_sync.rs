//! Each sync of the master's log fails in turn: the master gives up, a service manager starts it again, and then its power goes.
//!
//! The kernel keeps the pages that it could not write readable, and takes them for written. So a store that starts again and believes what it
//! reads builds on bytes that are nowhere. A record is longer than a page: none is written by chance with the next one.

use super::{MASTER, WARM_UP, between, sends, stage};
use crate::draw;
use crate::plan::{Flush, Plan, Replication};
use crate::run;
use crate::variation::Story;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::fault::Kind;
use sim::fault::disk_error::{DiskFails, DiskOperation};
use sim::fault::power_loss::PowerLoss;
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;
use std::time::Duration;

const MESSAGES: u32 = 40;
const EVERY: Duration = Duration::from_millis(200);
const BODY_BYTES: u32 = 4000;
/// The master is back by then (it is started again after 5 s), if a sync of the first two seconds failed.
const DARK: Duration = Duration::from_millis(42_500);
const DURATION: Duration = Duration::from_secs(48);
/// So many syncs lie within the first two seconds on any schedule.
pub const SYNCS: u64 = 9;

/// The scenario.
#[derive(Debug, Clone, Copy)]
pub struct EachFailedSync;

impl Scenario for EachFailedSync {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "a_failed_sync_is_believed_by_nobody"
    }

    fn suite(&self) -> &'static str {
        "sweep"
    }

    fn claim(&self) -> &'static str {
        "whichever sync of a master's log fails, what is acknowledged after its restart stands on bytes that survive a power loss"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let later = (0_u64..3_000).prop_map(Duration::from_millis);
        (draw::schedule(), draw::network(), 1..=SYNCS, later)
            .prop_map(|(schedule, network, nth, later)| Plan { schedule, network, ..plan(nth, later) })
            .boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Story { lists: &[] }
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, None)
    }
}

/// The story on a fixed schedule: that sync fails, and the power goes so much later than it may.
pub fn plan(nth: u64, later: Duration) -> Plan {
    let mut plan = stage(Flush::Sync, Replication::Async, 1, DURATION);
    plan.cluster.segment_kib = 64;
    plan.operations.push(sends(1, WARM_UP, MESSAGES, EVERY, BODY_BYTES));
    let (node, path_contains) = (MASTER.to_owned(), Some("commitlog".to_owned()));
    let fails = DiskFails { node, operation: DiskOperation::SyncPagesStay, path_contains, nth: Some(nth) };
    let dark = DARK + later;
    plan.faults = vec![
        between(WARM_UP, DARK, Kind::DiskFails(fails)),
        between(dark, dark + Duration::from_secs(2), Kind::PowerLoss(PowerLoss { node: MASTER.into() })),
    ];
    plan
}
