//! What suites `progress`, `service` and `returns` are made of: claims about one drawn story, judged over and above all invariants.

use crate::plan::Plan;
use crate::run::{self, Claim};
use crate::variation::Story;
use proptest::strategy::{BoxedStrategy, Strategy};
use sim::report::Report;
use sim::scenario::{Registry, Scenario};
use sim::variation::Variation;
use std::fmt::Debug;

/// A claim about stories of a kind.
#[derive(Debug)]
pub struct StoryClaim<S: 'static> {
    /// The claim's name.
    pub name: &'static str,
    /// The claim in one sentence.
    pub claim: &'static str,
    /// What happens.
    pub plan: fn(&S) -> Plan,
    /// What must be true of the evidence.
    pub judge: Claim,
}

/// What all claims of a suite share.
#[derive(Debug)]
pub struct StorySuite<S: 'static> {
    /// The suite's name.
    pub name: &'static str,
    /// How its stories are drawn.
    pub draw: fn() -> BoxedStrategy<S>,
    /// What may be varied in a plan without another story being told.
    pub variation: Story,
}

impl<S: Debug> StorySuite<S> {
    /// Adds a scenario for each of the claims.
    pub fn register(&'static self, registry: Registry, claims: &'static [StoryClaim<S>]) -> Registry {
        claims.iter().fold(registry, |registry, claim| registry.with(OfSuite { suite: self, claim }))
    }
}

/// A claim as a scenario.
struct OfSuite<S: 'static> {
    suite: &'static StorySuite<S>,
    claim: &'static StoryClaim<S>,
}

impl<S: Debug> Scenario for OfSuite<S> {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        self.claim.name
    }

    fn suite(&self) -> &'static str {
        self.suite.name
    }

    fn claim(&self) -> &'static str {
        self.claim.claim
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        (self.suite.draw)().prop_map(self.claim.plan_of()).boxed()
    }

    fn variation(&self) -> &dyn Variation<Plan> {
        &self.suite.variation
    }

    fn run(&self, plan: &Plan) -> Report {
        run::run(plan, Some((self.claim.name, self.claim.judge)))
    }
}

impl<S> StoryClaim<S> {
    fn plan_of(&self) -> impl Fn(S) -> Plan + use<S> {
        let plan = self.plan;
        move |story| plan(&story)
    }
}
