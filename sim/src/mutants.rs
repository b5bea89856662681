//! Mutants: real historic bugs, planted back as small patches on the clean code, to measure the oracle.
//!
//! `NAME.patch` stands beside `NAME.json`, one line of metadata. Each mutant is built in a scratch copy of the tree (what `git` knows
//! of it, plus new files that it does not ignore) with one build cache for all, and runs its scenarios until an invariant kills it.
//! The clean code then runs the same seeds and must pass them.

mod compare;
mod known;
mod scratch;
mod table;

pub use compare::{Comparison, compare};
pub use table::to_text;

use crate::error::MutantError;
use crate::plan::Case;
use crate::scenario::Registry;
use crate::shrink::{self, SCHEDULES, Shrunk, Size};
use crate::verdict::Violation;
use crate::worker::process::{Launch, Process};
use crate::worker::{Limits, Run, Task, Workers};
use known::Known;
use scratch::Scratch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a small case is replayed.
const REPLAYS: usize = 100;

/// The line beside a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Where the bug was met: an issue, a commit.
    pub reference: String,
    /// The part of the program that it is in.
    pub component: String,
    /// What a user saw.
    pub symptom: String,
    /// The invariant that should kill it.
    pub invariant: String,
    /// The scenarios or suites that should notice.
    pub scenarios: Vec<String>,
}

/// A planted bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// File name without its end.
    pub name: String,
    /// The patch.
    pub patch: PathBuf,
    /// What is known of it.
    pub metadata: Metadata,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which mutants; none: all.
    pub names: Vec<String>,
    /// Where they are.
    pub patches: PathBuf,
    /// Where trees, builds and the table go.
    pub scratch: PathBuf,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds a mutant gets at most.
    pub seeds: u64,
    /// How long the case that killed a mutant is shrunk; zero: it is not.
    pub shrink: Duration,
    /// A patch that changes nothing in what the program promises. Small cases are replayed on mutants that it was applied to as well.
    pub change: Option<PathBuf>,
    /// What each child may use.
    pub limits: Limits,
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Where the bug was met.
    pub reference: String,
    /// The invariant that should kill it.
    pub expected: String,
    /// The invariant that did, the scenario and the seed; none: it survived.
    pub kill: Option<Kill>,
    /// Seeds run.
    pub seeds: u64,
    /// Virtual time of those runs.
    #[serde(with = "crate::duration")]
    pub virtual_time: Duration,
    /// Time of those runs in their processes, each of which has one thread: the time of a processor, unless others are kept busy too.
    #[serde(with = "crate::duration")]
    pub run_time: Duration,
    /// The case that killed it, made small.
    pub small: Option<Small>,
    /// Digest of all that this depends on: the code, the patch, the options.
    pub basis: String,
}

/// A case that was made small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Small {
    /// How large it was.
    pub before: Size,
    /// How large it is.
    pub after: Size,
    /// How often the small one was replayed.
    pub replays: u64,
    /// How many replays failed by the same cause.
    pub same: u64,
    /// Whether the clean code passes the small one.
    pub clean_passes: bool,
    /// Whether the small one still fails after an unrelated change of the code.
    pub survives: Option<Survival>,
}

/// What an unrelated change of the code made of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Survival {
    /// It fails by the same cause.
    AsItIs,
    /// It does under one of a few other schedules.
    Rescheduled,
    /// It passes.
    Lost,
}

/// How a mutant died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// By that invariant.
    pub invariant: String,
    /// In that scenario.
    pub scenario: String,
    /// At that seed.
    pub seed: u64,
}

/// All mutants of a directory in the order of names, or those named.
pub fn load(directory: &Path, names: &[String]) -> Result<Vec<Mutant>, MutantError> {
    let mut found = Vec::new();
    let unreadable = |source| MutantError::File { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|end| end == "patch") {
            found.push(path);
        }
    }
    found.sort();
    let name_of = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for name in names {
        if !found.iter().any(|path| name_of(path) == *name) {
            return Err(MutantError::Missing { name: name.clone(), directory: directory.to_owned() });
        }
    }
    let wanted = found.into_iter().filter(|path| names.is_empty() || names.contains(&name_of(path)));
    wanted.map(|patch| Ok(Mutant { name: name_of(&patch), metadata: metadata(&patch)?, patch })).collect()
}

