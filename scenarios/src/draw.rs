//! How plans are drawn from a seed: swarm style, each plan with a random subset of features and of fault kinds switched on.

use crate::kinds::{Failing, Kinds};
use crate::machines::CAREFUL;
use crate::plan::{
    Clients, Cluster, Consumer, Flush, Model, Network, Operation, Plan, Policy, Replication, Retention, Schedule,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::name_view::{NameFailure, NameStale};
use sim::fault::reconfigure::{Ending, Reconfigure};
use sim::fault::swarm::Swarm;
use sim::fault::{Fault, Kind, Moment};
use std::time::Duration;

/// The group of the drawn consumers.
pub const GROUP: &str = "hotfire_group";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Any schedule.
pub fn schedule() -> impl Strategy<Value = Schedule> {
    (any::<u64>(), prop_oneof![3 => Just(Policy::Random), 1 => Just(Policy::Priority)])
        .prop_map(|(seed, policy)| Schedule { seed, policy })
}

/// A local network with now and then a slow one.
pub fn network() -> impl Strategy<Value = Network> {
    prop_oneof![
        4 => Just(Network { latency_min: Duration::from_micros(100), latency_max: ms(1), by_name: false }),
        1 => Just(Network { latency_min: ms(1), latency_max: ms(20), by_name: false }),
    ]
}

/// Flush and replication modes. Waiting for a slave needs one.
fn durability() -> impl Strategy<Value = (Flush, Replication)> {
    let flush = prop_oneof![Just(Flush::Sync), Just(Flush::Async)];
    let replication = prop_oneof![Just(Replication::Async), Just(Replication::Sync { in_sync_replicas: 2 })];
    (flush, replication)
}

/// Two name servers, a master with a slave, and a second master that has a slave too if sends wait for one.
pub fn cluster() -> impl Strategy<Value = Cluster> {
    (durability(), prop_oneof![Just(64_u32), Just(256)], any::<bool>()).prop_map(
        |((flush, replication), segment_kib, slave_read)| {
            let second = u32::from(replication != Replication::Async);
            Cluster {
                name_servers: 2,
                slaves: vec![1, second],
                flush,
                replication,
                queues: 4,
                segment_kib,
                recover_from_slave: true,
                slave_read,
                retention: None,
            }
        },
    )
}

/// Two producers with ten messages a second each, two consumers of one group.
pub fn fail_over_profile() -> impl Strategy<Value = Plan> {
    (schedule(), cluster(), network(), 40_u64..90).prop_flat_map(|(schedule, cluster, network, seconds)| {
        let duration = Duration::from_secs(seconds);
        let clients = clients(2, 2);
        let operations = busy(&clients, duration);
        let faults = faults(&cluster, &clients, duration);
        let drawn = Just((schedule, cluster, network, clients, operations, duration));
        // Drawn last, so that everything else of a seed is what it was.
        (faults, work(), drawn, any::<bool>()).prop_map(
            |(faults, work, (schedule, cluster, network, clients, operations, duration), rare_choices)| Plan {
                rare_choices,
                schedule,
                cluster,
                network,
                clients: clients.working(work),
                operations,
                faults,
                duration,
            },
        )
    })
}

/// As [`fail_over_profile`], in a world where more goes wrong: firewalls, narrow links, names that do not resolve, machines that sleep,
/// processes that run out of memory or of files, disks that fail at any operation, slaves with a new disk, restarts one after the other.
pub fn hostile_profile() -> impl Strategy<Value = Plan> {
    fail_over_profile().prop_flat_map(|plan| {
        let faults = hostile_faults(&plan.cluster, &plan.clients, plan.duration);
        let names = prop_oneof![
            1 => Just(None),
            1 => name_faults(&plan.cluster, &plan.clients, plan.duration).prop_map(Some),
        ];
        (Just(plan), faults, names).prop_map(|(plan, mut faults, names)| {
            let network = Network { by_name: names.is_some(), ..plan.network };
            faults.extend(names.unwrap_or_default());
            Plan { faults, network, ..plan }
        })
    })
}

/// As [`fail_over_profile`], with messages that are not plain: each plan has a subset of delays, tags, batches, and listeners that fail.
pub fn kinds_profile() -> impl Strategy<Value = Plan> {
    (fail_over_profile(), subscribed(), delays(), timers(), batch(), failing(), failing(), any::<bool>()).prop_map(
        |(mut plan, tags, levels, timers, batch, failing, failing_by_tags, by_sql)| {
            for consumer in &mut plan.clients.consumers {
                consumer.failing = failing;
            }
            if let Some(tags) = &tags {
                let by_tags = plan.clients.consumers[0].clone();
                let consumer = Consumer {
                    group: TAGGED_GROUP.into(),
                    tags: tags.clone(),
                    by_sql,
                    failing: failing_by_tags,
                    ..by_tags
                };
                plan.clients.consumers.push(consumer);
                let number = plan.clients.consumers.len();
                plan.operations.push(Operation::Join { consumer: format!("consumer-{number}"), at: Duration::ZERO });
            }
            let all_tags = ["Aa", "BB", "", "C"].map(str::to_owned).to_vec();
            for (place, kinds) in plan.operations.iter_mut().filter_map(kinds_of).enumerate() {
                if tags.is_some() {
                    kinds.tags.clone_from(&all_tags);
                }
                // One producer delays its messages, the other one sends batches.
                if place == 0 {
                    kinds.levels.clone_from(&levels);
                    kinds.timers.clone_from(&timers);
                } else {
                    kinds.batch = batch;
                }
            }
            plan
        },
    )
}

/// As [`kinds_profile`], with brokers that remove what is older than some tens of seconds, segments that are full within seconds, a slave that
/// is away for long, and groups that are behind.
pub fn expiry_profile() -> impl Strategy<Value = Plan> {
    (kinds_profile(), retention(), prop_oneof![Just(8_u32), Just(16), Just(32)], any::<bool>(), 75_u64..130)
        .prop_flat_map(|(mut plan, retention, segment_kib, has_timers, seconds)| {
            plan.duration = Duration::from_secs(seconds);
            (plan.cluster.retention, plan.cluster.segment_kib) = (Some(retention), segment_kib);
            for operation in &mut plan.operations {
                if let Operation::Send { every, count, kinds, .. } = operation {
                    *count = u32::try_from(plan.duration.as_millis() / every.as_millis()).expect("a run is short");
                    // A timer message holds all that came after it back, for minutes.
                    if !has_timers {
                        kinds.timers.clear();
                    }
                }
            }
            let asked = vec((select(plan.cluster.brokers()), 15..seconds), 0..6);
            let lag = lag(seconds);
            let away = slave_away(&plan.cluster, seconds);
            (Just(plan), asked, lag, away).prop_map(|(mut plan, asked, lag, away)| {
                plan.operations.extend(
                    asked
                        .into_iter()
                        .map(|(broker, at)| Operation::RemoveExpired { broker, at: Duration::from_secs(at) }),
                );
                lag.apply(&mut plan);
                plan.faults.extend(away);
                plan
            })
        })
}

fn retention() -> impl Strategy<Value = Retention> {
    (8_u64..45, 1_u64..10, any::<bool>()).prop_map(|(reserved, interval, at_any_hour)| Retention {
        reserved: Duration::from_secs(reserved),
        interval: Duration::from_secs(interval),
        at_any_hour,
    })
}

/// A slave that is down, cut off or asleep for most of what a segment lives.
fn slave_away(cluster: &Cluster, seconds: u64) -> BoxedStrategy<Vec<Fault>> {
    let slaves: Vec<String> = cluster.brokers().into_iter().filter(|node| !cluster.masters().contains(node)).collect();
    let swarm = Swarm {
        kinds: vec!["crash", "power_loss", "stop", "pause"],
        victims: slaves,
        network: Vec::new(),
        starts: Duration::from_secs(5)..Duration::from_secs(seconds / 2),
        lasts: Duration::from_secs(15)..Duration::from_secs(80),
        faults_max: 1,
    };
    swarm.strategy().boxed()
}

/// Why groups are behind.
#[derive(Debug, Clone, Copy)]
enum Lag {
    None,
    /// Each message takes its listener so long.
    Work(Duration),
    /// Every member leaves and comes again later.
    Away(Duration, Duration),
    /// Every member comes late.
    Late(Duration),
}

fn lag(seconds: u64) -> impl Strategy<Value = Lag> {
    let moments = (5..seconds / 2, 20..seconds * 2 / 3);
    prop_oneof![
        1 => Just(Lag::None),
        1 => (200_u64..900).prop_map(|work| Lag::Work(ms(work))),
        1 => moments.prop_map(|(from, lasts)| Lag::Away(Duration::from_secs(from), Duration::from_secs(from + lasts))),
        1 => (20..seconds).prop_map(|at| Lag::Late(Duration::from_secs(at))),
    ]
}

impl Lag {
    fn apply(self, plan: &mut Plan) {
        let members: Vec<String> = plan.clients.consumer_names().into_iter().map(|(name, _)| name).collect();
        match self {
            Lag::None => {}
            Lag::Work(work) => plan.clients.consumers.iter_mut().for_each(|consumer| consumer.work = work),
            Lag::Away(from, until) => {
                for consumer in members {
                    plan.operations.push(Operation::Leave { consumer: consumer.clone(), at: from });
                    plan.operations.push(Operation::Join { consumer, at: until });
                }
            }
            Lag::Late(late) => {
                for operation in &mut plan.operations {
                    if let Operation::Join { at, .. } = operation {
                        *at = late;
                    }
                }
            }
        }
    }
}

/// As [`kinds_profile`], with messages of both producers sent in transactions, and no batches.
pub fn transaction_profile() -> impl Strategy<Value = Plan> {
    let local = prop_oneof![1 => Just(Duration::ZERO), 1 => (1_u64..4_000).prop_map(ms)];
    (kinds_profile(), vec(fate(), 3..8), local).prop_map(|(mut plan, fates, local)| {
        for kinds in plan.operations.iter_mut().filter_map(kinds_of) {
            kinds.batch = 0;
            kinds.local = local;
            kinds.fates.clone_from(&fates);
        }
        plan
    })
}

/// What becomes of a transaction, if there is one.
fn fate() -> impl Strategy<Value = String> {
    let decided = prop_oneof![Just("c"), Just("r"), Just("c1"), Just("c1"), Just("r1"), Just("c2"), Just("r3")];
    prop_oneof![1 => Just(String::new()), 3 => decided.prop_map(str::to_owned)]
}

fn kinds_of(operation: &mut Operation) -> Option<&mut Kinds> {
    match operation {
        Operation::Send { kinds, .. } => Some(kinds),
        _ => None,
    }
}

/// The group of drawn consumers that subscribe to some tags only.
pub const TAGGED_GROUP: &str = "hotfire_tagged";

/// What a second group subscribes to, if there is one. `Aa` and `BB` have the same hash, so a broker cannot tell them apart.
fn subscribed() -> impl Strategy<Value = Option<Vec<String>>> {
    let tags = prop_oneof![Just(vec!["Aa"]), Just(vec!["BB", "C"]), Just(vec!["C"])];
    proptest::option::weighted(0.7, tags.prop_map(|tags| tags.into_iter().map(str::to_owned).collect()))
}

/// Delay levels of the messages of a producer.
fn delays() -> impl Strategy<Value = Vec<i32>> {
    prop_oneof![
        1 => Just(Vec::new()),
        2 => vec(prop_oneof![2 => Just(0), 2 => 1..=3, 1 => Just(4)], 3..8),
    ]
}

/// Seconds of the timers of a producer's messages.
fn timers() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        1 => Just(Vec::new()),
        1 => vec(prop_oneof![2 => Just(0_u32), 3 => 1..=12_u32, 1 => Just(40)], 3..8),
    ]
}

