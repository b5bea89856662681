//! The nodes that faults act on, and what several faults do to one node at one time.

use super::configuration::Configurations;
use super::layers::Layers;
use super::name_view::View;
use super::signals::Signals;
use crate::atlas::Atlas;
use crate::desk::Desk;
use rt::sync::CancellationToken;
use rt::world::{Bandwidth, DiskLatency, Latency, NodeId, Reordering};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Starts a program with the configuration of that name.
type Boot = Arc<dyn Fn(&str) + Send + Sync>;
type Observer = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Everything that a fault may touch. Clones are the same stage.
#[derive(Clone)]
pub struct Stage {
    nodes: Arc<BTreeMap<String, Machine>>,
    holds: Arc<Mutex<Holds>>,
    desk: Desk,
    healing: CancellationToken,
    observer: Observer,
    atlas: Atlas,
}

#[derive(Clone)]
struct Machine {
    node: NodeId,
    /// Names of its configurations; the first counts without faults.
    configurations: Vec<String>,
    boot: Boot,
}

/// What is held by how many faults, or by which.
#[derive(Debug, Default)]
pub(super) struct Holds {
    down: BTreeMap<NodeId, usize>,
    paused: BTreeMap<NodeId, usize>,
    frozen: BTreeMap<NodeId, usize>,
    /// By how many faults, and since when by the first of them.
    asleep: BTreeMap<NodeId, (usize, Duration)>,
    drift_ppm: BTreeMap<NodeId, i64>,
    pub(super) loss_ppm: Layers<Link, u32>,
    pub(super) latency: Layers<Link, Latency>,
    pub(super) poll_cost: Layers<NodeId, Duration>,
    pub(super) disk_latency: Layers<NodeId, DiskLatency>,
    pub(super) open_files: Layers<NodeId, u64>,
    pub(super) bandwidth: Layers<Link, Bandwidth>,
    pub(super) duplicate_ppm: Layers<Link, u32>,
    pub(super) reordering: Layers<Link, Reordering>,
    pub(super) names: Layers<(NodeId, String), View>,
    pub(super) configurations: Configurations,
    /// How many packet rules faults have set so far.
    rules: u64,
}

/// Both directions between two nodes, whichever of them is named first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) low: NodeId,
    pub(super) high: NodeId,
}

impl Link {
    pub(super) fn between(left: NodeId, right: NodeId) -> Link {
        Link { low: left.min(right), high: left.max(right) }
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stage")
            .field("nodes", &self.nodes.keys().collect::<Vec<_>>())
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}

impl Stage {
    pub(crate) fn new(desk: &Desk, observer: Observer) -> Stage {
        let (nodes, holds) = (Arc::default(), Arc::default());
        let (healing, atlas) = (CancellationToken::new(), Atlas::new());
        Stage { nodes, holds, desk: desk.clone(), healing, observer, atlas }
    }

    pub(crate) fn set_atlas(&mut self, atlas: Atlas) {
        self.atlas = atlas;
    }

    /// What may be damaged.
    pub(crate) fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    pub(crate) fn add(&mut self, name: &str, node: NodeId, configurations: &[&str], boot: Boot) {
        let mut named: Vec<String> = Vec::new();
        for configuration in configurations {
            assert!(!named.iter().any(|other| other == configuration), "{configuration:?} of {name:?} is named twice");
            named.push((*configuration).to_owned());
        }
        assert!(!named.is_empty(), "node {name:?} is started with some configuration");
        let nodes = Arc::make_mut(&mut self.nodes);
        let before = nodes.insert(name.to_owned(), Machine { node, configurations: named, boot });
        assert!(before.is_none(), "node {name:?} is named twice");
    }

    /// The configurations of a node that a fault may start it with: all but the first.
    pub(crate) fn other_configurations(&self, name: &str) -> &[String] {
        &self.machine(name).configurations[1..]
    }

    /// The place of a configuration among those of its node.
    pub(super) fn version(&self, name: &str, configuration: &str) -> Option<usize> {
        self.machine(name).configurations.iter().position(|other| other == configuration)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(crate) fn signals(&self) -> &Signals {
        self.desk.signals()
    }

    /// Adds to a number in the summary of the run.
    pub(crate) fn count(&self, name: &str, more: u64) {
        self.desk.count(name, more);
    }

    pub(crate) fn healing(&self) -> &CancellationToken {
        &self.healing
    }

    pub(crate) fn tell(&self, node: &str, event: &str) {
        (self.observer)(node, event);
    }

    /// The node of that name. The nemesis has checked that every name of the schedule is known.
    pub(crate) fn node(&self, name: &str) -> NodeId {
        self.machine(name).node
    }

    /// All nodes but that one.
    pub(crate) fn others(&self, name: &str) -> Vec<NodeId> {
        self.nodes.iter().filter(|(other, _)| *other != name).map(|(_, machine)| machine.node).collect()
    }

    fn machine(&self, name: &str) -> &Machine {
        self.nodes.get(name).unwrap_or_else(|| panic!("a fault names node {name:?}, which is not on the stage"))
    }

    pub(super) fn held<T>(&self, change: impl FnOnce(&mut Holds) -> T) -> T {
        change(&mut self.holds.lock().expect("no code that can panic runs under this lock"))
    }

    /// Waits until the fault is to heal.
    pub(crate) async fn hold(&self, lasts: Duration) {
        let _ = self.unless_healed(rt::time::sleep(lasts)).await;
    }

    /// The future's result, or none if all is to heal first.
    pub(crate) async fn unless_healed<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        rt::select! {
            () = self.healing.cancelled() => None,
            result = future => Some(result),
        }
    }

