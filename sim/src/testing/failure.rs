//! What a failing test says: the seed, a small case, the command that shows it again, and the lines that tell most.

use crate::error::ShrinkError;
use crate::scenario::Registry;
use crate::shrink::{self, Shrunk};
use crate::verdict::{Violation, seconds};
use crate::worker::process::{Launch, Process};
use crate::worker::{Limits, Run, Workers};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a failing test shrinks its case unless `HOTFIRE_SHRINK` says otherwise.
const SHRINK_TIME: Duration = Duration::from_secs(20);
/// Lines of evidence that are shown.
const LINES_MAX: usize = 5;

/// Explains a failed run, with its case made small by runs of a worker.
pub(super) fn explain(registry: &Registry, launch: &Launch, run: &Run) -> String {
    let scenario = run.task.scenario();
    let claim = registry.get(scenario).map_or("", |entry| entry.claim());
    let seed = run.task.seed().map(|seed| format!(" at seed {seed}")).unwrap_or_default();
    let mut text = format!("{scenario} ({claim}) is violated{seed}:\n");
    let Some(violation) = run.report.violations.first() else { return text };
    let (violation, effects, how) = match small_case(registry, launch, run) {
        Ok((shrunk, file)) => {
            (shrunk.violation.clone(), shrunk.effects.clone(), reproduce_small(registry, &shrunk, &file))
        }
        Err(error) => {
            (violation.clone(), run.report.effects.clone(), format!("its case could not be made small: {error}\n"))
        }
    };
    tell(&mut text, &violation);
    for effect in effects {
        let _ = writeln!(text, "  fault: {} ({} {})", effect.fault, effect.amount, effect.unit);
    }
    for other in run.report.violations.iter().skip(1) {
        let _ = writeln!(text, "  also violated: {:?}: {}", other.invariant, other.summary);
    }
    text.push_str(&how);
    if let Some(seed) = run.task.seed() {
        let _ = writeln!(text, "reproduce: {} run {scenario} --seed {seed}", registry.command());
    }
    text
}

/// The violation with the first and the last of its events.
fn tell(text: &mut String, violation: &Violation) {
    let _ = writeln!(text, "  {:?}: {}", violation.invariant, violation.summary);
    let evidence = &violation.evidence;
    // What begins a story and how it ends: the middle repeats the beginning more often than not.
    let first = if evidence.len() > LINES_MAX { 2 } else { evidence.len() };
    let last = evidence.len().saturating_sub(LINES_MAX - 2).max(first);
    for (place, proof) in evidence.iter().enumerate().filter(|(place, _)| *place < first || *place >= last) {
        if place == last && last > first {
            let _ = writeln!(text, "    … {} more events", last - first);
        }
        let _ = writeln!(text, "    {:>12}  #{:<5} {}", seconds(proof.at), proof.event.0, proof.text);
    }
}

fn reproduce_small(registry: &Registry, shrunk: &Shrunk, file: &Path) -> String {
    let (before, after) = (shrunk.before, shrunk.after);
    format!(
        "small case: {} ({} of {} faults, {} of {} operations)\nreproduce: {} replay {}\n",
        file.display(),
        after.faults,
        before.faults,
        after.operations,
        before.operations,
        registry.command(),
        file.display()
    )
}

/// Saves the case of the run and makes it small.
fn small_case(registry: &Registry, launch: &Launch, run: &Run) -> Result<(Shrunk, PathBuf), ShrinkError> {
    let case = run.case(registry)?;
    let name = run.task.seed().map_or_else(|| "case".to_owned(), |seed| seed.to_string());
    let directory = directory_of_cases();
    case.save(&directory.join(format!("{}-{name}.json", case.scenario)))?;
    let file = directory.join(format!("{}-{name}.small.json", case.scenario));
    // What an earlier build left may fail in this one too, and be the case of another bug.
    let _ = std::fs::remove_file(&file);
    let options = shrink::Options { limits: Limits::of_this_machine(), time: shrink_time(), file: file.clone() };
    let mut process = Process::start(launch)?;
    let shrunk = shrink::run(registry, Workers::There(&mut process), &case, &options, &mut |_, _| {})?;
    shrunk.case.save(&file)?;
    Ok((shrunk, file))
}

/// Beside the directory that this test was built in: `target/sim-cases`.
fn directory_of_cases() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let target =
        test.ancestors().find(|directory| directory.ends_with("deps")).and_then(|deps| deps.parent()?.parent());
    target.map_or_else(|| PathBuf::from("target"), Path::to_owned).join("sim-cases")
}

fn shrink_time() -> Duration {
    let Ok(text) = std::env::var("HOTFIRE_SHRINK") else { return SHRINK_TIME };
    crate::duration::parse(&text).unwrap_or_else(|error| panic!("HOTFIRE_SHRINK: {error}"))
}

#[cfg(test)]
mod tests {
    use super::tell;
    use crate::verdict::{EventId, Evidence, Violation};
    use std::time::Duration;

    #[test]
    fn a_long_story_is_told_by_its_beginning_and_its_end() {
        let proof = |event: usize| Evidence {
            event: EventId(event),
            at: Duration::from_secs(event as u64),
            text: format!("step {event}"),
        };
        let told = |count: usize| {
            let mut text = String::new();
            tell(&mut text, &Violation::new("I1", "a write is lost").because((0..count).map(proof)));
            text
        };
        insta::assert_snapshot!([told(5), told(9)].concat());
    }
}
