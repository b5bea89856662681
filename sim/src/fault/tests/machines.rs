//! Faults of whole machines: suspended, out of memory, replaced, restarted in turn.

use super::{at, happened};
use crate::desk::Desk;
use crate::fault::{Fault, Moment};
use crate::nemesis::Nemesis;
use crate::report::Effect;
use insta::assert_snapshot;
use rt::time::{Instant, sleep, unix_ms};
use rt::world::{NodeId, disk, run_test};
use serde_json::{Value, json};
use std::time::Duration;

const S: Duration = Duration::from_secs(1);

fn fault(kind: Value, start: Moment, lasts_ms: u64) -> Fault {
    let fault = serde_json::from_value(kind).expect("as in a case file");
    Fault { fault, start, lasts: Duration::from_millis(lasts_ms) }
}

/// Nodes `a` and `b` that keep a file each; what the fault did, once it has come and gone.
async fn let_loose(kind: Value, lasts_ms: u64) -> (Vec<Effect>, [NodeId; 2]) {
    let nodes = ["a", "b"].map(rt::world::add_node);
    let mut nemesis = Nemesis::new(&Desk::new(), |_, _| {});
    for (name, node) in ["a", "b"].into_iter().zip(nodes) {
        let boot = move || drop(rt::world::spawn_on(node, keep(name)));
        boot();
        nemesis = nemesis.node(name, node, boot);
    }
    let effects = nemesis.release(&[fault(kind, at(1_000), lasts_ms)]).expect("both are known").ended().await;
    sleep(S).await;
    (effects, nodes)
}

/// Writes its name into a file that it does not have yet, and ends when it is asked to.
async fn keep(name: &str) {
    if rt::fs::create_dir("/data").is_ok() {
        let file = rt::fs::OpenOptions::new().write(true).create(true).open("/data/name").expect("a new file");
        file.write_at(name.as_bytes(), 0).expect("there is space");
        // Not synced: only a power loss takes it.
    }
    rt::signal::termination().await.expect("it never fails");
}

fn name_on(node: NodeId) -> String {
    let bytes = disk::read_file(node, "/data/name").expect("each program keeps one");
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn a_suspended_machine_counts_no_time_and_wakes_at_the_right_time_of_day() {
    run_test(|| async {
        let node = rt::world::add_node("a");
        let program = rt::world::spawn_on(node, async {
            let (start, wall) = (Instant::now(), unix_ms());
            sleep(S * 3).await;
            (start.elapsed(), unix_ms() - wall)
        });
        let nemesis = Nemesis::new(&Desk::new(), |_, _| {}).node("a", node, || {});
        let schedule = [fault(json!({"suspend": {"node": "a"}}), at(1_000), 7_000)];
        let effects = nemesis.release(&schedule).expect("it is known").ended().await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (7_000, "ms asleep"));
        assert_eq!(program.await.expect("it ends"), (S * 3, 10_000));
        assert_eq!(rt::world::elapsed(), S * 10);
    });
}

#[test]
fn a_suspension_inside_of_another_jumps_once() {
    run_test(|| async {
        let node = rt::world::add_node("a");
        let _program = rt::world::spawn_on(node, std::future::pending::<()>());
        let nemesis = Nemesis::new(&Desk::new(), |_, _| {}).node("a", node, || {});
        let suspend = || json!({"suspend": {"node": "a"}});
        let schedule = [fault(suspend(), at(1_000), 4_000), fault(suspend(), at(2_000), 6_000)];
        let _ = nemesis.release(&schedule).expect("it is known").ended().await;
        let error = rt::world::unix_nanos_of(node) - rt::world::unix_nanos_of(NodeId::WORLD);
        assert!(error.abs() < 1_000_000, "the time of day is right again, not {error} ns off");
    });
}

#[test]
fn a_machine_without_memory_kills_its_program_again_and_again() {
    let kind = json!({"out_of_memory": {"node": "a", "survives": "400ms"}});
    assert_snapshot!(happened(vec![fault(kind, at(1_000), 1_000)], 5_000), @r"
        1.000000  #0     a: out_of_memory begins
        1.000000  #1     a: out of memory: killed
        1.000000  #2     a: starts
        1.400000  #3     a: out of memory: killed
        1.400000  #4     a: starts
        1.800000  #5     a: out of memory: killed
        1.800000  #6     a: starts
        2.000000  #7     a: out_of_memory is over (3 programs killed)
    out_of_memory a at 1s for 1s: 3 programs killed
    ");
}

#[test]
fn a_wiped_machine_comes_back_empty() {
    run_test(|| async {
        let (effects, nodes) = let_loose(json!({"wiped_disk": {"node": "a"}}), 2_000).await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (1, "files lost"));
        // Its program found no directory, and made it anew.
        assert_eq!(nodes.map(name_on), ["a", "b"]);
        assert_eq!(nodes.map(rt::world::incarnation), [1, 0]);
    });
}

#[test]
fn a_cloned_machine_comes_back_as_its_peer() {
    run_test(|| async {
        let (effects, nodes) = let_loose(json!({"cloned_disk": {"node": "a", "from": "b"}}), 2_000).await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (1, "files copied"));
        assert_eq!(nodes.map(name_on), ["b", "b"]);
        assert_eq!(nodes.map(rt::world::tasks), [1, 1]);
    });
}

#[test]
fn a_rolling_restart_asks_each_in_turn_and_kills_who_does_not_end() {
    run_test(|| async {
        let (effects, nodes) = let_loose(json!({"rolling_restart": {"nodes": ["b", "a"], "grace": "5s"}}), 8_000).await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (2, "programs restarted"));
        assert_eq!(nodes.map(rt::world::incarnation), [1, 1]);
        assert_eq!(nodes.map(name_on), ["a", "b"], "an orderly end loses nothing");
    });
    // These programs never end by themselves.
    let kind = json!({"rolling_restart": {"nodes": ["b", "a"], "grace": "500ms"}});
    assert_snapshot!(happened(vec![fault(kind, at(1_000), 4_000)], 20_000), @r"
        1.000000  #0     b, a: rolling_restart begins
        1.500000  #1     b: does not stop in time and is killed
        2.500000  #2     b: starts
        4.000000  #3     a: does not stop in time and is killed
        5.000000  #4     a: starts
        6.000000  #5     b, a: rolling_restart is over (2 programs restarted)
    rolling_restart b, a at 1s for 4s: 2 programs restarted
    ");
}

#[test]
fn healing_ends_a_rolling_restart_after_the_one_that_is_down() {
    let kind = json!({"rolling_restart": {"nodes": ["b", "a"], "grace": "500ms"}});
    assert_snapshot!(happened(vec![fault(kind, at(1_000), 60_000)], 5_000), @r"
        1.000000  #0     b, a: rolling_restart begins
        1.500000  #1     b: does not stop in time and is killed
        5.000000  #2     b: starts
        5.000000  #3     b, a: rolling_restart is over (1 programs restarted)
    rolling_restart b, a at 1s for 60s: 1 programs restarted
    ");
}
