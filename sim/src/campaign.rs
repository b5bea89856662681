//! Many seeds: who runs what, a progress bar, the table at the end, and a case file for each failure.
//!
//! A campaign deals its seeds to its scenarios in turn: run `i` is scenario `i mod n` with seed `first + i`, on whatever machine
//! and however many jobs. A shard takes every N-th round of all scenarios. With a directory of results it can be interrupted and gone on with,
//! and shards can be put together ([`merge`]).

mod finding;
mod junit;
mod results;
mod summary;

pub use finding::{Failure, Finding, Findings};
pub use junit::to_junit;
pub use results::{Merged, Terms, merge};
pub(crate) use summary::reproduce_run;
pub use summary::{FaultRow, ScenarioRow, Summary};

use crate::error::{CampaignError, ResultsError};
use crate::explore::{Corpus, Explorer, Strategy};
use crate::plan::Case;
use crate::scenario::Registry;
use crate::shard::Shard;
use crate::worker::{self, Limits, Run, Task};
use indicatif::{ProgressBar, ProgressStyle};
use results::{CASES, Progress, Results};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a campaign keeps how far it has come. It then waits for the runs that go on, so seldom.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// How much a campaign does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// That many seeds over all scenarios and shards.
    Seeds(u64),
    /// As many as can be started in that time by the wall clock.
    Time(#[serde(with = "crate::duration")] Duration),
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
    /// Where case files go, unless results are kept.
    pub cases: PathBuf,
    /// Which plan a run has.
    pub strategy: Strategy,
    /// Case files of plans that a guided campaign begins with.
    pub corpus: Option<PathBuf>,
    /// A directory of results, to go on from and to keep them in.
    pub results: Option<PathBuf>,
}

/// Runs the campaign. Failing plans are saved as they appear, so an interrupted campaign has lost none.
pub fn run(registry: &Registry, options: &Options, progress: &ProgressBar) -> Result<Summary, CampaignError> {
    let mut campaign = Campaign::open(registry, options, progress)?;
    while campaign.has_more() {
        campaign.run_on()?;
        campaign.keep()?;
    }
    progress.finish_and_clear();
    Ok(campaign.so_far.summary)
}

/// A campaign under way.
struct Campaign<'a> {
    registry: &'a Registry,
    options: &'a Options,
    progress: &'a ProgressBar,
    explorer: Explorer<'a>,
    results: Option<Results>,
    cases: PathBuf,
    so_far: Progress,
    /// When this process would have begun, had it done all of it.
    started: Instant,
}

