//! The command line: `list`, `run`, `fuzz`, `merge`, `replay`, `report`, `shrink`, `check`, `mutants`, `completion`.
//!
//! Exit status 0: no violation. 1: a violation, a divergence, a surviving mutant, or a fault without effect. 2: usage, or something
//! outside of the simulator failed.

mod commands;

use crate::campaign::Amount;
use crate::duration;
use crate::explore::Strategy;
use crate::scenario::Registry;
use crate::shard::Shard;
use crate::worker::process::{descriptor, serve};
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How long `fuzz` goes on unless told.
const FUZZ_TIME: Duration = Duration::from_secs(60);

const RUN_EXAMPLES: &str = "\
Examples:
  sim run NAME --seed 7 --log info,store=debug    # with log lines of the program
  sim run NAME --seed 7 --plan --history          # what was planned, what clients asked and were told";
const FUZZ_EXAMPLES: &str = "\
Examples:
  sim fuzz --for 60s                                         # everything, for a minute
  sim fuzz SUITE --seeds 2000 --junit results.xml            # in CI
  sim fuzz --for 8h --shard 2/4 --out night/2                # one machine of four; the same command goes on where it was
  sim fuzz SUITE --strategy guided --corpus fixtures/seeds   # from known cases to their neighbours";
const MERGE_EXAMPLES: &str = "\
Example:
  sim merge night/1 night/2 night/3 night/4 --out night/all";
const SHRINK_EXAMPLES: &str = "\
Example:
  sim shrink case.json --for 2min --out small.json    # may be interrupted; the same command goes on";
const CHECK_EXAMPLES: &str = "\
Example:
  sim check SUITE --seeds 300";
const MUTANTS_EXAMPLES: &str = "\
Examples:
  sim mutants                         # all of them, which takes long
  sim mutants NAME --seeds 500
  sim mutants NAME --compare 20 --seeds 1000    # which strategy finds it soonest";
const COMPLETION_EXAMPLES: &str = "\
Completions are for a program named `sim`; an alias of cargo is not completed. For bash:
  sim completion bash > ~/.local/share/bash-completion/completions/sim";

/// Deterministic simulation: run scenarios from seeds, find violations, reproduce them.
#[derive(Debug, Parser)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show all scenarios and their claims.
    List,
    /// Run one scenario from one seed.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Run many seeds; save what fails as case files.
    #[command(after_help = FUZZ_EXAMPLES)]
    Fuzz(FuzzArguments),
    /// Put the results of the shards of one campaign together.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArguments),
    /// Run a case file.
    Replay(ReplayArguments),
    /// Show what happened in a case: a page for a browser, or plain text.
    Report(ReportArguments),
    /// Make a failing case small: fewer faults, operations and nodes, and the same violation.
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(ShrinkArguments),
    /// Prove that runs are deterministic: each seed twice, in two processes in lockstep.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
    /// Plant known bugs and see which invariant kills each.
    #[command(after_help = MUTANTS_EXAMPLES)]
    Mutants(MutantArguments),
    /// Print the completions of a shell, with the names of all scenarios.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// Which shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Which scenario (see `list`).
    scenario: String,
    /// The seed that draws the plan.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Show the plan that the seed draws.
    #[arg(long)]
    plan: bool,
    /// Show the history: what clients asked and were told, and what happened to nodes.
    #[arg(long)]
    history: bool,
    /// Show log lines on stderr: a level, or levels by module such as `info,store=trace`.
    #[arg(long, value_name = "LEVEL", value_parser = log_levels)]
    log: Option<String>,
    /// Also write a page that shows what happened.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct FuzzArguments {
    /// Scenarios or suites; all if none is named.
    scenarios: Vec<String>,
    #[command(flatten)]
    amount: AmountArguments,
    /// The first seed. Run i is scenario i mod n with seed first + i.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_seed: u64,
    /// Children at a time [default: one a processor].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run only the K-th of N parts of the campaign.
    #[arg(long, value_name = "K/N", default_value_t = Shard::ALL)]
    shard: Shard,
    /// In which order to look at plans.
    #[arg(long, value_enum, default_value_t)]
    strategy: Strategy,
    /// Case files that a guided campaign begins with.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Where case files of failures go.
    #[arg(long, value_name = "DIR", default_value = "target/sim-cases", conflicts_with = "out")]
    cases: PathBuf,
    /// Keep results and cases in this directory, every few seconds; the same command goes on there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArguments,
}

/// How the result of a campaign is told.
#[derive(Debug, Args)]
struct ShownArguments {
    /// Also show in how many runs each probe was reached.
    #[arg(long)]
    probes: bool,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the result as JUnit's XML, for CI systems.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct MergeArguments {
    /// The directories that the shards were run with as `--out`.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Copy the cases of all shards to this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArguments,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct AmountArguments {
    /// How many seeds, over all scenarios.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// For how long, such as 60s or 8h [default: 60s].
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    time: Option<Duration>,
}

