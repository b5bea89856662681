//! Case files of bugs that are fixed stay fixed: see `fixtures/seeds/README.md`.

use crate::STAND;
use std::path::Path;

#[test]
fn no_case_of_a_fixed_bug_fails_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/seeds");
    let entries = std::fs::read_dir(&folder).expect("fixtures/seeds exists");
    let mut cases: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    cases.sort();
    for case in cases {
        let report = STAND.replay(&case);
        let violations: String = report.violations.iter().map(|violation| format!("  {violation}\n")).collect();
        assert!(report.is_clean(), "{} fails again:\n{violations}", case.display());
    }
}
