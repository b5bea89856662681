//! Three replicas, three clients, faults; and the judge: is there an order of all operations that a single copy would explain?

use super::client::Client;
use super::replica::{PORT, serve};
use proptest::prelude::{Strategy, any};
use proptest::strategy::BoxedStrategy;
use rt::rand::Rng;
use rt::time::timeout;
use rt::world::WorldConfig;
use serde::{Deserialize, Serialize};
use sim::checker::linearizable::{self, Register, RegisterInput, RegisterOutput, Verdict};
use sim::checker::recovery::{self, Attempt};
use sim::desk::Desk;
use sim::fault::{Fault, swarm::Swarm};
use sim::history::{History, Operation, Outcome, Recorder};
use sim::nemesis::Nemesis;
use sim::report::Report;
use sim::scenario::Scenario;
use sim::verdict::{EventId, Violation};
use std::net::SocketAddr;
use std::time::Duration;

const REPLICAS: [&str; 3] = ["replica-1", "replica-2", "replica-3"];
const CLIENTS: [&str; 3] = ["client-1", "client-2", "client-3"];
const KEYS: [&str; 2] = ["apple", "pear"];
/// A client gives up after that, and never learns what became of it.
const PATIENCE: Duration = Duration::from_secs(1);
/// After the faults every operation succeeds from then on.
const RECOVERY_MAX: Duration = Duration::from_secs(2);
/// Configurations that the search for an order looks at before it gives up.
const SEARCH_MAX: usize = 200_000;
/// Events that a violation shows.
const EVIDENCE_MAX: usize = 12;

/// Everything that a run depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    schedule_seed: u64,
    /// How long until all heals.
    #[serde(with = "sim::duration")]
    faulty: Duration,
    faults: Vec<Fault>,
}

