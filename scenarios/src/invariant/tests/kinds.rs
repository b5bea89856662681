//! Histories about messages that are not plain.

use super::{CLEAN, Story, plan, queue, seconds, settled, unmet};
use crate::evidence::{KindsSeen, Snapshot};
use crate::kinds::Failing;
use crate::ledger::{Entry, Ledger, SCHEDULE_TOPIC, TIMER_TOPIC};
use crate::operation::{Ask, Queue, TIMER_QUEUE, Told};
use crate::plan::{Flush, Plan, Replication, TOPIC};
use sim::fault::clock_step::ClockStep;
use sim::fault::{Fault, Kind, Moment};

pub(super) const RETRY: &str = "%RETRY%g";
const DEAD: &str = "%DLQ%g";

fn sync() -> Plan {
    plan(Flush::Sync, Replication::Async)
}

fn by_tags(mut plan: Plan, tags: &[&str]) -> Plan {
    plan.clients.consumers[0].tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    plan
}

fn failing(mut plan: Plan) -> Plan {
    plan.clients.consumers[0].failing = Some(Failing { one_in: 1, times: 1, level: 0, retries_max: Some(1) });
    plan
}

fn level_queue(level: i32) -> Queue {
    Queue { broker: "broker-a".into(), id: level - 1 }
}

impl Story {
    fn delayed(self, at: f64, key: &str, level: i32, offset: i64) -> Story {
        let told = Told::Delayed { queue: level_queue(level), offset, promised: true, other_copies_max: 0 };
        self.operation(at, "producer-1", Ask::Send { key: key.into() }, Some(told))
    }
    pub(super) fn failed(self, at: f64, key: &str) -> Story {
        let ask = Ask::Consume { group: "g".into(), queue: queue(), offset: 0, key: key.into(), reconsume_times: 0 };
        self.operation(at, "consumer-1", ask, Some(Told::Later))
    }
    fn again(self, at: f64, key: &str, told: Told) -> Story {
        let ask =
            Ask::ConsumeAgain { group: "g".into(), queue: queue(), offset: 0, key: key.into(), reconsume_times: 1 };
        self.operation(at, "consumer-1", ask, Some(told))
    }
    fn delays(self, at: f64, level: i32, next: i64) -> Story {
        let ask = Ask::ReadDelays { node: "broker-a".into() };
        self.operation(at, "observer", ask, Some(Told::Delays([(level, next)].into())))
    }
    /// A record of the master's log, behind those before it.
    pub(super) fn record(
        mut self,
        topic: &str,
        id: i32,
        offset: i64,
        key: &str,
        stored: f64,
        waits_for: Option<&str>,
    ) -> Story {
        let ledger: &mut Ledger = self.evidence.ledgers.entry("broker-a".into()).or_default();
        let is_retry = topic == RETRY || waits_for == Some(RETRY);
        ledger.put(
            topic,
            id,
            offset,
            Entry {
                key: key.into(),
                stored_ms: i64::try_from(seconds(stored).as_millis()).expect("early"),
                reconsume_times: i32::from(is_retry),
                waits_for: waits_for.map(str::to_owned),
                ..Entry::default()
            },
        );
        self
    }
    /// A message that waits until a second is over, and was delivered or not.
    fn timed(mut self, key: &str, second: f64, delivered: Option<f64>) -> Story {
        let millis = |at: f64| i64::try_from(seconds(at).as_millis()).expect("early");
        let entry = Entry {
            key: key.into(),
            stored_ms: millis(1.0),
            waits_for: Some(TOPIC.into()),
            due_ms: Some(millis(second)),
            ..Entry::default()
        };
        self.evidence.ledgers.entry("broker-a".into()).or_default().put(TIMER_TOPIC, 0, 0, entry);
        delivered.into_iter().fold(self, |story, at| story.record(TOPIC, 0, 0, key, at, None))
    }
    /// A message with a delay, that was delivered or not.
    fn waited(self, key: &str, level: i32, stored: f64, delivered: Option<f64>) -> Story {
        let story = self.record(SCHEDULE_TOPIC, level - 1, 0, key, stored, Some(TOPIC));
        delivered.into_iter().fold(story, |story, at| story.record(TOPIC, 0, 0, key, at, None))
    }
}