impl<'a> Campaign<'a> {
    fn open(
        registry: &'a Registry,
        options: &'a Options,
        progress: &'a ProgressBar,
    ) -> Result<Campaign<'a>, CampaignError> {
        let entries = registry.select(&options.scenarios)?;
        if entries.is_empty() {
            return Err(CampaignError::NothingToRun);
        }
        let Options { amount, first_seed, strategy, shard, .. } = *options;
        let (mut results, mut known) = (None, None);
        if let Some(directory) = &options.results {
            let scenarios = entries.iter().map(|entry| entry.name().to_owned()).collect();
            let terms = Terms { scenarios, amount, first_seed, strategy, shard, build: results::this_build()? };
            let (opened, progress) = Results::open(directory, &terms)?;
            (results, known) = (Some(opened), progress);
        }
        let so_far = match known {
            Some(known) => known,
            None => Progress { summary: Summary::new(&entries), corpus: planted(options)?, ..Progress::default() },
        };
        let explorer = Explorer::new(entries, strategy, first_seed, shard, so_far.corpus.clone())?;
        let cases = options.results.as_ref().map_or_else(|| options.cases.clone(), |directory| directory.join(CASES));
        progress.set_position(match amount {
            Amount::Seeds(_) => so_far.done,
            Amount::Time(_) => so_far.summary.real_time.as_secs(),
        });
        let now = Instant::now();
        let started = now.checked_sub(so_far.summary.real_time).unwrap_or(now);
        Ok(Campaign { registry, options, progress, explorer, results, cases, so_far, started })
    }

    fn has_more(&self) -> bool {
        match self.options.amount {
            Amount::Seeds(count) => self.explorer.index(self.so_far.done) < count,
            Amount::Time(limit) => self.started.elapsed() < limit,
        }
    }

    /// Makes the next runs, up to the next time to keep what was found or to learn from it.
    fn run_on(&mut self) -> Result<(), CampaignError> {
        let Campaign { registry, options, progress, explorer, results, cases, so_far, started } = self;
        let (started, begun, first) = (*started, Instant::now(), so_far.done);
        let generation = explorer.next_generation(first);
        let keeps = results.is_some();
        let is_wanted = |number: &u64| {
            let within = match options.amount {
                Amount::Seeds(count) => explorer.index(*number) < count,
                Amount::Time(limit) => started.elapsed() < limit,
            };
            within && generation.is_none_or(|end| *number < end) && !(keeps && begun.elapsed() >= KEEP_EVERY)
        };
        let (mut unfit, mut unsaved, mut learnt) = (None, None, Vec::new());
        let tasks = (first..u64::MAX)
            .take_while(is_wanted)
            .map_while(|number| explorer.task(number).map_err(|error| unfit = Some(error)).ok());
        worker::run(registry, options.limits, tasks, |run| {
            match save(registry, cases, &so_far.summary, &run) {
                Ok(case) => so_far.summary.add(&run, case),
                Err(error) => {
                    unsaved = Some(error);
                    return ControlFlow::Break(());
                }
            }
            so_far.done += 1;
            advance(progress, options.amount, started, &so_far.summary);
            if explorer.is_guided() {
                learnt.push(run);
            }
            ControlFlow::Continue(())
        })?;
        self.explorer.learn(learnt);
        unsaved.or(unfit.map(CampaignError::from)).map_or(Ok(()), Err)
    }

    /// Keeps what was found so far.
    fn keep(&mut self) -> Result<(), CampaignError> {
        self.so_far.summary.real_time = self.started.elapsed();
        if let Some(results) = &self.results {
            self.so_far.corpus = self.explorer.corpus().clone();
            results.keep(&self.so_far)?;
        }
        Ok(())
    }
}

/// The plans that a guided campaign begins with.
fn planted(options: &Options) -> Result<Corpus, CampaignError> {
    let mut corpus = Corpus::default();
    let Some(directory) = &options.corpus else { return Ok(corpus) };
    if options.strategy != Strategy::Guided {
        return Err(CampaignError::Corpus { strategy: options.strategy.to_string() });
    }
    let unusable = |source| ResultsError::File { path: directory.clone(), source };
    let files: Result<Vec<PathBuf>, _> =
        std::fs::read_dir(directory).and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
    let mut files = files.map_err(unusable)?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let case = Case::load(file)?;
        corpus.plant(&case.scenario, case.plan);
    }
    Ok(corpus)
}

/// Saves the plan of a run if it failed and is one of the first by its cause; gives the file.
fn save(registry: &Registry, directory: &Path, summary: &Summary, run: &Run) -> Result<Option<PathBuf>, CampaignError> {
    let Some(violation) = run.report.violations.first() else { return Ok(None) };
    if !summary.findings.wants(violation) {
        return Ok(None);
    }
    let case = run.case(registry)?;
    let name = match &run.task {
        Task::Seed { seed, .. } => seed.to_string(),
        Task::Plan(_) => format!("{:08x}", xxhash_rust::xxh3::xxh3_64(case.plan.to_string().as_bytes()) as u32),
    };
    let path = directory.join(format!("{}-{name}.json", case.scenario));
    case.save(&path)?;
    Ok(Some(path))
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
    progress.set_message(format!("{} runs, {} violations", summary.runs(), summary.findings.runs()));
}

#[cfg(test)]
mod tests;
