//! The world: virtual time, nodes, and the queue of things to come.
use super::control::WorldConfig;
use super::due::Due;
use super::executor::Executor;
use super::finding::{Finding, FindingKind};
use super::fs::{Disk, DiskEvent};
use super::net::{Net, NetworkEvent};
use super::node::{NODES_PER_SUBNET, Node, NodeId};
use super::probes::Probes;
use super::rand::{Rng, Source};
use super::table::Table;
use super::timer::TimerKey;
use super::trace::{Checkpoint, Event, Trace};
use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::task::Waker;
use std::time::Duration;

/// An instant that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// Nodes of one world: their addresses are 10.0.0.1 to 10.0.7.254 (see [`NodeId::ip`]).
pub(crate) const NODES_MAX: usize = 8 * NODES_PER_SUBNET;

thread_local! {
    static WORLD: Cell<*const World> = const { Cell::new(std::ptr::null()) };
}

/// What will happen at a known world time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coming {
    /// Given to [`Net::deliver`].
    Network(NetworkEvent),
    /// Given to [`Disk::deliver`](super::fs::Disk::deliver).
    Disk(DiskEvent),
    /// A slow node has finished its poll: what waited for its processor may run.
    Processor(NodeId),
}

/// Ordered by (time, sequence) only, as one word: a derived order over the event costs a third of an echo benchmark.
struct Entry {
    key: u128,
    what: Coming,
}

