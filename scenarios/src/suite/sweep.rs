//! Suite `sweep`: one short send sequence, sync-flush and sync-replicated, whose master or slave ends at one exact point of its work.
//!
//! The points of a run are its node's disk operations and the packets that it sends, counted from the moment when the cluster is up;
//! a run without a crash tells how many there are ([`points`]). Each point is one plan: a campaign draws some, a test takes all.

use crate::breach::Breach;
use crate::draw;
use crate::evidence::{Evidence, Work};
use crate::kinds::Kinds;
use crate::plan::{Cluster, Flush, Network, Operation, Plan, Policy, Replication, Schedule};
use crate::run;
use crate::variation::Story;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::BoxedStrategy;
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::{Fault, Kind, Moment};
use sim::report::Report;
use sim::scenario::Scenario;
use sim::variation::Variation;
use std::time::Duration;

/// The master of the sequence.
pub const MASTER: &str = "broker-a";
/// Its slave.
pub const SLAVE: &str = "broker-a-slave-1";

/// By then the slave replicates: it learns of its master when it registers again (`registerNameServerPeriod`, 30 s).
const WARM_UP: Duration = Duration::from_secs(34);
/// Messages of the sequence.
const MESSAGES: u32 = 60;
const EVERY: Duration = Duration::from_millis(40);
/// The node stays down until the sequence is over.
const DURATION: Duration = Duration::from_secs(42);
/// Beyond the work of any run.
const NEVER: u64 = 1 << 40;
/// So many points of each kind lie within the sequence on any schedule.
const POINTS_DRAWN: u64 = 200;

/// The scenario.
#[derive(Debug, Clone, Copy)]
pub struct EachCrashPoint;

impl Scenario for EachCrashPoint {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "no_crash_point_loses_an_acknowledged_message"
    }

    fn suite(&self) -> &'static str {
        "sweep"
    }

    fn claim(&self) -> &'static str {
        "wherever in a synced, replicated sequence of sends a broker ends, each acknowledged message stays and its store opens again"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let node = prop_oneof![Just(MASTER), Just(SLAVE)];
        let at = prop_oneof![Just(Counted::DiskOperation), Just(Counted::Packet)];
        (draw::schedule(), draw::network(), node, at, 1..=POINTS_DRAWN, any::<bool>())
            .prop_map(|(schedule, network, node, at, nth, power)| {
                let point = CrashPoint { node: node.into(), at, nth, power };
                Plan { schedule, network, ..plan(point) }
            })
            .boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Story { lists: &[] }
    }

    fn run(&self, plan: &Plan) -> Report {
        let (mut report, evidence) = run::observed(plan, Some((Scenario::name(self), each_is_at_both)));
        for (node, Work { disk_operations, packets }) in evidence.map(|evidence| evidence.work).unwrap_or_default() {
            report.counts.insert(format!("{DISK_OPERATIONS}{node}"), disk_operations);
            report.counts.insert(format!("{PACKETS}{node}"), packets);
        }
        report
    }
}

const DISK_OPERATIONS: &str = "disk operations of ";
const PACKETS: &str = "packets of ";

/// The sequence on a fixed schedule. The point counts from the end of the warm-up.
pub fn plan(point: CrashPoint) -> Plan {
    let sends = Operation::Send {
        producer: "producer-1".into(),
        at: WARM_UP,
        count: MESSAGES,
        every: EVERY,
        body_bytes: 100,
        kinds: Kinds::default(),
    };
    let fault = Fault { fault: Kind::CrashPoint(point), start: Moment::At(WARM_UP), lasts: DURATION - WARM_UP };
    Plan {
        rare_choices: false,
        schedule: Schedule { seed: 1, policy: Policy::Random },
        cluster: Cluster {
            name_servers: 1,
            slaves: vec![1],
            flush: Flush::Sync,
            replication: Replication::Sync { in_sync_replicas: 2 },
            queues: 4,
            segment_kib: 4,
            recover_from_slave: true,
            slave_read: true,
        },
        network: Network {
            latency_min: Duration::from_micros(100),
            latency_max: Duration::from_millis(1),
            by_name: false,
        },
        clients: draw::clients(1, 0),
        operations: vec![sends],
        faults: vec![fault],
        duration: DURATION,
    }
}

/// Two runs without a crash, the same as any with one up to its point: the warm-up alone, and with the sequence.
pub fn calm() -> [Plan; 2] {
    let whole = plan(CrashPoint { node: MASTER.into(), at: Counted::Packet, nth: NEVER, power: false });
    [Plan { duration: WARM_UP, ..whole.clone() }, whole]
}

/// Every point of the sequence at which `node` may end, both ways, as the reports of the runs without a crash tell.
pub fn points(warm_up: &Report, whole: &Report, node: &str) -> Vec<CrashPoint> {
    let count = |what: &str| {
        let of = |report: &Report| report.counts.get(&format!("{what}{node}")).copied().unwrap_or(0);
        of(whole) - of(warm_up)
    };
    let counted = [(Counted::DiskOperation, count(DISK_OPERATIONS)), (Counted::Packet, count(PACKETS))];
    counted
        .into_iter()
        .flat_map(|(at, count)| (1..=count).map(move |nth| (at, nth)))
        .flat_map(|(at, nth)| [true, false].map(|power| CrashPoint { node: node.to_owned(), at, nth, power }))
        .collect()
}

/// The invariants say that each acknowledged message is at the master; here also that the logs of both are the same to the end.
fn each_is_at_both(_: &Plan, evidence: &Evidence) -> Result<(), Breach> {
    let (master, slave) = (&evidence.logs[MASTER], &evidence.logs[SLAVE]);
    if master.end() != slave.end() {
        let summary = format!("the master's log ends at {}, its slave's at {}", master.end(), slave.end());
        return Err(Breach::new(summary));
    }
    Ok(())
}
