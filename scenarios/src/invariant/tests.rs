//! For each invariant a history that breaks it, and a near one that does not.

mod expiry;
mod kinds;
mod transactions;

use super::{LIVENESS, judge};
use crate::evidence::{Evidence, LogCopy, QueueContents, Snapshot, StoredKey};
use crate::operation::{Ask, Queue, Told};
use crate::plan::{Clients, Cluster, Consumer, Flush, Model, Network, Plan, Policy, Replication, Schedule};
use sim::fault::disk_full::DiskFull;
use sim::fault::{Fault, Kind, Moment};
use sim::history::{Event, OperationId, What};
use std::time::Duration;

fn seconds(at: f64) -> Duration {
    Duration::from_secs_f64(at)
}

fn plan(flush: Flush, replication: Replication) -> Plan {
    Plan {
        rare_choices: false,
        schedule: Schedule { seed: 1, policy: Policy::Random },
        cluster: Cluster {
            name_servers: 1,
            slaves: vec![1],
            flush,
            replication,
            queues: 1,
            segment_kib: 64,
            recover_from_slave: true,
            slave_read: true,
            retention: None,
        },
        network: Network { latency_min: seconds(0.001), latency_max: seconds(0.002), by_name: false },
        clients: Clients {
            producers: 1,
            consumers: vec![Consumer {
                group: "g".into(),
                model: Model::Clustering,
                persist_interval: seconds(5.0),
                work: Duration::ZERO,
                tags: Vec::new(),
                by_sql: false,
                failing: None,
            }],
        },
        operations: Vec::new(),
        faults: Vec::new(),
        duration: seconds(60.0),
    }
}

fn queue() -> Queue {
    Queue { broker: "broker-a".into(), id: 0 }
}

/// Writes a history line by line.
#[derive(Default)]
struct Story {
    evidence: Evidence,
    operations: usize,
}

impl Story {
    fn push(&mut self, at: f64, what: What<Ask, Told>) {
        self.evidence.history.events.push(Event { at: seconds(at), what });
    }
    fn operation(mut self, at: f64, client: &str, input: Ask, output: Option<Told>) -> Story {
        let operation = OperationId(self.operations);
        self.operations += 1;
        self.push(at, What::Invoke { client: client.into(), operation, input });
        if let Some(output) = output {
            self.push(at + 0.01, What::Ok { operation, output });
        }
        self
    }
    fn acked(self, at: f64, key: &str, offset: i64) -> Story {
        self.answered(at, key, offset, true)
    }
    fn answered(self, at: f64, key: &str, offset: i64, promised: bool) -> Story {
        let told = Told::Stored { queue: queue(), offset, promised, other_copies_max: 0 };
        self.operation(at, "producer-1", Ask::Send { key: key.into() }, Some(told))
    }
    fn consumed(self, at: f64, key: &str, offset: i64) -> Story {
        let ask = Ask::Consume { group: "g".into(), queue: queue(), offset, key: key.into(), reconsume_times: 0 };
        self.operation(at, "consumer-1", ask, Some(Told::Consumed))
    }
    fn committed(self, at: f64, node: &str, offset: i64) -> Story {
        let ask = Ask::ReadCommitted { node: node.into(), group: "g".into(), queue: queue() };
        self.operation(at, "observer", ask, Some(Told::Committed(Some(offset))))
    }
    fn node(mut self, at: f64, node: &str, event: &str) -> Story {
        self.push(at, What::Node { node: node.into(), event: event.into() });
        self
    }
    /// What the queue holds at the end, from offset 0 on.
    fn holds(mut self, keys: &[&str]) -> Story {
        let message = |(offset, key): (i64, &&str)| StoredKey {
            offset,
            physical: offset * 200,
            key: (*key).into(),
            body_intact: true,
        };
        let messages: Vec<StoredKey> = (0..).zip(keys).map(message).collect();
        let max = i64::try_from(keys.len()).expect("few");
        self.evidence.queues.insert(queue(), QueueContents { min: 0, max, messages });
        self
    }
    fn verdict(self, plan: &Plan) -> Vec<String> {
        judge(plan, &self.evidence).into_iter().map(|violation| violation.invariant).collect()
    }
}

const CLEAN: &[&str] = &[];

