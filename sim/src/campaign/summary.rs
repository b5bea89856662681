//! What a campaign found, as numbers and as the table that people read.

use super::finding::{Failure, Finding, Findings};
use crate::scenario::Entry;
use crate::text::{align_right, clock, grouped, table};
use crate::worker::{Run, Task};
use comfy_table::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// So many runs with a fault, none of which felt it, are no accident.
const CHANCES_ENOUGH: u64 = 10;

/// Findings shown one by one; the others are counted.
const SHOWN_MAX: usize = 10;

/// What one scenario did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// Seeds run.
    pub seeds: u64,
    /// Seeds with a violation.
    pub violations: u64,
    /// Events in all traces.
    pub events: u64,
    /// Time in all worlds.
    #[serde(with = "crate::duration")]
    pub virtual_time: Duration,
    /// Wall-clock time of all children.
    #[serde(with = "crate::duration")]
    pub real_time: Duration,
}

impl ScenarioRow {
    fn add(&mut self, other: &ScenarioRow) {
        self.seeds += other.seeds;
        self.violations += other.violations;
        self.events += other.events;
        self.virtual_time += other.virtual_time;
        self.real_time += other.real_time;
    }
}

/// What one kind of fault did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRow {
    /// Runs whose plan had it.
    pub enabled_in: u64,
    /// Runs in which it did something.
    pub effective_in: u64,
    /// How much it did over all runs.
    pub amount: u64,
    /// What is counted.
    pub unit: String,
}

/// What a campaign found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// By scenario.
    pub scenarios: BTreeMap<String, ScenarioRow>,
    /// By kind of fault.
    pub faults: BTreeMap<String, FaultRow>,
    /// By probe: in how many runs it was reached.
    pub probes: BTreeMap<String, u64>,
    /// Numbers that scenarios keep, over all runs.
    pub counts: BTreeMap<String, u64>,
    /// Failing runs by cause.
    pub findings: Findings,
    /// Wall-clock time of the campaign.
    #[serde(with = "crate::duration")]
    pub real_time: Duration,
}

