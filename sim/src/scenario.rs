//! A claim that can be run: the trait, and the registry that a binary and its tests share.

use crate::error::{CaseError, UnknownScenario};
use crate::plan::Case;
use crate::report::Report;
use crate::variation::{Unvaried, Variation};
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Debug;

/// One claim about a system, checked by running explicit plans.
///
/// The plan holds everything that a run depends on, the world's schedule seed included: two runs of equal plans are equal.
pub trait Scenario: Send + Sync + 'static {
    /// What happens in a run. Durations with `#[serde(with = "sim::duration")]`, operations and faults by name.
    type Plan: Serialize + DeserializeOwned + Debug;

    /// The name is the claim, in `snake_case`: `acked_write_survives_power_loss`.
    fn name(&self) -> &'static str;

    /// The suite that this scenario belongs to; `fuzz SUITE` runs all of it.
    fn suite(&self) -> &'static str {
        "main"
    }

    /// What a user may rely on, in one sentence.
    fn claim(&self) -> &'static str;

    /// How plans are drawn. Each plan comes from one seed; the strategy is the only place where the seed has a say.
    fn strategy(&self) -> BoxedStrategy<Self::Plan>;

    /// How plans are varied: made smaller, scheduled in another way, changed a little.
    fn variation(&self) -> &dyn Variation<Self::Plan> {
        &Unvaried
    }

    /// Runs the plan in a new world and judges it.
    fn run(&self, plan: &Self::Plan) -> Report;
}

/// [`Scenario`] without its plan type.
trait Runnable: Send + Sync {
    fn name(&self) -> &'static str;
    fn suite(&self) -> &'static str;
    fn claim(&self) -> &'static str;
    fn draw(&self, seed: u64) -> Value;
    fn simpler(&self, plan: &Value) -> Result<Vec<Value>, serde_json::Error>;
    fn lists(&self) -> &'static [&'static str];
    fn operations(&self, plan: &Value) -> Result<Option<usize>, serde_json::Error>;
    fn rescheduled(&self, plan: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error>;
    fn prioritised(&self, plan: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error>;
    fn crash_point(&self, plan: &Value, point: u64, points: u64) -> Result<Option<Value>, serde_json::Error>;
    fn mutated(&self, plan: &Value, other: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error>;
    fn run(&self, plan: &Value) -> Result<Report, serde_json::Error>;
}

impl<S: Scenario> Runnable for S {
    fn name(&self) -> &'static str {
        Scenario::name(self)
    }
    fn suite(&self) -> &'static str {
        Scenario::suite(self)
    }
    fn claim(&self) -> &'static str {
        Scenario::claim(self)
    }
    fn draw(&self, seed: u64) -> Value {
        let plan = draw(&self.strategy(), Scenario::name(self), seed);
        serde_json::to_value(&plan).expect("a plan is plain data with string keys")
    }
    fn simpler(&self, plan: &Value) -> Result<Vec<Value>, serde_json::Error> {
        self.variation().simpler(&S::Plan::deserialize(plan)?).iter().map(serde_json::to_value).collect()
    }
    fn lists(&self) -> &'static [&'static str] {
        self.variation().lists()
    }
    fn operations(&self, plan: &Value) -> Result<Option<usize>, serde_json::Error> {
        Ok(self.variation().operations(&S::Plan::deserialize(plan)?))
    }
    fn rescheduled(&self, plan: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error> {
        self.variation().rescheduled(&S::Plan::deserialize(plan)?, seed).map(serde_json::to_value).transpose()
    }
    fn prioritised(&self, plan: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error> {
        self.variation().prioritised(&S::Plan::deserialize(plan)?, seed).map(serde_json::to_value).transpose()
    }
    fn crash_point(&self, plan: &Value, point: u64, points: u64) -> Result<Option<Value>, serde_json::Error> {
        self.variation().crash_point(&S::Plan::deserialize(plan)?, point, points).map(serde_json::to_value).transpose()
    }
    fn mutated(&self, plan: &Value, other: &Value, seed: u64) -> Result<Option<Value>, serde_json::Error> {
        let (plan, other) = (S::Plan::deserialize(plan)?, S::Plan::deserialize(other)?);
        let drawn = draw(&self.strategy(), Scenario::name(self), seed);
        self.variation().mutated(&plan, [&other, &drawn], seed).map(serde_json::to_value).transpose()
    }
    fn run(&self, plan: &Value) -> Result<Report, serde_json::Error> {
        // Through JSON even for a plan just drawn: what a case file cannot hold must not decide a run.
        let plan = S::Plan::deserialize(plan)?;
        Ok(Scenario::run(self, &plan))
    }
}

/// Draws a value from a strategy by a seed, the same in each process. `name` keeps scenarios apart that share a seed.
pub fn draw<T: Debug>(strategy: &BoxedStrategy<T>, name: &str, seed: u64) -> T {
    let mut bytes = [0_u8; 32];
    for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        let lane = xxhash_rust::xxh3::xxh3_64_with_seed(
            name.as_bytes(),
            seed.wrapping_add(index as u64) ^ (index as u64) << 56,
        );
        chunk.copy_from_slice(&lane.to_le_bytes());
    }
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    match strategy.new_tree(&mut runner) {
        Ok(tree) => tree.current(),
        Err(reason) => panic!("the strategy of {name:?} rejects too much: {reason}"),
    }
}

