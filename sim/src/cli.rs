//! The command line: `list`, `run`, `fuzz`, `replay`, `shrink`, `check`, `mutants`.
//!
//! Exit status 0: no violation. 1: a violation, a divergence, a surviving mutant, or a fault without effect. 2: usage, or something
//! outside of the simulator failed.

mod commands;

use crate::campaign::{Amount, Shard};
use crate::duration;
use crate::scenario::Registry;
use crate::worker::process::{descriptor, serve};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How long `fuzz` goes on unless told.
const FUZZ_TIME: Duration = Duration::from_secs(60);

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
    Run(RunArguments),
    /// Run many seeds; save what fails as case files.
    Fuzz(FuzzArguments),
    /// Run a case file.
    Replay(ReplayArguments),
    /// Make a failing case small: fewer faults, operations and nodes, and the same violation.
    Shrink(ShrinkArguments),
    /// Prove that runs are deterministic: each seed twice, in two processes in lockstep.
    Check(CheckArguments),
    /// Plant known bugs and see which invariant kills each.
    Mutants(MutantArguments),
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
    /// Where case files of failures go.
    #[arg(long, value_name = "DIR", default_value = "target/sim-cases")]
    cases: PathBuf,
    /// Also show in how many runs each probe was reached.
    #[arg(long)]
    probes: bool,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
    /// Where trees, builds and the table go.
    #[arg(long, value_name = "DIR", default_value = "target/mutants")]
    scratch: PathBuf,
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

#[cfg(test)]
mod tests;
