//! The real binary refuses what it does not understand: exit status 2, and a text that says what is wrong.

use std::path::Path;
use std::process::Command;

fn typed(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sim")).args(arguments).current_dir(directory).output();
    let output = output.expect("the binary starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_is_not_understood_is_status_2_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("writable");
    write("torn.json", "{\"format\": 1, \"scena");
    write(
        "unfit.json",
        "{\"format\": 1, \"scenario\": \"members_come_and_go_without_a_skipped_message\", \"plan\": {\"x\": 1}}",
    );
    let cases: [(&[&str], &str); 8] = [
        (&["run", "nothing_promised_is_lost_across_fail_ovr"], "nothing_promised_is_lost_across_fail_over"),
        (&["run", "members_come_and_go_without_a_skipped_message", "--seed", "seven"], "seven"),
        (&["fuzz", "--sed", "3"], "--sed"),
        (&["fuzz", "progres"], "progress"),
        (&["fuzz", "--for", "soon"], "soon"),
        (&["replay", "none.json"], "none.json"),
        (&["replay", "torn.json"], "torn.json"),
        (&["replay", "unfit.json"], "unknown field"),
    ];
    for (arguments, reason) in cases {
        let (status, text) = typed(directory.path(), arguments);
        assert_eq!(status, Some(2), "sim {} said:\n{text}", arguments.join(" "));
        assert!(text.contains(reason), "sim {} does not say {reason:?}:\n{text}", arguments.join(" "));
    }
}

#[test]
fn the_list_names_each_scenario_with_its_claim() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_sim")).arg("list").current_dir(directory.path()).output();
    let text = String::from_utf8(output.expect("the binary starts").stdout).expect("text");
    for entry in scenarios::registry().entries() {
        assert!(text.contains(entry.name()) && text.contains(entry.claim()), "{text}");
    }
}
