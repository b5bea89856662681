//! What each command does.

use super::{
    CheckArguments, Command, FuzzArguments, MergeArguments, MutantArguments, ReplayArguments, ReportArguments,
    ReportForm, RunArguments, ShownArguments, ShrinkArguments, completed,
};
use crate::campaign::{self, Merged, Options, Summary, progress_bar, reproduce_run, to_junit};
use crate::desk::{Observation, observe};
use crate::error::{CampaignError, CaseError, MutantError, ShrinkError, WorkerError};
use crate::page::{self, Subject};
use crate::plan::{Case, write_whole};
use crate::report::Report;
use crate::scenario::Registry;
use crate::shard::Shard;
use crate::text::{align_right, clock, grouped, table};
use crate::worker::process::Launch;
use crate::worker::{self, Limits, Run, Task, Workers};
use crate::{check, log, mutants, shrink};
use indicatif::ProgressBar;
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// No violation.
const CLEAN: u8 = 0;
/// A violation.
const VIOLATED: u8 = 1;
/// Usage, or a failure outside of the simulator.
const USAGE: u8 = 2;

/// What stops a command.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    #[error(transparent)]
    Case(#[from] CaseError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Mutant(#[from] MutantError),
    #[error(transparent)]
    Shrink(#[from] ShrinkError),
    #[error("case file {path} is damaged: {reason}")]
    Unfit { path: String, reason: String },
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: io::Error },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Performs the command; an error of output only is left to the caller.
pub(super) fn perform(
    registry: &Registry,
    command: Command,
    mut out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let status = match command {
        Command::List => list(registry, out),
        Command::Run(arguments) => run(registry, &arguments, out),
        Command::Fuzz(arguments) => fuzz(registry, arguments, out),
        Command::Merge(arguments) => merge(registry, &arguments, out),
        Command::Replay(arguments) => replay(registry, &arguments, out),
        Command::Report(arguments) => report(registry, &arguments, out),
        Command::Shrink(arguments) => shrink(registry, arguments, out),
        Command::Check(arguments) => check(registry, &arguments, out),
        Command::Mutants(arguments) => mutants(registry, arguments, out, err),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut completed(registry), "sim", &mut out);
            Ok(CLEAN)
        }
    };
    status.or_else(|error| {
        writeln!(err, "error: {error}")?;
        // A program that does not keep its promises is 1, also where it is met on the way to something else.
        Ok(if matches!(error, Failure::Mutant(MutantError::NotClean { .. })) { VIOLATED } else { USAGE })
    })
}

fn list(registry: &Registry, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut table = table(&["suite", "scenario", "claim"]);
    for entry in registry.entries() {
        table.add_row([entry.suite(), entry.name(), entry.claim()]);
    }
    writeln!(out, "{table}")?;
    Ok(CLEAN)
}

fn run(registry: &Registry, arguments: &RunArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let RunArguments { scenario, seed, plan, history, log, html } = arguments;
    let entry = registry.get(scenario).map_err(CaseError::from)?;
    if *plan {
        write!(out, "{}", entry.case(*seed).to_text())?;
    }
    let task = Task::Seed { scenario: scenario.clone(), seed: *seed };
    let wishes = Wishes { history: *history, recording: html.is_some(), log: log.as_deref() };
    let run = one(registry, task, wishes)?;
    if let Some(page) = html {
        write_page(registry, &run, &entry.draw(*seed), None, page)?;
    }
    tell(registry, &run, None, out)
}

fn replay(registry: &Registry, arguments: &ReplayArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let ReplayArguments { file, history, log, html } = arguments;
    let wishes = Wishes { history: *history, recording: html.is_some(), log: log.as_deref() };
    let (case, run) = run_case(registry, file, wishes)?;
    if let Some(page) = html {
        write_page(registry, &run, &case.plan, Some(file), page)?;
    }
    if let (Some(expected), true) = (&case.violates, run.report.is_clean()) {
        writeln!(out, "the case was saved for violating {expected:?}, which this build does not")?;
    }
    tell(registry, &run, Some(file), out)
}

fn report(registry: &Registry, arguments: &ReportArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let ReportArguments { case: file, form: ReportForm { html, text, json } } = arguments;
    let (case, run) = run_case(registry, file, Wishes { history: false, recording: true, log: None })?;
    if *text {
        let reproduce = reproduce_run(registry.command(), &run, Some(file));
        write!(out, "{}", page::to_text(&subject(registry, &run, &case.plan, &reproduce)?))?;
    } else if let Some(path) = json {
        let text = serde_json::to_string(&run).expect("a run is plain data");
        write_file(path, &text)?;
        writeln!(out, "wrote {}", path.display())?;
    } else {
        let path = html.clone().unwrap_or_else(|| file.with_extension("html"));
        write_page(registry, &run, &case.plan, Some(file), &path)?;
        writeln!(out, "wrote {}: open it in any browser", path.display())?;
    }
    Ok(CLEAN)
}

