//! What became of the mutants, as people read it.

use super::{Kill, Row, Small, Survival};
use crate::text::{align_right, clock, grouped, table};
use std::fmt::Write;

/// The table, the score, and how much smaller the killing cases became.
pub fn to_text<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let mut table = table(&[
        "mutant",
        "reference",
        "killed by",
        "scenario",
        "seed",
        "seeds",
        "virtual time",
        "CPU s",
        "faults",
        "operations",
    ]);
    for row in &rows {
        let [by, scenario, seed] = match &row.kill {
            Some(Kill { invariant, scenario, seed }) if *invariant == row.expected => {
                [invariant.clone(), scenario.clone(), seed.to_string()]
            }
            Some(Kill { invariant, scenario, seed }) => {
                [format!("{invariant} (expected {})", row.expected), scenario.clone(), seed.to_string()]
            }
            None => [format!("SURVIVED (expected {})", row.expected), "-".to_owned(), "-".to_owned()],
        };
        let cpu = format!("{:.1}", row.run_time.as_secs_f64());
        let [faults, operations] = sizes(row.small.as_ref());
        let (seeds, time) = (grouped(row.seeds), clock(row.virtual_time));
        table.add_row([
            row.name.clone(),
            row.reference.clone(),
            by,
            scenario,
            seed,
            seeds,
            time,
            cpu,
            faults,
            operations,
        ]);
    }
    align_right(&mut table, 4..10);
    let killed = rows.iter().filter(|row| row.kill.is_some()).count();
    let score = 100.0 * killed as f64 / rows.len().max(1) as f64;
    format!("{table}\n\n{killed} of {} mutants killed: {score:.0} %\n{}", rows.len(), shrinking(&rows))
}

fn sizes(small: Option<&Small>) -> [String; 2] {
    let Some(Small { before, after, .. }) = small else { return ["-".to_owned(), "-".to_owned()] };
    let from_to = |before: usize, after: usize| format!("{} -> {}", grouped(before as u64), grouped(after as u64));
    [from_to(before.faults, after.faults), from_to(before.operations, after.operations)]
}

/// Medians over the cases that were shrunk.
fn shrinking(rows: &[&Row]) -> String {
    let small: Vec<&Small> = rows.iter().filter_map(|row| row.small.as_ref()).collect();
    let removed = |of: fn(&Small) -> (usize, usize)| {
        let share = |(before, after): (usize, usize)| 100.0 * (1.0 - after as f64 / before as f64);
        // Where there was nothing, nothing can be left out.
        let shares: Vec<f64> =
            small.iter().map(|small| of(small)).filter(|(before, _)| *before > 0).map(share).collect();
        median(shares).map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %"))
    };
    if small.is_empty() {
        return String::new();
    }
    let faults = removed(|small| (small.before.faults, small.after.faults));
    let operations = removed(|small| (small.before.operations, small.after.operations));
    let replays: u64 = small.iter().map(|small| small.replays).sum();
    let same: u64 = small.iter().map(|small| small.same).sum();
    let strangers = small.iter().filter(|small| !small.clean_passes).count();
    let mut text = format!(
        "shrunk cases: {faults} of the faults and {operations} of the operations left out (medians of {}); {} of {} replays fail by the same cause; \
         {strangers} cases fail on the clean code\n",
        small.len(),
        grouped(same),
        grouped(replays),
    );
    let survival: Vec<Survival> = small.iter().filter_map(|small| small.survives).collect();
    if !survival.is_empty() {
        let count = |wanted: Survival| survival.iter().filter(|survival| **survival == wanted).count();
        let (as_it_is, rescheduled) = (count(Survival::AsItIs), count(Survival::Rescheduled));
        let _ = writeln!(
            text,
            "after the change {as_it_is} of {} small cases still fail, {rescheduled} more under another schedule",
            survival.len()
        );
    }
    text
}

/// The middle value, or the mean of the two middle ones.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if !odd.is_multiple_of(2) => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
