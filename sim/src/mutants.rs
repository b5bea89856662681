//! Mutants: real historic bugs, planted back as small patches on the clean code, to measure the oracle.
//!
//! `NAME.patch` stands beside `NAME.json`, one line of metadata. Each mutant is built in a scratch copy of the tree (what `git` knows
//! of it, plus new files that it does not ignore) with one build cache for all, and runs its scenarios until an invariant kills it.
//! The clean code then runs the same seeds and must pass them.

mod scratch;

use crate::campaign::{align_right, grouped, table};
use crate::error::MutantError;
use crate::scenario::Registry;
use crate::worker::process::{Launch, Process};
use crate::worker::{Limits, Run, Task};
use scratch::Scratch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    /// What each child may use.
    pub limits: Limits,
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Wall-clock time of those runs, without the build.
    #[serde(with = "crate::duration")]
    pub real_time: Duration,
}

/// How a mutant died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Builds and runs the mutants, then the clean code on the same seeds. `tell` gets a line for each step.
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
    let mut rows = Vec::new();
    let mut used: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for mutant in &mutants {
        tell(&format!("{}: building", mutant.name));
        let program = scratch.build_mutant(mutant)?;
        tell(&format!("{}: running", mutant.name));
        let row = hunt(registry, options, mutant, program)?;
        tell(&format!("{}: {}", mutant.name, fate(&row)));
        let seeds = used.entry(mutant.metadata.scenarios.clone()).or_default();
        *seeds = row.seeds.max(*seeds);
        rows.push(row);
    }
    // Kept before the clean code is judged: builds are slow, and what the mutants did stays true.
    scratch.store("mutants.json", &serde_json::to_string_pretty(&rows).expect("rows are plain data"))?;
    scratch.store("mutants.txt", &to_text(&rows))?;
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
    let started = Instant::now();
    let (seeds, kill) = first_violation(registry, options, &mutant.metadata.scenarios, options.seeds, program)?;
    let Metadata { reference, invariant, .. } = mutant.metadata.clone();
    Ok(Row { name: mutant.name.clone(), reference, expected: invariant, kill, seeds, real_time: started.elapsed() })
}

fn expect_clean(
    registry: &Registry,
    options: &Options,
    scenarios: &[String],
    seeds: u64,
    program: PathBuf,
) -> Result<(), MutantError> {
    match first_violation(registry, options, scenarios, seeds, program)? {
        (_, None) => Ok(()),
        (_, Some(Kill { invariant, scenario, seed })) => Err(MutantError::NotClean { scenario, seed, invariant }),
    }
}

/// Deals the seeds to the scenarios as a campaign does; gives how many runs it took, and the first violation.
fn first_violation(
    registry: &Registry,
    options: &Options,
    scenarios: &[String],
    seeds: u64,
    program: PathBuf,
) -> Result<(u64, Option<Kill>), MutantError> {
    let entries = registry.select(scenarios).map_err(crate::error::WorkerError::from)?;
    let dealt = (options.first_seed..options.first_seed.saturating_add(seeds)).zip(entries.iter().cycle());
    let tasks = dealt.map(|(seed, entry)| Task::Seed { scenario: entry.name().to_owned(), seed }).collect();
    let (mut runs, mut kill) = (0, None::<Kill>);
    let launch = Launch { program, arguments: Vec::new() };
    Process::start(&launch)?.run(tasks, options.limits, true, |run: Run| {
        runs += 1;
        let seed = run.task.seed().unwrap_or_default();
        // Runs go on beside each other and end in any order: the first seed counts, and it counts as used.
        if let Some(violation) = run.report.violations.first()
            && kill.as_ref().is_none_or(|known| seed < known.seed)
        {
            runs = runs.max(seed - options.first_seed + 1);
            kill =
                Some(Kill { invariant: violation.invariant.clone(), scenario: run.task.scenario().to_owned(), seed });
        }
        ControlFlow::Continue(())
    })?;
    Ok((runs, kill))
}

/// The table that people read.
pub fn to_text(rows: &[Row]) -> String {
    let mut table = table(&["mutant", "reference", "killed by", "scenario", "seed", "seeds", "seconds"]);
    for row in rows {
        let seconds = format!("{:.1}", row.real_time.as_secs_f64());
        let [by, scenario, seed] = match &row.kill {
            Some(Kill { invariant, scenario, seed }) if *invariant == row.expected => {
                [invariant.clone(), scenario.clone(), seed.to_string()]
            }
            Some(Kill { invariant, scenario, seed }) => {
                [format!("{invariant} (expected {})", row.expected), scenario.clone(), seed.to_string()]
            }
            None => [format!("SURVIVED (expected {})", row.expected), "-".to_owned(), "-".to_owned()],
        };
        table.add_row([row.name.clone(), row.reference.clone(), by, scenario, seed, grouped(row.seeds), seconds]);
    }
    align_right(&mut table, 4..7);
    let killed = rows.iter().filter(|row| row.kill.is_some()).count();
    format!("{table}\n\n{killed} of {} mutants killed\n", rows.len())
}

#[cfg(test)]
mod tests;
