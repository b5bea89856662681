//! Findings: failing runs by their cause. A night of fuzzing may fail ten thousand times by three bugs.

use crate::verdict::Violation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Failing runs of one finding that are kept whole, each with its case file; the others are counted.
pub(super) const KEPT: usize = 5;

/// A run with a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The scenario.
    pub scenario: String,
    /// The seed that drew the plan; none if the plan was made in another way, and then only the case file reproduces it.
    pub seed: Option<u64>,
    /// The first violation.
    pub violation: Violation,
    /// The case file.
    pub case: Option<PathBuf>,
}

/// Failing runs whose first violation is of the same invariant by the same cause ([`Violation::cause`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The invariant.
    pub invariant: String,
    /// What went wrong, without the numbers of a run.
    pub cause: String,
    /// Runs that failed so.
    pub runs: u64,
    /// The first of them, as they appeared.
    pub failures: Vec<Failure>,
}

impl Finding {
    /// A finding of which no run was added yet.
    fn of(violation: &Violation) -> Finding {
        Finding { invariant: violation.invariant.clone(), cause: violation.cause(), runs: 0, failures: Vec::new() }
    }

    fn is_of(&self, violation: &Violation) -> bool {
        self.invariant == violation.invariant && self.cause == violation.cause()
    }
}

/// All findings of a campaign, as they appeared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Whether a failing run is one of the first of its finding, whose case file is wanted.
    pub fn wants(&self, violation: &Violation) -> bool {
        self.0.iter().find(|finding| finding.is_of(violation)).is_none_or(|finding| finding.failures.len() < KEPT)
    }

    /// Adds a failing run.
    pub fn add(&mut self, failure: Failure) {
        let finding = self.place(&failure.violation);
        finding.runs += 1;
        if finding.failures.len() < KEPT {
            finding.failures.push(failure);
        }
    }

    /// Adds the findings of another part of the campaign.
    pub fn merge(&mut self, other: Findings) {
        for theirs in other.0 {
            let Some(first) = theirs.failures.first() else { continue };
            let ours = self.place(&first.violation);
            ours.runs += theirs.runs;
            ours.failures.extend(theirs.failures);
            ours.failures.truncate(KEPT);
        }
    }

    fn place(&mut self, violation: &Violation) -> &mut Finding {
        let place = self.0.iter().position(|finding| finding.is_of(violation)).unwrap_or_else(|| {
            self.0.push(Finding::of(violation));
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// The most frequent first; equally frequent ones as they appeared.
    pub fn by_frequency(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> = self.0.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.runs));
        findings
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many runs failed.
    pub fn runs(&self) -> u64 {
        self.0.iter().map(|finding| finding.runs).sum()
    }

    /// Each failing run that was kept.
    pub fn failures_mut(&mut self) -> impl Iterator<Item = &mut Failure> {
        self.0.iter_mut().flat_map(|finding| &mut finding.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Findings, KEPT};
    use crate::verdict::Violation;

    fn failure(invariant: &str, summary: &str, seed: u64) -> Failure {
        let violation = Violation::new(invariant, summary);
        Failure { scenario: "writes".into(), seed: Some(seed), violation, case: None }
    }

    #[test]
    fn one_cause_is_one_finding_whatever_its_numbers() {
        let mut findings = Findings::default();
        for seed in 0..20 {
            findings.add(failure("I1", &format!("write {seed} is lost"), seed));
        }
        findings.add(failure("I1", "the reader stands", 20));
        findings.add(failure("I2", "write 1 is lost", 21));
        let told: Vec<_> = findings.by_frequency().iter().map(|one| (one.runs, one.failures.len())).collect();
        assert_eq!(told, [(20, KEPT), (1, 1), (1, 1)]);
        assert_eq!((findings.count(), findings.runs()), (3, 22));
        assert!(!findings.wants(&Violation::new("I1", "write 99 is lost")), "enough of it is kept");
        assert!(findings.wants(&Violation::new("I1", "the reader stands")));
    }

    #[test]
    fn parts_merge_by_cause() {
        let (mut ours, mut theirs) = (Findings::default(), Findings::default());
        ours.add(failure("I1", "write 1 is lost", 1));
        for seed in 10..20 {
            theirs.add(failure("I1", "write 7 is lost", seed));
        }
        theirs.add(failure("I3", "two orders", 30));
        ours.merge(theirs);
        let told: Vec<_> = ours.by_frequency().iter().map(|one| (one.runs, one.failures.len())).collect();
        assert_eq!(told, [(11, KEPT), (1, 1)]);
    }
}