/// Messages in one call.
fn batch() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(0_u32), 1 => 2_u32..6]
}

/// How the listeners of a group fail.
fn failing() -> impl Strategy<Value = Option<Failing>> {
    let drawn = (5_u32..20, 1..=3, 0..=2, prop_oneof![1 => Just(None), 2 => (0..=2).prop_map(Some)]);
    let failing = drawn.prop_map(|(one_in, times, level, retries_max)| Failing { one_in, times, level, retries_max });
    proptest::option::weighted(0.6, failing)
}

/// Members come and go while a few faults happen.
pub fn rebalance_profile() -> impl Strategy<Value = Plan> {
    (schedule(), cluster(), network(), 60_u64..100, 3_usize..=4).prop_flat_map(
        |(schedule, cluster, network, seconds, members)| {
            let duration = Duration::from_secs(seconds);
            let clients = clients(1, members);
            let moves = vec((1..=members, 1_u64..seconds, any::<bool>()), 2..8);
            let faults = faults(&cluster, &clients, duration);
            let drawn = Just((schedule, cluster, network, clients, duration));
            (moves, faults, work(), drawn, any::<bool>()).prop_map(
                |(moves, mut faults, work, (schedule, cluster, network, clients, duration), rare_choices)| {
                    faults.truncate(2);
                    let mut operations = busy(&clients, duration);
                    operations.retain(
                        |operation| !matches!(operation, Operation::Join { consumer, .. } if consumer != "consumer-1"),
                    );
                    operations.extend(moves.into_iter().map(|(member, at, joins)| {
                        let (consumer, at) = (format!("consumer-{member}"), Duration::from_secs(at));
                        if joins { Operation::Join { consumer, at } } else { Operation::Leave { consumer, at } }
                    }));
                    Plan {
                        schedule,
                        cluster,
                        network,
                        clients: clients.working(work),
                        operations,
                        faults,
                        duration,
                        rare_choices,
                    }
                },
            )
        },
    )
}

