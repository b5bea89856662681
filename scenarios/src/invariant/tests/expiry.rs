//! Histories in which brokers remove what has expired.

use super::kinds::RETRY;
use super::{CLEAN, Story, plan, queue, seconds, settled, unmet};
use crate::expiry::{Expired, REMOVAL_ASKED, Removal};
use crate::kinds::Failing;
use crate::ledger::SCHEDULE_TOPIC;
use crate::plan::{Flush, Plan, Replication, Retention, TOPIC};
use sim::fault::clock_step::ClockStep;
use sim::fault::disk_full::DiskFull;
use sim::fault::{Fault, Kind, Moment};

const I16: &str = "I16 only what has expired goes";

/// Messages are kept for 20 s.
fn keeping() -> Plan {
    let mut plan = plan(Flush::Sync, Replication::Async);
    plan.cluster.retention = Some(Retention { reserved: seconds(20.0), interval: seconds(5.0), at_any_hour: true });
    plan
}

/// The first segment goes 30 s after its last message was stored, with the first message of the queue.
fn removal() -> Removal {
    Removal {
        node: "broker-a".into(),
        after: seconds(39.0),
        by: seconds(40.0),
        start: 0,
        end: 4096,
        newest_ms: Some(10_000),
        clock_ms: 40_000,
        slave_ends: [("broker-a-slave-1".to_owned(), 5000)].into(),
        undelivered: Vec::new(),
        ends: [((TOPIC.to_owned(), 0), 1)].into(),
    }
}

impl Story {
    fn removed(mut self, change: impl FnOnce(&mut Removal)) -> Story {
        let mut removal = removal();
        change(&mut removal);
        self.evidence.removals.push(removal);
        self
    }
}

fn verdict(plan: &Plan, change: impl FnOnce(&mut Removal)) -> Vec<String> {
    Story::default().removed(change).verdict(plan)
}

#[test]
fn i16_a_segment_stays_for_the_reserved_time_by_the_clock_of_its_broker() {
    assert_eq!(verdict(&keeping(), |_| {}), CLEAN);
    assert_eq!(verdict(&keeping(), |removal| removal.newest_ms = Some(20_000)), CLEAN);
    assert_eq!(verdict(&keeping(), |removal| removal.newest_ms = Some(20_100)), [I16]);
    assert_eq!(verdict(&keeping(), |removal| removal.clock_ms = 29_000), [I16]);
    assert_eq!(verdict(&plan(Flush::Sync, Replication::Async), |_| {}), [I16], "nothing is to expire");
}

#[test]
fn i16_a_clock_that_was_ahead_between_two_looks_ages_a_segment() {
    let mut plan = keeping();
    let step = ClockStep { node: "broker-a".into(), by: seconds(60.0), back: false };
    plan.faults = vec![Fault { fault: Kind::ClockStep(step), start: Moment::At(seconds(39.2)), lasts: seconds(0.5) }];
    let story = |begins: f64| {
        let young = Story::default().removed(|removal| removal.newest_ms = Some(30_000));
        young.node(begins, "broker-a", "clock_step begins").node(begins + 0.5, "broker-a", "clock_step is over")
    };
    assert_eq!(story(39.2).verdict(&plan), CLEAN);
    assert_eq!(story(20.0).verdict(&plan), [I16]);
}

#[test]
fn i16_segments_go_at_their_hour_or_when_asked_or_when_the_disk_fills() {
    let mut plan = keeping();
    plan.cluster.retention.as_mut().expect("set above").at_any_hour = false;
    assert_eq!(verdict(&plan, |_| {}), [I16]);
    let asked = |at: f64| Story::default().node(at, "broker-a", REMOVAL_ASKED).removed(|_| {});
    assert_eq!(asked(30.0).verdict(&plan), CLEAN);
    assert_eq!(asked(41.0).verdict(&plan), [I16]);
    let full = Kind::DiskFull(DiskFull { node: "broker-a".into() });
    plan.faults = vec![Fault { fault: full, start: Moment::At(seconds(30.0)), lasts: seconds(5.0) }];
    assert_eq!(verdict(&plan, |_| {}), CLEAN);
    assert_eq!(verdict(&plan, |removal| removal.newest_ms = Some(39_000)), [I16], "force is off");
}