#[test]
fn i1_under_sync_flush_nothing_may_go() {
    let plan = plan(Flush::Sync, Replication::Async);
    let lost = Story::default()
        .acked(1.0, "m", 0)
        .node(2.0, "broker-a", "power lost")
        .node(3.0, "broker-a", "started")
        .holds(&[]);
    assert_eq!(lost.verdict(&plan), ["I1 acknowledged message survives"]);
    let weak = Story::default().answered(1.0, "m", 0, false).node(2.0, "broker-a", "power lost").holds(&[]);
    assert_eq!(weak.verdict(&plan), CLEAN);
}

#[test]
fn i1_under_async_flush_a_power_loss_within_the_window_takes_a_suffix() {
    let plan = plan(Flush::Async, Replication::Async);
    let story = |loss: f64, event: &str, holds: &[&str]| {
        Story::default()
            .acked(1.0, "m", 0)
            .acked(2.0, "n", 1)
            .node(loss, "broker-a", event)
            .node(loss + 1.0, "broker-a", "started")
            .holds(holds)
    };
    assert_eq!(story(3.0, "power lost", &[]).verdict(&plan), CLEAN);
    assert_eq!(story(3.0, "process ended", &[]).verdict(&plan).len(), 2, "the page cache outlives a process");
    assert_eq!(story(30.0, "power lost", &[]).verdict(&plan).len(), 2, "long synced");
    // The record below is gone and the one above survived, at its own offset.
    let mut hole = story(3.0, "power lost", &[]);
    let survivor = StoredKey { offset: 1, physical: 200, key: "n".into(), body_intact: true };
    hole.evidence.queues.insert(queue(), QueueContents { min: 1, max: 2, messages: vec![survivor] });
    assert_eq!(hole.verdict(&plan), ["I1 acknowledged message survives"]);
}

/// Nobody syncs while no process runs: the machine may lose the bytes as long as it is down.
#[test]
fn i1_the_flush_window_stands_still_while_the_process_is_down() {
    let plan = plan(Flush::Async, Replication::Async);
    let story = |back: Option<f64>| {
        let crashed =
            Story::default().acked(1.0, "m", 0).node(0.0, "broker-a", "started").node(2.0, "broker-a", "process ended");
        let restarted = back.into_iter().fold(crashed, |story, at| story.node(at, "broker-a", "started"));
        restarted.node(60.0, "broker-a", "power lost").holds(&[])
    };
    assert_eq!(story(None).verdict(&plan), CLEAN);
    assert_eq!(story(Some(55.0)).verdict(&plan), CLEAN);
    assert_eq!(story(Some(40.0)).verdict(&plan).len(), 1, "the next life synced it");
}

#[test]
fn i1_with_a_copy_at_a_slave_both_must_lose_power() {
    let plan = plan(Flush::Async, Replication::Sync { in_sync_replicas: 2 });
    let master_only = Story::default().acked(1.0, "m", 0).node(2.0, "broker-a", "power lost").holds(&[]);
    assert_eq!(master_only.verdict(&plan), ["I1 acknowledged message survives"]);
    let both = Story::default()
        .acked(1.0, "m", 0)
        .node(2.0, "broker-a", "power lost")
        .node(2.5, "broker-a-slave-1", "power lost")
        .holds(&[]);
    assert_eq!(both.verdict(&plan), CLEAN);
}

#[test]
fn i1_a_slave_with_a_new_disk_has_no_copy() {
    let plan = plan(Flush::Async, Replication::Sync { in_sync_replicas: 2 });
    let story = |wiped: f64| {
        Story::default()
            .acked(1.0, "m", 0)
            .node(wiped, "broker-a-slave-1", "wiped_disk begins")
            .node(2.0, "broker-a", "power lost")
            .node(4.0, "broker-a", "started")
            .holds(&[])
    };
    assert_eq!(story(1.5).verdict(&plan), CLEAN);
    assert_eq!(story(3.0).verdict(&plan), CLEAN);
    assert_eq!(story(0.5).verdict(&plan), ["I1 acknowledged message survives"], "it was copied to the new disk");
    assert_eq!(story(60.0).verdict(&plan), ["I1 acknowledged message survives"], "the master had asked before");
}

