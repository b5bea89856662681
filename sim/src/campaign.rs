//! Many seeds: who runs what, a progress bar, the table at the end, and a case file for each failure.
//!
//! A campaign deals its seeds to its scenarios in turn: run `i` is scenario `i mod n` with seed `first + i`, on whatever machine
//! and however many jobs. A shard takes every N-th round of all scenarios.

mod summary;

pub use summary::{Failure, FaultRow, ScenarioRow, Summary};
pub(crate) use summary::{align_right, clock, grouped, reproduce_run, table};

use crate::error::{CampaignError, UnknownScenario};
use crate::plan::Case;
use crate::scenario::{Entry, Registry};
use crate::worker::{self, Limits, Run, Task};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How much a campaign does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// That many seeds over all scenarios and shards.
    Seeds(u64),
    /// As many as can be started in that time by the wall clock.
    Time(Duration),
}

/// One part of a campaign that is spread over machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

impl Shard {
    /// The whole campaign.
    pub const ALL: Shard = Shard { index: 1, count: 1 };
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parts {
            Some((index, count)) if index >= 1 && index <= count => Ok(Shard { index, count }),
            _ => Err("expected K/N with 1 <= K <= N, such as 2/8".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index, self.count)
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Scenarios or suites; none: all.
    pub scenarios: Vec<String>,
    /// How much.
    pub amount: Amount,
    /// The first seed.
    pub first_seed: u64,
    /// Which part.
    pub shard: Shard,
    /// What each child may use.
    pub limits: Limits,
    /// Where case files go.
    pub cases: PathBuf,
}

/// Runs the campaign. Failing plans are saved as they appear, so an interrupted campaign has lost none.
pub fn run(registry: &Registry, options: &Options, progress: &ProgressBar) -> Result<Summary, CampaignError> {
    let entries = registry.select(&options.scenarios)?;
    if entries.is_empty() {
        return Err(CampaignError::NothingToRun);
    }
    let started = Instant::now();
    let mut summary = Summary::new(&entries, options.shard);
    let mut failed = None;
    let within_time = |_: &Task| match options.amount {
        Amount::Time(limit) => started.elapsed() < limit,
        Amount::Seeds(_) => true,
    };
    let tasks = tasks(&entries, options).take_while(within_time);
    worker::run(registry, options.limits, tasks, |run| {
        let saved = if run.report.is_clean() { Ok(None) } else { save(registry, &options.cases, &run).map(Some) };
        match saved {
            Ok(case) => summary.add(&run, case),
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        advance(progress, options.amount, started, &summary);
        ControlFlow::Continue(())
    })?;
    progress.finish_and_clear();
    summary.real_time = started.elapsed();
    failed.map_or(Ok(summary), Err)
}

/// The runs of this shard in order.
fn tasks<'a>(entries: &'a [Entry<'a>], options: &Options) -> impl Iterator<Item = Task> + use<'a> {
    let Options { amount, first_seed, shard, .. } = *options;
    let count = match amount {
        Amount::Seeds(count) => count,
        Amount::Time(_) => u64::MAX,
    };
    let scenarios = entries.len() as u64;
    let last = first_seed.saturating_add(count);
    let mine = move |index: &u64| (index / scenarios) % shard.count == shard.index - 1;
    let task = move |index: u64| {
        let entry = &entries[(index % scenarios) as usize];
        Task::Seed { scenario: entry.name().to_owned(), seed: first_seed + index }
    };
    (0..last - first_seed).filter(mine).map(task)
}

/// Saves the plan of a failed run; gives the file.
fn save(registry: &Registry, directory: &Path, run: &Run) -> Result<PathBuf, CampaignError> {
    let case = case_of(registry, run)?;
    let seed = run.task.seed().map_or_else(|| "case".to_owned(), |seed| seed.to_string());
    let path = directory.join(format!("{}-{seed}.json", case.scenario));
    case.save(&path)?;
    Ok(path)
}

/// The plan of a run as a case that names what it violates.
pub fn case_of(registry: &Registry, run: &Run) -> Result<Case, UnknownScenario> {
    let mut case = match &run.task {
        Task::Seed { scenario, seed } => registry.get(scenario)?.case(*seed),
        Task::Plan(case) => case.clone(),
    };
    case.violates = run.report.violations.first().map(|violation| violation.invariant.clone());
    Ok(case)
}

/// A bar on stderr if that is a terminal. It is drawn when a run ends, by no thread of its own: forks come from one thread.
pub fn progress_bar(amount: Amount) -> ProgressBar {
    let (length, unit) = match amount {
        Amount::Seeds(seeds) => (seeds, "seeds"),
        Amount::Time(time) => (time.as_secs(), "s"),
    };
    let template = format!("{{bar:40}} {{pos}}/{{len}} {unit}  {{msg}}");
    let style =
        ProgressStyle::with_template(&template).expect("the template is well-formed").progress_chars("█▉▊▋▌▍▎▏ ");
    ProgressBar::new(length).with_style(style)
}

fn advance(progress: &ProgressBar, amount: Amount, started: Instant, summary: &Summary) {
    match amount {
        Amount::Seeds(_) => progress.inc(1),
        Amount::Time(_) => progress.set_position(started.elapsed().as_secs()),
    }
    progress.set_message(format!("{} runs, {} violations", summary.runs(), summary.failures.len()));
}

#[cfg(test)]
mod tests {
    use super::{Amount, Options, Shard, tasks};
    use crate::scenario::Registry;
    use crate::scenario::tests::registry;
    use crate::worker::{Limits, Task};
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    fn dealt(registry: &Registry, seeds: u64, shard: Shard) -> Vec<(String, u64)> {
        let options = Options {
            scenarios: Vec::new(),
            amount: Amount::Seeds(seeds),
            first_seed: 100,
            shard,
            limits: Limits::of_this_machine(),
            cases: PathBuf::new(),
        };
        let pair = |task: Task| (task.scenario().to_owned(), task.seed().expect("drawn"));
        tasks(&registry.select(&[]).expect("all"), &options).map(pair).collect()
    }

    #[test]
    fn shards_share_a_campaign_without_gap_or_overlap() {
        let registry = registry();
        let whole = dealt(&registry, 11, Shard::ALL);
        assert_eq!(whole.len(), 11);
        assert_eq!(whole[1], ("offset_never_goes_back".to_owned(), 101));
        let shards: Vec<_> = (1..=3).flat_map(|index| dealt(&registry, 11, Shard { index, count: 3 })).collect();
        assert_eq!(shards.len(), 11);
        assert_eq!(shards.into_iter().collect::<BTreeSet<_>>(), whole.into_iter().collect());
    }

    #[test]
    fn a_shard_is_k_of_n() {
        assert_eq!("2/8".parse(), Ok(Shard { index: 2, count: 8 }));
        for text in ["0/8", "9/8", "2", "a/b", "2/", "/"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