#[test]
fn i1_a_delayed_message_stands_in_the_queue_of_its_level() {
    let story = || Story::default().delayed(1.0, "m@2", 2, 0).holds(&[]);
    assert_eq!(story().waited("m@2", 2, 1.0, None).verdict(&sync()), CLEAN);
    assert_eq!(story().waited("n@2", 2, 1.0, None).verdict(&sync()), ["I1 acknowledged message survives"]);
}

#[test]
fn i2_counts_the_records_that_wait_and_not_what_is_delivered() {
    let story = |copies: i64| {
        let sent = Story::default().delayed(1.0, "m@1", 1, 0).holds(&["m@1"]).record(TOPIC, 0, 0, "m@1", 9.0, None);
        // Before the delivered one in the log, as far as the clock tells.
        (0..copies).fold(sent, |story, offset| story.record(SCHEDULE_TOPIC, 0, offset, "m@1", 1.0, Some(TOPIC)))
    };
    assert!(story(2).verdict(&sync()).contains(&"I2 no excess copies".to_owned()));
    assert!(!story(1).verdict(&sync()).contains(&"I2 no excess copies".to_owned()));
}

#[test]
fn i4_a_commit_is_behind_what_is_finished_at_each_moment() {
    let story = |finished: f64| {
        Story::default()
            .consumed(1.0, "m", 0)
            .consumed(finished, "n", 1)
            .committed(5.0, "broker-a-slave-1", 2)
            .committed(8.0, "broker-a", 2)
            .holds(&["m", "n"])
    };
    assert_eq!(story(6.0).verdict(&sync()), ["I4 nothing skipped"]);
    assert_eq!(story(4.0).verdict(&sync()), CLEAN);
}

#[test]
fn i4_what_was_handed_back_or_is_not_wanted_is_not_skipped() {
    let story = |key: &str| {
        let mut story = Story::default().failed(1.0, "m#A").committed(5.0, "broker-a", 2).holds(&["m#A", key]);
        story.evidence.last = not_owed(&[1]);
        story
    };
    let plan = by_tags(sync(), &["A"]);
    assert_eq!(story("n#B").verdict(&plan), CLEAN);
    let mut owed = story("n#A");
    owed.evidence.last = not_owed(&[]);
    assert_eq!(owed.verdict(&plan), ["I4 nothing skipped"]);
}

#[test]
fn i10_never_early_by_the_clock_of_the_broker() {
    let story = |delivered: f64| Story::default().waited("m@2", 2, 1.0, Some(delivered)).holds(&["m@2"]);
    assert_eq!(story(5.9).verdict(&sync()), ["I10 delayed in time"]);
    assert_eq!(story(6.0).verdict(&sync()), CLEAN);
    let mut set_back = sync();
    let step = ClockStep { node: "broker-a".into(), by: seconds(60.0), back: true };
    set_back.faults =
        vec![Fault { fault: Kind::ClockStep(step), start: Moment::At(seconds(3.0)), lasts: seconds(9.0) }];
    assert_eq!(story(5.9).verdict(&set_back), CLEAN, "the clock says nothing of the time that has passed");
    let never_waited = Story::default().record(TOPIC, 0, 0, "m@2", 9.0, None).holds(&["m@2"]);
    assert_eq!(never_waited.verdict(&sync()), ["I10 delayed in time"]);
}

#[test]
fn i10_never_early_by_the_time_of_the_world() {
    let story = |consumed: f64| {
        let sent = Story::default().delayed(1.0, "m@2", 2, 0).consumed(consumed, "m@2", 0);
        sent.waited("m@2", 2, 1.0, Some(6.0)).holds(&["m@2"])
    };
    assert_eq!(story(5.9).verdict(&sync()), ["I10 delayed in time"]);
    assert_eq!(story(6.1).verdict(&sync()), CLEAN);
}

