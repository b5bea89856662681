//! The public control surface of a world, for the simulator and for tests: [`crate::world`].
use super::clock::{Clock, ClockConfig};
use super::crash::{CrashKind, CrashPoint, NodeEnd};
use super::finding::Finding;
use super::fs::DiskConfig;
use super::net::NetworkConfig;
use super::node::NodeId;
use super::policy::Policy;
use super::probes::{Buggify, ProbeReport};
use super::task::JoinHandle;
use super::trace::{Checkpoint, Event, TraceEvent, tail};
use super::world::{World, try_world, world};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Everything that a run depends on, besides the program.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Seed of every random choice.
    pub seed: u64,
    /// Which ready task runs next.
    pub policy: Policy,
    /// The wires before any fault.
    pub network: NetworkConfig,
    /// The disks before any fault.
    pub disk: DiskConfig,
    /// Wall clock of every node at the start, in milliseconds since 1970. In the 2020s, where certificates are valid.
    pub start_unix_ms: i64,
    /// When a run is given up.
    pub limits: Limits,
    /// Feed the bytes of packets and disk writes into the trace, not only their lengths.
    pub hash_payload: bool,
    /// Lets [`buggify!`](crate::buggify!) sites deviate; `None`: none does.
    pub buggify: Option<Buggify>,
    /// Findings have a backtrace (slow).
    pub backtraces: bool,
    /// Keep a backtrace of the n-th clock read that went past `rt::time`: who is it?
    pub catch_clock_read: Option<u64>,
}

impl Default for WorldConfig {
    fn default() -> WorldConfig {
        WorldConfig {
            seed: 1,
            policy: Policy::default(),
            network: NetworkConfig::default(),
            disk: DiskConfig::default(),
            start_unix_ms: 1_790_000_000_000,
            limits: Limits::default(),
            hash_payload: false,
            buggify: None,
            backtraces: false,
            catch_clock_read: None,
        }
    }
}

/// When a run is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Polls without time moving on; beyond, the run is a livelock.
    pub polls_per_instant_max: u64,
    /// Virtual time; `None`: as long as it takes.
    pub virtual_time_max: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { polls_per_instant_max: 1_000_000, virtual_time_max: None }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome<T> {
    /// Of `main`; `None` if a finding ended the run before.
    pub value: Option<T>,
    /// The first thing that went wrong.
    pub finding: Option<Finding>,
    /// Hash over every event: equal for equal configurations and programs.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// How many polls.
    pub polls: u64,
    /// World time at the end.
    pub virtual_time: Duration,
    /// The marks that were reached.
    pub probes: ProbeReport,
    /// Clock reads that went past `rt::time` (0 in a binary without the link flag of `build.rs`).
    pub stray_clock_reads: u64,
    /// Entropy that dependencies drew by system call.
    pub stray_entropy_reads: u64,
    /// The backtrace asked for by [`WorldConfig::catch_clock_read`].
    pub caught_clock_read: Option<String>,
}

/// Learns of the hash.
pub(super) type CheckpointHook = Box<dyn FnMut(Checkpoint)>;

/// Learns of ends of nodes.
pub(super) type NodeEndHook = Box<dyn FnMut(NodeEnd)>;

/// Adds a machine that is up and runs nothing; its address is [`ip`].
///
/// # Panics
/// If the world has 2,032 nodes, or one of that name.
pub fn add_node(name: &str) -> NodeId {
    world().add_node(name)
}

/// As [`add_node`], with clocks of its own: another time of day, another rate, another time since its boot.
///
/// # Panics
/// As [`add_node`], and if the configuration is out of its bounds.
pub fn add_node_with_clock(name: &str, clock: ClockConfig) -> NodeId {
    let world = world();
    let node = world.add_node(name);
    fault(world, node, 9 | (clock.drift_ppm as u64) << 8);
    fault(world, node, 10 | (clock.wall_ahead_ms as u64) << 8);
    let unix_ns = world.at(NodeId::WORLD).clock.get().unix_nanos(world.now.get());
    world.at(node).clock.set(Clock::added(clock, unix_ns, world.now.get()));
    node
}

