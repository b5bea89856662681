//! Scenarios from `cargo test`.
//!
//! The test harness has threads and has run other tests, so a claim is not run in its process: the test starts its own executable
//! again as a worker ([`crate::worker::process`]) with the name of one test that serves. That test does nothing when people run
//! it. It works in any integration test with the standard harness:
//!
//! ```text
//! use sim::scenario::Registry;
//! use sim::testing::Stand;
//!
//! fn registry() -> Registry {
//!     Registry::new("cargo sim")
//! }
//! const STAND: Stand = Stand::new(registry, "worker");
//!
//! #[test]
//! fn worker() {
//!     STAND.serve();
//! }
//!
//! #[test]
//! fn acked_write_survives_power_loss() {
//!     STAND.holds("acked_write_survives_power_loss", 20);
//! }
//! ```
//!
//! `HOTFIRE_SEED=N` runs that seed only, `HOTFIRE_SEEDS=N` that many, in every test. A test that fails shrinks its case for
//! `HOTFIRE_SHRINK` (20 s) and says where the small one is.

mod failure;

use crate::error::WorkerError;
use crate::plan::Case;
use crate::report::Report;
use crate::scenario::Registry;
use crate::worker::process::{Launch, Process, descriptor, serve};
use crate::worker::{Limits, Run, Task};
use failure::explain;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// The scenarios of a test executable, and the full name of its test that serves.
#[derive(Debug, Clone, Copy)]
pub struct Stand {
    registry: fn() -> Registry,
    worker: &'static str,
}

impl Stand {
    /// `worker` is the path of the serving test as the harness shows it: `worker`, or `module::worker`.
    pub const fn new(registry: fn() -> Registry, worker: &'static str) -> Stand {
        Stand { registry, worker }
    }

    /// The body of the serving test: does nothing unless this process was started as a worker.
    ///
    /// # Panics
    /// If the conversation with the test breaks off.
    pub fn serve(&self) {
        if let Some(descriptor) = descriptor() {
            serve(&(self.registry)(), descriptor).expect("the test that asked reads the answers");
        }
    }

    /// How this executable is started as a worker.
    pub fn launch(&self) -> Launch {
        Launch::this_test(self.worker)
    }

    /// Demands that no seed violates anything, of `seeds` seeds from 0, or of those that the environment names.
    ///
    /// # Panics
    /// With the violation, its evidence, a small case and the commands that reproduce it.
    pub fn holds(&self, scenario: &str, seeds: u64) {
        for run in self.runs(scenario, seeds_of_environment().unwrap_or(0..seeds)) {
            assert!(run.report.is_clean(), "{}", explain(&(self.registry)(), &self.launch(), &run));
        }
    }

    /// Demands that a planted bug is found by that invariant within `seeds` seeds; gives the first seed that shows it.
    ///
    /// # Panics
    /// If it is not found, or something else is.
    pub fn finds(&self, scenario: &str, invariant: &str, seeds: u64) -> u64 {
        let runs = self.runs(scenario, 0..seeds);
        let Some(run) = runs.iter().find(|run| !run.report.is_clean()) else {
            panic!("{scenario} shows no violation in {seeds} seeds; expected {invariant:?}");
        };
        let found = &run.report.violations[0].invariant;
        assert_eq!(found, invariant, "{}", explain(&(self.registry)(), &self.launch(), run));
        run.task.seed().expect("it was run by its seed")
    }

    /// Runs a case file and gives its report.
    ///
    /// # Panics
    /// If the file cannot be read or its scenario is unknown.
    pub fn replay(&self, file: &Path) -> Report {
        let case = Case::load(file).unwrap_or_else(|error| panic!("{error}"));
        let mut runs = self.ask(vec![Task::Plan(case)]).unwrap_or_else(|error| panic!("{error}"));
        runs.pop().expect("one task, one run").report
    }

    /// The runs of these seeds in the order of seeds, up to the first violation.
    fn runs(&self, scenario: &str, seeds: Range<u64>) -> Vec<Run> {
        let tasks = seeds.map(|seed| Task::Seed { scenario: scenario.to_owned(), seed }).collect();
        self.ask(tasks).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ask(&self, tasks: Vec<Task>) -> Result<Vec<Run>, WorkerError> {
        // The harness runs as many tests at a time as there are processors: each has one child at a time.
        let limits = Limits { jobs: NonZeroUsize::MIN, ..Limits::of_this_machine() };
        let mut runs = Vec::new();
        Process::start(&self.launch())?.run(tasks, limits, true, |run| {
            runs.push(run);
            ControlFlow::Continue(())
        })?;
        Ok(runs)
    }
}

fn seeds_of_environment() -> Option<Range<u64>> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text:?} is not a number")))
    };
    match (number("HOTFIRE_SEED"), number("HOTFIRE_SEEDS")) {
        (Some(seed), _) => Some(seed..seed + 1),
        (None, Some(seeds)) => Some(0..seeds),
        (None, None) => None,
    }
}
