//! Simpler plans, each in one way: what the shrinker of a failing case tries besides leaving faults and operations out.

use crate::kinds::Kinds;
use crate::plan::{Cluster, Operation, Plan, Policy, Replication};
use std::time::Duration;

/// A run shorter than that shows nothing.
const DURATION_MIN: Duration = Duration::from_secs(1);

/// Fewer nodes first, for they take most of a report; then a plainer configuration and shorter times.
pub fn simpler(plan: &Plan) -> Vec<Plan> {
    let mut plans = fewer_nodes(plan);
    plans.extend(plainer(plan));
    plans.extend(shorter(plan));
    plans.retain(|simpler| simpler != plan);
    plans
}

/// What may be left out of the plan of a claim about one story, which is still told with fewer messages and on a plainer stage. That a smaller
/// plan tells another story shows by another cause: each claim demands its story in words of its own.
pub fn simpler_story(plan: &Plan) -> Vec<Plan> {
    let mut plans = plainer(plan);
    plans.extend(fewer_messages(plan));
    plans.retain(|simpler| simpler != plan && simpler.cluster.replication == plan.cluster.replication);
    plans
}

fn fewer_nodes(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut with_cluster = |cluster: Cluster| plans.push(among_its_nodes(Plan { cluster, ..plan.clone() }));
    let cluster = &plan.cluster;
    if let Some((_, others @ [_, ..])) = cluster.slaves.split_last() {
        with_cluster(Cluster { slaves: others.to_vec(), ..cluster.clone() });
    }
    // A master that waits for copies takes no message without them.
    let needed = match cluster.replication {
        Replication::Sync { in_sync_replicas } => in_sync_replicas.saturating_sub(1),
        Replication::Async => 0,
    };
    for (master, slaves) in cluster.slaves.iter().enumerate().filter(|(_, slaves)| **slaves > needed) {
        let mut fewer = cluster.clone();
        fewer.slaves[master] = slaves - 1;
        with_cluster(fewer);
    }
    if cluster.name_servers > 1 {
        with_cluster(Cluster { name_servers: cluster.name_servers - 1, ..cluster.clone() });
    }
    if plan.clients.producers > 1 {
        let mut fewer = plan.clone();
        fewer.clients.producers -= 1;
        plans.push(among_its_nodes(fewer));
    }
    if plan.clients.consumers.len() > 1 {
        let mut fewer = plan.clone();
        fewer.clients.consumers.pop();
        plans.push(among_its_nodes(fewer));
    }
    plans
}

/// Every node of a plan.
pub(crate) fn nodes(plan: &Plan) -> Vec<String> {
    let consumers = plan.clients.consumer_names().into_iter().map(|(name, _)| name);
    let servers = [plan.cluster.names(), plan.cluster.brokers()].concat();
    servers.into_iter().chain(plan.clients.producer_names()).chain(consumers).collect()
}

/// The plan without the operations and faults of nodes that it no longer has.
fn among_its_nodes(mut plan: Plan) -> Plan {
    let nodes = nodes(&plan);
    plan.operations.retain(|operation| nodes.contains(operation.node()));
    plan.faults.retain(|fault| fault.fault.nodes().iter().all(|node| nodes.iter().any(|name| name == node)));
    plan
}

fn plainer(plan: &Plan) -> Vec<Plan> {
    let changes: [fn(&mut Plan); 17] = [
        |plan| plan.rare_choices = false,
        |plan| plan.schedule.policy = Policy::Random,
        |plan| plan.cluster.replication = Replication::Async,
        |plan| plan.cluster.queues = 1,
        |plan| plan.cluster.retention = None,
        |plan| plan.network.by_name = false,
        |plan| plan.network.latency_max = plan.network.latency_min,
        |plan| plan.clients.consumers.iter_mut().for_each(|consumer| consumer.work = Duration::ZERO),
        |plan| plan.clients.consumers.iter_mut().for_each(|consumer| consumer.failing = None),
        |plan| plan.clients.consumers.iter_mut().for_each(|consumer| consumer.by_sql = false),
        |plan| plan.clients.consumers.iter_mut().for_each(|consumer| consumer.tags.clear()),
        |plan| each_kinds(plan, |kinds| kinds.batch = 0),
        |plan| each_kinds(plan, |kinds| kinds.levels.clear()),
        |plan| each_kinds(plan, |kinds| kinds.timers.clear()),
        |plan| each_kinds(plan, |kinds| kinds.tags.clear()),
        |plan| each_kinds(plan, |kinds| kinds.local = Duration::ZERO),
        |plan| each_kinds(plan, |kinds| kinds.fates.clear()),
    ];
    changes.into_iter().map(|change| changed(plan, change)).collect()
}

