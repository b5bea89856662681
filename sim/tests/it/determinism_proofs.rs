//! One seed, one hash: wherever it runs, beside whatever, and whoever looks.
//!
//! The lockstep check (`determinism.rs`) compares a process of its own with the n-th child of a batch, event by event, and names the
//! first that differs. Here is what it cannot vary: the surroundings of the process.

use crate::STAND;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

/// One with clocks, files and packets, and one with every fault.
const SCENARIOS: [&str; 2] = ["counter_never_goes_back", "every_fault_has_an_effect"];

/// What a person who types `run SCENARIO --seed 3 OPTIONS…` in that directory and environment reads, and what goes to stderr.
fn run(scenario: &str, options: &[&str], directory: &Path, environment: &[(&str, &str)]) -> (String, String) {
    let arguments = [&["run", scenario, "--seed", "3"], options].concat();
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["command_line::command_line", "--exact", "--test-threads=1", "--nocapture"])
        .current_dir(directory)
        .env("SIM_TEST_ARGUMENTS", arguments.join("\u{1f}"))
        .envs(environment.iter().copied());
    let output = command.output().expect("this test starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = std::fs::read_to_string(directory.join("output")).expect("it wrote its output");
    assert!(said.contains(", hash "), "{said}");
    (said, String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn the_same_run_in_any_directory_for_any_user_in_any_locale_and_time_zone() {
    let directories = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let deep = directories[1].path().join("a directory/with a long name, spaces and ümlauts");
    std::fs::create_dir_all(&deep).expect("writable");
    let environments: [&[(&str, &str)]; 5] = [
        &[("USER", "somebody"), ("LOGNAME", "somebody"), ("HOME", "/nonexistent")],
        &[("LANG", "tr_TR.UTF-8"), ("LC_ALL", "tr_TR.UTF-8"), ("LANGUAGE", "tr")],
        &[("TZ", "Pacific/Chatham")],
        // The environment lies on the stack: a larger one moves everything on it.
        &[
            ("TZ", "America/St_Johns"),
            ("A_LONG_ONE", "0123456789012345678901234567890123456789"),
            ("RUST_LOG", "trace"),
        ],
        &[("PROPTEST_MAX_DEFAULT_SIZE_RANGE", "3"), ("PROPTEST_RNG_SEED", "4"), ("MIMALLOC_SHOW_STATS", "1")],
    ];
    for scenario in SCENARIOS {
        let first = run(scenario, &[], directories[0].path(), &[]).0;
        for environment in environments {
            assert_eq!(run(scenario, &[], &deep, environment).0, first, "{environment:?}");
        }
    }
}

#[test]
fn the_same_run_whether_somebody_reads_its_log_or_not() {
    let directory = tempfile::tempdir().expect("a directory");
    for scenario in SCENARIOS {
        let (silent, nothing) = run(scenario, &[], directory.path(), &[]);
        let (logged, lines) = run(scenario, &["--log", "trace"], directory.path(), &[]);
        assert_eq!(logged, silent);
        assert!(lines.len() > nothing.len() + 1_000, "the log was on: {lines:?}");
        let (_, again) = run(scenario, &["--log", "trace"], directory.path(), &[]);
        let of_the_run =
            |lines: &str| lines.lines().filter(|line| line.contains(" it::")).collect::<Vec<_>>().join("\n");
        assert_eq!(of_the_run(&again), of_the_run(&lines), "equal bytes of log");
    }
}

/// The fingerprints of those seeds, by seed.
fn fingerprints(worker: &mut Process, scenario: &str, seeds: &[u64], jobs: usize) -> BTreeMap<u64, u64> {
    let tasks = seeds.iter().map(|seed| Task::Seed { scenario: scenario.to_owned(), seed: *seed }).collect();
    let jobs = NonZeroUsize::new(jobs).expect("at least one");
    let mut found = BTreeMap::new();
    let limits = Limits { jobs, ..Limits::of_this_machine() };
    let done = worker.run(tasks, limits, false, |run| {
        found.insert(run.task.seed().expect("it has one"), run.report.fingerprint());
        ControlFlow::Continue(())
    });
    done.expect("the worker answers");
    found
}

#[test]
fn the_same_run_alone_in_a_batch_backwards_and_beside_others() {
    let start = || Process::start(&STAND.launch()).expect("the worker starts");
    let seeds: Vec<u64> = (0..6).collect();
    let backwards: Vec<u64> = seeds.iter().rev().copied().collect();
    for scenario in SCENARIOS {
        let batch = fingerprints(&mut start(), scenario, &seeds, 1);
        assert_eq!(batch.values().collect::<std::collections::BTreeSet<_>>().len(), seeds.len(), "seeds differ");
        let alone = seeds.iter().flat_map(|seed| fingerprints(&mut start(), scenario, &[*seed], 1)).collect();
        assert_eq!(batch, alone);
        let mut used = start();
        assert_eq!(batch, fingerprints(&mut used, scenario, &backwards, 1));
        assert_eq!(batch, fingerprints(&mut used, scenario, &seeds, 2), "two at a time, after others");
        assert_eq!(batch, fingerprints(&mut used, scenario, &seeds, 7), "all at a time");
    }
}

/// Debug and release builds, and the next commit, must give this hash. It changes with the order of events only: if a change of `rt`
/// is meant to change that, recorded seeds of before are void, and that belongs into the message of its commit.
#[test]
fn a_recorded_seed_still_runs_as_it_did() {
    let directory = tempfile::tempdir().expect("a directory");
    let (said, _) = run("counter_never_goes_back", &[], directory.path(), &[]);
    let line = said.lines().find(|line| line.contains(", hash ")).expect("a run tells its hash");
    insta::assert_snapshot!(line, @"counter_never_goes_back seed 3: 26.111 s of virtual time, 3,031 events, hash 13068cf088a0ec30");
}
