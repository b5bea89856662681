//! One forked child a seed, from a parent that has never run one.
//!
//! A run leaves traces in its process: statics, thread-local caches, thread ids. So each run gets a child forked from one clean
//! image, and in the child a fresh thread; then a seed gives the same run alone and as the n-th of a batch. The child hands its
//! [`Report`] back by a pipe. A child that dies (stack overflow, abort, out of memory) or does not answer in time (an endless loop
//! in one poll) is a violation of its seed, not an error of the campaign.
//!
//! The command line forks by itself ([`run`]). `cargo test` has threads and has run other things, so a test talks to a worker
//! *process* ([`process`]): the same executable, started again, which does nothing but fork.

mod fork;
pub mod process;

use crate::error::{UnknownScenario, WorkerError};
use crate::plan::Case;
use crate::report::Report;
use crate::scenario::{Entry, Registry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

/// The run's child died or did not answer.
pub const PROCESS: &str = "the process survives";
/// The code that judges (or the program, outside of its world) panicked.
pub const NO_PANIC: &str = "nothing panics";

/// What children may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Children at a time.
    pub jobs: NonZeroUsize,
    /// A child that takes longer by the wall clock is killed.
    #[serde(with = "crate::duration")]
    pub wall_clock: Duration,
    /// Address space of a child in bytes.
    pub memory_bytes: u64,
}

impl Limits {
    /// One child a processor, a minute each, 8 GiB.
    pub fn of_this_machine() -> Limits {
        let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Limits { jobs, wall_clock: Duration::from_secs(60), memory_bytes: 8 << 30 }
    }
}

/// What a child is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The plan that this seed draws.
    Seed {
        /// Of the scenario.
        scenario: String,
        /// The seed.
        seed: u64,
    },
    /// A plan as it stands.
    Plan(Case),
}

impl Task {
    /// The scenario it belongs to.
    pub fn scenario(&self) -> &str {
        match self {
            Task::Seed { scenario, .. } => scenario,
            Task::Plan(case) => &case.scenario,
        }
    }

    /// The seed that draws, or drew, its plan.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Task::Seed { seed, .. } => Some(*seed),
            Task::Plan(case) => case.seed,
        }
    }
}

/// A finished child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What it ran.
    pub task: Task,
    /// What came of it.
    pub report: Report,
    /// How long it took by the wall clock.
    #[serde(with = "crate::duration")]
    pub real_time: Duration,
}

impl Run {
    /// Its plan as a case that names what it violates.
    pub fn case(&self, registry: &Registry) -> Result<Case, UnknownScenario> {
        let mut case = match &self.task {
            Task::Seed { scenario, seed } => registry.get(scenario)?.case(*seed),
            Task::Plan(case) => case.clone(),
        };
        case.violates = self.report.violations.first().map(|violation| violation.invariant.clone());
        Ok(case)
    }
}

/// Runs each task in a child, up to `limits.jobs` at a time, and gives each result to `sink` in the order in which they end, until
/// the tasks are used up or the sink breaks off (children that still run are then killed).
///
/// # Panics
/// If this process has run a world itself: then its children would not start from a clean image.
pub fn run(
    registry: &Registry,
    limits: Limits,
    tasks: impl IntoIterator<Item = Task>,
    sink: impl FnMut(Run) -> ControlFlow<()>,
) -> Result<(), WorkerError> {
    run_with(registry, limits, &|| {}, tasks, sink)
}

/// As [`run`]; each child first calls `prepare` on the thread of its run (say, to install a log).
pub fn run_with(
    registry: &Registry,
    limits: Limits,
    prepare: &(dyn Fn() + Sync),
    tasks: impl IntoIterator<Item = Task>,
    mut sink: impl FnMut(Run) -> ControlFlow<()>,
) -> Result<(), WorkerError> {
    let work = |task: &Task| {
        prepare();
        perform(registry, task)
    };
    let mut pool = fork::Pool::new(limits, &work);
    let mut tasks = tasks.into_iter().fuse();
    loop {
        while pool.has_room() {
            let Some(task) = tasks.next() else { break };
            registry.get(task.scenario())?;
            pool.start(task)?;
        }
        if pool.is_idle() {
            return Ok(());
        }
        for run in pool.wait()? {
            if sink(run).is_break() {
                return Ok(());
            }
        }
    }
}

/// Where runs are made.
#[derive(Debug)]
pub enum Workers<'a> {
    /// In children of this process: see [`run`].
    Here(&'a Registry),
    /// In children of a worker process.
    There(&'a mut process::Process),
}

impl Workers<'_> {
    /// The runs of all tasks, in the order of the tasks.
    pub fn run_all(&mut self, limits: Limits, tasks: Vec<Task>) -> Result<Vec<Run>, WorkerError> {
        let mut runs = Vec::new();
        let sink = |run| {
            runs.push(run);
            ControlFlow::Continue(())
        };
        match self {
            Workers::Here(registry) => run(registry, limits, tasks.clone(), sink)?,
            Workers::There(process) => process.run(tasks.clone(), limits, false, sink)?,
        }
        runs.sort_by_key(|run| tasks.iter().position(|task| *task == run.task));
        Ok(runs)
    }
}

/// Runs a range of seeds of one scenario; see [`run`].
pub fn run_seeds(
    registry: &Registry,
    scenario: &str,
    seeds: impl IntoIterator<Item = u64>,
    limits: Limits,
    sink: impl FnMut(Run) -> ControlFlow<()>,
) -> Result<(), WorkerError> {
    let tasks = seeds.into_iter().map(|seed| Task::Seed { scenario: scenario.to_owned(), seed });
    run(registry, limits, tasks, sink)
}

/// Runs `work` on a fresh thread of one child and waits for its end; how it died, if it did.
pub(crate) fn fork_once(work: impl FnOnce() -> Result<(), WorkerError> + Send) -> Result<Option<String>, WorkerError> {
    let process = fork::fork(|| {
        // The near end notices a conversation that breaks off.
        let _ = fork::on_fresh_thread(work);
    })?;
    let status = fork::wait_for(process)?;
    Ok((status != 0).then(|| fork::describe(status)))
}

/// In the child: draws, runs, judges.
fn perform(registry: &Registry, task: &Task) -> Report {
    let entry = registry.get(task.scenario()).expect("the parent asked the same registry");
    match task {
        Task::Seed { seed, .. } => judged(&entry, &entry.draw(*seed)),
        Task::Plan(case) => judged(&entry, &case.plan),
    }
}

fn judged(entry: &Entry<'_>, plan: &Value) -> Report {
    entry.run(plan).unwrap_or_else(|error| Report::broken(PLAN_FITS, error.to_string()))
}

/// Runs a plan on this thread of a child; whatever happens becomes the report.
pub(crate) fn run_here(entry: &Entry<'_>, plan: &Value) -> Report {
    fork::caught(|| judged(entry, plan))
}

/// The plan in a case file cannot be read by its scenario.
pub const PLAN_FITS: &str = "the plan fits its scenario";
