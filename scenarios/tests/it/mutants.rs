//! The planted bugs of `fixtures/mutants` fit the code and tell all that is known of them. That they are found is `cargo sim mutants`.

use scenarios::registry;
use sim::mutants::{Metadata, load};
use std::path::Path;
use std::process::Command;

/// Lines that a patch may add and remove: a bug, not a rewrite.
const LINES_MAX: usize = 16;

#[test]
fn each_mutant_applies_and_is_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the workspace");
    let directory = root.join("fixtures/mutants");
    let mut mutants = load(&directory, &[]).expect("each patch has its metadata");
    assert!(mutants.len() >= 45, "{} mutants", mutants.len());
    // Those that nothing finds yet must not get lost either.
    let surviving = load(&directory.join("surviving"), &[]).expect("each patch has its metadata");
    let told = std::fs::read_to_string(directory.join("surviving/README.md")).expect("it tells of each");
    for mutant in &surviving {
        assert!(told.contains(&format!("| `{}` |", mutant.name)), "{}: nobody says why it survives", mutant.name);
    }
    mutants.extend(surviving);
    let registry = registry();
    for mutant in mutants {
        let name = &mutant.name;
        let Metadata { reference, component, symptom, invariant, scenarios } = &mutant.metadata;
        for field in [reference, component, symptom, invariant] {
            assert!(!field.trim().is_empty(), "{name}: an empty field");
        }
        let safety = scenarios::invariant::SAFETY.iter().map(|(name, _)| *name);
        let mut known = safety.chain(scenarios::invariant::LIVENESS.iter().map(|(name, _)| *name));
        // A scenario's own claim is an invariant too.
        let is_claim = registry.get(invariant).is_ok();
        assert!(is_claim || known.any(|known| known == invariant), "{name}: no invariant {invariant:?}");
        assert!(!scenarios.is_empty(), "{name}: no scenario");
        registry.select(scenarios).unwrap_or_else(|error| panic!("{name}: {error}"));
        let patch = std::fs::read_to_string(&mutant.patch).expect("it was listed");
        let is_change =
            |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
        let lines = patch.lines().filter(is_change).count();
        assert!((1..=LINES_MAX).contains(&lines), "{name}: {lines} changed lines");
        // The tree may be an archive in the folder of another repository: there git would pass over every file in silence.
        let mut git = Command::new("git");
        git.current_dir(root).env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root)).env_remove("GIT_DIR");
        // With the change that small cases must survive: both are applied at once by `cargo sim mutants --change`.
        let change = root.join("fixtures/changes/unrelated.patch");
        let done =
            git.args(["apply", "--check", "--verbose"]).args([&mutant.patch, &change]).output().expect("git starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !said.contains("Skipped"), "{name} does not apply: {said}");
    }
}
