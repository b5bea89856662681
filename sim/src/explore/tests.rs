use super::{Corpus, Explorer, POINTS, Strategy};
use crate::report::Report;
use crate::scenario::{Registry, Scenario};
use crate::shard::Shard;
use crate::variation::Variation;
use crate::worker::{Run, Task};
use proptest::prelude::{Strategy as _, any};
use proptest::strategy::BoxedStrategy;
use serde_json::json;
use std::time::Duration;

/// Plans are numbers: even ones have a schedule by priority, and a changed plan is its parent and one.
struct Numbers;

impl Scenario for Numbers {
    type Plan = u64;
    fn name(&self) -> &'static str {
        "numbers"
    }
    fn claim(&self) -> &'static str {
        "numbers are numbers"
    }
    fn strategy(&self) -> BoxedStrategy<u64> {
        any::<u32>().prop_map(u64::from).boxed()
    }
    fn variation(&self) -> &dyn Variation<u64> {
        self
    }
    fn run(&self, plan: &u64) -> Report {
        Report { events: *plan, ..Report::default() }
    }
}

impl Variation<u64> for Numbers {
    fn prioritised(&self, plan: &u64, _seed: u64) -> Option<u64> {
        Some(plan * 2)
    }
    fn mutated(&self, plan: &u64, _others: [&u64; 2], _seed: u64) -> Option<u64> {
        Some(plan + 1)
    }
}

fn plan_of(task: &Task) -> Option<u64> {
    if let Task::Plan(case) = task { case.plan.as_u64() } else { None }
}

fn explorer(registry: &Registry, strategy: Strategy) -> Explorer<'_> {
    let entries = registry.select(&[]).expect("all");
    Explorer::new(entries, strategy, 100, Shard::ALL, Corpus::default()).expect("it has such plans")
}

fn registry() -> Registry {
    Registry::new("cargo sim").with(Numbers)
}

#[test]
fn a_random_run_is_its_seed_and_one_by_priority_is_a_plan() {
    let registry = registry();
    let random = explorer(&registry, Strategy::Random).task(5).expect("a task");
    assert_eq!(random, Task::Seed { scenario: "numbers".into(), seed: 105 });
    let drawn = registry.get("numbers").expect("registered").draw(105).as_u64().expect("a number");
    let by_priority = explorer(&registry, Strategy::Priority).task(5).expect("a task");
    assert_eq!(plan_of(&by_priority), Some(drawn * 2));
}

#[test]
fn a_strategy_that_a_scenario_has_no_plans_for_is_refused() {
    let registry = registry();
    let entries = registry.select(&[]).expect("all");
    let refused = Explorer::new(entries, Strategy::CrashPoints, 0, Shard::ALL, Corpus::default()).expect_err("none");
    insta::assert_snapshot!(refused, @r#"scenario "numbers" has no plans for the strategy crash-points"#);
    assert_eq!(POINTS, 64, "the doc of the strategy names it");
}

#[test]
fn a_guided_campaign_goes_on_from_what_reached_something_new() {
    let registry = registry();
    let mut explorer = explorer(&registry, Strategy::Guided);
    let first: Vec<Task> = (0..16).map(|number| explorer.task(number).expect("a task")).collect();
    assert_eq!(explorer.next_generation(3), Some(16));
    assert!(first.iter().all(|task| plan_of(task).is_none()), "before anything is learnt, plans are drawn");
    // Runs 3 and 4 reach something new, in whichever order they ended; the others reach it again.
    let ended = |number: usize, state: &str| {
        let report = Report { states: [state.to_owned()].into(), ..Report::default() };
        Run { task: first[number].clone(), report, real_time: Duration::ZERO }
    };
    explorer.learn(vec![ended(9, "b"), ended(4, "b"), ended(3, "a"), ended(7, "a")]);
    let entry = registry.get("numbers").expect("registered");
    let parents = [103, 104].map(|seed| entry.draw(seed).as_u64().expect("a number"));
    let second: Vec<u64> = (16..80).filter_map(|number| plan_of(&explorer.task(number).expect("a task"))).collect();
    assert!(second.iter().all(|plan| parents.contains(&(plan - 1))), "{second:?} of {parents:?}");
    assert!((40..60).contains(&second.len()), "a quarter is drawn afresh, not {} of 64", 64 - second.len());
}

#[test]
fn a_corpus_may_begin_with_a_case() {
    let mut corpus = Corpus::default();
    corpus.plant("numbers", json!(7));
    let parents: Vec<_> = (0..20).filter_map(|seed| corpus.parents("numbers", seed)).collect();
    assert!(!parents.is_empty() && parents.iter().all(|pair| *pair == (&json!(7), &json!(7))), "{parents:?}");
}
