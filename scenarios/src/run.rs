//! One run of a plan: boot, safety phase under faults, healing, liveness phase, a last look, the verdict.

use crate::breach::Breach;
use crate::chronicle;
use crate::consumed::Consumed;
use crate::consumers::{self, Roster};
use crate::disk_losses::damaged;
use crate::evidence::{Evidence, KindsSeen, LogCopy, Snapshot, Work, slaves_of};
use crate::expiry::{Archive, Expired};
use crate::frames::read_frame;
use crate::invariant::{LIVENESS, judge, l3_queues_are_served};
use crate::kinds::{self, has_kinds};
use crate::kinds_look::KindsLook;
use crate::ledger::Ledger;
use crate::machines::{CONFIGURATIONS, Machines};
use crate::observer::Observer;
use crate::operation::{Ask, Decision, History, Queue, Recorder, Told};
use crate::plan::{self, Operation, Plan};
use crate::producers;
use crate::system_states::states;
use crate::transactions::has_transactions;
use client::{ClientInstance, Producer, ProducerConfig};
use protocol::MessageQueue;
use rt::sync::CancellationToken;
use rt::world::{Buggify, Latency, NetworkConfig, Policy, WorldConfig};
use sim::atlas::{Area, Atlas};
use sim::desk::Desk;
use sim::history::What;
use sim::nemesis::Nemesis;
use sim::report::Report;
use sim::verdict::Violation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A cluster without faults is up within that.
const BOOT_MAX: Duration = Duration::from_secs(60);
/// Time from one look at committed offsets to the next.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// All of a log is old once nothing is sent any more: what is to go is gone within a few runs of the cleaning.
const LAST_LOOKS_MAX: u32 = 20;
/// A judgement of one named test over and above the invariants.
pub type Claim = fn(&Plan, &Evidence) -> Result<(), Breach>;

/// Bound of the liveness phase, as the sum of what a user of RocketMQ waits for after the last fault is healed.
pub fn liveness_bound() -> Duration {
    let retransmission = Duration::from_secs(30); // a stream whose peer was silent for the fault: the request times out and reconnects
    let restart = Duration::from_secs(5); // a supervisor starts a server that gave up
    let register = Duration::from_secs(30); // registerNameServerPeriod: a name server that missed a registration hears the next
    let route_refresh = Duration::from_secs(30); // pollNameServerInterval
    let rebalance = Duration::from_secs(20); // the consumer's rebalance timer
    let pull_hold = Duration::from_secs(20); // brokerSuspendMaxTimeMillis, and a pull's way back
    let slave_sync = Duration::from_secs(10); // slave metadata sync period
    retransmission + restart + register + route_refresh + rebalance + pull_hold + slave_sync
}

