//! The page of a run, and the story in a terminal: nothing of the run changes for it, and what proves a violation is there.

use crate::command_line::typed;
use std::fs;
use std::path::Path;

/// A violation of the counter that forgets: the arguments that run it, and its case file.
fn planted(directory: &Path) -> (Vec<String>, String) {
    let fuzz = typed(directory, &["fuzz", "counter_without_sync", "--seeds", "60", "--jobs", "1", "--cases", "cases"]);
    let line = fuzz.lines().find_map(|line| line.trim().strip_prefix("reproduce: cargo sim ")).expect("a violation");
    let (run, saved) = line.split_once("    (saved as ").expect("and its case");
    (run.split(' ').map(str::to_owned).collect(), saved.trim_end_matches(')').to_owned())
}

#[test]
fn a_run_is_the_same_whether_it_is_recorded_or_not() {
    let directory = tempfile::tempdir().expect("a directory");
    for scenario in ["counter_never_goes_back", "every_fault_has_an_effect"] {
        for seed in ["1", "2", "3"] {
            let run = ["run", scenario, "--seed", seed];
            let page = format!("{scenario}-{seed}.html");
            let recorded = [&run[..], &["--html", &page]].concat();
            // The hash over all events is in it.
            assert_eq!(typed(directory.path(), &run), typed(directory.path(), &recorded), "{scenario} {seed}");
            let page = fs::read_to_string(directory.path().join(page)).expect("it was written");
            assert!(page.contains("no violation") && page.ends_with("</html>\n"), "{scenario} {seed}");
        }
    }
}

#[test]
fn the_page_of_a_planted_violation_contains_its_proofs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut run, saved) = planted(directory.path());
    run.extend(["--html".into(), "run.html".into()]);
    let said = typed(directory.path(), &run.iter().map(String::as_str).collect::<Vec<_>>());
    let proofs: Vec<&str> = said.lines().filter(|line| line.starts_with("     ") && line.contains('#')).collect();
    assert_eq!(proofs.len(), 2, "{said}");
    let told = typed(directory.path(), &["report", &saved]);
    let path = saved.replace(".json", ".html");
    assert_eq!(told, format!("wrote {path}: open it in any browser\nexit status 0\n"));
    for page in ["run.html", &path] {
        let page = fs::read_to_string(directory.path().join(page)).expect("it was written");
        for (place, proof) in proofs.iter().enumerate() {
            let (time, rest) = proof.trim().split_once("  #").expect("a time and an event");
            let (event, text) = rest.split_once(' ').expect("an event and its text");
            let link = format!("<a href=\"#event={event}\"");
            let sum = text.trim().rsplit(' ').next().expect("a sum");
            let number =
                format!("<b>proof {}</b> <time>{time} s</time> client: &quot;add one&quot; → {sum}</a>", place + 1);
            assert!(page.contains(&link) && page.contains(&number), "{link} {number}");
        }
    }
}

#[test]
fn the_same_story_as_text_and_for_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, saved) = planted(directory.path());
    let text = typed(directory.path(), &["report", &saved, "--text"]);
    for part in ["claim: a sum that", "\nfaults\n", "violation of \"the sum never goes back\"", "\nthe story\n", "\n> "]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let story = text.split("\nthe story\n").nth(1).expect("a story");
    assert!((10..=40).contains(&story.lines().count()), "about thirty lines at most: {text}");
    let told = typed(directory.path(), &["report", &saved, "--json", "run.json"]);
    assert_eq!(told, "wrote run.json\nexit status 0\n");
    let json = fs::read_to_string(directory.path().join("run.json")).expect("it was written");
    let run: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let recording = &run["report"]["recording"];
    assert_eq!(recording["nodes"], serde_json::json!(["server", "client"]));
    for column in ["messages", "syncs", "bands", "operations", "faults", "events"] {
        assert!(recording[column].as_array().is_some_and(|rows| !rows.is_empty()), "{column}");
    }
    insta::assert_snapshot!(typed(directory.path(), &["report", "none.json"]), @r"
    error: cannot read case file none.json: No such file or directory (os error 2)
    exit status 2
    ");
}
