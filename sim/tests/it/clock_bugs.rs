//! Three bugs that only a wrong clock shows, each on a tiny system with a twin that does it right: the faults find the one and
//! leave the other alone.

mod deadline;
mod expiry;
mod lease;

use proptest::prelude::any;
use proptest::strategy::{BoxedStrategy, Strategy};
use rt::world::WorldConfig;
use serde::{Deserialize, Serialize};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::fault::swarm::Swarm;
use sim::report::Report;
use sim::scenario::{Registry, Scenario};
use sim::testing::Stand;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// How long a run lasts; faults begin in its first half.
const RUN: Duration = Duration::from_secs(20);
const SEEDS: u64 = 500;

/// Everything that a run depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plan {
    schedule_seed: u64,
    faults: Vec<Fault>,
}

/// One of the tiny systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Lease,
    Deadline,
    Expiry,
}

/// A system, with its bug or without.
#[derive(Debug, Clone, Copy)]
struct ClockBug {
    system: System,
    planted: bool,
}

/// Faults of these kinds on these nodes.
fn faults(kinds: &[&'static str], victims: &[&str]) -> BoxedStrategy<Vec<Fault>> {
    let swarm = Swarm {
        kinds: kinds.to_vec(),
        victims: victims.iter().map(|name| (*name).to_owned()).collect(),
        network: Vec::new(),
        starts: Duration::ZERO..RUN / 2,
        lasts: Duration::from_millis(200)..RUN / 2,
        faults_max: 4,
    };
    swarm.strategy()
}

impl Scenario for ClockBug {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        match (self.system, self.planted) {
            (System::Lease, true) => "lease_by_the_wall_clock",
            (System::Lease, false) => "lease_by_the_own_clock",
            (System::Deadline, true) => "deadline_by_the_clock_of_the_peer",
            (System::Deadline, false) => "deadline_as_time_left",
            (System::Expiry, true) => "expiry_by_the_wall_clock",
            (System::Expiry, false) => "expiry_by_the_own_clock",
        }
    }

    fn claim(&self) -> &'static str {
        match self.system {
            System::Lease => lease::CLAIM,
            System::Deadline => deadline::CLAIM,
            System::Expiry => expiry::CLAIM,
        }
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        let faults = match self.system {
            System::Lease => lease::faults(),
            System::Deadline => deadline::faults(),
            System::Expiry => expiry::faults(),
        };
        (any::<u64>(), faults).prop_map(|(schedule_seed, faults)| Plan { schedule_seed, faults }).boxed()
    }

    fn run(&self, plan: &Plan) -> Report {
        let ClockBug { system, planted } = *self;
        let (desk, faults) = (Desk::new(), plan.faults.clone());
        let config = WorldConfig { seed: plan.schedule_seed, ..WorldConfig::default() };
        let work = desk.clone();
        let main = move || async move {
            match system {
                System::Lease => lease::run(work, &faults, planted).await,
                System::Deadline => deadline::run(work, &faults, planted).await,
                System::Expiry => expiry::run(work, &faults, planted).await,
            }
        };
        desk.run(config, main).1
    }
}

fn registry() -> Registry {
    let both = |registry: Registry, system| {
        registry.with(ClockBug { system, planted: true }).with(ClockBug { system, planted: false })
    };
    [System::Lease, System::Deadline, System::Expiry].into_iter().fold(Registry::new("cargo sim"), both)
}

const STAND: Stand = Stand::new(registry, "clock_bugs::worker");

#[test]
fn worker() {
    STAND.serve();
}

#[test]
fn a_lease_kept_by_the_wall_clock_is_found() {
    insta::assert_snapshot!(STAND.finds("lease_by_the_wall_clock", lease::CLAIM, SEEDS), @"2");
}

#[test]
fn a_lease_kept_by_the_own_clock_holds() {
    STAND.holds("lease_by_the_own_clock", SEEDS);
}

#[test]
fn a_time_out_that_trusts_the_clock_of_the_peer_is_found() {
    insta::assert_snapshot!(STAND.finds("deadline_by_the_clock_of_the_peer", deadline::CLAIM, SEEDS), @"6");
}

#[test]
fn a_time_out_sent_as_the_time_that_is_left_holds() {
    STAND.holds("deadline_as_time_left", SEEDS);
}

#[test]
fn an_expiry_that_breaks_after_a_step_back_is_found() {
    insta::assert_snapshot!(STAND.finds("expiry_by_the_wall_clock", expiry::CLAIM, SEEDS), @"0");
}

#[test]
fn an_expiry_by_the_own_clock_holds() {
    STAND.holds("expiry_by_the_own_clock", SEEDS);
}