#[test]
fn i10_a_timers_message_comes_when_its_second_is_over() {
    let story = |delivered: f64| Story::default().timed("m@5s", 5.0, Some(delivered)).holds(&["m@5s"]);
    assert_eq!(story(5.9).verdict(&sync()), ["I10 delayed in time"]);
    assert_eq!(story(6.0).verdict(&sync()), CLEAN);
    let never_waited = Story::default().record(TOPIC, 0, 0, "m@5s", 9.0, None).holds(&["m@5s"]);
    assert_eq!(never_waited.verdict(&sync()), ["I10 delayed in time"]);
    let seen = |consumed: f64| {
        let sent = Story::default().delayed(1.0, "m@5s", TIMER_QUEUE + 1, 0).consumed(consumed, "m@5s", 0);
        sent.timed("m@5s", 4.0, Some(5.0)).holds(&["m@5s"])
    };
    assert_eq!(seen(5.9).verdict(&sync()), ["I10 delayed in time"], "by the time of the world");
    assert_eq!(seen(6.1).verdict(&sync()), CLEAN);
}

#[test]
fn i1_a_message_with_a_moment_stands_in_the_queue_of_the_timer() {
    let story = || Story::default().delayed(1.0, "m@5s", TIMER_QUEUE + 1, 0).holds(&[]);
    assert_eq!(story().timed("m@5s", 5.0, None).verdict(&sync()), CLEAN);
    assert_eq!(story().waited("m@5s", 1, 1.0, None).verdict(&sync()), ["I1 acknowledged message survives"]);
}

#[test]
fn i10_a_retry_waits_for_its_level() {
    let story = |again: f64| {
        Story::default()
            .failed(2.0, "m")
            .again(again, "m", Told::Consumed)
            .record(TOPIC, 0, 0, "m", 1.0, None)
            .record(SCHEDULE_TOPIC, 2, 0, "m", 2.1, Some(RETRY))
            .record(RETRY, 0, 0, "m", 12.1, None)
            .holds(&["m"])
    };
    assert_eq!(story(11.9).verdict(&failing(sync())), ["I10 delayed in time"]);
    assert_eq!(story(12.1).verdict(&failing(sync())), CLEAN);
}

#[test]
fn i10_a_level_goes_on_where_it_was_and_delivers_nothing_twice() {
    let story = |shown: f64, after: i64| {
        Story::default()
            .delays(shown, 2, 1)
            .node(20.0, "broker-a", "process ended")
            .node(25.0, "broker-a", "started")
            .delays(26.0, 2, after)
            .waited("m@2", 2, 1.0, Some(6.0))
            .holds(&["m@2"])
    };
    assert_eq!(story(7.0, 0).verdict(&sync()), ["I10 delay progress"]);
    assert_eq!(story(7.0, 1).verdict(&sync()), CLEAN);
    assert_eq!(story(12.0, 0).verdict(&sync()), CLEAN, "younger than a persist interval");
    let twice = |shown: f64| story(shown, 1).record(TOPIC, 0, 1, "m@2", 30.0, None).verdict(&sync());
    assert_eq!(twice(7.0), ["I10 delay progress"]);
    assert_eq!(twice(12.0), CLEAN);
}

#[test]
fn i6_a_failed_message_comes_again_or_is_buried_when_its_retries_are_used_up() {
    let failed = || Story::default().failed(2.0, "m").record(TOPIC, 0, 0, "m", 1.0, None).holds(&["m"]);
    let retried = || failed().record(SCHEDULE_TOPIC, 2, 0, "m", 2.1, Some(RETRY)).record(RETRY, 0, 0, "m", 12.1, None);
    let name = "I6 comes again until it is done";
    assert_eq!(failed().verdict(&failing(sync())), [name]);
    assert_eq!(retried().again(13.0, "m", Told::Consumed).verdict(&failing(sync())), CLEAN);
    assert_eq!(failed().record(DEAD, 0, 0, "m", 2.1, None).verdict(&failing(sync())), [name], "one more try was due");
    let twice = || retried().again(13.0, "m", Told::Later);
    assert_eq!(twice().verdict(&failing(sync())), [name]);
    assert_eq!(twice().record(DEAD, 0, 0, "m", 13.1, None).verdict(&failing(sync())), CLEAN);
}