/// Listeners that are done at once, or that hold several messages at most times.
fn work() -> impl Strategy<Value = Duration> {
    prop_oneof![1 => Just(Duration::ZERO), 1 => (1_u64..300).prop_map(ms)]
}

/// Clients of one clustering group.
pub fn clients(producers: u32, consumers: usize) -> Clients {
    let consumer = Consumer {
        group: GROUP.into(),
        model: Model::Clustering,
        persist_interval: Duration::from_secs(5),
        work: Duration::ZERO,
        tags: Vec::new(),
        by_sql: false,
        failing: None,
    };
    Clients { producers, consumers: vec![consumer; consumers] }
}

/// Every consumer joins at the start; producers share 20 messages a second.
pub fn busy(clients: &Clients, duration: Duration) -> Vec<Operation> {
    let every = ms(50 * u64::from(clients.producers));
    let count = u32::try_from(duration.as_millis() / every.as_millis()).expect("a run is short");
    let sends = clients.producer_names().into_iter().zip(0_u64..).map(|(producer, index)| Operation::Send {
        producer,
        at: ms(50 * index),
        count,
        every,
        body_bytes: 100,
        kinds: Kinds::default(),
    });
    let joins =
        clients.consumer_names().into_iter().map(|(consumer, _)| Operation::Join { consumer, at: Duration::ZERO });
    joins.chain(sends).collect()
}