/// Runs the case of a file.
fn run_case(registry: &Registry, file: &Path, wishes: Wishes<'_>) -> Result<(Case, Run), Failure> {
    let case = Case::load(file)?;
    registry.get(&case.scenario).map_err(CaseError::from)?;
    let run = one(registry, Task::Plan(case.clone()), wishes)?;
    let unfit = run.report.violations.iter().find(|violation| violation.invariant == worker::PLAN_FITS);
    match unfit {
        // Told by the child, which alone knows the type of the plan.
        Some(violation) => Err(Failure::Unfit { path: file.display().to_string(), reason: violation.summary.clone() }),
        None => Ok((case, run)),
    }
}

fn subject<'a>(registry: &Registry, run: &'a Run, plan: &'a Value, reproduce: &'a str) -> Result<Subject<'a>, Failure> {
    let scenario = run.task.scenario();
    let claim = registry.get(scenario).map_err(CaseError::from)?.claim();
    Ok(Subject { scenario, claim, seed: run.task.seed(), plan, report: &run.report, reproduce })
}

fn write_page(registry: &Registry, run: &Run, plan: &Value, file: Option<&Path>, page: &Path) -> Result<(), Failure> {
    let reproduce = reproduce_run(registry.command(), run, file);
    write_file(page, &page::to_html(&subject(registry, run, plan, &reproduce)?))
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text).map_err(|source| Failure::Write { path: path.display().to_string(), source })
}

fn shrink(registry: &Registry, arguments: ShrinkArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let ShrinkArguments { file, out: small, time, jobs } = arguments;
    let case = Case::load(&file)?;
    let small = small.unwrap_or_else(|| file.with_extension("small.json"));
    let options = shrink::Options { limits: limits(jobs), time, file: small.clone() };
    let progress = ProgressBar::new_spinner();
    let shrunk = shrink::run(registry, Workers::Here(registry), &case, &options, &mut |runs, size| {
        progress.set_message(format!("{runs} runs, {} faults and {} operations left", size.faults, size.operations));
        progress.tick();
    })?;
    progress.finish_and_clear();
    shrunk.case.save(&small)?;
    write!(out, "{}", shrunk.to_text())?;
    writeln!(out, "\nreproduce: {} replay {}", registry.command(), small.display())?;
    Ok(CLEAN)
}

/// What a person wants to see of a run, besides its verdict.
#[derive(Clone, Copy)]
struct Wishes<'a> {
    history: bool,
    recording: bool,
    /// Levels of the log.
    log: Option<&'a str>,
}

/// Runs one task in one child.
fn one(registry: &Registry, task: Task, wishes: Wishes<'_>) -> Result<Run, Failure> {
    let limits = Limits { jobs: NonZeroUsize::MIN, wall_clock: Duration::from_secs(600), ..Limits::of_this_machine() };
    let prepare = || {
        let Wishes { history, recording, log } = wishes;
        observe(Observation { on_checkpoint: None, backtraces: log.is_some(), history, recording });
        if let Some(levels) = log {
            log::install(log::filter(levels).expect("the command line was checked"));
        }
    };
    let mut done = None;
    worker::run_with(registry, limits, &prepare, [task], |run| {
        done = Some(run);
        ControlFlow::Continue(())
    })?;
    Ok(done.expect("one task, one run"))
}

fn tell(registry: &Registry, run: &Run, file: Option<&Path>, out: &mut dyn Write) -> Result<u8, Failure> {
    let report = &run.report;
    if let Some(history) = &report.history {
        writeln!(out, "{history}")?;
    }
    let seed = run.task.seed().map(|seed| format!(" seed {seed}")).unwrap_or_default();
    writeln!(
        out,
        "{}{seed}: {} of virtual time, {} events, hash {:016x}",
        run.task.scenario(),
        clock(report.virtual_time),
        grouped(report.events),
        report.hash
    )?;
    let counts: Vec<String> = report.counts.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
    if !counts.is_empty() {
        writeln!(out, "  {}", counts.join(", "))?;
    }
    if !report.effects.is_empty() {
        writeln!(out, "{}", effects(report))?;
    }
    if report.is_clean() {
        writeln!(out, "no violation")?;
        return Ok(CLEAN);
    }
    for violation in &report.violations {
        writeln!(out, "\nviolation of {violation}")?;
    }
    writeln!(out, "\nreproduce: {}", reproduce_run(registry.command(), run, file))?;
    Ok(VIOLATED)
}

