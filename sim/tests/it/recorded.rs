//! What was recorded on one commit runs on the next ones: the words of case files stay, and what is not known is refused, and named.
//! See `DETERMINISM.md`.

use crate::{STAND, registry};
use sim::fault::{Fault, Kind};
use sim::plan::Case;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded").join(name)
}

/// Each kind with all its fields. A word that is changed or taken out makes the case files void that use it: read the old one too.
#[test]
fn every_kind_of_fault_is_written_as_it_was() {
    let text = std::fs::read_to_string(recorded("vocabulary.json")).expect("it is there");
    let faults: Vec<Fault> = serde_json::from_str(&text).expect("every word of it is known");
    assert_eq!(serde_json::to_string_pretty(&faults).expect("plain data") + "\n", text);
    let kinds: BTreeSet<&str> = faults.iter().map(|fault| fault.fault.name()).collect();
    assert_eq!(kinds, Kind::NAMES.iter().copied().collect(), "a new kind is recorded here as well");
}

#[test]
fn a_case_of_an_earlier_commit_still_runs() {
    let counter = STAND.replay(&recorded("counter_never_goes_back.json"));
    assert_eq!((counter.violations.len(), counter.effects.len()), (0, 5));
    let every = STAND.replay(&recorded("every_fault_has_an_effect.json"));
    assert_eq!(every.violations, []);
    let idle: Vec<_> = every.effects.iter().filter(|effect| effect.amount == 0).collect();
    assert!(every.effects.len() == 24 && idle.is_empty(), "{idle:#?}");
}

/// What this build says of the recorded case after a change of its text.
fn said(change: impl FnOnce(String) -> String) -> String {
    let path = Path::new("old.json");
    let text = change(std::fs::read_to_string(recorded("every_fault_has_an_effect.json")).expect("it is there"));
    let case = match Case::from_text(path, &text) {
        Ok(case) => case,
        Err(error) => return error.to_string(),
    };
    let registry = registry();
    match registry.get(&case.scenario) {
        Ok(entry) => entry.run(&case.plan).expect_err("the plan has a mistake").to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_this_build_does_not_know_is_refused_and_named() {
    let replaced = |old: &'static str, new: &'static str| {
        said(move |text| {
            assert!(text.contains(old), "{old} is in the case");
            text.replacen(old, new, 1)
        })
    };
    insta::assert_snapshot!(replaced("\"format\": 1", "\"format\": 0"), @"case file old.json has format 0, this build reads format 1");
    insta::assert_snapshot!(replaced("\"format\": 1", "\"format\": 2"), @"case file old.json has format 2, this build reads format 1");
    insta::assert_snapshot!(replaced("\"format\": 1,", ""), @"case file old.json is damaged: missing field `format` at line 312 column 1");
    insta::assert_snapshot!(replaced("\"seed\": 3,", "\"seed\": 3, \"steps\": 4,"), @"case file old.json is damaged: unknown field `steps`, expected one of `format`, `scenario`, `seed`, `violates`, `plan` at line 4 column 20");
    insta::assert_snapshot!(replaced("every_fault_has_an_effect", "each_fault_has_an_effect"), @r#"unknown scenario "each_fault_has_an_effect"; did you mean "every_fault_has_an_effect"?"#);
    insta::assert_snapshot!(replaced("\"schedule_seed\"", "\"policy\": \"random\", \"schedule_seed\""), @r#"the plan does not fit scenario "every_fault_has_an_effect": unknown field `policy`, expected `schedule_seed` or `faults`"#);
    insta::assert_snapshot!(replaced("\"grace\": \"1s\"", "\"patience\": \"1s\""), @r#"the plan does not fit scenario "every_fault_has_an_effect": unknown field `patience`, expected `node` or `grace`"#);
    let unknown = replaced("\"power_loss\"", "\"power_cut\"");
    let (said, known) = unknown.split_once(", expected one of ").expect("the known kinds follow");
    insta::assert_snapshot!(said, @r#"the plan does not fit scenario "every_fault_has_an_effect": unknown variant `power_cut`"#);
    assert!(known.contains("`power_loss`"));
}