/// Up to five faults of a drawn subset of kinds, anywhere in the safety phase: any node may end, stand still or be cut off, and
/// brokers' disks may fail.
fn faults(cluster: &Cluster, clients: &Clients, duration: Duration) -> BoxedStrategy<Vec<Fault>> {
    let anywhere = anywhere(NODE_KINDS, cluster, clients, duration);
    let at_brokers = at_brokers(BROKER_KINDS, cluster, &anywhere);
    let point = (select(cluster.brokers()), any::<bool>(), 1_u64..300, any::<bool>(), 1_u64..20).prop_map(
        |(node, disk, nth, power, start)| {
            let at = if disk { Counted::DiskOperation } else { Counted::Packet };
            Fault {
                fault: Kind::CrashPoint(CrashPoint { node, at, nth, power }),
                start: Moment::At(Duration::from_secs(start)),
                lasts: Duration::from_secs(10),
            }
        },
    );
    (anywhere.strategy(), at_brokers.strategy(), proptest::option::weighted(0.3, point))
        .prop_map(|(anywhere, at_brokers, point)| anywhere.into_iter().chain(at_brokers).chain(point).collect())
        .boxed()
}

/// Up to five faults of kinds that the other profiles do not draw, mixed with crashes.
fn hostile_faults(cluster: &Cluster, clients: &Clients, duration: Duration) -> BoxedStrategy<Vec<Fault>> {
    let anywhere = anywhere(HOSTILE_NODE_KINDS, cluster, clients, duration);
    let at_brokers = at_brokers(HOSTILE_BROKER_KINDS, cluster, &anywhere);
    let slaves = cluster.brokers().into_iter().filter(|node| !cluster.masters().contains(node)).collect();
    let new_disk =
        Swarm { kinds: SLAVE_KINDS.to_vec(), victims: slaves, network: Vec::new(), faults_max: 1, ..anywhere.clone() };
    let changed = proptest::option::weighted(0.2, configuration_change(cluster, duration));
    (anywhere.strategy(), at_brokers.strategy(), new_disk.strategy(), changed)
        .prop_map(|(anywhere, at_brokers, new_disk, changed)| {
            anywhere.into_iter().chain(at_brokers).chain(new_disk).chain(changed).collect()
        })
        .boxed()
}