#[test]
fn i6_a_hand_back_is_as_durable_as_a_send() {
    let story = |loss: f64| {
        let failed = Story::default().failed(2.0, "m").record(TOPIC, 0, 0, "m", 1.0, None).holds(&["m"]);
        failed.node(loss, "broker-a", "power lost").node(loss + 1.0, "broker-a", "started")
    };
    let name = "I6 comes again until it is done";
    let lax = failing(plan(Flush::Async, Replication::Async));
    assert_eq!(story(9.0).verdict(&lax), CLEAN);
    assert_eq!(story(40.0).verdict(&lax), [name], "long synced");
    assert_eq!(story(9.0).verdict(&failing(sync())), [name]);
    let gone = Story::default().failed(2.0, "m").holds(&[]).node(3.0, "broker-a", "power lost");
    assert_eq!(gone.verdict(&lax), CLEAN, "lost itself, before anybody took it back");
}

#[test]
fn i15_a_group_sees_what_it_subscribes_to() {
    let story = |key: &str| {
        let mut story = Story::default().consumed(1.0, key, 0).holds(&[key]);
        story.evidence.last = not_owed(&[]);
        story
    };
    let plan = by_tags(sync(), &["Aa", "C"]);
    assert_eq!(story("m#BB").verdict(&plan), ["I15 only what was subscribed"], "the hash is that of Aa");
    assert_eq!(story("m").verdict(&plan), ["I15 only what was subscribed"]);
    assert_eq!(story("m#C@3").verdict(&plan), CLEAN);
}

fn not_owed(offsets: &[i64]) -> Snapshot {
    let queues = [(queue(), offsets.iter().copied().collect())].into();
    let kinds = KindsSeen { not_owed: [("g".to_owned(), queues)].into(), ..KindsSeen::default() };
    Snapshot { kinds: Some(kinds), ..Snapshot::default() }
}

#[test]
fn liveness_names_what_is_unmet_of_kinds() {
    let check = |change: fn(&mut Snapshot), expected: &[&str]| {
        let mut look = settled();
        let delays = ["broker-a", "broker-a-slave-1"].map(|node| (node.to_owned(), [(2, 5)].into())).into();
        look.kinds = Some(KindsSeen { logs_read: ["broker-a".into()].into(), delays, ..KindsSeen::default() });
        change(&mut look);
        assert_eq!(unmet(&look), expected);
    };
    fn kinds(look: &mut Snapshot) -> &mut KindsSeen {
        look.kinds.as_mut().expect("there")
    }
    check(|_| {}, &[]);
    check(|look| kinds(look).waiting.push("m@2".into()), &["I10 delayed in time"]);
    check(|look| kinds(look).logs_read.clear(), &["I10 delayed in time"]);
    check(|look| kinds(look).unfinished_retries.push("m".into()), &["I6 delivered in the end"]);
    check(|look| kinds(look).handed_back_lately = 1, &["I6 delivered in the end"]);
    check(|look| drop(kinds(look).delays.insert("broker-a-slave-1".into(), [(2, 4)].into())), &["I10 delay progress"]);
    check(|look| drop(kinds(look).delays.remove("broker-a-slave-1")), &["I10 delay progress"]);
    check(|look| drop(kinds(look).level_ends.insert("broker-a".into(), [(2, 6)].into())), &["I10 delay progress"]);
    check(|look| drop(kinds(look).level_ends.insert("broker-a".into(), [(2, 5)].into())), &[]);
    // The first of two messages is not consumed, and need not be.
    check(
        |look| {
            look.consumed.get_mut("g").expect("there").insert(queue(), vec![1]);
            kinds(look).not_owed.entry("g".into()).or_default().insert(queue(), [0].into());
        },
        &[],
    );
}