    /// Lets `setting` count for `target` until the fault is to heal. `apply` is given what counts from now on, none for as usual:
    /// of several faults that set one thing of one target, the last one begun that is not over.
    pub(super) async fn set<K: Clone + Ord, V: Copy>(
        &self,
        layers: impl Fn(&mut Holds) -> &mut Layers<K, V>,
        target: K,
        setting: V,
        lasts: Duration,
        apply: impl Fn(Option<V>),
    ) {
        let layer = self.held(|holds| layers(holds).lay(target.clone(), setting));
        apply(Some(setting));
        self.hold(lasts).await;
        apply(self.held(|holds| layers(holds).lift(target, layer)));
    }

    /// A name for a packet rule that no other fault has.
    pub(super) fn new_rule(&self) -> String {
        self.held(|holds| {
            holds.rules += 1;
            format!("fault {}", holds.rules)
        })
    }

    /// Takes a node down; how many tasks that ended.
    pub(crate) fn take_down(&self, name: &str, how: impl FnOnce(NodeId)) -> u64 {
        let node = self.node(name);
        let tasks = rt::world::tasks(node) as u64;
        self.held(|holds| *holds.down.entry(node).or_default() += 1);
        how(node);
        tasks
    }

    /// Starts a node again, if no other fault holds it down.
    pub(crate) fn bring_up(&self, name: &str) {
        let machine = self.machine(name);
        if self.held(|holds| release(&mut holds.down, machine.node)) {
            let version = self.held(|holds| holds.configurations.start(machine.node));
            let configuration = &machine.configurations[version];
            match version {
                0 => self.tell(name, "starts"),
                _ => self.tell(name, &format!("starts with configuration {configuration}")),
            }
            (machine.boot)(configuration);
        }
    }

    pub(crate) fn pause(&self, node: NodeId) {
        self.held(|holds| *holds.paused.entry(node).or_default() += 1);
        rt::world::pause(node);
    }

    pub(crate) fn resume(&self, node: NodeId) {
        if self.held(|holds| release(&mut holds.paused, node)) {
            rt::world::resume(node);
        }
    }

    pub(crate) fn freeze(&self, node: NodeId) {
        self.held(|holds| *holds.frozen.entry(node).or_default() += 1);
        rt::world::freeze_clock(node);
    }

    pub(crate) fn thaw(&self, node: NodeId) {
        if self.held(|holds| release(&mut holds.frozen, node)) {
            rt::world::thaw_clock(node);
        }
    }

    /// Stops program and clocks of a node.
    pub(crate) fn suspend(&self, node: NodeId) {
        let now = rt::world::elapsed();
        self.held(|holds| holds.asleep.entry(node).or_insert((0, now)).0 += 1);
        self.pause(node);
        self.freeze(node);
    }

    /// Takes one [`suspend`](Self::suspend) back. With the last one the time of day jumps to the present: by whole milliseconds, as a
    /// time server sets it.
    pub(crate) fn wake(&self, node: NodeId) {
        self.thaw(node);
        let since = self.held(|holds| {
            let (count, since) = holds.asleep.remove(&node).expect("a node is suspended before it is woken");
            if count == 1 {
                return Some(since);
            }
            holds.asleep.insert(node, (count - 1, since));
            None
        });
        if let Some(since) = since {
            let asleep_ms = i64::try_from((rt::world::elapsed() - since).as_millis()).unwrap_or(i64::MAX);
            rt::world::step_wall_clock(node, asleep_ms);
        }
        self.resume(node);
    }

    /// Adds to the node's drift; drifts of several faults add up.
    pub(crate) fn drift(&self, node: NodeId, ppm: i64) {
        let sum = self.held(|holds| {
            let sum = holds.drift_ppm.entry(node).or_default();
            *sum += ppm;
            *sum
        });
        rt::world::set_clock_drift_ppm(node, sum.max(DRIFT_PPM_MIN));
    }
}

/// A clock that goes ten times too slow: a sum of drifts below it would stand still or run backwards.
const DRIFT_PPM_MIN: i64 = -900_000;

/// Takes one hold away; whether it was the last.
fn release(holds: &mut BTreeMap<NodeId, usize>, node: NodeId) -> bool {
    let count = holds.get_mut(&node).expect("a hold is taken before it is released");
    *count -= 1;
    if *count == 0 {
        holds.remove(&node);
    }
    !holds.contains_key(&node)
}

/// How far the node's wall clock is from where it would be without faults, in nanoseconds.
pub(crate) fn wall_clock_error(node: NodeId) -> i64 {
    rt::world::unix_nanos_of(node) - rt::world::unix_nanos_of(NodeId::WORLD)
}