/// The name given to the node.
pub fn node_name(node: NodeId) -> Arc<str> {
    Arc::clone(&world().at(node).name)
}

/// The node's address: 10.0.0.1 is the world's own, the next is that of the first node added; 10.0.1.1 follows 10.0.0.254.
pub fn ip(node: NodeId) -> IpAddr {
    node.ip()
}

/// The node whose code runs.
pub fn current_node() -> NodeId {
    world().node.get()
}

/// Every node, in the order of adding, the world's own first.
pub fn nodes() -> Vec<NodeId> {
    (0..world().node_count()).map(NodeId::new).collect()
}

/// Starts a task on `node`, and the node first if it was without power.
pub fn spawn_on<F>(node: NodeId, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    super::task::spawn_on(node, future)
}

/// How many tasks the node has: 0 means that its program has ended.
pub fn tasks(node: NodeId) -> usize {
    world().executor.tasks_of(node)
}

/// How many timers of the node are to come: a leak shows here.
pub fn timers(node: NodeId) -> usize {
    world().at(node).timers.borrow().len()
}

/// Ends the node's process: the kernel keeps the page cache and resets the sockets. Of the current node: when its poll returns.
///
/// # Panics
/// For [`NodeId::WORLD`], which has no faults.
pub fn crash(node: NodeId) {
    world().end_node(node, CrashKind::Process);
}

/// Cuts the node's power: what was not synced may be lost, sockets go silent, the node is dark until [`power_on`] or the next
/// [`spawn_on`]. Of the current node: when its poll returns.
///
/// # Panics
/// For [`NodeId::WORLD`], which has no faults.
pub fn power_loss(node: NodeId) {
    world().end_node(node, CrashKind::Power);
}

/// Boots a node that lost power: its kernel answers again, no program runs.
pub fn power_on(node: NodeId) {
    let world = world();
    fault(world, node, 1);
    world.at(node).up.set(true);
}

/// Whether the node's kernel answers: false only without power.
pub fn is_up(node: NodeId) -> bool {
    world().at(node).up.get()
}

/// How often the node was ended.
pub fn incarnation(node: NodeId) -> u32 {
    world().at(node).incarnation.get()
}

/// Crashes the node at a point of its own code, once. A later call replaces the point of the same sort; any end of the node
/// forgets it.
///
/// # Panics
/// For [`NodeId::WORLD`], which has no faults, and for the 0th point.
pub fn crash_at(node: NodeId, point: CrashPoint, kind: CrashKind) {
    assert!(node != NodeId::WORLD, "the world's own node has no faults");
    let node = world().at(node);
    match point {
        CrashPoint::DiskOperation(nth) => node.disk_operations.arm(nth, kind),
        CrashPoint::Packet(nth) => node.packets.arm(nth, kind),
    }
}

/// Forgets the crash points of the node that were not reached.
pub fn forget_crash_points(node: NodeId) {
    let node = world().at(node);
    node.disk_operations.disarm();
    node.packets.disarm();
}

/// Disk operations of the node so far, over all incarnations: how many crash points a scenario has.
pub fn disk_operations(node: NodeId) -> u64 {
    world().at(node).disk_operations.count()
}

/// Segments that the node has sent so far, over all incarnations.
pub fn packets(node: NodeId) -> u64 {
    world().at(node).packets.count()
}

/// Calls `hook` after each end of a node, whoever caused it. It may start the node again.
pub fn on_node_end(hook: impl FnMut(NodeEnd) + 'static) {
    world().on_node_end.borrow_mut().push(Box::new(hook));
}

/// Stops polling the node's tasks and firing its timers; its clocks go on, its kernel goes on answering.
///
/// # Panics
/// For [`NodeId::WORLD`], which has no faults.
pub fn pause(node: NodeId) {
    assert!(node != NodeId::WORLD, "the world's own node has no faults");
    let world = world();
    fault(world, node, 2);
    world.at(node).paused.set(true);
    world.refresh_timers(world.at(node));
}