/// The claim about the store, or about the store with its bug.
#[derive(Debug, Clone, Copy)]
pub struct KeyValue {
    /// Its name on the command line.
    pub name: &'static str,
    /// See [`Client::writes_back`].
    pub writes_back: bool,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// To set a key.
    Put(&'static str, String),
    /// For the value of a key.
    Get(&'static str),
}

impl Ask {
    fn key(&self) -> &'static str {
        match self {
            Ask::Put(key, _) | Ask::Get(key) => key,
        }
    }
}

/// What it is told: of a put nothing, of a get the value.
type Told = Option<String>;
type Notes = Recorder<Ask, Told>;

async fn workload(desk: Desk, notes: Notes, plan: Plan, writes_back: bool) -> Duration {
    let observer = notes.clone();
    let mut nemesis = Nemesis::new(&desk, move |node, event| observer.node(node, event));
    let mut replicas = Vec::new();
    for name in REPLICAS {
        let node = rt::world::add_node(name);
        let notes = notes.clone();
        let boot = move || {
            let notes = notes.clone();
            drop(rt::world::spawn_on(node, async move {
                let Err(error) = serve().await;
                notes.node(name, &format!("ends: {error}"));
            }));
        };
        boot();
        nemesis = nemesis.node(name, node, boot);
        replicas.push(SocketAddr::new(rt::world::ip(node), PORT));
    }
    let (stop, stopped) = rt::sync::watch::channel(None);
    let mut clients = Vec::new();
    for (id, name) in (1..).zip(CLIENTS) {
        let node = rt::world::add_node(name);
        nemesis = nemesis.node(name, node, || {});
        let client = Client { replicas: replicas.clone(), id, counter: 0, writes_back };
        clients.push(rt::world::spawn_on(node, operate(name, client, notes.clone(), stopped.clone())));
    }
    let loose = nemesis.release(&plan.faults).expect("faults name these nodes");
    rt::time::sleep(plan.faulty).await;
    loose.heal().await;
    let healed_at = rt::world::elapsed();
    stop.send_replace(Some(healed_at + RECOVERY_MAX + PATIENCE));
    for client in clients {
        client.await.expect("clients have no fault that ends them");
    }
    healed_at
}

/// Puts and gets until the time that it is told.
async fn operate(
    name: &'static str,
    mut client: Client,
    notes: Notes,
    stopped: rt::sync::watch::Receiver<Option<Duration>>,
) {
    let mut random = rt::rand::stream("operations");
    for number in 1.. {
        if stopped.borrow().is_some_and(|end| rt::world::elapsed() >= end) {
            return;
        }
        rt::time::sleep(Duration::from_millis(random.random_range(1..150))).await;
        let key = KEYS[random.random_range(0..KEYS.len())];
        if random.random_bool(0.4) {
            // Each value is put once: a get that answers it names its put.
            let value = format!("{name}/{number}");
            let pending = notes.invoke(name, Ask::Put(key, value.clone()));
            match timeout(PATIENCE, client.put(key, value)).await {
                Ok(Ok(())) => pending.ok(None),
                Ok(Err(error)) => pending.unknown(error.to_string()),
                Err(_) => pending.unknown("time-out"),
            }
        } else {
            let pending = notes.invoke(name, Ask::Get(key));
            match timeout(PATIENCE, client.get(key)).await {
                Ok(Ok(value)) => pending.ok(value),
                Ok(Err(error)) => pending.fail(error.to_string()),
                Err(_) => pending.fail("time-out"),
            }
        }
    }
}

fn judge(history: &History<Ask, Told>, healed_at: Duration, desk: &Desk) -> Vec<Violation> {
    let operations = history.operations();
    let stale = KEYS.into_iter().filter_map(|key| explain(history, &operations, key, desk));
    let attempts: Vec<Attempt> = operations
        .iter()
        .map(|operation| Attempt {
            invoked_at: operation.invoked_at,
            served_at: operation.ended.filter(|_| matches!(operation.outcome, Outcome::Ok(_))).map(|(_, at)| at),
            event: operation.invoked,
        })
        .collect();
    let late = recovery::check(healed_at, RECOVERY_MAX, &attempts).err();
    let late =
        late.map(|late| Violation::new("it serves again", late.to_string()).because(history.evidence(late.events())));
    stale.chain(late).collect()
}

/// Whether one register explains everything that was told about the key. Keys have nothing to do with each other, and a history is
/// linearizable if that of each object is (Herlihy and Wing, 1990): small searches instead of a large one.
fn explain(
    history: &History<Ask, Told>,
    operations: &[Operation<'_, Ask, Told>],
    key: &str,
    desk: &Desk,
) -> Option<Violation> {
    let mut calls = Vec::new();
    for operation in operations.iter().filter(|operation| operation.input.key() == key) {
        let input = match operation.input {
            Ask::Put(_, value) => RegisterInput::Write(Some(value.clone())),
            Ask::Get(_) => RegisterInput::Read,
        };
        let (output, returned) = match (&operation.outcome, operation.ended) {
            (Outcome::Ok(value), Some((event, _))) if input == RegisterInput::Read => {
                (Some(RegisterOutput::Value((*value).clone())), Some(event))
            }
            (Outcome::Ok(_), Some((event, _))) => (Some(RegisterOutput::Written), Some(event)),
            _ => (None, None),
        };
        // A get without an answer changes nothing and tells nothing.
        if returned.is_some() || input != RegisterInput::Read {
            calls.push(linearizable::Call { input, output, invoked: operation.invoked, returned });
        }
    }
    match linearizable::check(&Register { initial: None }, &calls, SEARCH_MAX) {
        Verdict::Linearizable => None,
        Verdict::Undecided => {
            desk.count("keys undecided", 1);
            None
        }
        Verdict::Impossible { events } => {
            let last = *events.last()?;
            let summary = format!("no order of the operations on {key:?} explains #{}, the last line below", last.0);
            let proof = history.evidence(told_before(operations, key, last));
            Some(Violation::new("one copy", summary).because(proof))
        }
    }
}

/// What was last asked and told of the key, up to that event.
fn told_before(operations: &[Operation<'_, Ask, Told>], key: &str, last: EventId) -> Vec<EventId> {
    let of_key = operations.iter().filter(|operation| operation.input.key() == key);
    let mut events: Vec<EventId> = of_key.flat_map(Operation::events).filter(|event| *event <= last).collect();
    events.sort_unstable();
    events.split_off(events.len().saturating_sub(EVIDENCE_MAX))
}

impl Scenario for KeyValue {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        self.name
    }

    fn claim(&self) -> &'static str {
        "three replicas answer like a single copy that never fails, and serve again soon after all has healed"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let swarm = Swarm {
            kinds: vec![
                "crash",
                "power_loss",
                "pause",
                "partition",
                "one_way",
                "isolate",
                "loss",
                "latency",
                "slow_disk",
                "stalled_disk",
                "clock_drift",
            ],
            victims: names(&REPLICAS),
            network: names(&[REPLICAS, CLIENTS].concat()),
            starts: Duration::ZERO..Duration::from_secs(4),
            lasts: Duration::from_millis(50)..Duration::from_secs(3),
            faults_max: 8,
        };
        let plan =
            |(schedule_seed, seconds, faults)| Plan { schedule_seed, faulty: Duration::from_secs(seconds), faults };
        (any::<u64>(), 3..7_u64, swarm.strategy()).prop_map(plan).boxed()
    }

    fn run(&self, plan: &Plan) -> Report {
        let (desk, writes_back) = (Desk::new(), self.writes_back);
        let notes = Recorder::new(desk.signals());
        let config = WorldConfig { seed: plan.schedule_seed, ..WorldConfig::default() };
        let work = (desk.clone(), notes.clone(), plan.clone());
        let (healed_at, report) = desk.run(config, move || workload(work.0, work.1, work.2, writes_back));
        let history = notes.take();
        let violations = healed_at.map_or_else(Vec::new, |healed_at| judge(&history, healed_at, &desk));
        desk.judged(report, &history, violations)
    }
}