/// A registered scenario.
#[derive(Clone, Copy)]
pub struct Entry<'a>(&'a dyn Runnable);

impl Debug for Entry<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Entry").field(&self.name()).finish()
    }
}

impl Entry<'_> {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
    /// Its suite.
    pub fn suite(&self) -> &'static str {
        self.0.suite()
    }
    /// Its claim.
    pub fn claim(&self) -> &'static str {
        self.0.claim()
    }
    /// The plan of a seed.
    pub fn draw(&self, seed: u64) -> Value {
        self.0.draw(seed)
    }
    /// The plan of a seed as a case.
    pub fn case(&self, seed: u64) -> Case {
        Case::new(self.name(), Some(seed), None, self.draw(seed))
    }
    /// Plans that are simpler in one way each.
    pub fn simpler(&self, plan: &Value) -> Result<Vec<Value>, CaseError> {
        self.0.simpler(plan).map_err(|source| self.unfit(source))
    }
    /// The lists of a plan whose entries may be left out.
    pub fn lists(&self) -> &'static [&'static str] {
        self.0.lists()
    }
    /// How many things clients do, if the scenario counts them.
    pub fn operations(&self, plan: &Value) -> Result<Option<usize>, CaseError> {
        self.0.operations(plan).map_err(|source| self.unfit(source))
    }
    /// The same plan under the schedule of another seed.
    pub fn rescheduled(&self, plan: &Value, seed: u64) -> Result<Option<Value>, CaseError> {
        self.0.rescheduled(plan, seed).map_err(|source| self.unfit(source))
    }
    /// The same plan under a schedule by priority.
    pub fn prioritised(&self, plan: &Value, seed: u64) -> Result<Option<Value>, CaseError> {
        self.0.prioritised(plan, seed).map_err(|source| self.unfit(source))
    }
    /// The same plan with one crash only.
    pub fn crash_point(&self, plan: &Value, point: u64, points: u64) -> Result<Option<Value>, CaseError> {
        self.0.crash_point(plan, point, points).map_err(|source| self.unfit(source))
    }
    /// A plan near this one.
    pub fn mutated(&self, plan: &Value, other: &Value, seed: u64) -> Result<Option<Value>, CaseError> {
        self.0.mutated(plan, other, seed).map_err(|source| self.unfit(source))
    }
    /// Runs a plan in this thread. Only a child process should: see [`crate::worker`].
    pub fn run(&self, plan: &Value) -> Result<Report, CaseError> {
        self.0.run(plan).map_err(|source| self.unfit(source))
    }
    fn unfit(&self, source: serde_json::Error) -> CaseError {
        CaseError::Plan { scenario: self.name().to_owned(), source }
    }
}

/// All scenarios of a project.
pub struct Registry {
    command: &'static str,
    scenarios: Vec<Box<dyn Runnable>>,
}

impl Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Registry")
            .field("command", &self.command)
            .field("scenarios", &self.entries().collect::<Vec<_>>())
            .finish()
    }
}

impl Registry {
    /// An empty registry. `command` is what a person types to reach its command line, such as `cargo sim`.
    pub fn new(command: &'static str) -> Registry {
        Registry { command, scenarios: Vec::new() }
    }

    /// Adds a scenario. Names are unique, also among suites: that is a promise of the programmer.
    #[must_use]
    pub fn with(mut self, scenario: impl Scenario) -> Registry {
        let (name, suite) = (Scenario::name(&scenario), Scenario::suite(&scenario));
        assert!(self.entries().all(|entry| entry.name() != name), "scenario {name:?} is registered twice");
        assert!(
            self.entries().all(|entry| entry.suite() != name && entry.name() != suite),
            "{name:?} or {suite:?} is both a scenario and a suite"
        );
        self.scenarios.push(Box::new(scenario));
        self
    }