impl Summary {
    /// Nothing has run yet.
    pub fn new(entries: &[Entry<'_>]) -> Summary {
        let scenarios = entries.iter().map(|entry| (entry.name().to_owned(), ScenarioRow::default())).collect();
        Summary { scenarios, ..Summary::default() }
    }

    /// Adds a run, and the case file of a failed one.
    pub fn add(&mut self, run: &Run, case: Option<PathBuf>) {
        let report = &run.report;
        let row = self.scenarios.entry(run.task.scenario().to_owned()).or_default();
        row.seeds += 1;
        row.violations += u64::from(!report.is_clean());
        row.events += report.events;
        row.virtual_time += report.virtual_time;
        row.real_time += run.real_time;
        self.add_effects(run);
        for (probe, hits) in &report.probes {
            *self.probes.entry(probe.clone()).or_default() += u64::from(*hits > 0);
        }
        for (name, count) in &report.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        if let Some(violation) = report.violations.first() {
            let seed = if let Task::Seed { seed, .. } = &run.task { Some(*seed) } else { None };
            let scenario = run.task.scenario().to_owned();
            self.findings.add(Failure { scenario, seed, violation: violation.clone(), case });
        }
    }

    fn add_effects(&mut self, run: &Run) {
        let mut by_kind: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for effect in &run.report.effects {
            by_kind.entry(&effect.kind).or_insert((0, &effect.unit)).0 += effect.amount;
        }
        for (kind, (amount, unit)) in by_kind {
            let row = self.faults.entry(kind.to_owned()).or_default();
            row.enabled_in += 1;
            row.effective_in += u64::from(amount > 0);
            row.amount += amount;
            unit.clone_into(&mut row.unit);
        }
    }

    /// Adds what another part of the same campaign found.
    pub fn merge(&mut self, other: Summary) {
        for (name, theirs) in other.scenarios {
            self.scenarios.entry(name).or_default().add(&theirs);
        }
        for (kind, theirs) in other.faults {
            let ours = self.faults.entry(kind).or_default();
            ours.enabled_in += theirs.enabled_in;
            ours.effective_in += theirs.effective_in;
            ours.amount += theirs.amount;
            ours.unit = theirs.unit;
        }
        for (ours, theirs) in [(&mut self.probes, other.probes), (&mut self.counts, other.counts)] {
            for (name, number) in theirs {
                *ours.entry(name).or_default() += number;
            }
        }
        self.findings.merge(other.findings);
        self.real_time += other.real_time;
    }

    /// Runs so far.
    pub fn runs(&self) -> u64 {
        self.scenarios.values().map(|row| row.seeds).sum()
    }

    /// Kinds of fault that were enabled in ten runs or more and never did anything: then the campaign proves less than it seems to. (In
    /// fewer runs each may have come at a quiet time.)
    pub fn idle_faults(&self) -> Vec<&str> {
        let is_idle = |row: &FaultRow| row.amount == 0 && row.enabled_in >= CHANCES_ENOUGH;
        self.faults.iter().filter(|(_, row)| is_idle(row)).map(|(kind, _)| kind.as_str()).collect()
    }

    /// Whether the campaign found nothing and each enabled fault had an effect.
    pub fn is_clean(&self) -> bool {
        self.findings.count() == 0 && self.idle_faults().is_empty()
    }

    /// What people read at the end. `command` is what they type: `cargo sim`; `part` says which part of a campaign this is, if it is one.
    pub fn to_text(&self, command: &str, part: &str) -> String {
        let mut text = format!("{}\n", self.scenario_table());
        if !self.faults.is_empty() {
            let _ = write!(text, "\n{}\n", self.fault_table());
        }
        if !self.counts.is_empty() {
            let counts: Vec<String> =
                self.counts.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
            let _ = write!(text, "\n{}\n", counts.join("\n"));
        }
        for finding in self.findings.by_frequency().into_iter().take(SHOWN_MAX) {
            tell_finding(&mut text, command, finding);
        }
        if self.findings.count() > SHOWN_MAX {
            let _ =
                writeln!(text, "\n… and {} more findings, each with its case files", self.findings.count() - SHOWN_MAX);
        }
        for kind in self.idle_faults() {
            let runs = self.faults[kind].enabled_in;
            let _ = writeln!(
                text,
                "\nfault {kind} was enabled in {runs} runs and never had any effect: this campaign proves nothing about it"
            );
        }
        let _ = write!(text, "\n{}", self.closing(part));
        text
    }

    fn closing(&self, part: &str) -> String {
        let verdict = match (self.findings.runs(), self.findings.count()) {
            (0, _) => "no violation".to_owned(),
            (1, _) => "1 seed with a violation".to_owned(),
            (runs, 1) => format!("{runs} seeds with violations, all by one cause"),
            (runs, causes) => format!("{runs} seeds with violations, by {causes} causes"),
        };
        format!("{} seeds in {:.1} s{part}: {verdict}\n", self.runs(), self.real_time.as_secs_f64())
    }

    fn scenario_table(&self) -> Table {
        let mut table = table(&["scenario", "seeds", "violations", "events", "virtual time", "x real"]);
        let mut total = ScenarioRow::default();
        for (name, row) in &self.scenarios {
            table.add_row(cells(name, row));
            total.add(row);
        }
        if self.scenarios.len() > 1 {
            table.add_row(cells("all", &total));
        }
        align_right(&mut table, 1..6);
        table
    }

    fn fault_table(&self) -> Table {
        let mut table = table(&["fault", "enabled in", "effective in", "effect"]);
        for (kind, row) in &self.faults {
            let effect = format!("{} {}", grouped(row.amount), row.unit);
            table.add_row([
                kind.clone(),
                format!("{} runs", row.enabled_in),
                format!("{} runs", row.effective_in),
                effect,
            ]);
        }
        align_right(&mut table, 1..4);
        table
    }

    /// In how many runs each probe was reached.
    pub fn probe_table(&self) -> Table {
        let mut table = table(&["probe", "reached in"]);
        for (probe, runs) in &self.probes {
            table.add_row([probe.clone(), format!("{runs} runs")]);
        }
        align_right(&mut table, 1..2);
        table
    }
}

/// Shows the first failing run of a finding, with its evidence, and names the others.
pub(super) fn tell_finding(text: &mut String, command: &str, finding: &Finding) {
    let Some((first, others)) = finding.failures.split_first() else { return };
    let seed = first.seed.map(|seed| format!(" at seed {seed}")).unwrap_or_default();
    let _ = write!(text, "\n{}{seed}\n  {}\n", first.scenario, first.violation);
    let _ = writeln!(text, "  reproduce: {}", reproduce(command, first));
    if finding.runs > 1 {
        let named: Vec<String> = others.iter().map(name).collect();
        let rest = if finding.runs as usize > finding.failures.len() { ", …" } else { "" };
        let _ = writeln!(text, "  {} more runs by this cause: {}{rest}", grouped(finding.runs - 1), named.join(", "));
    }
}

/// A failing run in a list of such.
fn name(failure: &Failure) -> String {
    match (failure.seed, &failure.case) {
        (Some(seed), _) => format!("{} at seed {seed}", failure.scenario),
        (None, Some(case)) => case.display().to_string(),
        (None, None) => failure.scenario.clone(),
    }
}

/// The one command that reproduces a failure: the seed while it stands for the plan, else the case file.
fn reproduce(command: &str, failure: &Failure) -> String {
    match (&failure.seed, &failure.case) {
        (Some(seed), Some(case)) => {
            format!("{command} run {} --seed {seed}    (saved as {})", failure.scenario, case.display())
        }
        (Some(seed), None) => format!("{command} run {} --seed {seed}", failure.scenario),
        (None, case) => format!("{command} replay {}", case.as_deref().unwrap_or("FILE".as_ref()).display()),
    }
}

/// The one command that reproduces a run.
pub(crate) fn reproduce_run(command: &str, run: &Run, file: Option<&std::path::Path>) -> String {
    match (&run.task, file) {
        (_, Some(file)) => format!("{command} replay {}", file.display()),
        (Task::Seed { scenario, seed }, None) => format!("{command} run {scenario} --seed {seed}"),
        (Task::Plan(case), None) => format!("{command} replay FILE    (a case of {})", case.scenario),
    }
}

fn cells(name: &str, row: &ScenarioRow) -> [String; 6] {
    let ratio = row.virtual_time.as_secs_f64() / row.real_time.as_secs_f64().max(1e-9);
    [
        name.to_owned(),
        grouped(row.seeds),
        grouped(row.violations),
        grouped(row.events),
        clock(row.virtual_time),
        if row.seeds == 0 { "-".to_owned() } else { grouped(ratio.round() as u64) },
    ]
}

#[cfg(test)]
mod tests;