#[derive(Debug, Args)]
struct ReplayArguments {
    /// The case file.
    file: PathBuf,
    /// Show the history: what clients asked and were told, and what happened to nodes.
    #[arg(long)]
    history: bool,
    /// Show log lines on stderr: a level, or levels by module such as `info,store=trace`.
    #[arg(long, value_name = "LEVEL", value_parser = log_levels)]
    log: Option<String>,
    /// Also write a page that shows what happened.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  report target/sim-cases/CASE.json            a page next to the case, for any browser, without a network
  report CASE.json --text                      the same story in the terminal
  report CASE.json --json run.json             everything that the page knows, for programs")]
struct ReportArguments {
    /// The case file.
    case: PathBuf,
    #[command(flatten)]
    form: ReportForm,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct ReportForm {
    /// Where the page goes [default: CASE with `.html` at its end].
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Plain text instead: faults, violations, proofs, and the events around them.
    #[arg(long)]
    text: bool,
    /// The whole recording as JSON instead.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ShrinkArguments {
    /// The case file.
    file: PathBuf,
    /// Where the small case goes, step by step; a search that was interrupted goes on from there [default: FILE with `.small` in its name].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How long to go on at most, such as 2min.
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, default_value = "2min")]
    time: Duration,
    /// Children at a time [default: one a processor].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Scenarios or suites; all if none is named.
    scenarios: Vec<String>,
    /// How many seeds, over all scenarios.
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_seed: u64,
}

#[derive(Debug, Args)]
struct MutantArguments {
    /// Which mutants; all if none is named.
    names: Vec<String>,
    /// Seeds that a mutant gets at most.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_seed: u64,
    /// Children at a time [default: one a processor].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Where the patches are.
    #[arg(long, value_name = "DIR", default_value = "fixtures/mutants")]
    patches: PathBuf,
    /// Where trees, builds, small cases and the table go.
    #[arg(long, value_name = "DIR", default_value = "target/mutants")]
    scratch: PathBuf,
    /// How long to shrink the case that killed a mutant; 0s: not at all.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2min")]
    shrink: Duration,
    /// A patch that changes nothing in what the program promises: do the small cases still fail with it?
    #[arg(long, value_name = "FILE")]
    change: Option<PathBuf>,
    /// Compare the strategies instead: hunt each mutant that often by each of them.
    #[arg(long, value_name = "N")]
    compare: Option<u64>,
}

impl AmountArguments {
    fn amount(&self) -> Amount {
        self.seeds.map_or_else(|| Amount::Time(self.time.unwrap_or(FUZZ_TIME)), Amount::Seeds)
    }
}

fn log_levels(text: &str) -> Result<String, String> {
    crate::log::filter(text).map(|_| text.to_owned())
}

/// The `main` of a project's binary. Call it first thing: the process must be single-threaded and must have run no world.
pub fn main(registry: &Registry) -> ExitCode {
    if let Some(descriptor) = descriptor() {
        return match serve(registry, descriptor) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    ExitCode::from(run(registry, std::env::args_os(), &mut out, &mut err))
}

/// Runs one command; gives the exit status. Output goes to `out`, complaints to `err`.
pub fn run(
    registry: &Registry,
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let status = match parse(registry, arguments) {
        Ok(Cli { command }) => commands::perform(registry, command, out, err),
        Err(error) => {
            if error.use_stderr() {
                write!(err, "{error}").map(|()| 2)
            } else {
                write!(out, "{error}").map(|()| 0)
            }
        }
    };
    // The reader of our output is gone: there is nobody to tell.
    status.unwrap_or(2)
}

fn parse(registry: &Registry, arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let command = Cli::command().bin_name(registry.command()).version(env!("CARGO_PKG_VERSION"));
    Cli::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// The command line as a shell should complete it: with the names of scenarios and suites, which are checked elsewhere.
fn completed(registry: &Registry) -> clap::Command {
    let names = |suites: bool| {
        let mut names: Vec<&'static str> = registry.entries().map(|entry| entry.name()).collect();
        if suites {
            names.extend(registry.entries().map(|entry| entry.suite()));
            names.sort_unstable();
            names.dedup();
        }
        PossibleValuesParser::new(names)
    };
    Cli::command()
        .mut_subcommand("run", |run| run.mut_arg("scenario", |name| name.value_parser(names(false))))
        .mut_subcommand("fuzz", |fuzz| fuzz.mut_arg("scenarios", |name| name.value_parser(names(true))))
        .mut_subcommand("check", |check| check.mut_arg("scenarios", |name| name.value_parser(names(true))))
}

#[cfg(test)]
mod tests;
