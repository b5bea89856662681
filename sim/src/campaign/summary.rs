//! What a campaign found, as numbers and as the table that people read.

use super::Shard;
use crate::scenario::Entry;
use crate::verdict::Violation;
use crate::worker::{Run, Task};
use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// So many runs with a fault, none of which felt it, are no accident.
const CHANCES_ENOUGH: u64 = 10;

/// Failures shown one by one; the others are counted.
const SHOWN_MAX: usize = 10;

/// What one scenario did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

/// What one kind of fault did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

/// A run with a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The scenario.
    pub scenario: String,
    /// The seed, if it was drawn.
    pub seed: Option<u64>,
    /// The first violation.
    pub violation: Violation,
    /// The case file.
    pub case: Option<PathBuf>,
}

/// What a campaign found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    #[serde(skip)]
    shard: Shard,
    /// By scenario.
    pub scenarios: BTreeMap<String, ScenarioRow>,
    /// By kind of fault.
    pub faults: BTreeMap<String, FaultRow>,
    /// By probe: in how many runs it was reached.
    pub probes: BTreeMap<String, u64>,
    /// Numbers that scenarios keep, over all runs.
    pub counts: BTreeMap<String, u64>,
    /// In the order in which they appeared.
    pub failures: Vec<Failure>,
    /// Wall-clock time of the campaign.
    #[serde(with = "crate::duration")]
    pub real_time: Duration,
}

impl Summary {
    /// Nothing has run yet.
    pub fn new(entries: &[Entry<'_>], shard: Shard) -> Summary {
        let scenarios = entries.iter().map(|entry| (entry.name().to_owned(), ScenarioRow::default())).collect();
        let (faults, probes, counts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Summary { shard, scenarios, faults, probes, counts, failures: Vec::new(), real_time: Duration::ZERO }
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
            let (scenario, seed) = (run.task.scenario().to_owned(), run.task.seed());
            self.failures.push(Failure { scenario, seed, violation: violation.clone(), case });
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
        self.failures.is_empty() && self.idle_faults().is_empty()
    }

    /// What people read at the end. `command` is what they type: `cargo sim`.
    pub fn to_text(&self, command: &str) -> String {
        let mut text = format!("{}\n", self.scenario_table());
        if !self.faults.is_empty() {
            let _ = write!(text, "\n{}\n", self.fault_table());
        }
        if !self.counts.is_empty() {
            let counts: Vec<String> =
                self.counts.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
            let _ = write!(text, "\n{}\n", counts.join("\n"));
        }
        for failure in self.failures.iter().take(SHOWN_MAX) {
            let seed = failure.seed.map(|seed| format!(" at seed {seed}")).unwrap_or_default();
            let _ = write!(text, "\n{}{seed}\n  {}\n", failure.scenario, failure.violation);
            let _ = writeln!(text, "  reproduce: {}", reproduce(command, failure));
        }
        if self.failures.len() > SHOWN_MAX {
            let _ =
                writeln!(text, "\n… and {} more failures, each with its case file", self.failures.len() - SHOWN_MAX);
        }
        for kind in self.idle_faults() {
            let runs = self.faults[kind].enabled_in;
            let _ = writeln!(
                text,
                "\nfault {kind} was enabled in {runs} runs and never had any effect: this campaign proves nothing about it"
            );
        }
        let _ = write!(text, "\n{}", self.closing());
        text
    }

    fn closing(&self) -> String {
        let shard = if self.shard == Shard::ALL { String::new() } else { format!(" (shard {})", self.shard) };
        let verdict = match self.failures.len() {
            0 => "no violation".to_owned(),
            1 => "1 seed with a violation".to_owned(),
            many => format!("{many} seeds with violations"),
        };
        format!("{} seeds in {:.1} s{shard}: {verdict}\n", self.runs(), self.real_time.as_secs_f64())
    }

    fn scenario_table(&self) -> Table {
        let mut table = table(&["scenario", "seeds", "violations", "events", "virtual time", "x real"]);
        let mut total = ScenarioRow::default();
        for (name, row) in &self.scenarios {
            table.add_row(cells(name, row));
            total.seeds += row.seeds;
            total.violations += row.violations;
            total.events += row.events;
            total.virtual_time += row.virtual_time;
            total.real_time += row.real_time;
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

/// An empty table in the house's style.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    // Lines between rows only make a table longer.
    table.remove_style(TableComponent::HorizontalLines).remove_style(TableComponent::MiddleIntersections);
    table
}

pub(crate) fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        table.column_mut(column).expect("the header has it").set_cell_alignment(CellAlignment::Right);
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A long time as days, hours, minutes and seconds.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{:.3} s", time.as_secs_f64()),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes:02}m {:02}s", seconds % 60),
        _ => format!("{days}d {hours:02}h {minutes:02}m"),
    }
}

#[cfg(test)]
mod tests;