#[test]
fn i11_and_l2_leave_a_damaged_slave_out_until_its_store_is_replaced() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |events: &[(f64, &str)]| {
        let mut story = Story::default();
        let log = |bytes: &[u8]| LogCopy { start: 0, bytes: bytes.to_vec() };
        story.evidence.logs = [("broker-a".into(), log(b"abcdef")), ("broker-a-slave-1".into(), log(b"abX"))].into();
        events.iter().fold(story, |story, (at, what)| story.node(*at, "broker-a-slave-1", what)).verdict(&plan)
    };
    assert_eq!(story(&[]), ["I11 replicas agree"]);
    assert_eq!(story(&[(1.0, "bit_rot begins")]), CLEAN);
    assert_eq!(story(&[(1.0, "bit_rot begins"), (2.0, "store replaced")]), ["I11 replicas agree"]);
    let mut look = settled();
    look.log_ends.insert("broker-a-slave-1".into(), 200);
    look.dispatch_behind.insert("broker-a-slave-1".into(), 91);
    look.damaged.insert("broker-a-slave-1".into());
    assert_eq!(unmet(&look), CLEAN);
}

#[test]
fn i2_counts_copies_against_attempts() {
    let plan = plan(Flush::Sync, Replication::Async);
    assert_eq!(Story::default().acked(1.0, "m", 0).holds(&["m", "m"]).verdict(&plan), ["I2 no excess copies"]);
    let retried = Told::Stored { queue: queue(), offset: 1, promised: true, other_copies_max: 1 };
    let twice =
        Story::default().operation(1.0, "producer-1", Ask::Send { key: "m".into() }, Some(retried)).holds(&["m", "m"]);
    assert_eq!(twice.verdict(&plan), CLEAN);
}

#[test]
fn i2_a_redelivery_starts_at_a_committed_offset() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |committed: i64| {
        let mut story = Story::default();
        let keys: Vec<String> = (0..200).map(|number| format!("m{number}")).collect();
        for (offset, key) in (0..).zip(&keys) {
            story = story.consumed(1.0 + 0.001 * f64::from(offset), key, i64::from(offset));
        }
        story = story.committed(5.0, "broker-a", committed).committed(5.0, "broker-a-slave-1", committed);
        story = story.consumed(100.0, "m0", 0);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        story.holds(&keys)
    };
    assert_eq!(
        story(150).verdict(&plan),
        ["I2 no excess copies"],
        "everything again although 150 was committed long ago"
    );
    assert_eq!(story(0).verdict(&plan), CLEAN, "nothing was committed");
}

#[test]
fn i3_offsets_are_dense_and_keep_their_message() {
    let plan = plan(Flush::Sync, Replication::Async);
    let mut gap = Story::default().holds(&["m", "n"]);
    gap.evidence.queues.get_mut(&queue()).expect("just put").messages.remove(0);
    assert!(gap.verdict(&plan).contains(&"I3 queue order".to_owned()));
    let renamed = Story::default().consumed(1.0, "x", 0).holds(&["m"]);
    assert_eq!(renamed.verdict(&plan), ["I3 queue order"]);
    assert_eq!(Story::default().consumed(1.0, "m", 0).holds(&["m"]).verdict(&plan), CLEAN);
    let lax = self::plan(Flush::Async, Replication::Async);
    let hazard = Story::default().consumed(1.0, "x", 0).node(2.0, "broker-a", "power lost").holds(&["m"]);
    assert_eq!(hazard.verdict(&lax), CLEAN, "the reader saw a message of a lost suffix");
}

#[test]
fn i4_recovered_progress_keeps_what_was_persisted() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |shown_at: f64| {
        Story::default()
            .consumed(1.0, "m", 0)
            .committed(shown_at, "broker-a", 1)
            .node(20.0, "broker-a", "process ended")
            .node(25.0, "broker-a", "started")
            .committed(26.0, "broker-a", 0)
            .holds(&["m"])
    };
    assert_eq!(story(10.0).verdict(&plan), ["I4 committed offsets"]);
    assert_eq!(story(17.0).verdict(&plan), CLEAN, "younger than a persist interval");
}