    /// What a person types: `cargo sim`.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// The scenarios in the order of registration.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.scenarios.iter().map(|scenario| Entry(&**scenario))
    }

    /// The scenario of that name.
    pub fn get(&self, name: &str) -> Result<Entry<'_>, UnknownScenario> {
        self.entries().find(|entry| entry.name() == name).ok_or_else(|| self.unknown(name, false))
    }

    /// The scenarios that the names select: scenarios, or suites with all their scenarios. No names: all. Each once, in the order
    /// of registration.
    pub fn select(&self, names: &[String]) -> Result<Vec<Entry<'_>>, UnknownScenario> {
        for name in names {
            if !self.entries().any(|entry| entry.name() == name || entry.suite() == name) {
                return Err(self.unknown(name, true));
            }
        }
        let wanted = |entry: &Entry<'_>| {
            names.is_empty() || names.iter().any(|name| name == entry.name() || name == entry.suite())
        };
        Ok(self.entries().filter(wanted).collect())
    }

    fn unknown(&self, name: &str, suites: bool) -> UnknownScenario {
        let suites = self.entries().filter(|_| suites).map(|entry| entry.suite());
        let known = self.entries().map(|entry| entry.name()).chain(suites);
        UnknownScenario { name: name.to_owned(), similar: closest(name, known).map(str::to_owned) }
    }
}

/// The known name nearest to what was typed, if a typing mistake explains the difference.
pub(crate) fn closest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| if !typed.is_empty() && name.contains(typed) { 1 } else { edits(typed, name) };
    known
        .map(|name| (distance(name), name))
        .filter(|(edits, name)| *edits <= 2.max(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein distance.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in right.iter().enumerate() {
            let replace = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replace.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Registry, Scenario, closest, draw};
    use crate::report::Report;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any};
    use proptest::sample::select;
    use proptest::strategy::BoxedStrategy;

    struct Named(&'static str, &'static str);

    impl Scenario for Named {
        type Plan = u8;
        fn name(&self) -> &'static str {
            self.0
        }
        fn suite(&self) -> &'static str {
            self.1
        }
        fn claim(&self) -> &'static str {
            "it has a name"
        }
        fn strategy(&self) -> BoxedStrategy<u8> {
            any::<u8>().boxed()
        }
        fn run(&self, plan: &u8) -> Report {
            Report { events: u64::from(*plan), ..Report::default() }
        }
    }

    pub(crate) fn registry() -> Registry {
        Registry::new("cargo sim")
            .with(Named("acked_write_survives", "durability"))
            .with(Named("offset_never_goes_back", "progress"))
    }

    #[test]
    fn a_seed_draws_the_same_plan_and_each_scenario_its_own() {
        let strategy = any::<[u64; 4]>().boxed();
        assert_eq!(draw(&strategy, "a", 5), draw(&strategy, "a", 5));
        assert_ne!(draw(&strategy, "a", 5), draw(&strategy, "a", 6));
        assert_ne!(draw(&strategy, "a", 5), draw(&strategy, "b", 5));
        // Pinned: another generator, or another way to it, gives every bare seed another plan. See DETERMINISM.md.
        let strategy = (any::<u64>(), vec(0..1_000_u32, 3), select(["a", "b", "c"].as_slice())).boxed();
        insta::assert_debug_snapshot!(draw(&strategy, "pinned", 1), @r#"
        (
            9984872502523538298,
            [
                566,
                457,
                838,
            ],
            "c",
        )
        "#);
    }

    #[test]
    fn names_and_suites_select() {
        let registry = registry();
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            registry.select(&wanted).map(|entries| entries.iter().map(|entry| entry.name()).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).map(|found| found.len()), Ok(2));
        assert_eq!(names(&["progress"]), Ok(vec!["offset_never_goes_back"]));
        assert_eq!(names(&["acked_write_survives", "durability"]), Ok(vec!["acked_write_survives"]));
        let text = |wanted: &str| names(&[wanted]).expect_err("unknown").to_string();
        insta::assert_snapshot!(text("acked_write_survive"), @r#"unknown scenario "acked_write_survive"; did you mean "acked_write_survives"?"#);
        insta::assert_snapshot!(text("durabilty"), @r#"unknown scenario "durabilty"; did you mean "durability"?"#);
        insta::assert_snapshot!(text("zzz"), @r#"unknown scenario "zzz"; `list` shows all"#);
        assert!(registry.get("progress").is_err(), "a suite is not a scenario");
    }

    #[test]
    fn a_fragment_suggests_the_whole() {
        assert_eq!(
            closest("offset", ["acked_write_survives", "offset_never_goes_back"].into_iter()),
            Some("offset_never_goes_back")
        );
        assert_eq!(closest("", ["a_very_long_name"].into_iter()), None);
    }

    #[test]
    #[should_panic(expected = "registered twice")]
    fn a_name_is_registered_once() {
        let _ = registry().with(Named("acked_write_survives", "other"));
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let registry = registry();
        let entry = registry.get("acked_write_survives").expect("registered");
        let error = entry.run(&serde_json::json!("many")).expect_err("not a number").to_string();
        insta::assert_snapshot!(error, @r#"the plan does not fit scenario "acked_write_survives": invalid type: string "many", expected u8"#);
    }
}