/// A broker runs with another configuration for a while.
fn configuration_change(cluster: &Cluster, duration: Duration) -> impl Strategy<Value = Fault> + use<> {
    let by = prop_oneof![
        Just(Ending::Crash),
        (1_u64..10).prop_map(|grace| Ending::Stop { grace: Duration::from_secs(grace) })
    ];
    (select(cluster.brokers()), by, 1..duration.as_secs() - 5, 5_u64..40).prop_map(|(node, by, start, lasts)| Fault {
        fault: Kind::Reconfigure(Reconfigure { node, configuration: CAREFUL.to_owned(), by }),
        start: Moment::At(Duration::from_secs(start)),
        lasts: Duration::from_secs(lasts),
    })
}

/// Up to two times in which a node does not find a name server, or finds another node under its name. A name is looked up by who
/// connects, so it takes a fault that ends connections, or a start, for an effect.
fn name_faults(cluster: &Cluster, clients: &Clients, duration: Duration) -> impl Strategy<Value = Vec<Fault>> + use<> {
    let (names, all) = (cluster.names(), every_node(cluster, clients));
    let seconds = 1..duration.as_secs() - 5;
    let fault = (select(all.clone()), select(names.clone()), proptest::option::of(select(all)), seconds, 5_u64..40)
        .prop_map(|(node, name, means, start, lasts)| Fault {
            fault: match means {
                Some(means) => Kind::NameStale(NameStale { node, name, means }),
                None => Kind::NameFailure(NameFailure { node, name }),
            },
            start: Moment::At(Duration::from_secs(start)),
            lasts: Duration::from_secs(lasts),
        });
    vec(fault, 0..=2)
}

fn every_node(cluster: &Cluster, clients: &Clients) -> Vec<String> {
    let servers = [cluster.names(), cluster.brokers()].concat();
    let consumers = clients.consumer_names().into_iter().map(|(name, _)| name);
    servers.into_iter().chain(consumers).chain(clients.producer_names()).collect()
}

/// Up to three faults at any node, or between any two.
fn anywhere(kinds: &[&'static str], cluster: &Cluster, clients: &Clients, duration: Duration) -> Swarm {
    let all = every_node(cluster, clients);
    Swarm {
        kinds: kinds.to_vec(),
        victims: all.clone(),
        network: all,
        starts: Duration::from_secs(1)..duration - Duration::from_secs(5),
        lasts: ms(500)..Duration::from_secs(40),
        faults_max: 3,
    }
}

/// Up to two more at brokers.
fn at_brokers(kinds: &[&'static str], cluster: &Cluster, anywhere: &Swarm) -> Swarm {
    Swarm { kinds: kinds.to_vec(), victims: cluster.brokers(), network: Vec::new(), faults_max: 2, ..anywhere.clone() }
}

/// Kinds that any node may suffer.
const NODE_KINDS: &[&str] = &[
    "crash",
    "power_loss",
    "stop",
    "pause",
    "slow_cpu",
    "partition",
    "one_way",
    "isolate",
    "loss",
    "latency",
    "clock_step",
    "clock_drift",
    "clock_freeze",
];

/// Kinds that hit brokers.
const BROKER_KINDS: &[&str] = &["crash", "power_loss", "disk_full", "disk_error", "slow_disk", "stalled_disk"];

/// Kinds that any node of a hostile world may suffer.
const HOSTILE_NODE_KINDS: &[&str] = &[
    "crash",
    "power_loss",
    "suspend",
    "out_of_memory",
    "firewall_drop",
    "firewall_reject",
    "swizzle_clog",
    "bandwidth",
];

/// Kinds that take from a disk what it was told to keep: a slave's, which is a copy.
const SLAVE_KINDS: &[&str] = &["wiped_disk", "bit_rot", "latent_sector_error", "misdirected_write", "stale_read"];

/// Kinds that hit brokers of a hostile world.
const HOSTILE_BROKER_KINDS: &[&str] =
    &["crash", "power_loss", "rolling_restart", "open_error", "read_error", "write_error", "open_files", "quota"];
