//! Plans near a plan: what a campaign that goes on from known plans tries, and how a strategy that has its own say about schedule or crash
//! changes a plan.

use crate::plan::{Plan, Policy};
use crate::simpler::nodes;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::BoxedStrategy;
use sim::fault::crash_point::{Counted, CrashPoint};
use sim::fault::{Fault, Kind, Moment};
use std::time::Duration;

/// A plan has at most so many faults, however often it is changed: more of them only hide each other.
const FAULTS_MAX: usize = 8;
/// Faults begin that long after the cluster is up, and that long before the safety phase is over, as in the drawn profiles.
const FIRST: Duration = Duration::from_secs(1);
const BEFORE_END: Duration = Duration::from_secs(5);
/// How long a fault lasts.
const LASTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(40));

/// One change of a plan. Numbers are drawn from all of their type, and taken modulo what there is.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Another schedule.
    Schedule(u64),
    /// The other rule for picking tasks.
    Policy,
    /// Rare choices on or off.
    RareChoices,
    /// A fault is left out.
    Without(usize),
    /// A fault of another plan comes in.
    With(usize),
    /// A fault begins earlier or later, by thousandths of the run.
    Moved(usize, i16),
    /// A fault begins around the moment at which another one is over.
    Chained(usize, usize, i16),
    /// A fault lasts longer or shorter, by hundredths.
    Lasting(usize, u8),
    /// A fault comes twice.
    Again(usize, i16),
}

fn change() -> BoxedStrategy<Change> {
    let place = || any::<u16>().prop_map(usize::from);
    let shift = || -150_i16..=150;
    prop_oneof![
        2 => any::<u64>().prop_map(Change::Schedule),
        1 => Just(Change::Policy),
        1 => Just(Change::RareChoices),
        2 => place().prop_map(Change::Without),
        4 => place().prop_map(Change::With),
        3 => (place(), shift()).prop_map(|(fault, by)| Change::Moved(fault, by)),
        3 => (place(), place(), -30_i16..=30).prop_map(|(fault, other, by)| Change::Chained(fault, other, by)),
        2 => (place(), 20_u8..=250).prop_map(|(fault, percent)| Change::Lasting(fault, percent)),
        1 => (place(), shift()).prop_map(|(fault, by)| Change::Again(fault, by)),
    ]
    .boxed()
}

/// A plan near this one: one to four changes, drawn from `seed`. Faults that come in are those of `others`, as far as they name nodes that the
/// plan has.
pub fn neighbour(plan: &Plan, others: &[&Plan], seed: u64) -> Plan {
    let known = nodes(plan);
    let fits = |fault: &&Fault| fault.fault.nodes().iter().all(|node| known.iter().any(|name| name == node));
    let foreign: Vec<&Fault> = others.iter().flat_map(|other| &other.faults).filter(fits).collect();
    let mut near = plan.clone();
    for change in sim::scenario::draw(&vec(change(), 1..=4).boxed(), "neighbour", seed) {
        apply(&mut near, change, &foreign);
    }
    if near == *plan {
        near.schedule.seed = seed;
    }
    near
}

fn apply(plan: &mut Plan, change: Change, foreign: &[&Fault]) {
    let (count, duration) = (plan.faults.len(), plan.duration);
    let room = count < FAULTS_MAX;
    match change {
        Change::Schedule(seed) => plan.schedule.seed = seed,
        Change::Policy => plan.schedule.policy = other(plan.schedule.policy),
        Change::RareChoices => plan.rare_choices = !plan.rare_choices,
        Change::With(place) if room && !foreign.is_empty() => {
            let fault = foreign[place % foreign.len()].clone();
            plan.faults.push(moved(fault, 0, duration));
        }
        Change::Without(place) if count > 0 => drop(plan.faults.remove(place % count)),
        Change::Moved(place, by) if count > 0 => {
            let fault = &mut plan.faults[place % count];
            *fault = moved(fault.clone(), by, duration);
        }
        Change::Chained(place, other, by) if count > 1 => {
            let (place, other) = (place % count, other % count);
            if let Moment::At(at) = plan.faults[other].start {
                let end = at + plan.faults[other].lasts;
                let fault = Fault { start: Moment::At(end), ..plan.faults[place].clone() };
                plan.faults[place] = moved(fault, by, duration);
            }
        }
        Change::Lasting(place, percent) if count > 0 => {
            let fault = &mut plan.faults[place % count];
            fault.lasts = (fault.lasts * u32::from(percent) / 100).clamp(LASTS.0, LASTS.1);
        }
        Change::Again(place, by) if count > 0 && room => {
            let fault = plan.faults[place % count].clone();
            plan.faults.push(moved(fault, by, duration));
        }
        // Nothing there to be changed.
        Change::With(_)
        | Change::Without(_)
        | Change::Moved(..)
        | Change::Chained(..)
        | Change::Lasting(..)
        | Change::Again(..) => {}
    }
}

