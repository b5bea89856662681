//! One run: builds the world, lets `main` end, drops what is left.
use super::control::{Outcome, WorldConfig};
use super::crash::end_world;
use super::finding::{FindingKind, install_hook};
use super::node::NodeId;
use super::task::start;
use super::world::{World, try_world};
use madsim::runtime::Runtime;
use std::cell::RefCell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

/// Runs `main` on node 0 of a new world, to its end or to the first finding; see [`crate::world`]. Two worlds of one thread share
/// its thread-locals, so what must be the same in each run needs a fresh thread.
///
/// # Panics
/// Inside a world.
pub fn run<M, F>(config: WorldConfig, main: M) -> Outcome<F::Output>
where
    M: FnOnce() -> F + 'static,
    F: Future + 'static,
{
    let value = Rc::new(RefCell::new(None));
    let output = Rc::clone(&value);
    let future = Box::pin(async move {
        let result = main().await;
        output.replace(Some(result));
        super::world::world().end_run();
    });
    let outcome = run_boxed(config, future);
    outcome.with_value(value.take())
}

/// The run itself, compiled once and not for each `main`.
fn run_boxed(config: WorldConfig, main: Pin<Box<dyn Future<Output = ()>>>) -> Outcome<()> {
    assert!(try_world().is_none(), "a world inside a world");
    install_hook();
    let runtime = Runtime::with_seed_and_config(config.seed, madsim::Config::default());
    runtime.block_on(async move {
        let world = World::new(config);
        let entered = world.enter();
        world.add_node("world");
        start(&world, NodeId::WORLD, main);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drive(&world))) {
            world.report_panic(&*payload);
        }
        end_world(&world);
        world.last_checkpoint();
        let outcome = outcome(&world);
        drop(entered);
        outcome
    })
}

/// Runs `main` with the default configuration, on this thread.
///
/// # Panics
/// With the finding, if there is one: that is how a test fails.
#[track_caller]
pub fn run_test<M, F>(main: M) -> F::Output
where
    M: FnOnce() -> F + 'static,
    F: Future + 'static,
{
    run_test_with(WorldConfig::default(), main)
}

/// As [`run_test`], with a configuration.
///
/// # Panics
/// With the finding, if there is one: that is how a test fails.
#[track_caller]
pub fn run_test_with<M, F>(config: WorldConfig, main: M) -> F::Output
where
    M: FnOnce() -> F + 'static,
    F: Future + 'static,
{
    let outcome = run(config, main);
    match (outcome.value, outcome.finding) {
        (_, Some(finding)) => panic!("{finding}"),
        (value, None) => value.expect("a run without a finding ends with main's value"),
    }
}

fn drive(world: &World) {
    while !world.over.get() {
        if !world.executor.turn(world) && !world.step() {
            let message = deadlock(world);
            world.report_here(FindingKind::Deadlock, message, None);
        }
    }
}

fn deadlock(world: &World) -> String {
    let mut text = "no task is ready and nothing is to come; waiting tasks:".to_owned();
    for index in 0..world.node_count() {
        let node = world.at(NodeId::new(index));
        let tasks = world.executor.tasks_of(node.id);
        if tasks > 0 {
            let paused = if node.paused.get() { " (paused)" } else { "" };
            write!(text, " {} {tasks}{paused}", node.name).expect("a String takes everything");
        }
    }
    text
}

fn outcome(world: &World) -> Outcome<()> {
    let trace = world.trace.borrow().checkpoint();
    Outcome {
        value: None,
        finding: world.finding.take(),
        hash: trace.hash,
        events: trace.events,
        polls: world.executor.polls(),
        virtual_time: Duration::from_nanos(world.now.get()),
        probes: world.probes.borrow_mut().take_report(),
        stray_clock_reads: world.stray_clock_reads.get(),
        stray_entropy_reads: world.stray_entropy_reads.get(),
        caught_clock_read: world.caught_clock_read.take(),
    }
}

impl Outcome<()> {
    fn with_value<T>(self, value: Option<T>) -> Outcome<T> {
        Outcome {
            value,
            finding: self.finding,
            hash: self.hash,
            events: self.events,
            polls: self.polls,
            virtual_time: self.virtual_time,
            probes: self.probes,
            stray_clock_reads: self.stray_clock_reads,
            stray_entropy_reads: self.stray_entropy_reads,
            caught_clock_read: self.caught_clock_read,
        }
    }
}