fn metadata(patch: &Path) -> Result<Metadata, MutantError> {
    let path = patch.with_extension("json");
    let text = fs::read_to_string(&path).map_err(|source| MutantError::File { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|source| MutantError::Metadata { path, source })
}

/// Builds and runs the mutants, then the clean code on the same seeds. `tell` gets a line for each step. What an earlier run on the same
/// code found out of a mutant is kept, so an interrupted run goes on where it was.
pub fn run(registry: &Registry, options: &Options, mut tell: impl FnMut(&str)) -> Result<Vec<Row>, MutantError> {
    let mutants = load(&options.patches, &options.names)?;
    for mutant in &mutants {
        registry.select(&mutant.metadata.scenarios).map_err(crate::error::WorkerError::from)?;
    }
    let scratch = Scratch::open(&options.scratch)?;
    // Before any build: a patch that no longer applies is told at once.
    for mutant in &mutants {
        scratch.try_patch(mutant)?;
    }
    tell("building the clean code");
    let clean = scratch.build("clean")?;
    let mut known = Known::read(&scratch, options)?;
    let mut rows = Vec::new();
    let mut used: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for mutant in &mutants {
        let seeds = used.entry(mutant.metadata.scenarios.clone()).or_default();
        if let Some(row) = known.row(mutant) {
            tell(&format!("{}: known: {}", mutant.name, fate(row)));
            *seeds = row.seeds.max(*seeds);
            rows.push(row.clone());
            continue;
        }
        tell(&format!("{}: building", mutant.name));
        let program = scratch.build_mutant(mutant)?;
        tell(&format!("{}: running", mutant.name));
        let mut row = hunt(registry, options, mutant, program.clone())?;
        row.basis = known.basis(mutant).to_owned();
        tell(&format!("{}: {}", mutant.name, fate(&row)));
        if let (Some(kill), false) = (&row.kill, options.shrink.is_zero()) {
            let file = options.scratch.join("cases").join(format!("{}.json", mutant.name));
            let (small, violation, case) = shrunk(registry, options, kill, &file, [program, clean.clone()])?;
            let survives = match &options.change {
                Some(change) => {
                    tell(&format!("{}: building with the change", mutant.name));
                    let program = scratch.build_changed(mutant, change)?;
                    Some(survival(registry, options, &case, &violation, program)?)
                }
                None => None,
            };
            row.small = Some(Small { survives, ..small });
        }
        *seeds = row.seeds.max(*seeds);
        rows.push(row.clone());
        known.keep(row, &scratch)?;
    }
    for (scenarios, seeds) in used {
        tell(&format!("the clean code on {seeds} seeds of {}", scenarios.join(" ")));
        expect_clean(registry, options, &scenarios, seeds, clean.clone())?;
    }
    Ok(rows)
}

fn fate(row: &Row) -> String {
    match &row.kill {
        Some(Kill { invariant, scenario, seed }) => format!("killed by {invariant:?} in {scenario} at seed {seed}"),
        None => format!("survived {} seeds", row.seeds),
    }
}

fn hunt(registry: &Registry, options: &Options, mutant: &Mutant, program: PathBuf) -> Result<Row, MutantError> {
    let hunt = first_violation(registry, options, &mutant.metadata.scenarios, options.seeds, program)?;
    let Metadata { reference, invariant, .. } = mutant.metadata.clone();
    let Hunt { kill, seeds, virtual_time, run_time } = hunt;
    let name = mutant.name.clone();
    let basis = String::new();
    Ok(Row { name, reference, expected: invariant, kill, seeds, virtual_time, run_time, small: None, basis })
}

/// Makes the case of a kill small by runs of the mutant's program, replays it, and has the clean program run it too.
fn shrunk(
    registry: &Registry,
    options: &Options,
    kill: &Kill,
    file: &Path,
    [mutant, clean]: [PathBuf; 2],
) -> Result<(Small, Violation, Case), MutantError> {
    let case = registry.get(&kill.scenario).map_err(crate::error::WorkerError::from)?.case(kill.seed);
    // An earlier build's case may fail in the same way and be no case of this one.
    let _ = fs::remove_file(file);
    let shrinking = shrink::Options { limits: options.limits, time: options.shrink, file: file.to_owned() };
    let mut mutant = Process::start(&launch(mutant))?;
    let small = shrink::run(registry, Workers::There(&mut mutant), &case, &shrinking, &mut |_, _| {})?;
    small.case.save(file).map_err(crate::error::ShrinkError::from)?;
    let replay = Task::Plan(small.case.clone());
    let (mut replays, mut same) = (0, 0);
    for run in Workers::There(&mut mutant).run_all(options.limits, vec![replay.clone(); REPLAYS])? {
        replays += 1;
        same += u64::from(run.report.violations.iter().any(|violation| violation.is_like(&small.violation)));
    }
    let mut clean = Process::start(&launch(clean))?;
    let clean_passes = Workers::There(&mut clean).run_all(options.limits, vec![replay])?[0].report.is_clean();
    let Shrunk { case, violation, before, after, .. } = small;
    Ok((Small { before, after, replays, same, clean_passes, survives: None }, violation, case))
}

/// Replays a case on changed code, as it is and under some other schedules.
fn survival(
    registry: &Registry,
    options: &Options,
    case: &Case,
    violation: &Violation,
    program: PathBuf,
) -> Result<Survival, MutantError> {
    let mut process = Process::start(&launch(program))?;
    let mut fails = |tasks: Vec<Task>| -> Result<bool, MutantError> {
        let runs = Workers::There(&mut process).run_all(options.limits, tasks)?;
        Ok(runs.iter().flat_map(|run| &run.report.violations).any(|other| other.is_like(violation)))
    };
    if fails(vec![Task::Plan(case.clone())])? {
        return Ok(Survival::AsItIs);
    }
    let entry = registry.get(&case.scenario).map_err(crate::error::WorkerError::from)?;
    let plans: Result<Vec<_>, _> = SCHEDULES.map(|seed| entry.rescheduled(&case.plan, seed)).collect();
    let plans = plans.map_err(crate::error::ShrinkError::from)?;
    let tasks = plans.into_iter().flatten().map(|plan| Task::Plan(Case { plan, ..case.clone() })).collect();
    Ok(if fails(tasks)? { Survival::Rescheduled } else { Survival::Lost })
}

fn launch(program: PathBuf) -> Launch {
    Launch { program, arguments: Vec::new() }
}

fn expect_clean(
    registry: &Registry,
    options: &Options,
    scenarios: &[String],
    seeds: u64,
    program: PathBuf,
) -> Result<(), MutantError> {
    match first_violation(registry, options, scenarios, seeds, program)?.kill {
        None => Ok(()),
        Some(Kill { invariant, scenario, seed }) => Err(MutantError::NotClean { scenario, seed, invariant }),
    }
}

/// What it took to find a violation.
#[derive(Debug, Default)]
struct Hunt {
    kill: Option<Kill>,
    seeds: u64,
    virtual_time: Duration,
    run_time: Duration,
}

/// Deals the seeds to the scenarios as a campaign does, up to the first violation.
fn first_violation(
    registry: &Registry,
    options: &Options,
    scenarios: &[String],
    seeds: u64,
    program: PathBuf,
) -> Result<Hunt, MutantError> {
    let entries = registry.select(scenarios).map_err(crate::error::WorkerError::from)?;
    let dealt = (options.first_seed..options.first_seed.saturating_add(seeds)).zip(entries.iter().cycle());
    let tasks = dealt.map(|(seed, entry)| Task::Seed { scenario: entry.name().to_owned(), seed }).collect();
    let mut hunt = Hunt::default();
    Process::start(&launch(program))?.run(tasks, options.limits, true, |run: Run| {
        hunt.seeds += 1;
        hunt.virtual_time += run.report.virtual_time;
        hunt.run_time += run.real_time;
        let seed = run.task.seed().unwrap_or_default();
        // Runs go on beside each other and end in any order: the first seed counts, and it counts as used.
        if let Some(violation) = run.report.violations.first()
            && hunt.kill.as_ref().is_none_or(|known| seed < known.seed)
        {
            hunt.seeds = hunt.seeds.max(seed - options.first_seed + 1);
            let (invariant, scenario) = (violation.invariant.clone(), run.task.scenario().to_owned());
            hunt.kill = Some(Kill { invariant, scenario, seed });
        }
        ControlFlow::Continue(())
    })?;
    Ok(hunt)
}

#[cfg(test)]
mod tests;