/// Runs a plan and judges it by the invariants and the claim.
pub fn run(plan: &Plan, claim: Option<(&'static str, Claim)>) -> Report {
    observed(plan, claim).0
}

/// As [`run`], with the evidence; none if a finding ended the run.
pub fn observed(plan: &Plan, claim: Option<(&'static str, Claim)>) -> (Report, Option<Evidence>) {
    let desk = Desk::new();
    let recorder = Recorder::new(desk.signals());
    let (driven, desk_inside, recorder_inside) = (plan.clone(), desk.clone(), recorder.clone());
    desk.reads_frames(read_frame);
    let (evidence, report) = desk.run(world_config(plan), move || drive(driven, desk_inside, recorder_inside));
    let history = recorder.take();
    // A finding ended the run: it is the verdict, and what clients saw until then proves nothing.
    let Some(mut evidence) = evidence else { return (reported(&desk, report, plan, &history, Vec::new()), None) };
    evidence.history = history;
    let mut violations = judge(plan, &evidence);
    if let Some((name, claim)) = claim
        && let Err(breach) = claim(plan, &evidence)
    {
        violations.push(breach.violates(name, &evidence.history));
    }
    let report = reported(&desk, report, plan, &evidence.history, violations);
    (Report { states: states(plan, &evidence), ..report }, Some(evidence))
}

fn reported(desk: &Desk, report: Report, plan: &Plan, history: &History, violations: Vec<Violation>) -> Report {
    let mut report = desk.judged_in_words(report, history, violations, chronicle::line);
    if let Some(recording) = &mut report.recording {
        chronicle::complete(recording, plan, history);
    }
    report
}

fn world_config(plan: &Plan) -> WorldConfig {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("a latency is short");
    let policy = match plan.schedule.policy {
        plan::Policy::Random => Policy::Random,
        plan::Policy::Priority => Policy::Priority { changes: 5, polls: 300_000 },
    };
    let latency = Latency {
        tail_one_in: 256,
        tail_max_ns: 5 * nanos(plan.network.latency_max),
        ..Latency::uniform(nanos(plan.network.latency_min), nanos(plan.network.latency_max))
    };
    WorldConfig {
        seed: plan.schedule.seed,
        policy,
        network: NetworkConfig { latency, ..NetworkConfig::default() },
        buggify: plan.rare_choices.then(Buggify::default),
        ..WorldConfig::default()
    }
}

/// Everything that a run holds on to.
struct Run {
    plan: Plan,
    desk: Desk,
    recorder: Recorder,
    machines: Machines,
    observer: Observer,
    roster: Roster,
    archive: Arc<Mutex<Archive>>,
}

fn lock(archive: &Mutex<Archive>) -> MutexGuard<'_, Archive> {
    archive.lock().expect("a judge's code that panics ends the run")
}

async fn drive(plan: Plan, desk: Desk, recorder: Recorder) -> Evidence {
    let machines = Machines::add(&plan, &recorder);
    let observer = Observer::new(&plan, &machines);
    let run = Run { observer, plan, desk, recorder, machines, roster: Roster::default(), archive: Arc::default() };
    let mut evidence = Evidence::default();
    if let Err(reason) = run.boot_servers().await {
        run.desk.violated(Violation::new("the cluster boots", reason));
        return evidence;
    }
    evidence.started_at = rt::world::elapsed();
    let nemesis = run.nemesis(evidence.started_at);
    let loose = nemesis.release(&run.plan.faults).expect("the plan's faults name nodes of the plan");
    let work_before = run.work();
    let samplers = run.start_clients_and_samplers(evidence.started_at);
    run.start_operator_and_archive();
    rt::time::sleep(run.plan.duration).await;
    evidence.work =
        run.work().into_iter().map(|(node, work)| (node.clone(), work.since(&work_before[&node]))).collect();
    loose.heal().await;
    evidence.healed_at = rt::world::elapsed();
    run.settle(&mut evidence).await;
    samplers.cancel();
    run.end_clients();
    run.last_look(&mut evidence).await;
    run.count();
    evidence
}

impl Run {
    /// Boots name servers and brokers and creates the topic; returns when all name servers route to all brokers.
    async fn boot_servers(&self) -> Result<(), String> {
        let cluster = &self.plan.cluster;
        for name in cluster.names().into_iter().chain(cluster.brokers()) {
            self.machines.server_boot(&self.plan, &name, &self.recorder, &self.desk)(CONFIGURATIONS[0]);
        }
        let booted = async {
            for master in cluster.masters() {
                while !self.observer.create_topic(&self.plan, &master).await {
                    rt::time::sleep(Duration::from_millis(100)).await;
                }
            }
            for name in cluster.names() {
                while self.observer.route(&name).await.is_none_or(|route| route.len() < cluster.brokers().len()) {
                    rt::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        rt::time::timeout(BOOT_MAX, booted)
            .await
            .map_err(|_| format!("not all name servers route to all brokers after {BOOT_MAX:?}"))
    }

    /// What each broker node has done so far.
    fn work(&self) -> BTreeMap<String, Work> {
        let of = |name: &str| {
            let node = self.machines.node(name);
            Work { disk_operations: rt::world::disk_operations(node), packets: rt::world::packets(node) }
        };
        self.plan.cluster.brokers().into_iter().map(|name| (name.clone(), of(&name))).collect()
    }

    fn nemesis(&self, started: Duration) -> Nemesis {
        let recorder = self.recorder.clone();
        let mut nemesis = Nemesis::new(&self.desk, move |node, event| recorder.node(node, event)).atlas(&self.atlas());
        let plan = &self.plan;
        for name in plan.cluster.names().into_iter().chain(plan.cluster.brokers()) {
            let boot = self.machines.server_boot(plan, &name, &self.recorder, &self.desk);
            nemesis = nemesis.configured_node(&name, self.machines.node(&name), CONFIGURATIONS, boot);
        }
        for name in plan.clients.producer_names() {
            let boot = producers::boot(plan, &self.machines, &name, &self.recorder, started);
            nemesis = nemesis.node(&name, self.machines.node(&name), boot);
        }
        for (name, _) in plan.clients.consumer_names() {
            let boot = consumers::boot(plan, &self.machines, &name, &self.roster, &self.recorder);
            nemesis = nemesis.node(&name, self.machines.node(&name), boot);
        }
        nemesis
    }

    /// What a disk may lose for good: a slave's copy of what its master has.
    fn atlas(&self) -> Atlas {
        self.plan.cluster.masters().into_iter().fold(Atlas::new(), |atlas, master| {
            let slaves = slaves_of(&self.plan.cluster, &master);
            let names: Vec<&str> = slaves.iter().map(String::as_str).collect();
            atlas.with(Area::new(&format!("slaves of {master}"), &names, "/", names.len()))
        })
    }

    /// Starts producers, the tasks that let consumers come and go, and those that read committed offsets until cancelled.
    fn start_clients_and_samplers(&self, started: Duration) -> CancellationToken {
        for name in self.plan.clients.producer_names() {
            producers::boot(&self.plan, &self.machines, &name, &self.recorder, started)();
        }
        for operation in &self.plan.operations {
            let (at, name, joins) = match operation {
                Operation::Join { consumer, at } => (*at, consumer, true),
                Operation::Leave { consumer, at } => (*at, consumer, false),
                Operation::Send { .. } | Operation::RemoveExpired { .. } => continue,
            };
            let boot = consumers::boot(&self.plan, &self.machines, name, &self.roster, &self.recorder);
            let (roster, name, node) = (self.roster.clone(), name.clone(), self.machines.node(name));
            rt::task::spawn(async move {
                rt::time::sleep(at).await;
                if !joins {
                    roster.leave(&name);
                } else if roster.join(&name) && rt::world::is_up(node) {
                    boot();
                }
            });
        }
        let stop = CancellationToken::new();
        for node in self.plan.cluster.brokers() {
            let (observer, recorder, stop) = (self.observer.clone(), self.recorder.clone(), stop.clone());
            let desk = self.desk.clone();
            let (broker, _) = crate::node_config::identity(&self.plan.cluster, &node);
            let (groups, queues) = (self.plan.clients.groups(), self.queues_of(&broker));
            let asked: Vec<(String, Queue)> =
                groups.iter().flat_map(|group| queues.iter().map(|queue| (group.clone(), queue.clone()))).collect();
            let with_delays = has_kinds(&self.plan);
            rt::task::spawn(async move {
                while !stop.is_cancelled() {
                    observer.all_committed(&node, &asked, &recorder).await;
                    if desk.is_recording() {
                        // A look at the disk, which no program notices.
                        desk.sample("ends of logs", &node, observer.log_end(&node));
                    }
                    if with_delays {
                        observer.delays(&node, &recorder).await;
                    }
                    rt::time::sleep(LOOK_EVERY).await;
                }
            });
        }
        stop
    }

    /// Starts the operator who has brokers remove what has expired, and who looks at what they removed until the run is over.
    fn start_operator_and_archive(&self) {
        for operation in &self.plan.operations {
            let Operation::RemoveExpired { broker, at } = operation else { continue };
            let (observer, recorder, broker, at) = (self.observer.clone(), self.recorder.clone(), broker.clone(), *at);
            rt::task::spawn(async move {
                rt::time::sleep(at).await;
                observer.remove_expired(&broker, &recorder).await;
            });
        }
        if self.plan.cluster.retention.is_some() {
            let (plan, observer, archive) = (self.plan.clone(), self.observer.clone(), Arc::clone(&self.archive));
            rt::task::spawn(async move {
                loop {
                    lock(&archive).look(&plan, &observer);
                    rt::time::sleep(LOOK_EVERY).await;
                }
            });
        }
    }

    fn queues_of(&self, broker: &str) -> Vec<Queue> {
        let count = i32::try_from(self.plan.cluster.queues).expect("a plan has few queues");
        (0..count).map(|id| Queue { broker: broker.to_owned(), id }).collect()
    }

    /// Demands liveness: sends probes, and looks until nothing is unmet or the bound has passed.
    async fn settle(&self, evidence: &mut Evidence) {
        let token = CancellationToken::new();
        let names = crate::node_config::name_server_list(&self.plan, self.machines.addresses());
        let config = client::ClientConfig::new(names, rt::world::ip(rt::world::current_node()), "prober");
        let instance = ClientInstance::start(config, &token).expect("the configuration is made here");
        let prober =
            Producer::start(&instance, ProducerConfig::new("probers")).await.expect("the first of its instance");
        let bound = evidence.healed_at + liveness_bound() + kinds::wait_max(&self.plan);
        let (mut serving, mut consumed) = (BTreeSet::new(), Consumed::default());
        let mut kinds_look = has_kinds(&self.plan).then(KindsLook::default);
        loop {
            self.probe(&prober, &mut serving).await;
            let mut look = self.look(&mut consumed).await;
            if let Some(kinds) = &mut kinds_look {
                look.kinds = Some(self.look_at_kinds(kinds, &serving, &look.expired).await);
            }
            look.serving = serving.iter().cloned().collect();
            let masters = prober.publish_queues(plan::TOPIC).await.unwrap_or_default();
            look.client_route =
                masters.into_iter().map(|queue| queue.broker_name).collect::<BTreeSet<_>>().into_iter().collect();
            let unmet =
                LIVENESS.iter().map(|(name, unmet)| (*name, unmet(&self.plan, &look))).collect::<BTreeMap<_, _>>();
            let settled = unmet.values().all(Vec::is_empty);
            evidence.unmet = unmet;
            evidence.last = look;
            evidence.ended_at = rt::world::elapsed();
            if settled || evidence.ended_at >= bound {
                break;
            }
            rt::time::sleep(LOOK_EVERY).await;
        }
        token.cancel();
    }

    /// Puts one message into each queue of each master that has not taken its probes yet.
    async fn probe(&self, prober: &Producer, serving: &mut BTreeSet<String>) {
        for master in self.plan.cluster.masters() {
            if serving.contains(&master) {
                continue;
            }
            let mut promised = true;
            for queue in self.queues_of(&master) {
                let kind = kinds::probe_kind(&self.plan.clients);
                let key = format!("probe.{master}.{}.{}{kind}", queue.id, rt::world::elapsed().as_millis());
                let to = MessageQueue::new(plan::TOPIC, &master, queue.id);
                promised = promised && producers::send(prober, "prober", &key, 60, Some(&to), &self.recorder).await;
            }
            if promised {
                serving.insert(master);
            }
        }
    }

    async fn look(&self, consumed: &mut Consumed) -> Snapshot {
        self.recorder.look(|history| consumed.read_on(history));
        let expired = Expired::of(lock(&self.archive).removals());
        let mut look = Snapshot { consumed: consumed.offsets.clone(), expired, ..Snapshot::default() };
        let now = rt::world::elapsed();
        look.damaged = self.recorder.look(|history| damaged(history, now));
        for name in self.plan.cluster.names() {
            if let Some(route) = self.observer.route(&name).await {
                look.routes.insert(name, route);
            }
        }
        // Asked before the ends: what was in the log by then is in them.
        for node in self.plan.cluster.brokers() {
            if let Some(bytes) = self.observer.dispatch_behind(&node).await {
                look.dispatch_behind.insert(node, bytes);
            }
        }
        for master in self.plan.cluster.masters() {
            for queue in self.queues_of(&master) {
                if let Some((_, max)) = self.observer.bounds(&master, queue.id).await {
                    look.queue_ends.insert(queue, max);
                }
            }
        }
        let names = self.plan.clients.consumer_names();
        let wanted = self.roster.wanted();
        for (name, consumer) in names.iter().filter(|(name, _)| wanted.contains(name)) {
            let owned = self.roster.owned(&self.machines, name).unwrap_or_default();
            look.owners.entry(consumer.group.clone()).or_default().insert(name.clone(), owned);
        }
        for master in self.plan.cluster.masters() {
            let slaves = slaves_of(&self.plan.cluster, &master);
            for node in slaves.into_iter().chain([master]) {
                look.log_ends.insert(node.clone(), self.observer.log_end(&node));
            }
        }
        look
    }

    /// Looks at what is not plain. The log of a master that does not serve yet may still be cut.
    async fn look_at_kinds(&self, look: &mut KindsLook, serving: &BTreeSet<String>, expired: &Expired) -> KindsSeen {
        self.recorder.look(|history| look.read_history(history));
        for master in serving {
            look.read_log(master, self.whole_log(master));
        }
        let mut seen = look.seen(&self.plan, rt::world::elapsed(), expired);
        for node in self.plan.cluster.brokers() {
            if let Some(delays) = self.observer.delays(&node, &self.recorder).await {
                seen.delays.insert(node, delays);
            }
        }
        if has_transactions(&self.plan) {
            for node in self.plan.cluster.brokers() {
                if let Some(done) = self.observer.transactions(&node).await {
                    seen.transactions.insert(node, done);
                }
            }
        }
        seen
    }

    /// A node's log with what has expired, up to this moment: what was removed since the archive's last look would be missing between the two.
    fn whole_log(&self, node: &str) -> LogCopy {
        self.look_at_archive();
        lock(&self.archive).whole(node, self.observer.log(node))
    }

    /// Ends producers and consumers where they stand: what they were told is what the last look must find, and nothing is added to it.
    fn end_clients(&self) {
        let consumers = self.plan.clients.consumer_names().into_iter().map(|(name, _)| name);
        for name in self.plan.clients.producer_names().into_iter().chain(consumers) {
            rt::world::crash(self.machines.node(&name));
        }
    }

    /// Reads what the masters and the disks hold, again if something expires meanwhile.
    async fn last_look(&self, evidence: &mut Evidence) {
        let unmet = evidence.unmet.clone();
        for _ in 0..LAST_LOOKS_MAX {
            evidence.unmet.clone_from(&unmet);
            let before = self.look_at_archive();
            self.read_queues(evidence).await;
            for node in self.plan.cluster.brokers() {
                evidence.logs.insert(node.clone(), self.observer.log(&node));
            }
            if self.look_at_archive() == before {
                break;
            }
            rt::time::sleep(LOOK_EVERY).await;
        }
        if has_kinds(&self.plan) {
            let of = |master: String| (master.clone(), Ledger::of(self.whole_log(&master)));
            evidence.ledgers = self.plan.cluster.masters().into_iter().map(of).collect();
        }
        self.add_expired(evidence);
        evidence.ended_at = evidence.ended_at.max(rt::world::elapsed());
    }

    /// Puts aside what was removed since the last look. Returns how many segments were removed so far.
    fn look_at_archive(&self) -> usize {
        if self.plan.cluster.retention.is_none() {
            return 0;
        }
        let mut archive = lock(&self.archive);
        archive.look(&self.plan, &self.observer);
        archive.removals().len()
    }

    async fn read_queues(&self, evidence: &mut Evidence) {
        for master in self.plan.cluster.masters() {
            for queue in self.queues_of(&master) {
                match self.observer.queue_contents(&master, queue.id).await {
                    Some(contents) => drop(evidence.queues.insert(queue.clone(), contents)),
                    // No judge can say anything about it, and that must be seen.
                    None => {
                        let unread = format!("{master} queue {} cannot be read, or still grows", queue.id);
                        evidence.unmet.entry(l3_queues_are_served::NAME).or_default().push(Breach::new(unread));
                    }
                }
                for group in self.plan.clients.groups() {
                    if let Some(offset) = self.observer.committed(&master, &group, &queue, &self.recorder).await {
                        evidence.last.committed.entry(group).or_default().insert(queue.clone(), offset);
                    }
                }
            }
        }
    }

    /// Puts before each queue what it held before its messages expired.
    fn add_expired(&self, evidence: &mut Evidence) {
        if self.plan.cluster.retention.is_none() {
            return;
        }
        let archive = lock(&self.archive);
        for (queue, contents) in &mut evidence.queues {
            let mut messages = archive.messages(queue, contents.min);
            if let Some(first) = messages.first() {
                contents.min = first.offset;
                messages.append(&mut contents.messages);
                contents.messages = messages;
            }
        }
        evidence.removals = archive.removals().to_vec();
        self.desk.count("segments expired", evidence.removals.len() as u64);
    }

    /// Numbers for the summary.
    fn count(&self) {
        let (mut acknowledged, mut delayed, mut consumed, mut failed) = (0, 0, 0, 0);
        let mut asked = BTreeMap::new();
        self.recorder.look(|history| {
            for event in &history.events {
                match &event.what {
                    What::Invoke { operation, input: Ask::Decide { asked: times, .. }, .. } if *times > 0 => {
                        asked.insert(*operation, Decision::Unknown);
                    }
                    What::Ok { operation, output: Told::Decided(decision) } => {
                        if let Some(said) = asked.get_mut(operation) {
                            *said = *decision;
                        }
                    }
                    What::Ok { output: Told::Stored { .. }, .. } => acknowledged += 1,
                    What::Ok { output: Told::Delayed { .. }, .. } => delayed += 1,
                    What::Ok { output: Told::Consumed, .. } => consumed += 1,
                    What::Ok { output: Told::Later, .. } => failed += 1,
                    _ => {}
                }
            }
        });
        self.desk.count("messages acknowledged", acknowledged + delayed);
        self.desk.count("messages consumed", consumed);
        if has_kinds(&self.plan) {
            self.desk.count("messages delayed", delayed);
            self.desk.count("messages handed back", failed);
        }
        if has_transactions(&self.plan) {
            let said = |decision| asked.values().filter(|said| **said == decision).count() as u64;
            self.desk.count("transactions asked for", asked.len() as u64);
            self.desk.count("transactions committed when asked", said(Decision::Commit));
            self.desk.count("transactions rolled back when asked", said(Decision::RollBack));
        }
    }
}