fn each_kinds(plan: &mut Plan, change: fn(&mut Kinds)) {
    for operation in &mut plan.operations {
        if let Operation::Send { kinds, .. } = operation {
            change(kinds);
        }
    }
}

fn changed(plan: &Plan, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = plan.clone();
    change(&mut plan);
    plan
}

fn shorter(plan: &Plan) -> Vec<Plan> {
    let mut plans = fewer_messages(plan);
    if plan.duration > DURATION_MIN {
        plans.push(changed(plan, |plan| plan.duration = seconds(plan.duration / 2).max(DURATION_MIN)));
    }
    for (index, fault) in plan.faults.iter().enumerate().filter(|(_, fault)| fault.lasts > DURATION_MIN) {
        plans.push(changed(plan, |plan| plan.faults[index].lasts = seconds(fault.lasts / 2).max(DURATION_MIN)));
    }
    plans
}

fn fewer_messages(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (index, operation) in plan.operations.iter().enumerate() {
        if let Operation::Send { count, .. } = operation
            && *count > 1
        {
            // From the end, and from the start: the message that shows it may be a late one.
            for (left_out, fewer) in [(0, 1), (0, count / 2), (count - count / 2, count / 2), (0, count - count / 4)] {
                plans.push(changed(plan, |plan| {
                    if let Operation::Send { at, count, every, .. } = &mut plan.operations[index] {
                        *at += *every * left_out;
                        *count = fewer;
                    }
                }));
            }
        }
    }
    plans
}

/// Whole seconds read better.
fn seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// The same plan under the schedule of another seed.
pub fn rescheduled(plan: &Plan, seed: u64) -> Plan {
    changed(plan, |plan| plan.schedule.seed = seed)
}

#[cfg(test)]
mod tests {
    use super::{nodes, simpler};
    use crate::draw;
    use crate::kinds::has_kinds;
    use crate::plan::{Plan, Replication};
    use proptest::strategy::Strategy;

    fn drawn(seed: u64) -> Plan {
        let profile = match seed % 3 {
            0 => draw::hostile_profile().boxed(),
            1 => draw::kinds_profile().boxed(),
            _ => draw::transaction_profile().boxed(),
        };
        sim::scenario::draw(&profile, "simpler", seed)
    }

    /// A shrinker takes the first simpler plan that fails; if all fail, that must come to an end.
    #[test]
    fn taking_any_simpler_plan_ends_in_one_that_has_none() {
        for seed in 0..50 {
            for choice in [0, 1, usize::MAX] {
                let mut plan = drawn(seed);
                let mut steps = 0;
                loop {
                    let mut plans = simpler(&plan);
                    if plans.is_empty() {
                        break;
                    }
                    plan = plans.swap_remove(choice.min(plans.len() - 1));
                    steps += 1;
                    assert!(steps < 1_000, "seed {seed}, choice {choice}: no end in sight at {plan:?}");
                }
                assert_eq!((plan.cluster.slaves.as_slice(), plan.cluster.name_servers), ([0].as_slice(), 1));
                assert!(!has_kinds(&plan), "{plan:?}");
            }
        }
    }

    #[test]
    fn no_simpler_plan_takes_the_copies_that_its_answers_wait_for() {
        for seed in 0..50 {
            for plan in simpler(&drawn(seed)) {
                let is_served = plan.cluster.slaves.iter().all(|slaves| *slaves > 0);
                assert!(is_served || plan.cluster.replication == Replication::Async, "{plan:?}");
            }
        }
    }

    #[test]
    fn no_simpler_plan_speaks_of_a_node_that_it_does_not_have() {
        for seed in 0..50 {
            for plan in simpler(&drawn(seed)) {
                let nodes = nodes(&plan);
                let named = plan.faults.iter().flat_map(|fault| fault.fault.nodes()).map(str::to_owned);
                for node in named.chain(plan.operations.iter().map(|operation| operation.node().to_owned())) {
                    assert!(nodes.contains(&node), "{node} in {plan:?}");
                }
            }
        }
    }
}
