//! In which order a campaign looks at plans.
//!
//! A campaign deals numbered runs to its scenarios in turn; a strategy says which plan a run has. Each is a function of the run's number and,
//! for the guided one, of what all runs of earlier generations showed: so a campaign is the same however many jobs it has, and an
//! interrupted one goes on where it was. Which strategy is the default is measured, not believed: see `scenarios/README.md`.

mod corpus;

pub(crate) use corpus::Corpus;

use crate::error::{CampaignError, CaseError};
use crate::plan::Case;
use crate::scenario::Entry;
use crate::shard::Shard;
use crate::worker::{Run, Task};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Runs of one scenario from one look back at what was reached to the next.
const GENERATION: u64 = 16;

/// Plans that a campaign of crash points draws its points for before it goes on to the next plan.
const POINTS: u64 = 64;

/// Which plan a run has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The plan that its seed draws.
    #[default]
    Random,
    /// That plan, under a schedule which runs tasks by priorities that change only a few times (PCT: Burckhardt et al., ASPLOS 2010).
    Priority,
    /// Mostly a change of an earlier plan that reached something new: a probe, an amount of it, a state of the whole system.
    Guided,
    /// That plan with one fault only, a crash, which 64 runs move over the steps of one node.
    CrashPoints,
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Strategy::Random => "random",
            Strategy::Priority => "priority",
            Strategy::Guided => "guided",
            Strategy::CrashPoints => "crash-points",
        })
    }
}

/// The runs of one shard of a campaign, by number.
#[derive(Debug)]
pub(crate) struct Explorer<'a> {
    entries: Vec<Entry<'a>>,
    strategy: Strategy,
    first_seed: u64,
    shard: Shard,
    corpus: Corpus,
}

impl<'a> Explorer<'a> {
    /// Goes on from a corpus; an empty one is a beginning.
    ///
    /// # Errors
    /// A scenario has no such plans.
    pub(crate) fn new(
        entries: Vec<Entry<'a>>,
        strategy: Strategy,
        first_seed: u64,
        shard: Shard,
        corpus: Corpus,
    ) -> Result<Explorer<'a>, CampaignError> {
        let explorer = Explorer { entries, strategy, first_seed, shard, corpus };
        for entry in &explorer.entries {
            let plan = entry.draw(first_seed);
            let possible = match strategy {
                Strategy::Random => true,
                Strategy::Guided => entry.mutated(&plan, &plan, first_seed)?.is_some(),
                Strategy::Priority | Strategy::CrashPoints => explorer.explored(*entry, plan, first_seed, 0)?.is_some(),
            };
            if !possible {
                return Err(CampaignError::Strategy {
                    scenario: entry.name().to_owned(),
                    strategy: strategy.to_string(),
                });
            }
        }
        Ok(explorer)
    }

    /// Number of a run in the whole campaign, by its number in this shard.
    pub(crate) fn index(&self, number: u64) -> u64 {
        let scenarios = self.entries.len() as u64;
        let round = (number / scenarios).saturating_mul(self.shard.count).saturating_add(self.shard.index - 1);
        round.saturating_mul(scenarios).saturating_add(number % scenarios)
    }

    /// The first number of this shard behind `number` at which what the runs showed is looked at; none if it never is.
    pub(crate) fn next_generation(&self, number: u64) -> Option<u64> {
        let runs = GENERATION * self.entries.len() as u64;
        (self.strategy == Strategy::Guided).then(|| (number / runs + 1) * runs)
    }

    /// What a run of this shard is to do.
    ///
    /// # Errors
    /// A plan of the corpus does not fit its scenario.
    pub(crate) fn task(&self, number: u64) -> Result<Task, CaseError> {
        let index = self.index(number);
        let entry = self.entries[(number % self.entries.len() as u64) as usize];
        let seed = self.first_seed.saturating_add(index);
        let drawn = Task::Seed { scenario: entry.name().to_owned(), seed };
        if self.strategy == Strategy::Random {
            return Ok(drawn);
        }
        let (base, point) = match self.strategy {
            Strategy::CrashPoints => {
                let round = index / self.entries.len() as u64;
                (self.first_seed.saturating_add(round / POINTS), round % POINTS)
            }
            _ => (seed, 0),
        };
        let explored = self.explored(entry, entry.draw(base), seed, point)?;
        Ok(explored.map_or(drawn, |plan| Task::Plan(Case::new(entry.name(), None, None, plan))))
    }

    /// The plan that the strategy has for a run; none if it is the one drawn.
    fn explored(&self, entry: Entry<'_>, drawn: Value, seed: u64, point: u64) -> Result<Option<Value>, CaseError> {
        match self.strategy {
            Strategy::Random => Ok(None),
            Strategy::Priority => entry.prioritised(&drawn, seed),
            Strategy::CrashPoints => entry.crash_point(&drawn, point, POINTS),
            Strategy::Guided => match self.corpus.parents(entry.name(), seed) {
                Some((plan, other)) => entry.mutated(plan, other, seed),
                None => Ok(None),
            },
        }
    }

    /// Learns from the runs of a generation, in an order that does not depend on which ended first.
    pub(crate) fn learn(&mut self, mut runs: Vec<Run>) {
        runs.sort_by_cached_key(|run| serde_json::to_string(&run.task).expect("a task is plain data"));
        for run in runs {
            let plan = match &run.task {
                Task::Plan(case) => case.plan.clone(),
                Task::Seed { scenario, seed } => {
                    let entry = self.entries.iter().find(|entry| entry.name() == scenario);
                    entry.expect("it dealt this run").draw(*seed)
                }
            };
            self.corpus.add(run.task.scenario(), plan, &run.report);
        }
    }

    /// Whether runs are learnt from.
    pub(crate) fn is_guided(&self) -> bool {
        self.strategy == Strategy::Guided
    }

    /// What was learnt so far.
    pub(crate) fn corpus(&self) -> &Corpus {
        &self.corpus
    }
}

#[cfg(test)]
mod tests;
