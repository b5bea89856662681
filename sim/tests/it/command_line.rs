//! What a person types, and what they read.

use crate::registry;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Holds the arguments for the test that is a command line.
const ARGUMENTS: &str = "SIM_TEST_ARGUMENTS";
const SEPARATOR: &str = "\u{1f}";

/// A command line forks, so it needs a process of its own: this test, started again.
#[test]
fn command_line() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = std::iter::once("sim").chain(arguments.split(SEPARATOR)).map(Into::into);
    let status = sim::cli::run(&registry(), arguments, &mut out, &mut err);
    let text = format!("{}{}exit status {status}\n", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    fs::write("output", text).expect("the test's directory is writable");
}

pub(crate) fn typed(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["command_line::command_line", "--exact", "--test-threads=1"]).current_dir(directory);
    let status = command.env(ARGUMENTS, arguments.join(SEPARATOR)).output().expect("this test starts");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    fs::read_to_string(directory.join("output")).expect("it wrote its output")
}

/// Real time differs from run to run.
pub(crate) fn without_real_time(text: &str) -> String {
    let seconds = text.find(" seeds in ").map(|at| at + " seeds in ".len());
    let Some(from) = seconds else { return text.to_owned() };
    let to = from + text[from..].find(" s").expect("a number of seconds");
    format!("{}N{}", &text[..from], &text[to..])
}

#[test]
fn a_run_says_what_happened() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = typed(directory.path(), &["run", "counter_never_goes_back", "--seed", "3"]);
    assert!(text.contains("no violation\nexit status 0"), "{text}");
    assert_eq!(
        text,
        typed(directory.path(), &["run", "counter_never_goes_back", "--seed", "3"]),
        "a run is repeatable"
    );
    let history = typed(directory.path(), &["run", "counter_never_goes_back", "--seed", "3", "--history", "--plan"]);
    assert!(history.contains("client op 0 asks \"add one\"") && history.contains("\"schedule_seed\""), "{history}");
}

#[test]
fn a_violation_can_be_reproduced_by_seed_and_by_case() {
    let directory = tempfile::tempdir().expect("a directory");
    let fuzz =
        typed(directory.path(), &["fuzz", "counter_without_sync", "--seeds", "60", "--jobs", "2", "--cases", "cases"]);
    assert!(fuzz.ends_with("exit status 1\n"), "{fuzz}");
    let command = fuzz.lines().find_map(|line| line.trim().strip_prefix("reproduce: cargo sim ")).expect("a command");
    let (command, saved) = command.split_once("    (saved as ").expect("and a file");
    let arguments: Vec<&str> = command.split(' ').collect();
    let by_seed = typed(directory.path(), &arguments);
    assert!(by_seed.contains("violation of \"the sum never goes back\""), "{by_seed}");
    assert!(by_seed.ends_with("exit status 1\n"), "{by_seed}");
    let by_case = typed(directory.path(), &["replay", saved.trim_end_matches(')')]);
    let head = |text: &str| text.split("reproduce:").next().map(str::to_owned);
    assert_eq!(head(&by_case), head(&by_seed));
}

/// A case of the counter that forgets, with more faults than it needs.
fn forgetful(directory: &Path) -> String {
    let fuzz = typed(directory, &["fuzz", "counter_without_sync", "--seeds", "60", "--jobs", "2", "--cases", "cases"]);
    let saved =
        fuzz.lines().find_map(|line| line.split_once("    (saved as ")).expect("a case").1.trim_end_matches(')');
    let mut case: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(directory.join(saved)).expect("saved")).expect("JSON");
    let idle = serde_json::json!({"fault": {"slow_cpu": {"node": "client", "poll": "1us"}}, "start": {"at": "1ms"}, "lasts": "1ms"});
    let faults = case["plan"]["faults"].as_array_mut().expect("a list");
    (0..5).for_each(|place| faults.insert(place.min(faults.len()), idle.clone()));
    fs::write(directory.join("large.json"), case.to_string()).expect("the directory is writable");
    "large.json".into()
}

#[test]
fn a_case_shrinks_to_the_fault_that_it_needs() {
    let directory = tempfile::tempdir().expect("a directory");
    let large = forgetful(directory.path());
    let text = typed(directory.path(), &["shrink", &large, "--jobs", "2"]);
    assert!(text.contains("nothing smaller fails in the same way"), "{text}");
    assert!(
        text.contains("reproduce: cargo sim replay large.small.json") && text.ends_with("exit status 0\n"),
        "{text}"
    );
    let small: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(directory.path().join("large.small.json")).expect("saved"))
            .expect("JSON");
    assert_eq!(small["plan"]["faults"].as_array().map(Vec::len), Some(1), "{small:#}");
    let replayed = typed(directory.path(), &["replay", "large.small.json"]);
    assert!(replayed.contains(small["violates"].as_str().expect("named")), "{replayed}");
    assert!(replayed.ends_with("exit status 1\n"), "{replayed}");
}

