//! What can go wrong outside the simulated world: damaged files, unknown names, children that die.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a duration such as \"2.5s\", \"150ms\" or \"3min\"")]
pub struct DurationError {
    /// What was read.
    pub text: String,
}

/// A case file that cannot be saved, loaded or run.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("cannot read case file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write case file {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not JSON, or a field of the envelope is missing or of the wrong type.
    #[error("case file {} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the parser met, with line and column.
        source: serde_json::Error,
    },
    /// The file was written by a newer or older format.
    #[error("case file {} has format {found}, this build reads format {expected}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The number in the file.
        found: u64,
        /// The number that this build writes.
        expected: u64,
    },
    /// The scenario is not registered.
    #[error(transparent)]
    Unknown(#[from] UnknownScenario),
    /// The envelope is fine, the plan inside does not fit the scenario.
    #[error("the plan does not fit scenario {scenario:?}: {source}")]
    Plan {
        /// The scenario named in the envelope.
        scenario: String,
        /// Which field.
        source: serde_json::Error,
    },
}

/// A scenario or suite name that nobody registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown scenario {name:?}{}", suggestion(similar.as_deref()))]
pub struct UnknownScenario {
    /// What was asked for.
    pub name: String,
    /// The closest registered name, if one is close.
    pub similar: Option<String>,
}

fn suggestion(similar: Option<&str>) -> String {
    similar.map_or_else(|| "; `list` shows all".to_owned(), |name| format!("; did you mean {name:?}?"))
}

/// The machinery of child processes failed (not a finding about the program under test).
#[derive(Debug, Error)]
pub enum WorkerError {
    /// A system call failed.
    #[error("{call} failed: {source}")]
    System {
        /// The call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The worker process ended or spoke out of turn.
    #[error("the worker process broke off: {0}")]
    Protocol(String),
    /// The request names a scenario that the worker does not have.
    #[error(transparent)]
    Unknown(#[from] UnknownScenario),
}

/// A campaign that cannot go on (not one that found something).
#[derive(Debug, Error)]
pub enum CampaignError {
    /// No scenario is registered.
    #[error("no scenario is registered")]
    NothingToRun,
    /// A name selects nothing.
    #[error(transparent)]
    Unknown(#[from] UnknownScenario),
    /// A scenario has no plans of that kind.
    #[error("scenario {scenario:?} has no plans for the strategy {strategy}")]
    Strategy {
        /// The scenario.
        scenario: String,
        /// The strategy, as it is typed.
        strategy: String,
    },
    /// A corpus for a strategy that learns from none.
    #[error("a corpus is for the strategy guided, not for {strategy}")]
    Corpus {
        /// The strategy, as it is typed.
        strategy: String,
    },
    /// A failing plan cannot be saved.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The results cannot be kept, gone on from, or put together.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The children cannot be run.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// A directory of results that cannot be used.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what a campaign writes.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the parser met.
        source: serde_json::Error,
    },
    /// The directory holds results of something else.
    #[error("{} holds results of another campaign: {difference}", directory.display())]
    Other {
        /// The directory.
        directory: PathBuf,
        /// What differs.
        difference: String,
    },
    /// One part was given twice.
    #[error("{} and {} are both shard {shard}", first.display(), second.display())]
    Twice {
        /// A directory.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// The part.
        shard: String,
    },
}

/// A case that cannot be made smaller.
#[derive(Debug, Error)]
pub enum ShrinkError {
    /// It violates nothing.
    #[error("the case violates nothing of {scenario}, so there is nothing to keep while it shrinks")]
    Clean {
        /// The scenario.
        scenario: String,
    },
    /// Its plan is not one of its scenario.
    #[error("the case cannot be run: {reason}")]
    Unfit {
        /// What the reader of the plan met.
        reason: String,
    },
    /// A name selects nothing.
    #[error(transparent)]
    Unknown(#[from] UnknownScenario),
    /// The case, or the smaller one, cannot be read or written.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The children cannot be run.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// A mutant that cannot be judged.
#[derive(Debug, Error)]
pub enum MutantError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The metadata is not the expected JSON.
    #[error("metadata {} is damaged: {source}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// What the parser met.
        source: serde_json::Error,
    },
    /// No such mutant.
    #[error("no mutant named {name:?} in {}", directory.display())]
    Missing {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The patch does not apply to this tree.
    #[error("patch of mutant {name} no longer applies: {reason}")]
    Stale {
        /// The mutant.
        name: String,
        /// What the tool said.
        reason: String,
    },
    /// The patched tree does not compile.
    #[error("mutant {name} does not build: {reason}")]
    Build {
        /// The mutant.
        name: String,
        /// The last lines of the compiler.
        reason: String,
    },
    /// A tool cannot be started or failed.
    #[error("`{command}` failed: {reason}")]
    Tool {
        /// What was run.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The clean code violates an invariant on the same seeds, so a kill proves nothing.
    #[error("the clean code violates {invariant:?} in scenario {scenario} at seed {seed}")]
    NotClean {
        /// The scenario.
        scenario: String,
        /// The seed.
        seed: u64,
        /// What was violated.
        invariant: String,
    },
    /// The case that killed it cannot be made small.
    #[error(transparent)]
    Shrink(#[from] ShrinkError),
    /// A scenario has no plans of a strategy.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The runs themselves failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}
