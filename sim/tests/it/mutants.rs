//! The mutant runner on a small project of its own.

use crate::registry;
use sim::error::MutantError;
use sim::mutants::{Options, load, run};
use sim::worker::Limits;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git").current_dir(directory).args(arguments).status().expect("git starts");
    assert!(status.success(), "git {arguments:?}");
}

fn options(patches: &Path, scratch: &Path, names: &[&str]) -> Options {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let (patches, scratch) = (patches.to_owned(), scratch.to_owned());
    Options {
        names,
        patches,
        scratch,
        first_seed: 0,
        seeds: 10,
        shrink: Duration::ZERO,
        change: None,
        limits: Limits::of_this_machine(),
    }
}

const METADATA: &str = r#"{"reference": "project#1", "component": "counter", "symptom": "the sum went back", "invariant": "the sum never goes back", "scenarios": ["counter_never_goes_back"]}"#;

#[test]
fn mutants_are_read_with_their_metadata() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("writable");
    write("b.patch", "");
    write("b.json", METADATA);
    write("a.patch", "");
    write("a.json", METADATA);
    let names = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        load(directory.path(), &names).map(|mutants| mutants.into_iter().map(|mutant| mutant.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).expect("both"), ["a", "b"]);
    assert_eq!(names(&["b"]).expect("one"), ["b"]);
    assert!(matches!(names(&["c"]), Err(MutantError::Missing { .. })));
    write("a.json", "{\"reference\": 1}");
    assert!(matches!(names(&[]), Err(MutantError::Metadata { .. })));
    fs::remove_file(directory.path().join("a.json")).expect("it is there");
    assert!(matches!(names(&[]), Err(MutantError::File { .. })));
}

/// In a process of its own: the runner copies the tree that the current directory belongs to.
#[test]
fn a_stale_patch_and_a_broken_build_are_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let Ok(place) = std::env::var("SIM_TEST_MUTANTS") else {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["mutants::a_stale_patch_and_a_broken_build_are_errors", "--exact"]).env("SIM_TEST_MUTANTS", "1");
        let output = command.current_dir(directory.path()).output().expect("this test starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    assert_eq!(place, "1");
    let tree = Path::new(".");
    let write = |name: &str, text: &str| fs::write(tree.join(name), text).expect("writable");
    git(tree, &["init", "--quiet"]);
    write(".gitignore", "scratch\n");
    write("Cargo.toml", "this is no manifest\n");
    git(tree, &["add", "."]);
    fs::create_dir("patches").expect("writable");
    write("patches/stale.patch", "--- a/Cargo.toml\n+++ b/Cargo.toml\n@@ -1 +1 @@\n-another line\n+a third\n");
    write("patches/stale.json", METADATA);
    write(
        "patches/fits.patch",
        "--- a/Cargo.toml\n+++ b/Cargo.toml\n@@ -1 +1 @@\n-this is no manifest\n+nor is this\n",
    );
    write("patches/fits.json", METADATA);
    let result = |name: &str| run(&registry(), &options(Path::new("patches"), Path::new("scratch"), &[name]), |_| {});
    match result("stale") {
        Err(MutantError::Stale { name, reason }) => {
            assert!(name == "stale" && reason.contains("Cargo.toml"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
    match result("fits") {
        Err(MutantError::Build { name, reason }) => assert!(name == "clean" && reason.contains("manifest"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(
        Path::new("scratch/tree/Cargo.toml").exists() && !Path::new("scratch/tree/scratch").exists(),
        "ignored files stay behind"
    );
}