#[test]
fn an_interrupted_search_goes_on_from_the_best_so_far() {
    let directory = tempfile::tempdir().expect("a directory");
    let large = forgetful(directory.path());
    let at_once = typed(directory.path(), &["shrink", &large, "--for", "0s", "--out", "small.json"]);
    assert!(at_once.contains("1 runs: the time is over; the same command goes on"), "{at_once}");
    let whole = typed(directory.path(), &["shrink", &large, "--out", "small.json"]);
    let again = typed(directory.path(), &["shrink", &large, "--out", "small.json"]);
    let runs = |text: &str| -> u64 {
        let line = text.lines().find(|line| line.contains(" runs: ")).expect("a line of runs");
        line.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    assert!(runs(&again) < runs(&whole), "{whole}{again}");
    let best = || fs::read_to_string(directory.path().join("small.json")).expect("saved");
    let before = best();
    typed(directory.path(), &["shrink", &large, "--for", "0s", "--out", "small.json"]);
    assert_eq!(best(), before, "a search without time writes nothing worse over it");
}

#[test]
fn a_case_that_violates_nothing_cannot_shrink() {
    let directory = tempfile::tempdir().expect("a directory");
    let plan = typed(directory.path(), &["run", "counter_never_goes_back", "--seed", "3", "--plan"]);
    let case = &plan[..=plan.rfind('}').expect("a case")];
    fs::write(directory.path().join("clean.json"), case).expect("the directory is writable");
    insta::assert_snapshot!(
        typed(directory.path(), &["shrink", "clean.json"]),
        @r"
    error: the case violates nothing of counter_never_goes_back, so there is nothing to keep while it shrinks
    exit status 2
    "
    );
    fs::write(
        directory.path().join("unfit.json"),
        "{\"format\": 1, \"scenario\": \"counter_never_goes_back\", \"plan\": 1}",
    )
    .expect("the directory is writable");
    insta::assert_snapshot!(typed(directory.path(), &["shrink", "unfit.json"]), @r#"
    error: the case cannot be run: the plan does not fit scenario "counter_never_goes_back": invalid type: integer `1`, expected struct Plan
    exit status 2
    "#);
    insta::assert_snapshot!(typed(directory.path(), &["shrink", "missing.json"]), @r"
    error: cannot read case file missing.json: No such file or directory (os error 2)
    exit status 2
    ");
}

#[test]
fn a_campaign_over_idle_faults_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = typed(directory.path(), &["fuzz", "idle_fault", "--seeds", "10", "--jobs", "1"]);
    insta::assert_snapshot!(without_real_time(&mask_ratio(&text)));
}

/// The ratio of virtual to real time is no business of a snapshot.
fn mask_ratio(text: &str) -> String {
    let line = |line: &str| {
        if line.contains(" s   ") {
            format!("{} …", line.split(" s   ").next().unwrap_or_default())
        } else {
            line.to_owned()
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_log_has_virtual_time_and_nodes_and_equal_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let logged = || {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["command_line::command_line", "--exact", "--test-threads=1", "--nocapture"])
            .current_dir(directory.path());
        let arguments = ["run", "every_fault_has_an_effect", "--log", "debug"].join(SEPARATOR);
        let output = command.env(ARGUMENTS, arguments).output().expect("this test starts");
        String::from_utf8(output.stderr).expect("text")
    };
    let text = logged();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("it::faults")).take(3).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(text, logged());
}

#[test]
fn wrong_usage_is_status_2_and_says_what_is_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("writable");
    write("torn.json", "{\"format\": 1, \"scena");
    write("newer.json", "{\"format\": 9, \"steps\": []}");
    write("stranger.json", "{\"format\": 1, \"scenario\": \"counter_never_goes_bak\", \"plan\": {}}");
    write("unfit.json", "{\"format\": 1, \"scenario\": \"counter_never_goes_back\", \"plan\": {\"schedule_seed\": 1}}");
    let lines: [&[&str]; 14] = [
        &["run", "counter_never_goes_bak"],
        &["run", "counter_never_goes_back", "--seed", "many"],
        &["run", "counter_never_goes_back", "--sed", "1"],
        &["run", "counter_never_goes_back", "--log", "a=b=c"],
        &["fuzz", "counte"],
        &["fuzz", "--seeds", "1", "--for", "1s"],
        &["fuzz", "--for", "soon"],
        &["fuzz", "--shard", "3/2"],
        &["fzz"],
        &["replay", "none.json"],
        &["replay", "torn.json"],
        &["replay", "newer.json"],
        &["replay", "stranger.json"],
        &["replay", "unfit.json"],
    ];
    let said = lines.iter().map(|line| format!("$ sim {}\n{}", line.join(" "), typed(directory.path(), line)));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
}

#[test]
fn help_and_list_read_well() {
    let directory = tempfile::tempdir().expect("a directory");
    let said = [&["--help"][..], &["fuzz", "--help"], &["merge", "--help"], &["list"]]
        .map(|line| typed(directory.path(), line));
    insta::assert_snapshot!(said.join("\n"));
}
