//! Who of a group reads which queue. Every member computes this alone from the same lists, so the order of queues and of client
//! ids is part of the protocol: queues by (topic, broker name, queue id), ids as text.
use protocol::MessageQueue;
use std::collections::BTreeSet;

/// How a topic's queues are shared out over a group. All members must use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Consecutive blocks whose sizes differ by one at most (`AVG`, the default).
    Average,
    /// In turn, like cards (`AVG_BY_CIRCLE`).
    AverageByCircle,
}

impl Strategy {
    /// The name as it stands in requests.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Average => "AVG",
            Strategy::AverageByCircle => "AVG_BY_CIRCLE",
        }
    }

    /// The queues of `me`. Both lists may come in any order and with repetitions. Empty if `me` is not a member.
    pub fn allocate(self, me: &str, members: &[String], queues: &[MessageQueue]) -> Vec<MessageQueue> {
        let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
        let queues: Vec<&MessageQueue> = queues.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let Some(index) = members.iter().position(|member| *member == me) else { return Vec::new() };
        let mine = match self {
            Strategy::Average => block(&queues, members.len(), index),
            Strategy::AverageByCircle => queues.into_iter().skip(index).step_by(members.len()).collect(),
        };
        mine.into_iter().cloned().collect()
    }
}

fn block<'a>(queues: &[&'a MessageQueue], members: usize, index: usize) -> Vec<&'a MessageQueue> {
    let (size, longer) = (queues.len() / members, queues.len() % members);
    // The first `longer` members have one queue more, so each of them before `index` shifts the start by one.
    let start = index * size + index.min(longer);
    let len = size + usize::from(index < longer);
    queues[start..start + len].to_vec()
}

/// What one rebalance of one topic does to the queues in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Owned, and no longer to be.
    pub to_drop: Vec<MessageQueue>,
    /// To be owned, and not yet.
    pub to_take: Vec<MessageQueue>,
}

impl Change {
    /// The way from the queues of a topic in hand to those allocated, in queue order.
    pub fn between(owned: &BTreeSet<MessageQueue>, allocated: &BTreeSet<MessageQueue>) -> Change {
        Change {
            to_drop: owned.difference(allocated).cloned().collect(),
            to_take: allocated.difference(owned).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Strategy};
    use proptest::prelude::{Just, Strategy as _, any, prop_oneof, proptest};
    use protocol::MessageQueue;
    use std::collections::BTreeSet;

    fn queue(broker: &str, queue_id: i32) -> MessageQueue {
        MessageQueue { topic: "T".into(), broker_name: broker.into(), queue_id }
    }

    fn queues(count: i32) -> Vec<MessageQueue> {
        (0..count).map(|id| queue("b", id)).collect()
    }

    fn members(count: usize) -> Vec<String> {
        (0..count).map(|i| format!("c{i:02}")).collect()
    }

    fn check(strategy: Strategy, queue_count: i32, member_count: usize, expected: &[&[i32]]) {
        let members = members(member_count);
        let got: Vec<Vec<i32>> = members
            .iter()
            .map(|me| strategy.allocate(me, &members, &queues(queue_count)).iter().map(|q| q.queue_id).collect())
            .collect();
        assert_eq!(got, expected, "{strategy:?} {queue_count} queues {member_count} members");
    }

    #[test]
    fn average_gives_the_blocks_of_the_java_client() {
        check(Strategy::Average, 8, 3, &[&[0, 1, 2], &[3, 4, 5], &[6, 7]]);
        check(Strategy::Average, 10, 4, &[&[0, 1, 2], &[3, 4, 5], &[6, 7], &[8, 9]]);
        check(Strategy::Average, 2, 3, &[&[0], &[1], &[]]);
        check(Strategy::Average, 4, 1, &[&[0, 1, 2, 3]]);
        check(Strategy::Average, 0, 2, &[&[], &[]]);
    }

    #[test]
    fn circle_deals_in_turn() {
        check(Strategy::AverageByCircle, 8, 3, &[&[0, 3, 6], &[1, 4, 7], &[2, 5]]);
        check(Strategy::AverageByCircle, 2, 3, &[&[0], &[1], &[]]);
    }

    #[test]
    fn queues_are_ordered_by_broker_before_queue_id() {
        let mixed = vec![queue("b", 0), queue("a", 1), queue("b", 1), queue("a", 0)];
        let got = Strategy::Average.allocate("c00", &members(2), &mixed);
        assert_eq!(got, vec![queue("a", 0), queue("a", 1)]);
    }

    #[test]
    fn a_stranger_gets_nothing() {
        assert!(Strategy::Average.allocate("x", &members(2), &queues(4)).is_empty());
        assert!(Strategy::Average.allocate("x", &[], &queues(4)).is_empty());
    }

    #[test]
    fn change_is_the_difference_both_ways() {
        let owned = BTreeSet::from([queue("b", 0), queue("b", 1)]);
        let allocated = BTreeSet::from([queue("b", 1), queue("b", 2)]);
        let expected = Change { to_drop: vec![queue("b", 0)], to_take: vec![queue("b", 2)] };
        assert_eq!(Change::between(&owned, &allocated), expected);
        assert_eq!(Change::between(&owned, &owned), Change::default());
    }

    proptest! {
        #[test]
        fn each_queue_has_exactly_one_owner_and_order_of_the_inputs_does_not_matter(
            strategy in prop_oneof![Just(Strategy::Average), Just(Strategy::AverageByCircle)],
            ids in proptest::collection::vec((0..3_i32, 0..12_i32), 0..40),
            names in proptest::collection::vec("[a-c]{1,2}", 1..8),
            seed in any::<u64>().prop_map(|s| s as usize),
        ) {
            let all: Vec<MessageQueue> = ids.iter().map(|(b, id)| queue(&format!("broker-{b}"), *id)).collect();
            let mut turned = all.clone();
            if !turned.is_empty() {
                turned.rotate_left(seed % all.len());
            }
            let mut turned_names = names.clone();
            turned_names.reverse();
            let distinct: BTreeSet<&String> = names.iter().collect();
            let mut owned = Vec::new();
            let mut sizes = Vec::new();
            for me in &distinct {
                let mine = strategy.allocate(me, &names, &all);
                assert_eq!(mine, strategy.allocate(me, &turned_names, &turned));
                sizes.push(mine.len());
                owned.extend(mine);
            }
            owned.sort();
            let expected: Vec<MessageQueue> = all.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
            assert_eq!(owned, expected);
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