fn effects(report: &Report) -> impl Display {
    let mut table = table(&["fault", "effect"]);
    for effect in &report.effects {
        let amount =
            if effect.amount == 0 { "none".to_owned() } else { format!("{} {}", grouped(effect.amount), effect.unit) };
        table.add_row([effect.fault.clone(), amount]);
    }
    align_right(&mut table, 1..2);
    table
}

fn limits(jobs: Option<NonZeroUsize>) -> Limits {
    let machine = Limits::of_this_machine();
    Limits { jobs: jobs.unwrap_or(machine.jobs), ..machine }
}

fn fuzz(registry: &Registry, arguments: FuzzArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let FuzzArguments { scenarios, amount, first_seed, jobs, shard, strategy, corpus, cases, out: results, shown } =
        arguments;
    let (amount, limits) = (amount.amount(), limits(jobs));
    let options = Options { scenarios, amount, first_seed, shard, limits, cases, strategy, corpus, results };
    let summary = campaign::run(registry, &options, &progress_bar(amount))?;
    let part = if shard == Shard::ALL { String::new() } else { format!(" (shard {shard})") };
    show(registry, &summary, &part, &shown, out)
}

fn merge(registry: &Registry, arguments: &MergeArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let MergeArguments { directories, out: together, shown } = arguments;
    let Merged { summary, missing } = campaign::merge(directories, together.as_deref()).map_err(CampaignError::from)?;
    let missing: Vec<String> = missing.iter().map(Shard::to_string).collect();
    let part = match (directories.len(), missing.is_empty()) {
        (count, true) => format!(" (all of {count} shards)"),
        (_, false) => format!(" (without shard {})", missing.join(", ")),
    };
    show(registry, &summary, &part, shown, out)
}

/// Tells what a campaign found, in each form that was asked for.
fn show(
    registry: &Registry,
    summary: &Summary,
    part: &str,
    shown: &ShownArguments,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    write!(out, "{}", summary.to_text(registry.command(), part))?;
    if shown.probes {
        writeln!(out, "\n{}", summary.probe_table())?;
    }
    let json = |summary: &Summary| serde_json::to_string_pretty(summary).expect("a summary is plain data");
    let junit = |summary: &Summary| to_junit(summary, registry.command());
    let files = [
        shown.json.as_ref().map(|path| (path, json(summary))),
        shown.junit.as_ref().map(|path| (path, junit(summary))),
    ];
    for (path, text) in files.into_iter().flatten() {
        write_file(path, &text)?;
    }
    Ok(if summary.is_clean() { CLEAN } else { VIOLATED })
}

fn check(registry: &Registry, arguments: &CheckArguments, out: &mut dyn Write) -> Result<u8, Failure> {
    let CheckArguments { scenarios, seeds, first_seed } = arguments;
    let progress = progress_bar(campaign::Amount::Seeds(*seeds));
    let range = *first_seed..first_seed.saturating_add(*seeds);
    let summary =
        check::run(registry, &Launch::this_command_line(), scenarios, range, |so_far| told(&progress, so_far))?;
    progress.finish_and_clear();
    write!(out, "{}", summary.to_text())?;
    Ok(if summary.divergences.is_empty() { CLEAN } else { VIOLATED })
}

fn told(progress: &ProgressBar, so_far: &check::Summary) {
    progress.inc(1);
    progress.set_message(format!("{} divergences", so_far.divergences.len()));
}

fn mutants(
    registry: &Registry,
    arguments: MutantArguments,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let MutantArguments { names, seeds, first_seed, jobs, patches, scratch, shrink, change, compare } = arguments;
    let options = mutants::Options { names, patches, scratch, first_seed, seeds, shrink, change, limits: limits(jobs) };
    // Lines and no bar: a whole run takes an hour, and what it did is read afterwards.
    let tell = |step: &str| drop(writeln!(err, "{step}"));
    if let Some(repetitions) = compare {
        let comparisons = mutants::compare(registry, &options, repetitions, tell)?;
        write!(out, "{}", mutants::Comparison::to_text(&comparisons))?;
        return Ok(CLEAN);
    }
    let rows = mutants::run(registry, &options, tell)?;
    write!(out, "{}", mutants::to_text(&rows))?;
    Ok(if rows.iter().all(|row| row.kill.is_some()) { CLEAN } else { VIOLATED })
}
