//! Campaigns that are interrupted, spread over machines and put together.

use crate::command_line::{typed, without_real_time};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn read(directory: &Path, file: &str) -> Value {
    let path = directory.join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a campaign found, without the times of this machine.
fn found(directory: &Path, out: &str) -> Value {
    let mut summary = read(directory, &format!("{out}/progress.json"))["summary"].take();
    summary["real_time"] = Value::Null;
    for row in summary["scenarios"].as_object_mut().expect("rows").values_mut() {
        row["real_time"] = Value::Null;
    }
    // The first failing runs of a finding are those that ended first.
    for finding in summary["findings"].as_array_mut().expect("a list") {
        finding["failures"] = Value::Null;
    }
    summary
}

fn cases(directory: &Path, out: &str) -> usize {
    fs::read_dir(directory.join(out).join("cases")).map_or(0, Iterator::count)
}

const FUZZ: [&str; 5] = ["fuzz", "counter_without_sync", "idle_fault", "--jobs", "2"];

fn fuzz(directory: &Path, more: &[&str]) -> String {
    typed(directory, &[&FUZZ[..], more].concat())
}

#[test]
fn an_interrupted_campaign_goes_on_and_finds_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    fuzz(directory, &["--seeds", "80", "--out", "whole"]);
    // Half of a campaign, as a killed process leaves it: only its terms know of the other half.
    fuzz(directory, &["--seeds", "40", "--out", "killed"]);
    let mut terms = read(directory, "killed/campaign.json");
    terms["amount"]["seeds"] = 80.into();
    fs::write(directory.join("killed/campaign.json"), terms.to_string()).expect("writable");
    let text = fuzz(directory, &["--seeds", "80", "--out", "killed"]);
    assert_eq!(found(directory, "killed"), found(directory, "whole"));
    assert!(found(directory, "whole")["findings"][0]["runs"].as_u64() >= Some(1), "{text}");
    // Killed before it kept anything: all is done again, and no finding is lost.
    fs::remove_file(directory.join("killed/progress.json")).expect("it was kept");
    fuzz(directory, &["--seeds", "80", "--out", "killed"]);
    assert_eq!(found(directory, "killed"), found(directory, "whole"));
    let again = fuzz(directory, &["--seeds", "80", "--out", "killed"]);
    assert!(again.contains("80 seeds in") && again.ends_with("exit status 1\n"), "nothing is left to do: {again}");
}

#[test]
fn shards_put_together_are_the_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    fuzz(directory, &["--seeds", "80", "--out", "whole"]);
    for shard in ["1", "2", "3"] {
        fuzz(directory, &["--seeds", "80", "--shard", &format!("{shard}/3"), "--out", &format!("night/{shard}")]);
    }
    let some = typed(directory, &["merge", "night/1", "night/3"]);
    assert!(some.contains("(without shard 2/3)"), "{some}");
    let arguments = ["merge", "night/1", "night/2", "night/3", "--out", "all", "--json", "all.json"];
    let merged = typed(directory, &arguments);
    assert!(merged.contains("80 seeds in") && merged.contains("(all of 3 shards)"), "{merged}");
    assert!(merged.ends_with("exit status 1\n"), "{merged}");
    let (merged, whole) = (read(directory, "all.json"), found(directory, "whole"));
    for part in ["faults", "counts", "probes"] {
        assert_eq!(merged[part], whole[part]);
    }
    assert_eq!(merged["findings"][0]["runs"], whole["findings"][0]["runs"]);
    assert!(cases(directory, "all") >= 1);
    let case = merged["findings"][0]["failures"][0]["case"].as_str().expect("a case file");
    assert!(typed(directory, &["replay", case]).contains("violation of"), "{case} is where it is said to be");
}

#[test]
fn results_of_something_else_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    fuzz(directory, &["--seeds", "4", "--shard", "1/2", "--out", "a"]);
    fuzz(directory, &["--seeds", "4", "--first-seed", "50", "--shard", "2/2", "--out", "b"]);
    fs::create_dir(directory.join("torn")).expect("writable");
    fs::write(directory.join("torn/campaign.json"), "{\"scenarios\": [").expect("writable");
    let lines: [&[&str]; 8] = [
        &["fuzz", "counter_without_sync", "idle_fault", "--seeds", "9", "--shard", "1/2", "--out", "a"],
        &["fuzz", "idle_fault", "--seeds", "4", "--out", "torn"],
        &["merge", "a", "b"],
        &["merge", "a", "a"],
        &["merge", "a", "none"],
        &["merge"],
        &["fuzz", "idle_fault", "--strategy", "guided"],
        &["fuzz", "idle_fault", "--corpus", "a"],
    ];
    let said = lines.iter().map(|line| format!("$ sim {}\n{}", line.join(" "), typed(directory, line)));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_ci_system_gets_its_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = fuzz(directory.path(), &["--seeds", "80", "--junit", "results.xml"]);
    let xml = fs::read_to_string(directory.path().join("results.xml")).expect("written");
    assert!(xml.contains("<testcase name=\"counter_without_sync\"") && xml.contains("<failure"), "{xml}");
    assert!(xml.contains("<testcase name=\"fault isolate\"") || !text.contains("never had any effect"), "{xml}");
    assert!(without_real_time(&text).contains("N s: "), "{text}");
}

#[test]
fn a_shell_completes_names_of_scenarios() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = typed(directory.path(), &["completion", "bash"]);
    assert!(script.contains("counter_without_sync") && script.contains("--strategy"), "{script}");
    assert!(typed(directory.path(), &["completion", "cmd"]).ends_with("exit status 2\n"));
}
