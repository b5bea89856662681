//! Strategies measured against each other: how many runs, and how much time, each needs to kill a mutant.

use super::scratch::Scratch;
use super::table::median;
use super::{Mutant, Options, launch, load};
use crate::error::{MutantError, WorkerError};
use crate::explore::{Corpus, Explorer, Strategy};
use crate::scenario::Registry;
use crate::shard::Shard;
use crate::text::{align_right, grouped, table};
use crate::worker::process::Process;
use crate::worker::{Run, Workers};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Seeds of two repetitions lie so far apart.
const STRIDE: u64 = 1_000_000;
/// Runs that are made at a time where the strategy has no generations.
const BATCH: u64 = 16;

/// The hunts of one strategy for one mutant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hunts {
    /// The strategy.
    pub strategy: Strategy,
    /// Runs that each hunt took, the killing one included; for a hunt without a kill all of them.
    pub runs: Vec<u64>,
    /// Time of those runs in their processes.
    pub seconds: Vec<f64>,
    /// Hunts that killed.
    pub kills: usize,
}

/// A mutant under each strategy that its scenarios have plans for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The mutant.
    pub mutant: String,
    /// By strategy.
    pub hunts: Vec<Hunts>,
}

/// Hunts each mutant `repetitions` times by each strategy, by `options.seeds` runs at most. `tell` gets a line for each step.
pub fn compare(
    registry: &Registry,
    options: &Options,
    repetitions: u64,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Comparison>, MutantError> {
    let scratch = Scratch::open(&options.scratch)?;
    let mut comparisons = Vec::new();
    for mutant in load(&options.patches, &options.names)? {
        tell(&format!("{}: building", mutant.name));
        let program = scratch.build_mutant(&mutant)?;
        let mut hunts = Vec::new();
        for strategy in Strategy::value_variants() {
            if let Some(done) = hunts_of(registry, options, &mutant, &program, *strategy, repetitions)? {
                tell(&format!("{}: {strategy}: {} of {repetitions} hunts killed", mutant.name, done.kills));
                hunts.push(done);
            }
        }
        comparisons.push(Comparison { mutant: mutant.name, hunts });
        scratch.store("strategies.json", &serde_json::to_string_pretty(&comparisons).expect("plain data"))?;
        scratch.store("strategies.txt", &to_text(&comparisons))?;
    }
    Ok(comparisons)
}

/// None if the mutant's scenarios have no plans for the strategy.
fn hunts_of(
    registry: &Registry,
    options: &Options,
    mutant: &Mutant,
    program: &Path,
    strategy: Strategy,
    repetitions: u64,
) -> Result<Option<Hunts>, MutantError> {
    let mut hunts = Hunts { strategy, runs: Vec::new(), seconds: Vec::new(), kills: 0 };
    for repetition in 0..repetitions {
        let entries = registry.select(&mutant.metadata.scenarios).map_err(WorkerError::from)?;
        let first = options.first_seed.saturating_add(repetition * STRIDE);
        let explorer = match Explorer::new(entries, strategy, first, Shard::ALL, Corpus::default()) {
            Ok(explorer) => explorer,
            Err(crate::error::CampaignError::Strategy { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut process = Process::start(&launch(program.to_owned()))?;
        let (runs, time, is_killed) = hunt(explorer, Workers::There(&mut process), options)?;
        hunts.runs.push(runs);
        hunts.seconds.push(time.as_secs_f64());
        hunts.kills += usize::from(is_killed);
    }
    Ok(Some(hunts))
}

/// Runs up to the first violation, in the order of the runs' numbers: how many there were, how long they took, whether one violated
/// something.
fn hunt(
    mut explorer: Explorer<'_>,
    mut workers: Workers<'_>,
    options: &Options,
) -> Result<(u64, Duration, bool), MutantError> {
    let (mut number, mut time) = (0, Duration::ZERO);
    while number < options.seeds {
        let end = explorer.next_generation(number).unwrap_or(number + BATCH).min(options.seeds);
        let tasks: Result<Vec<_>, _> = (number..end).map(|number| explorer.task(number)).collect();
        let runs: Vec<Run> = workers.run_all(options.limits, tasks.map_err(crate::error::CampaignError::from)?)?;
        for run in &runs {
            number += 1;
            time += run.real_time;
            if !run.report.is_clean() {
                return Ok((number, time, true));
            }
        }
        if explorer.is_guided() {
            explorer.learn(runs);
        }
    }
    Ok((number, time, false))
}

impl Comparison {
    /// The table that people read: medians with the middle half of the hunts, and of all mutants how the medians compare to random ones.
    pub fn to_text(comparisons: &[Comparison]) -> String {
        to_text(comparisons)
    }
}

fn to_text(comparisons: &[Comparison]) -> String {
    let mut table = table(&["mutant", "strategy", "killed", "runs", "middle half", "CPU s", "against random"]);
    for comparison in comparisons {
        let random = comparison.hunts.iter().find(|hunts| hunts.strategy == Strategy::Random);
        for hunts in &comparison.hunts {
            table.add_row([
                comparison.mutant.clone(),
                hunts.strategy.to_string(),
                format!("{}/{}", hunts.kills, hunts.runs.len()),
                grouped(hunts.median_runs().round() as u64),
                format!("{}-{}", grouped(hunts.quartile(1)), grouped(hunts.quartile(3))),
                format!("{:.1}", median(hunts.seconds.clone()).unwrap_or_default()),
                random.map_or_else(String::new, |random| format!("{:.2}", hunts.median_runs() / random.median_runs())),
            ]);
        }
    }
    align_right(&mut table, 2..7);
    let mut text = format!("{table}\n\n");
    for strategy in Strategy::value_variants().iter().filter(|strategy| **strategy != Strategy::Random) {
        let ratio = |comparison: &Comparison| {
            let of = |wanted: Strategy| comparison.hunts.iter().find(|hunts| hunts.strategy == wanted);
            Some(of(*strategy)?.median_runs() / of(Strategy::Random)?.median_runs())
        };
        let ratios: Vec<f64> = comparisons.iter().filter_map(ratio).collect();
        let count = ratios.len();
        if let Some(middle) = median(ratios) {
            let _ =
                writeln!(text, "{strategy} needs {middle:.2} times the runs of random (median over {count} mutants)");
        }
    }
    text
}

impl Hunts {
    fn median_runs(&self) -> f64 {
        median(self.runs.iter().map(|runs| *runs as f64).collect()).unwrap_or_default()
    }

    /// The value that so many quarters of the hunts do not exceed.
    fn quartile(&self, quarter: usize) -> u64 {
        let mut sorted = self.runs.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * quarter / 4).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Hunts};
    use crate::explore::Strategy;

    #[test]
    fn strategies_are_compared_by_medians() {
        let hunts = |strategy, runs: &[u64], kills| Hunts {
            strategy,
            runs: runs.to_vec(),
            seconds: runs.iter().map(|runs| *runs as f64 / 10.0).collect(),
            kills,
        };
        let hunts = vec![
            hunts(Strategy::Random, &[40, 10, 90, 20, 1_000], 4),
            hunts(Strategy::Guided, &[10, 20, 30, 15, 25], 5),
        ];
        insta::assert_snapshot!(Comparison::to_text(&[Comparison { mutant: "no_sync".into(), hunts }]));
    }
}