#[test]
fn i16_a_slave_that_lacks_a_segment_holds_it() {
    let slave_at = |end: i64| {
        move |removal: &mut Removal| {
            removal.slave_ends.insert("broker-a-slave-1".into(), end);
        }
    };
    assert_eq!(verdict(&keeping(), slave_at(4096)), CLEAN);
    assert_eq!(verdict(&keeping(), slave_at(4095)), [I16]);
    assert_eq!(
        verdict(&keeping(), |removal| removal.slave_ends.clear()),
        CLEAN,
        "an empty one begins with the last segment"
    );
}

#[test]
fn i16_a_message_that_waits_holds_its_segment() {
    assert_eq!(verdict(&keeping(), |removal| removal.undelivered.push("m@4".into())), [I16]);
}

#[test]
fn i1_and_i3_what_no_removal_took_is_where_it_was() {
    // Judges get a queue with what expired: here the first message. The second one is gone, with a minimum that is too high.
    let mut story = Story::default().acked(1.0, "m", 0).acked(2.0, "n", 1).removed(|_| {}).holds(&["m", "n", "o"]);
    assert_eq!(story.evidence.queues[&queue()].messages.len(), 3);
    story.evidence.queues.get_mut(&queue()).expect("just put").messages.remove(1);
    // Its offset is empty, and what follows it has no message before it.
    assert_eq!(story.verdict(&keeping()), ["I1 acknowledged message survives", "I3 queue order", "I3 queue order"]);
    let whole = Story::default().acked(1.0, "m", 0).acked(2.0, "n", 1).removed(|_| {}).holds(&["m", "n", "o"]);
    assert_eq!(whole.verdict(&keeping()), CLEAN);
}

#[test]
fn i4_a_commit_passes_over_what_had_expired_by_then() {
    let story = |shown_at: f64, committed: i64, node: &str| {
        let mut story = Story::default().consumed(45.0, "n", 1).committed(shown_at, "broker-a", committed);
        story = story.removed(|removal| removal.node = node.into()).holds(&["m", "n", "o"]);
        story.evidence.last.committed.entry("g".into()).or_default().insert(queue(), committed);
        story
    };
    let skipped = "I4 nothing skipped";
    assert_eq!(story(50.0, 2, "broker-a").verdict(&keeping()), CLEAN);
    assert_eq!(story(50.0, 3, "broker-a").verdict(&keeping()), ["I4 committed offsets", skipped], "above the minimum");
    assert_eq!(story(30.0, 1, "broker-a").verdict(&keeping()), [skipped], "it was still there");
    let at_the_slave = story(50.0, 2, "broker-a-slave-1").verdict(&keeping());
    assert_eq!(at_the_slave, ["I4 committed offsets", skipped], "the master still had it");
}

#[test]
fn i6_and_l3_wait_for_what_is_left() {
    let look = |below: i64, consumed: &[i64]| {
        let mut look = settled();
        look.expired = Expired::of(&[Removal { ends: [((TOPIC.to_owned(), 0), below)].into(), ..removal() }]);
        look.consumed.entry("g".into()).or_default().insert(queue(), consumed.to_vec());
        look
    };
    assert_eq!(unmet(&look(1, &[1])), CLEAN);
    assert_eq!(unmet(&look(0, &[1])), ["I6 delivered in the end"]);
    assert_eq!(unmet(&look(1, &[])), ["L3 queues are served", "I6 delivered in the end"]);
    assert_eq!(unmet(&look(2, &[])), CLEAN);
}

#[test]
fn i6_a_copy_that_expired_before_a_listener_came_to_it_is_not_lost() {
    let mut plan = keeping();
    plan.clients.consumers[0].failing = Some(Failing { one_in: 1, times: 1, level: 0, retries_max: Some(1) });
    let expired = |topic: &str| {
        let story = Story::default().failed(1.0, "m").record(TOPIC, 0, 0, "m", 1.0, None).holds(&["m"]);
        story.removed(|removal| removal.ends = [((topic.to_owned(), 0), 1)].into())
    };
    let came_back = |story: Story| {
        let story = story.record(SCHEDULE_TOPIC, 2, 0, "m", 1.1, Some(RETRY));
        story.record(RETRY, 0, 0, "m", 12.0, None).verdict(&plan)
    };
    let lost = ["I6 comes again until it is done"];
    assert_eq!(came_back(expired(RETRY)), CLEAN);
    assert_eq!(came_back(expired(TOPIC)), lost, "its copy is there and was given to nobody");
    assert_eq!(expired(TOPIC).verdict(&plan), CLEAN, "no broker took it back, and its queue does not have it");
    assert_eq!(expired(RETRY).verdict(&plan), lost);
}
