//! Plans worth going on from, and what all plans together have reached.

use crate::report::Report;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One run in so many has a plan that is drawn afresh: what nobody has thought of is not near anything that was reached.
const FRESH_ONE_IN: u64 = 4;

/// Of each scenario the plans that reached something new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Corpus(BTreeMap<String, Reached>);

/// What the runs of one scenario reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Reached {
    /// Names of what was reached, with the amount by powers of two.
    features: BTreeSet<String>,
    /// The plans that were the first to reach some of it.
    plans: Vec<Value>,
}

impl Corpus {
    /// Adds the plan of a run if it reached something new.
    pub(crate) fn add(&mut self, scenario: &str, plan: Value, report: &Report) {
        let reached = self.0.entry(scenario.to_owned()).or_default();
        let before = reached.features.len();
        reached.features.extend(features(report));
        if reached.features.len() > before {
            reached.plans.push(plan);
        }
    }

    /// Adds a plan without having run it, as one to begin with.
    pub(crate) fn plant(&mut self, scenario: &str, plan: Value) {
        self.0.entry(scenario.to_owned()).or_default().plans.push(plan);
    }

    /// Two plans to make the plan of a run from; none if that run's plan is to be drawn afresh.
    pub(crate) fn parents(&self, scenario: &str, seed: u64) -> Option<(&Value, &Value)> {
        let plans = &self.0.get(scenario)?.plans;
        let dice = |salt: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&seed.to_le_bytes(), salt);
        if plans.is_empty() || dice(0).is_multiple_of(FRESH_ONE_IN) {
            return None;
        }
        // Of two throws the later plan: it builds upon earlier ones.
        let throw = |salt: u64| (dice(salt) % plans.len() as u64) as usize;
        Some((&plans[throw(1).max(throw(2))], &plans[throw(3)]))
    }
}

/// What a run reached: each probe and rare choice with its frequency by powers of two, each fault that had an effect, each state of the whole
/// system that the scenario tells.
fn features(report: &Report) -> impl Iterator<Item = String> {
    let often = |(name, hits): (&String, &u64)| (*hits > 0).then(|| format!("{name} {}", hits.ilog2()));
    let probes = report.probes.iter().filter_map(often);
    let effects = report.effects.iter().filter(|effect| effect.amount > 0).map(|effect| effect.kind.clone());
    probes.chain(effects).chain(report.states.iter().cloned())
}