impl Entry {
    fn at(&self) -> u64 {
        (self.key >> 64) as u64
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    /// Reversed: std's heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Everything a run consists of. It is not `Send`: a future that holds `&World` across an `.await` cannot be spawned.
pub(crate) struct World {
    /// Seed of every named stream.
    pub seed: u64,
    /// World time in nanoseconds since the start.
    pub now: Cell<u64>,
    /// The node whose code runs, or whose timer fires. Of a packet being delivered it means nothing.
    pub node: Cell<NodeId>,
    /// Slot of the task that is polled; `u32::MAX` outside of a poll.
    pub task: Cell<u32>,
    pub net: RefCell<Net>,
    pub executor: Executor,
    pub probes: RefCell<Probes>,
    pub trace: RefCell<Trace>,
    pub config: WorldConfig,
    /// The first thing that went wrong; it ends the run.
    pub finding: RefCell<Option<Finding>>,
    /// `main` has ended, or something was found: no further turn.
    pub(super) over: Cell<bool>,
    pub(super) stray_clock_reads: Cell<u64>,
    pub(super) stray_entropy_reads: Cell<u64>,
    pub(super) caught_clock_read: RefCell<Option<String>>,
    /// World time of each node's next timer.
    pub(super) timers_due: Due,
    pub(super) on_node_end: RefCell<Vec<super::control::NodeEndHook>>,
    pub(super) on_checkpoint: RefCell<Option<super::control::CheckpointHook>>,
    pub(super) onlooker: RefCell<Option<super::sight::Onlooker>>,
    pub(super) looked_at: Cell<bool>,
    /// The streams opened so far; a draw's event names one by its index.
    pub(super) streams: RefCell<Vec<String>>,
    nodes: Table<OnceCell<Box<Node>>>,
    node_count: Cell<usize>,
    coming: RefCell<BinaryHeap<Entry>>,
    sequence: Cell<u64>,
    time_limit: u64,
    /// madsim's clock follows ours: std's clocks show it in a binary that is linked without the wrap (see `interpose`).
    outer_time: madsim::time::TimeHandle,
}

/// While it lives, the thread is inside the world.
pub(super) struct Entered(*const World);

impl Drop for Entered {
    fn drop(&mut self) {
        WORLD.set(self.0);
    }
}

impl World {
    /// A world without nodes. Call it inside madsim's `block_on`.
    pub(super) fn new(config: WorldConfig) -> World {
        World {
            seed: config.seed,
            now: Cell::new(0),
            node: Cell::new(NodeId::WORLD),
            task: Cell::new(u32::MAX),
            net: RefCell::new(Net::new(config.seed, config.network.clone())),
            executor: Executor::new(config.seed, &config.policy),
            probes: RefCell::new(Probes::new(config.seed, config.buggify)),
            trace: RefCell::default(),
            finding: RefCell::default(),
            over: Cell::new(false),
            stray_clock_reads: Cell::new(0),
            stray_entropy_reads: Cell::new(0),
            caught_clock_read: RefCell::default(),
            time_limit: config
                .limits
                .virtual_time_max
                .map_or(NEVER, |limit| u64::try_from(limit.as_nanos()).unwrap_or(NEVER)),
            timers_due: Due::new(NODES_MAX),
            on_node_end: RefCell::default(),
            on_checkpoint: RefCell::default(),
            onlooker: RefCell::default(),
            looked_at: Cell::new(false),
            streams: RefCell::default(),
            nodes: Table::new(NODES_MAX, OnceCell::new),
            node_count: Cell::new(0),
            coming: RefCell::default(),
            sequence: Cell::new(0),
            outer_time: madsim::time::TimeHandle::current(),
            config,
        }
    }

    pub(super) fn enter(&self) -> Entered {
        Entered(WORLD.replace(self))
    }

    /// Adds a machine that is up and runs nothing.
    ///
    /// # Panics
    /// If the world is full, or has a node of that name.
    pub(crate) fn add_node(&self, name: &str) -> NodeId {
        let index = self.node_count.get();
        assert!(self.node_named(name).is_none(), "there is a node {name} already");
        assert!(index < NODES_MAX, "a world has at most {NODES_MAX} nodes");
        let node = NodeId::new(index);
        assert!(self.nodes.at(index).set(Box::new(Node::new(node, name, &self.config))).is_ok(), "node {index} exists");
        self.node_count.set(index + 1);
        node
    }

    /// How many nodes there are; their ids are `0..count`.
    pub(crate) fn node_count(&self) -> usize {
        self.node_count.get()
    }

    /// The node of that name.
    pub(crate) fn node_named(&self, name: &str) -> Option<NodeId> {
        (0..self.node_count.get()).map(NodeId::new).find(|node| &*self.at(*node).name == name)
    }

    /// The node of that id.
    #[inline]
    pub(crate) fn at(&self, node: NodeId) -> &Node {
        self.nodes.at(node.index()).get().expect("a NodeId is made by add_node only")
    }

    /// The node whose code runs.
    #[inline]
    pub(crate) fn here(&self) -> &Node {
        self.at(self.node.get())
    }

    /// Feeds the trace: who (the current node and task), when, and one word that says what.
    #[inline]
    pub(crate) fn record(&self, event: Event, what: u64) {
        self.record_as(event, self.task.get(), what);
    }

    /// As [`record`](Self::record), with `low` in the place of the task.
    #[inline]
    pub(crate) fn record_as(&self, event: Event, low: u32, what: u64) {
        let due = self.trace.borrow_mut().record(event, self.node.get(), low, self.now.get(), what);
        if let Some(checkpoint) = due {
            self.checkpoint(checkpoint);
        }
    }

    #[cold]
    fn checkpoint(&self, checkpoint: Checkpoint) {
        // Taken out while it runs, so that it may read the trace's tail, and so that it is never entered twice.
        let Some(mut hook) = self.on_checkpoint.take() else { return };
        hook(checkpoint);
        self.on_checkpoint.borrow_mut().get_or_insert(hook);
    }

    /// Lets `what` happen at world time `at` (nanoseconds); things of one instant happen in the order of these calls.
    pub(crate) fn schedule(&self, at: u64, what: Coming) {
        assert!(at >= self.now.get(), "scheduled into the past");
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        self.coming.borrow_mut().push(Entry { key: u128::from(at) << 64 | u128::from(sequence), what });
    }

    /// Opens a named stream of the current node; see [`Source`].
    pub(crate) fn source(&self, name: &str) -> Source {
        let node = self.here();
        let opening = node.count_opening(name);
        let mut streams = self.streams.borrow_mut();
        let index = u32::try_from(streams.len()).expect("streams are fewer than 2^32");
        streams.push(format!("{name}#{opening}"));
        Source::new(Rng::for_node(self.seed, node.id, name, opening), index)
    }

    /// Registers a timer of `node` for its local time `deadline`.
    pub(super) fn add_timer(&self, node: &Node, deadline: u64, waker: &Waker) -> TimerKey {
        let key = node.timers.borrow_mut().insert(deadline, waker.clone());
        if !node.paused.get() {
            self.timers_due.set_sooner(node.id, node.clock.get().world(deadline));
        }
        key
    }

    /// Recomputes when `node`'s next timer fires: after a change of its timers, its clock or its pause.
    pub(super) fn refresh_timers(&self, node: &Node) {
        self.timers_due.set(node.id, node.next_timer());
    }

    /// Moves to the next instant at which something is to happen, and lets everything of that instant happen: then the executor
    /// has all tasks that became ready together to choose from. False: nothing will ever happen.
    pub(super) fn step(&self) -> bool {
        let packet = self.coming.borrow().peek().map_or(NEVER, Entry::at);
        let nodes = self.node_count.get();
        let timer = self.timers_due.first(nodes);
        let at = packet.min(timer);
        if at == NEVER {
            return false;
        }
        if at > self.time_limit {
            self.report_here(FindingKind::TimeLimit, "the run reached its limit of virtual time".to_owned(), None);
            return true;
        }
        self.advance_to(at);
        let now = self.now.get();
        if timer <= now {
            self.timers_due.each_due(nodes, now, |node| self.fire_timers(self.at(node), now));
        }
        if packet <= now {
            self.deliver_due(now);
        }
        true
    }

    fn fire_timers(&self, node: &Node, now: u64) {
        self.node.set(node.id);
        self.task.set(u32::MAX);
        let local = node.clock.get().local(now);
        loop {
            let Some((deadline, waker)) = node.timers.borrow_mut().pop_due(local) else { break };
            self.record(Event::Timer, deadline);
            waker.wake();
        }
        self.refresh_timers(node);
    }

    fn deliver_due(&self, now: u64) {
        self.task.set(u32::MAX);
        loop {
            let what = {
                let mut coming = self.coming.borrow_mut();
                if coming.peek().is_none_or(|entry| entry.at() > now) {
                    return;
                }
                coming.pop().expect("it was peeked").what
            };
            match what {
                Coming::Network(event) => Net::deliver(self, event),
                Coming::Disk(event) => Disk::deliver(self, event),
                Coming::Processor(node) => self.processor_free(self.at(node)),
            }
        }
    }

    fn processor_free(&self, node: &Node) {
        node.processor_awaited.set(false);
        if !node.paused.get() {
            self.executor.unpark(node);
        }
    }

    fn advance_to(&self, at: u64) {
        let now = self.now.get();
        // A resumed or thawed node may have timers of the past: they fire now.
        if at > now {
            self.outer_time.advance(Duration::from_nanos(at - now));
            self.now.set(at);
            self.executor.new_instant();
        }
    }

    /// Ends the run with this finding. The first one stays: what follows it is mostly its consequence.
    pub(super) fn report(&self, finding: Finding) {
        self.finding.borrow_mut().get_or_insert(finding);
        self.over.set(true);
    }

    /// `main` has ended.
    pub(super) fn end_run(&self) {
        self.over.set(true);
    }

    /// The events since the last checkpoint count too.
    pub(super) fn last_checkpoint(&self) {
        let checkpoint = self.trace.borrow().checkpoint();
        self.checkpoint(checkpoint);
    }
}

/// The thread's world, if it is inside one.
#[inline]
pub(crate) fn try_world() -> Option<&'static World> {
    let world = WORLD.get();
    // SAFETY: `Entered` sets the pointer for exactly as long as `run` borrows the world. The reference must not outlive that call:
    // this function is private to the package, `World` is neither Send nor stored anywhere, and callers use it within one poll.
    (!world.is_null()).then(|| unsafe { &*world })
}

/// The thread's world.
///
/// # Panics
/// If the thread is not inside one: start with `rt::world::run` or, in a test, `rt::world::run_test`.
#[inline]
pub(crate) fn world() -> &'static World {
    try_world().expect("not inside a simulation: start one with rt::world::run")
}
