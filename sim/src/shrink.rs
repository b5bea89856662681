//! From a failing case to a small one that fails for the same cause.
//!
//! A plan becomes smaller along four axes: its lists of faults and operations lose parts of any size (delta debugging, halves first),
//! the scenario offers what it knows to be simpler ([`Scenario::simpler`](crate::scenario::Scenario::simpler): fewer nodes, a plainer
//! configuration, shorter times), and all of that is tried under a few other schedules. A smaller plan is kept if a run of it violates the same
//! invariant by the same cause ([`Violation::cause`]) and nothing that the case did not violate; a run that fails in some other way is another
//! finding, and not followed.
//!
//! Candidates run side by side, and of those of one wave that fail the first in order is kept: so the way, and the small plan at its
//! end, depend on the number of jobs and on nothing else. Each step is saved at once, as a whole file: who interrupts it goes on from the best so far.

mod parts;

use crate::error::{CaseError, ShrinkError};
use crate::plan::Case;
use crate::report::{Effect, Report};
use crate::scenario::{Entry, Registry};
use crate::text::{align_right, clock, grouped, table};
use crate::verdict::Violation;
use crate::worker::{self, Limits, Task, Workers};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Schedules that smaller plans get besides their own, before they are given up.
pub(crate) const SCHEDULES: RangeInclusive<u64> = 1..=8;

/// How to shrink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What each child may use.
    pub limits: Limits,
    /// When to stop at the latest, by the wall clock.
    pub time: Duration,
    /// Where the small case goes, step by step. A case that is there already and fails in the same way is where it goes on.
    pub file: PathBuf,
}

/// How large a plan and its run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Entries of `faults`.
    pub faults: usize,
    /// What clients do, as the scenario counts it, or entries of `operations`.
    pub operations: usize,
    /// Events of the run.
    pub events: u64,
    /// Virtual time of the run.
    #[serde(with = "crate::duration")]
    pub virtual_time: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Shrunk {
    /// The smallest case found.
    pub case: Case,
    /// What it violates.
    pub violation: Violation,
    /// What its faults did.
    pub effects: Vec<Effect>,
    /// Of the case as it was.
    pub before: Size,
    /// Of the smallest case.
    pub after: Size,
    /// Runs made.
    pub runs: u64,
    /// Whether nothing smaller is left to try, rather than the time being over.
    pub is_smallest: bool,
}

/// Shrinks a failing case by runs of `workers`. `told` hears of each run: how many so far, and the size of the best.
///
/// # Errors
/// The case does not violate anything, its scenario is unknown, or a file or child cannot be used.
pub fn run(
    registry: &Registry,
    workers: Workers<'_>,
    case: &Case,
    options: &Options,
    told: &mut dyn FnMut(u64, &Size),
) -> Result<Shrunk, ShrinkError> {
    let mut search = Search::new(registry, workers, case, options, told)?;
    let before = search.best.size;
    search.go_on_from(&options.file)?;
    let mut is_smallest = true;
    loop {
        let at_first = search.best.plan.clone();
        for list in search.entry.lists() {
            search.leave_out_parts(list)?;
        }
        search.take_what_is_simpler()?;
        if search.is_out_of_time() {
            is_smallest = false;
            break;
        }
        if search.best.plan == at_first {
            break;
        }
    }
    Ok(search.shrunk(before, is_smallest))
}

impl Shrunk {
    /// What a person reads.
    pub fn to_text(&self) -> String {
        let mut table = table(&["", "faults", "operations", "events", "virtual time"]);
        for (name, size) in [("before", &self.before), ("after", &self.after)] {
            table.add_row([
                name.to_owned(),
                size.faults.to_string(),
                size.operations.to_string(),
                grouped(size.events),
                clock(size.virtual_time),
            ]);
        }
        align_right(&mut table, 1..5);
        let end = if self.is_smallest {
            "nothing smaller fails in the same way"
        } else {
            "the time is over; the same command goes on"
        };
        format!("{table}\n\nviolation of {}\n\n{} runs: {end}\n", self.violation, grouped(self.runs))
    }
}

/// A plan that fails as the original does.
struct Best {
    plan: Value,
    violation: Violation,
    effects: Vec<Effect>,
    size: Size,
}

struct Search<'a> {
    workers: Workers<'a>,
    entry: Entry<'a>,
    options: &'a Options,
    told: &'a mut dyn FnMut(u64, &Size),
    original: Case,
    /// What the case violates; what a smaller one must violate too.
    wanted: Violation,
    /// All that the case violates. A smaller one that violates something else as well has left the ground that its scenario speaks of: a
    /// cluster that lacks the slave which its sends wait for, a story that is no longer told.
    known: Vec<Violation>,
    best: Best,
    /// Texts of plans that were run: no plan is run twice.
    tried: BTreeSet<String>,
    runs: u64,
    started: Instant,
}