/// Ends a pause. Timers that became due meanwhile fire at once.
pub fn resume(node: NodeId) {
    let world = world();
    fault(world, node, 3);
    let node = world.at(node);
    node.paused.set(false);
    world.refresh_timers(node);
    world.executor.unpark(node);
}

/// Makes each poll of the node's tasks take that long on its single processor; zero is endless speed.
pub fn set_poll_cost(node: NodeId, cost: Duration) {
    let world = world();
    let nanos = u64::try_from(cost.as_nanos()).expect("a poll takes less than 500 years");
    fault(world, node, 4 | nanos << 8);
    world.at(node).poll_cost.set(nanos);
}

/// Asks the node's program to end: [`rt::signal::termination`](crate::signal::termination) returns there. Nobody hears it on a node
/// without power, nor does the program that is started there later.
pub fn request_stop(node: NodeId) {
    let world = world();
    if !world.at(node).up.get() {
        return;
    }
    fault(world, node, 5);
    let node = world.at(node);
    node.stop_requested.set(true);
    for waiter in node.stop_waiters.take() {
        waiter.wake();
    }
}

/// World time since the start. No clock fault touches it.
pub fn elapsed() -> Duration {
    Duration::from_nanos(world().now.get())
}

/// Lets both clocks of the node run `ppm` millionths faster than the world (slower if negative), from now on.
///
/// # Panics
/// Below -1,000,000: clocks do not run backwards.
pub fn set_clock_drift_ppm(node: NodeId, ppm: i64) {
    let world = world();
    fault(world, node, 6 | (ppm as u64) << 8);
    let node = world.at(node);
    node.clock.set(node.clock.get().with_drift(world.now.get(), ppm));
    world.refresh_timers(node);
}

/// Moves the node's wall clock, forward or back. Timers do not notice.
pub fn step_wall_clock(node: NodeId, by_ms: i64) {
    let world = world();
    fault(world, node, 7 | (by_ms as u64) << 8);
    let node = world.at(node);
    node.clock.set(node.clock.get().with_wall_step(by_ms.saturating_mul(1_000_000)));
}

/// Stops both clocks of the node, and so its timers, until [`thaw_clock`].
pub fn freeze_clock(node: NodeId) {
    set_frozen(node, true);
}

/// Lets frozen clocks go on from where they stand.
pub fn thaw_clock(node: NodeId) {
    set_frozen(node, false);
}

fn set_frozen(node: NodeId, frozen: bool) {
    let world = world();
    fault(world, node, 8 | u64::from(frozen) << 8);
    let node = world.at(node);
    node.clock.set(node.clock.get().with_frozen(world.now.get(), frozen));
    world.refresh_timers(node);
}

fn fault(world: &World, node: NodeId, what: u64) {
    world.record_as(Event::Fault, node.index() as u32, what);
}

/// The node's wall clock in nanoseconds since 1970, seen from outside.
pub fn unix_nanos_of(node: NodeId) -> i64 {
    let world = world();
    world.at(node).clock.get().unix_nanos(world.now.get())
}

/// Calls `hook` with the hash after every 1,024 events and at the end of the run; it replaces an earlier one. The hook may look
/// at [`trace_tail`], wait for another process, and end this one; it must not touch the world in any other way.
pub fn on_checkpoint(hook: impl FnMut(Checkpoint) + 'static) {
    world().on_checkpoint.replace(Some(Box::new(hook)));
}

/// The last `n` events (at most 4,096), oldest first, for people.
pub fn trace_tail(n: usize) -> Vec<TraceEvent> {
    tail(world(), n)
}

/// Adds a word of the caller's to the trace: what a harness decided becomes part of the hash.
pub fn record(what: u64) {
    let world = world();
    world.record(Event::Fault, what);
}

/// What a log line begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogContext {
    /// World time.
    pub at: Duration,
    /// Name of the node whose code runs.
    pub node: Arc<str>,
}

/// World time and current node; `None` on a thread that is not inside a world.
pub fn log_context() -> Option<LogContext> {
    try_world()
        .map(|world| LogContext { at: Duration::from_nanos(world.now.get()), node: Arc::clone(&world.here().name) })
}