fn other(policy: Policy) -> Policy {
    match policy {
        Policy::Random => Policy::Priority,
        Policy::Priority => Policy::Random,
    }
}

/// The fault, by thousandths of the run later or earlier, within the run.
fn moved(mut fault: Fault, thousandths: i16, duration: Duration) -> Fault {
    if let Moment::At(at) = &mut fault.start {
        let by = duration * u32::from(thousandths.unsigned_abs()) / 1_000;
        let moved = if thousandths < 0 { at.saturating_sub(by) } else { *at + by };
        // Milliseconds read well.
        let whole = Duration::from_millis(u64::try_from(moved.as_millis()).expect("a run is short"));
        *at = whole.clamp(FIRST, duration.saturating_sub(BEFORE_END).max(FIRST));
    }
    fault
}

/// The same plan, scheduled by priorities that are drawn from `seed`.
pub fn prioritised(plan: &Plan, seed: u64) -> Plan {
    let mut plan = plan.clone();
    (plan.schedule.seed, plan.schedule.policy) = (seed, Policy::Priority);
    plan
}

/// The same plan with a single fault: a broker ends at one of its steps. The points go over all brokers in turn, over the time of the run, and
/// at each moment over the next disk operations or packets.
pub fn crash_point(plan: &Plan, point: u64, points: u64) -> Plan {
    let brokers = plan.cluster.brokers();
    let node = brokers[(point % brokers.len() as u64) as usize].clone();
    let span = plan.duration.saturating_sub(FIRST + BEFORE_END);
    let start =
        FIRST + span * u32::try_from(point % points).expect("few points") / u32::try_from(points).expect("few points");
    let at = if point.is_multiple_of(2) { Counted::DiskOperation } else { Counted::Packet };
    // Steps of one request and the next lie within some tens of operations.
    let crash = CrashPoint { node, at, nth: 1 + point * 7 % 48, power: (point / 2).is_multiple_of(2) };
    let fault = Fault { fault: Kind::CrashPoint(crash), start: Moment::At(start), lasts: Duration::from_secs(10) };
    Plan { faults: vec![fault], ..plan.clone() }
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_END, FAULTS_MAX, FIRST, LASTS, crash_point, neighbour};
    use crate::draw;
    use crate::plan::Plan;
    use crate::simpler::nodes;
    use proptest::strategy::Strategy;
    use sim::fault::Moment;
    use std::collections::BTreeSet;

    fn drawn(seed: u64) -> Plan {
        sim::scenario::draw(&draw::fail_over_profile().boxed(), "neighbour", seed)
    }

    #[test]
    fn a_neighbour_differs_and_stays_within_the_run() {
        for seed in 0..300 {
            let (mut plan, other) = (drawn(seed), drawn(seed + 1));
            for step in 0..20 {
                let near = neighbour(&plan, &[&other], seed * 100 + step);
                assert_ne!(near, plan);
                assert!(near.faults.len() <= FAULTS_MAX);
                let known = nodes(&near);
                for fault in &near.faults {
                    assert!(fault.fault.nodes().iter().all(|node| known.iter().any(|name| name == node)), "{fault}");
                    let Moment::At(at) = fault.start else { continue };
                    assert!(at >= FIRST && at <= near.duration - BEFORE_END, "{fault}");
                    assert!(fault.lasts <= LASTS.1, "{fault}");
                }
                plan = near;
            }
        }
    }

    #[test]
    fn crash_points_reach_each_broker_in_each_way() {
        let plan = drawn(7);
        let brokers = plan.cluster.brokers().len();
        let plans: Vec<Plan> = (0..64).map(|point| crash_point(&plan, point, 64)).collect();
        let named: BTreeSet<&str> = plans.iter().flat_map(|plan| plan.faults[0].fault.nodes()).collect();
        assert_eq!(named.len(), brokers);
        let different: BTreeSet<String> = plans.iter().map(|plan| format!("{:?}", plan.faults)).collect();
        assert_eq!(different.len(), 64);
    }
}
