//! Suite `sweep`: a short story that is cheap to run, and a broker that ends at one exact point of it. Each point is one plan: a campaign
//! draws some, a test takes all.
//!
//! The points of a story are its node's disk operations and the packets that it sends, counted from a moment of the story; a run without
//! a crash tells how many there are ([`Sweep::points`]). One story a file.

use crate::draw;
use crate::evidence::Work;
use crate::kinds::Kinds;
use crate::plan::{Cluster, Flush, Network, Operation, Plan, Policy, Replication, Schedule};
use crate::run::{self, Claim};
use crate::variation::Story;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::{BoxedStrategy, Union};
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::{Fault, Kind, Moment};
use sim::report::Report;
use sim::scenario::{Registry, Scenario};
use sim::variation::Variation;
use std::time::Duration;

pub mod cut;
pub mod each_crash_point;
pub mod failed_sync;
pub mod many_queues;
pub mod unheard_master;

/// The master of all stories.
pub const MASTER: &str = "broker-a";
/// Its slave.
pub const SLAVE: &str = "broker-a-slave-1";

/// By then the slave replicates: it learns of its master when it registers again (`registerNameServerPeriod`, 30 s).
pub const WARM_UP: Duration = Duration::from_secs(34);
/// Beyond the work of any run.
const NEVER: u64 = 1 << 40;
const DISK_OPERATIONS: &str = "disk operations of ";
const PACKETS: &str = "packets of ";

/// A story that is told once for each point of it.
#[derive(Debug)]
pub struct Sweep {
    /// The scenario's name.
    pub name: &'static str,
    /// The claim in one sentence.
    pub claim: &'static str,
    /// Who ends, one in each run.
    pub nodes: &'static [&'static str],
    /// Whether a node always loses its power; otherwise sometimes only its process ends.
    pub power: bool,
    /// The points count from then on, and the node stays down until the story is over.
    pub from: Duration,
    /// Up to this disk operation one is drawn: about as many as the story has. A point that a schedule does not come to ends nobody.
    pub operations_drawn: u64,
    /// The same for packets, which are no more than those.
    pub packets_drawn: u64,
    /// The story on a fixed schedule, told to its end.
    pub story: fn() -> Plan,
    /// What the invariants do not say.
    pub judge: Option<Claim>,
}

/// Every story that is swept.
pub static ALL: [&Sweep; 4] = [&each_crash_point::SWEEP, &unheard_master::SWEEP, &many_queues::SWEEP, &cut::SWEEP];

/// Adds the suite.
pub fn register(registry: Registry) -> Registry {
    ALL.iter().fold(registry, |registry, sweep| registry.with(*sweep)).with(failed_sync::EachFailedSync)
}

impl Sweep {
    /// The story on its fixed schedule, ended at that point.
    pub fn plan(&self, point: CrashPoint) -> Plan {
        let mut plan = (self.story)();
        let lasts = plan.duration - self.from;
        plan.faults.push(Fault { fault: Kind::CrashPoint(point), start: Moment::At(self.from), lasts });
        plan
    }

    /// Two runs without a crash, the same as any with one up to its point: until points count, and to the end.
    pub fn calm(&self) -> [Plan; 2] {
        let whole = self.plan(CrashPoint { node: self.nodes[0].into(), at: Counted::Packet, nth: NEVER, power: false });
        [Plan { duration: self.from, ..whole.clone() }, whole]
    }

    /// Every point at which a node of the story may end, in each way, as the reports of the runs without a crash tell.
    pub fn points(&self, before: &Report, whole: &Report) -> Vec<CrashPoint> {
        let count = |what: &str, node: &str| {
            let of = |report: &Report| report.counts.get(&format!("{what}{node}")).copied().unwrap_or(0);
            of(whole) - of(before)
        };
        let ways: &[bool] = if self.power { &[true] } else { &[true, false] };
        let kinds = [(Counted::DiskOperation, DISK_OPERATIONS), (Counted::Packet, PACKETS)];
        let all = self.nodes.iter().flat_map(|node| kinds.map(|(at, what)| (*node, at, count(what, node))));
        all.flat_map(|(node, at, count)| (1..=count).map(move |nth| (node, at, nth)))
            .flat_map(|(node, at, nth)| ways.iter().map(move |power| (node, at, nth, *power)))
            .map(|(node, at, nth, power)| CrashPoint { node: node.to_owned(), at, nth, power })
            .collect()
    }
}

impl Scenario for &'static Sweep {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        self.name
    }

    fn suite(&self) -> &'static str {
        "sweep"
    }

    fn claim(&self) -> &'static str {
        self.claim
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let sweep = *self;
        let node = Union::new(sweep.nodes.iter().map(|node| Just(*node)));
        let at = prop_oneof![Just(Counted::DiskOperation), Just(Counted::Packet)];
        (draw::schedule(), draw::network(), node, at, 1..=sweep.operations_drawn, any::<bool>())
            .prop_map(move |(schedule, network, node, at, nth, power)| {
                let nth = if at == Counted::Packet { (nth - 1) % sweep.packets_drawn + 1 } else { nth };
                let point = CrashPoint { node: node.into(), at, nth, power: power || sweep.power };
                Plan { schedule, network, ..sweep.plan(point) }
            })
            .boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &Story { lists: &[] }
    }

    fn run(&self, plan: &Plan) -> Report {
        let (mut report, evidence) = run::observed(plan, self.judge.map(|judge| (self.name, judge)));
        for (node, Work { disk_operations, packets }) in evidence.map(|evidence| evidence.work).unwrap_or_default() {
            report.counts.insert(format!("{DISK_OPERATIONS}{node}"), disk_operations);
            report.counts.insert(format!("{PACKETS}{node}"), packets);
        }
        report
    }
}

/// A master with a slave on a fixed schedule, with so many producers, of which nobody does anything yet.
pub fn stage(flush: Flush, replication: Replication, producers: u32, duration: Duration) -> Plan {
    Plan {
        rare_choices: false,
        schedule: Schedule { seed: 1, policy: Policy::Random },
        cluster: Cluster {
            name_servers: 1,
            slaves: vec![1],
            flush,
            replication,
            queues: 4,
            segment_kib: 4,
            recover_from_slave: true,
            slave_read: true,
            retention: None,
        },
        network: Network {
            latency_min: Duration::from_micros(100),
            latency_max: Duration::from_millis(1),
            by_name: false,
        },
        clients: draw::clients(producers, 0),
        operations: Vec::new(),
        faults: Vec::new(),
        duration,
    }
}

/// Messages of one producer from that moment on.
pub fn sends(producer: u32, at: Duration, count: u32, every: Duration, body_bytes: u32) -> Operation {
    let producer = format!("producer-{producer}");
    Operation::Send { producer, at, count, every, body_bytes, kinds: Kinds::default() }
}

/// A fault in `from..until`.
pub fn between(from: Duration, until: Duration, fault: Kind) -> Fault {
    Fault { fault, start: Moment::At(from), lasts: until - from }
}
