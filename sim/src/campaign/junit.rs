//! What a campaign found, for CI systems: JUnit's XML, one test case a scenario.

use super::finding::Finding;
use super::summary::{Summary, tell_finding};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// The document. A scenario with findings fails: its first one is the message, all of them are the text. A fault that never had an effect
/// is a failure too, as it is for the exit status.
pub fn to_junit(summary: &Summary, command: &str) -> String {
    let mut suite = TestSuite::new("scenarios");
    for (name, row) in &summary.scenarios {
        let mut case = TestCase::new(name.as_str(), status(summary, name, command));
        case.set_time(row.real_time).set_system_out(format!("{} seeds, {} violations", row.seeds, row.violations));
        suite.add_test_case(case);
    }
    for kind in summary.idle_faults() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(format!("enabled in {} runs, it never had any effect", summary.faults[kind].enabled_in));
        suite.add_test_case(TestCase::new(format!("fault {kind}"), status));
    }
    suite.set_time(summary.real_time);
    let mut report = Report::new("hotfire");
    report.set_time(summary.real_time).add_test_suite(suite);
    report.to_string().expect("a document is written to memory")
}

fn status(summary: &Summary, scenario: &str, command: &str) -> TestCaseStatus {
    let of_it = |finding: &&Finding| finding.failures.iter().any(|failure| failure.scenario == scenario);
    let findings: Vec<&Finding> = summary.findings.by_frequency().into_iter().filter(of_it).collect();
    let Some(first) = findings.first() else { return TestCaseStatus::success() };
    let mut text = String::new();
    findings.iter().for_each(|finding| tell_finding(&mut text, command, finding));
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(first.invariant.as_str()).set_message(first.cause.as_str()).set_description(text.trim());
    status
}

#[cfg(test)]
mod tests {
    use super::to_junit;
    use crate::campaign::{Failure, ScenarioRow, Summary};
    use crate::verdict::Violation;
    use std::time::Duration;

    #[test]
    fn a_document_names_what_failed_and_how_to_see_it_again() {
        let mut summary = Summary { real_time: Duration::from_millis(1500), ..Summary::default() };
        let row = ScenarioRow { seeds: 7, violations: 1, real_time: Duration::from_secs(1), ..ScenarioRow::default() };
        summary.scenarios.insert("acked_write_survives".into(), row.clone());
        summary.scenarios.insert("offset_never_goes_back".into(), ScenarioRow { violations: 0, ..row });
        let violation = Violation::new("I1", "write <7> & 8 are lost");
        let scenario = "acked_write_survives".to_owned();
        summary.findings.add(Failure { scenario, seed: Some(3), violation, case: None });
        insta::assert_snapshot!(to_junit(&summary, "cargo sim"));
    }
}