#[test]
fn i4_a_short_life_persists_nothing() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |first_shown_at: f64| {
        Story::default()
            .consumed(1.0, "m", 0)
            .committed(first_shown_at, "broker-a", 1)
            .node(20.0, "broker-a", "process ended")
            .node(25.0, "broker-a", "started")
            .node(28.0, "broker-a", "process ended")
            .node(40.0, "broker-a", "started")
            .committed(41.0, "broker-a", 0)
            .holds(&["m"])
    };
    assert_eq!(story(10.0).verdict(&plan), ["I4 committed offsets", "I4 committed offsets"], "persisted before either");
    assert_eq!(story(17.0).verdict(&plan), CLEAN, "lost with the first crash, not with the second");
}

#[test]
fn i4_a_client_may_seek_back() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |shown_after: i64| {
        Story::default()
            .consumed(1.0, "m", 0)
            .consumed(1.0, "n", 1)
            .committed(10.0, "broker-a", 2)
            .committed(12.0, "broker-a", 1)
            .node(20.0, "broker-a", "process ended")
            .node(25.0, "broker-a", "started")
            .committed(26.0, "broker-a", shown_after)
            .holds(&["m", "n"])
    };
    assert_eq!(story(0).verdict(&plan), ["I4 committed offsets"]);
    assert_eq!(story(1).verdict(&plan), CLEAN);
}

#[test]
fn i4_progress_made_at_the_slave_comes_back() {
    let with = plan(Flush::Sync, Replication::Async);
    let mut without = with.clone();
    without.cluster.recover_from_slave = false;
    let story = || {
        Story::default()
            .consumed(1.0, "m", 0)
            .node(20.0, "broker-a", "process ended")
            .committed(30.0, "broker-a-slave-1", 1)
            .node(60.0, "broker-a", "started")
            .committed(61.0, "broker-a", 0)
            .holds(&["m"])
    };
    assert_eq!(story().verdict(&with), ["I4 committed offsets"]);
    assert_eq!(story().verdict(&without), CLEAN, "Apache's classic master does not ask its slave");
}

#[test]
fn i4_a_commit_never_skips() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |committed: i64| {
        let mut story = Story::default().consumed(1.0, "m", 0).holds(&["m", "n"]);
        story.evidence.last.committed.entry("g".into()).or_default().insert(queue(), committed);
        story
    };
    assert_eq!(story(2).verdict(&plan), ["I4 committed offsets"]);
    assert_eq!(story(3).verdict(&plan), ["I4 committed offsets"]);
    assert_eq!(story(1).verdict(&plan), CLEAN);
}

#[test]
fn i11_a_slave_is_a_prefix() {
    let plan = plan(Flush::Sync, Replication::Async);
    let story = |slave: &[u8], start: i64| {
        let mut story = Story::default();
        story.evidence.logs.insert("broker-a".into(), LogCopy { start: 0, bytes: b"abcdef".to_vec() });
        story.evidence.logs.insert("broker-a-slave-1".into(), LogCopy { start, bytes: slave.to_vec() });
        story
    };
    assert_eq!(story(b"abX", 0).verdict(&plan), ["I11 replicas agree"]);
    assert_eq!(story(b"abcdefg", 0).verdict(&plan), ["I11 replicas agree"]);
    assert_eq!(story(b"cdef", 2).verdict(&plan), CLEAN);
}

/// A cluster in which nothing is unmet.
fn settled() -> Snapshot {
    let mut look = Snapshot::default();
    let route: std::collections::BTreeMap<String, String> =
        [("broker-a#0", "10.0.0.3:10911"), ("broker-a#1", "10.0.0.4:10911")]
            .map(|(name, at)| (name.into(), at.into()))
            .into();
    look.routes.insert("names-1".into(), route);
    look.client_route.push("broker-a".into());
    look.owners.entry("g".into()).or_default().insert("consumer-1".into(), vec![queue()]);
    look.log_ends = [("broker-a", 400), ("broker-a-slave-1", 400)].map(|(node, end)| (node.into(), end)).into();
    look.queue_ends.insert(queue(), 2);
    look.dispatch_behind = ["broker-a", "broker-a-slave-1"].map(|node| (node.into(), 0)).into();
    look.consumed.entry("g".into()).or_default().insert(queue(), vec![0, 1]);
    look.serving.push("broker-a".into());
    look
}