impl<'a> Search<'a> {
    fn new(
        registry: &'a Registry,
        mut workers: Workers<'a>,
        case: &Case,
        options: &'a Options,
        told: &'a mut dyn FnMut(u64, &Size),
    ) -> Result<Search<'a>, ShrinkError> {
        let entry = registry.get(&case.scenario)?;
        let first = workers.run_all(options.limits, vec![Task::Plan(case.clone())])?.remove(0);
        let Some(violation) = first.report.violations.first().cloned() else {
            return Err(ShrinkError::Clean { scenario: case.scenario.clone() });
        };
        if violation.invariant == worker::PLAN_FITS {
            return Err(ShrinkError::Unfit { reason: violation.summary });
        }
        let original = first.case(registry)?;
        let size = size(entry, &case.plan, &first.report)?;
        let best = Best { plan: case.plan.clone(), size, violation, effects: first.report.effects.clone() };
        Ok(Search {
            workers,
            entry,
            options,
            told,
            original,
            wanted: best.violation.clone(),
            known: first.report.violations,
            tried: BTreeSet::from([case.plan.to_string()]),
            best,
            runs: 1,
            started: Instant::now(),
        })
    }

    /// Takes the case of an earlier, interrupted search, if it fails in the same way.
    fn go_on_from(&mut self, file: &Path) -> Result<(), ShrinkError> {
        if !file.exists() {
            return Ok(());
        }
        let earlier = Case::load(file)?;
        if earlier.scenario == self.original.scenario {
            // Whatever the time: what it has found must not be written over.
            self.try_wave(&[earlier.plan])?;
        }
        Ok(())
    }

    /// Leaves parts of a list out: all of it, halves, quarters, down to single entries, and again what a success has made possible.
    fn leave_out_parts(&mut self, list: &str) -> Result<(), ShrinkError> {
        let mut size = parts::length(&self.best.plan, list);
        while size > 0 {
            let smaller = parts::without_parts(&self.best.plan, list, size);
            if self.is_out_of_time() {
                return Ok(());
            }
            if !self.first_that_fails(smaller)? {
                size /= 2;
            }
            size = size.min(parts::length(&self.best.plan, list));
        }
        Ok(())
    }

    /// Takes simplifications that the scenario offers, as long as one fails.
    fn take_what_is_simpler(&mut self) -> Result<(), ShrinkError> {
        while !self.is_out_of_time() {
            let simpler = self.entry.simpler(&self.best.plan)?;
            if !self.first_that_fails(simpler)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs the plans until one fails as the original does, each first under its own schedule and then under some others.
    fn first_that_fails(&mut self, plans: Vec<Value>) -> Result<bool, ShrinkError> {
        if self.first_of(plans.clone())? {
            return Ok(true);
        }
        for seed in SCHEDULES {
            let rescheduled: Result<Vec<_>, _> = plans.iter().map(|plan| self.entry.rescheduled(plan, seed)).collect();
            if self.first_of(rescheduled?.into_iter().flatten().collect())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs those of the plans that were not run before in waves, one plan a job, until one fails as the original does; that is the
    /// best then.
    fn first_of(&mut self, plans: Vec<Value>) -> Result<bool, ShrinkError> {
        let fresh: Vec<Value> = plans.into_iter().filter(|plan| !self.tried.contains(&plan.to_string())).collect();
        for wave in fresh.chunks(self.options.limits.jobs.get()) {
            if self.is_out_of_time() {
                break;
            }
            if self.try_wave(wave)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs the plans side by side; the first that fails as the original does is the best then.
    fn try_wave(&mut self, wave: &[Value]) -> Result<bool, ShrinkError> {
        self.tried.extend(wave.iter().map(Value::to_string));
        let case = |plan: &Value| Task::Plan(Case { plan: plan.clone(), ..self.original.clone() });
        let runs = self.workers.run_all(self.options.limits, wave.iter().map(case).collect())?;
        self.runs += runs.len() as u64;
        let found = wave.iter().zip(&runs).find_map(|(plan, run)| Some((plan, run, self.same(&run.report)?)));
        let fails = found.is_some();
        if let Some((plan, run, violation)) = found {
            let (size, effects) = (size(self.entry, plan, &run.report)?, run.report.effects.clone());
            self.best = Best { plan: plan.clone(), size, violation, effects };
            self.case().save(&self.options.file)?;
        }
        (self.told)(self.runs, &self.best.size);
        Ok(fails)
    }

    /// The violation by which a run fails as the original does.
    fn same(&self, report: &Report) -> Option<Violation> {
        let is_known = |violation: &Violation| self.known.iter().any(|known| violation.is_like(known));
        let found = report.violations.iter().find(|violation| violation.is_like(&self.wanted));
        found.filter(|_| report.violations.iter().all(is_known)).cloned()
    }

    fn is_out_of_time(&self) -> bool {
        self.started.elapsed() >= self.options.time
    }

    fn case(&self) -> Case {
        Case { plan: self.best.plan.clone(), violates: Some(self.wanted.invariant.clone()), ..self.original.clone() }
    }

    fn shrunk(self, before: Size, is_smallest: bool) -> Shrunk {
        let case = self.case();
        let Best { violation, effects, size: after, .. } = self.best;
        Shrunk { case, violation, effects, before, after, runs: self.runs, is_smallest }
    }
}

fn size(entry: Entry<'_>, plan: &Value, report: &Report) -> Result<Size, CaseError> {
    Ok(Size {
        faults: parts::length(plan, "faults"),
        operations: entry.operations(plan)?.unwrap_or_else(|| parts::length(plan, "operations")),
        events: report.events,
        virtual_time: report.virtual_time,
    })
}
