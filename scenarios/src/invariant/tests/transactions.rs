//! Histories about messages that are sent in a transaction.

use super::{CLEAN, Story, plan, settled, unmet};
use crate::evidence::{KindsSeen, Snapshot};
use crate::kinds::Kinds;
use crate::ledger::{Entry, HALF_TOPIC, Ledger, OP_TOPIC};
use crate::operation::{Ask, Decision, HALF_QUEUE, Queue, Told};
use crate::plan::{Flush, Operation, Plan, Replication, TOPIC};
use std::time::Duration;

fn transactional(flush: Flush) -> Plan {
    let mut plan = plan(flush, Replication::Async);
    let kinds = Kinds { fates: vec!["c".into()], ..Kinds::default() };
    let (at, every) = (Duration::ZERO, Duration::from_secs(1));
    plan.operations.push(Operation::Send { producer: "producer-1".into(), at, count: 1, every, body_bytes: 9, kinds });
    plan
}

impl Story {
    fn half(self, at: f64, key: &str, offset: i64) -> Story {
        let queue = Queue { broker: "broker-a".into(), id: HALF_QUEUE };
        let told = Told::Delayed { queue, offset, promised: true, other_copies_max: 0 };
        self.operation(at, "producer-1", Ask::Send { key: key.into() }, Some(told))
    }
    fn decided(self, at: f64, key: &str, decision: Decision) -> Story {
        self.operation(at, "producer-1", Ask::Decide { key: key.into(), asked: 0 }, Some(Told::Decided(decision)))
    }
    /// Records of the master's log, in its order: a half `h`, an op message `o` of the first half, a final message `f`.
    fn log(mut self, key: &str, records: &str) -> Story {
        let ledger: &mut Ledger = self.evidence.ledgers.entry("broker-a".into()).or_default();
        let mut ends = [0_i64; 3];
        for record in records.chars() {
            let entry = Entry { key: key.into(), ..Entry::default() };
            let (topic, end, entry) = match record {
                'h' => (HALF_TOPIC, &mut ends[0], Entry { waits_for: Some(TOPIC.into()), ..entry }),
                'o' => (OP_TOPIC, &mut ends[1], Entry { decided: vec![0], ..Entry::default() }),
                _ => (TOPIC, &mut ends[2], entry),
            };
            ledger.put(topic, 0, *end, entry);
            *end += 1;
        }
        self
    }
}

const KEY: &str = "m!c";

#[test]
fn i1_a_half_message_stands_among_the_halves() {
    let story = || Story::default().half(1.0, KEY, 0).decided(1.5, KEY, Decision::Commit);
    assert_eq!(story().log(KEY, "hfo").verdict(&transactional(Flush::Sync)), CLEAN);
    assert_eq!(story().verdict(&transactional(Flush::Sync)), ["I1 acknowledged message survives"]);
}

#[test]
fn i2_a_second_final_message_needs_a_broker_that_ended_before_its_op_message() {
    let story = |records: &str, crash: f64| {
        let story = Story::default().half(2.0, KEY, 0).decided(2.5, KEY, Decision::Commit).log(KEY, records);
        story.node(crash, "broker-a", "process ended").node(crash + 1.0, "broker-a", "started")
    };
    let plan = transactional(Flush::Sync);
    assert_eq!(story("hffo", 3.0).verdict(&plan), CLEAN);
    assert_eq!(story("hffo", 1.0).verdict(&plan), ["I2 one final message"], "it ended before it was asked");
    assert_eq!(story("hfofo", 3.0).verdict(&plan), ["I2 one final message"], "it had been told");
    assert_eq!(story("hff", 3.0).verdict(&plan), CLEAN);
    assert_eq!(story("hfff", 3.0).verdict(&plan), ["I2 one final message"], "it came back once");
}

#[test]
fn i9_nobody_sees_what_nobody_has_committed() {
    let plan = transactional(Flush::Async);
    let story = |decision: Decision, at: f64| {
        Story::default().half(1.0, KEY, 0).log(KEY, "ho").decided(at, KEY, decision).holds(&[KEY])
    };
    let consumed = |story: Story| story.consumed(3.0, KEY, 0);
    assert_eq!(consumed(story(Decision::Commit, 2.0)).verdict(&plan), CLEAN);
    assert_eq!(consumed(story(Decision::RollBack, 2.0)).verdict(&plan), ["I9 only what is committed is seen"]);
    assert_eq!(consumed(story(Decision::Unknown, 2.0)).verdict(&plan), ["I9 only what is committed is seen"]);
    let late = Story::default().half(1.0, KEY, 0).log(KEY, "ho").holds(&[KEY]).consumed(3.0, KEY, 0);
    assert_eq!(late.decided(4.0, KEY, Decision::Commit).verdict(&plan), ["I9 only what is committed is seen"]);
}

#[test]
fn i9_no_log_has_what_nobody_has_committed() {
    let plan = transactional(Flush::Async);
    let story = |records: &str| {
        Story::default().half(1.0, KEY, 0).decided(2.0, KEY, Decision::RollBack).log(KEY, records).verdict(&plan)
    };
    assert_eq!(story("ho"), CLEAN);
    assert_eq!(story("hfo"), ["I9 only what is committed is seen"]);
}

/// A cluster whose halves are resolved.
fn resolved() -> Snapshot {
    let done = [3, 2];
    let kinds = KindsSeen {
        logs_read: ["broker-a".to_owned()].into(),
        transaction_ends: [("broker-a".into(), done)].into(),
        transactions: [("broker-a".into(), done), ("broker-a-slave-1".into(), done)].into(),
        delays: [("broker-a".into(), [].into()), ("broker-a-slave-1".into(), [].into())].into(),
        ..KindsSeen::default()
    };
    Snapshot { kinds: Some(kinds), ..settled() }
}

#[test]
fn l4_each_half_is_decided_and_both_queues_are_done_with() {
    let plan = transactional(Flush::Sync);
    let unmet_of = |change: fn(&mut KindsSeen)| {
        let mut look = resolved();
        change(look.kinds.as_mut().expect("just put"));
        assert_eq!(unmet(&look), CLEAN, "a plan without transactions has no halves");
        super::super::l4_halves_are_resolved::unmet(&plan, &look).len()
    };
    assert_eq!(unmet_of(|_| {}), 0);
    assert_eq!(unmet_of(|kinds| kinds.open_transactions.push("m!c is not decided".into())), 1);
    assert_eq!(
        unmet_of(|kinds| {
            kinds.transactions.insert("broker-a".into(), [2, 2]);
        }),
        1
    );
    assert_eq!(
        unmet_of(|kinds| {
            kinds.transactions.remove("broker-a-slave-1");
        }),
        1
    );
    assert_eq!(
        unmet_of(|kinds| {
            kinds.transaction_ends.remove("broker-a");
        }),
        2
    );
}