fn unmet(look: &Snapshot) -> Vec<&'static str> {
    let plan = plan(Flush::Sync, Replication::Async);
    LIVENESS.iter().filter(|(_, unmet)| !unmet(&plan, look).is_empty()).map(|(name, _)| *name).collect()
}

#[test]
fn liveness_names_what_is_unmet_and_nothing_else() {
    assert_eq!(unmet(&settled()), CLEAN);
    let check = |change: fn(&mut Snapshot), expected: &[&str]| {
        let mut look = settled();
        change(&mut look);
        assert_eq!(unmet(&look), expected);
    };
    check(|look| look.serving.clear(), &["L1 masters serve"]);
    check(|look| drop(look.routes.get_mut("names-1").expect("there").remove("broker-a#1")), &["I13 routes agree"]);
    check(|look| look.client_route.clear(), &["I13 routes agree"]);
    check(
        |look| drop(look.owners.get_mut("g").expect("there").insert("consumer-2".into(), vec![queue()])),
        &["I5 one owner"],
    );
    let shorten: fn(&mut Snapshot) = |look| {
        look.log_ends.insert("broker-a-slave-1".into(), 200);
    };
    check(shorten, &["L2 replication catches up"]);
    check(
        |look| drop(look.consumed.get_mut("g").expect("there").insert(queue(), vec![1])),
        &["I6 delivered in the end"],
    );
    check(
        |look| drop(look.consumed.get_mut("g").expect("there").insert(queue(), vec![0])),
        &["L3 queues are served", "I6 delivered in the end"],
    );
    check(|look| look.queue_ends.clear(), &["L3 queues are served"]);
    let lags: [fn(&mut Snapshot); 2] = [
        |look| look.dispatch_behind.extend([("broker-a".into(), 91)]),
        |look| look.dispatch_behind.extend([("broker-a-slave-1".into(), 91)]),
    ];
    for lag in lags {
        check(lag, &["L3 queues are served"]);
    }
    check(|look| look.dispatch_behind.clear(), &["L3 queues are served"]);
}

#[test]
fn an_unmet_liveness_invariant_is_a_violation_that_says_how_long_was_waited() {
    let mut story = Story::default();
    story.evidence.healed_at = seconds(60.0);
    story.evidence.ended_at = seconds(180.0);
    story.evidence.unmet.insert("L1 masters serve", vec!["broker-a has not answered SEND_OK".into()]);
    let violations = judge(&plan(Flush::Sync, Replication::Async), &story.evidence);
    insta::assert_snapshot!(violations[0].to_string(), @r#""L1 masters serve": 120 s after the faults were healed: broker-a has not answered SEND_OK"#);
}

#[test]
fn i14_a_server_ends_by_itself_only_for_its_disk() {
    let story = || Story::default().node(20.0, "broker-a", "gave up: the store is poisoned");
    let mut plan = plan(Flush::Sync, Replication::Async);
    assert_eq!(story().verdict(&plan), ["I14 no end without a cause"]);
    let on = |node: &str| Fault {
        fault: Kind::DiskFull(DiskFull { node: node.into() }),
        start: Moment::At(seconds(10.0)),
        lasts: seconds(5.0),
    };
    plan.faults = vec![on("broker-a-slave-1")];
    assert_eq!(story().verdict(&plan), ["I14 no end without a cause"]);
    plan.faults = vec![on("broker-a")];
    assert_eq!(story().verdict(&plan), CLEAN);
    // A crash point lets the operation fail at which it takes the node down, at that instant and at no other.
    plan.faults = Vec::new();
    for end in ["power lost", "process ended"] {
        assert_eq!(story().node(20.0, "broker-a", end).verdict(&plan), CLEAN);
        assert_eq!(story().node(20.1, "broker-a", end).verdict(&plan), ["I14 no end without a cause"]);
        assert_eq!(story().node(20.0, "broker-b", end).verdict(&plan), ["I14 no end without a cause"]);
    }
    let ended = Story::default().node(20.0, "broker-a", "process ended").node(20.0, "broker-a", "gave up: no room");
    assert_eq!(ended.verdict(&plan), ["I14 no end without a cause"]);
}
