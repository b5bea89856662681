mod machines;
mod reconfigure;

use super::crash::Crash;
use super::disk_error::{DiskFails, DiskOperation};
use super::partition::Partition;
use super::stop::Stop;
use super::{Fault, Kind, Moment};
use crate::desk::Desk;
use crate::fault::signals::Signals;
use crate::history::Recorder;
use crate::nemesis::Nemesis;
use insta::assert_snapshot;
use rt::net::TcpStream;
use rt::world::{NodeId, run_test};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

fn crash(node: &str, start: Moment, lasts_ms: u64) -> Fault {
    Fault { fault: Kind::Crash(Crash { node: node.to_owned() }), start, lasts: Duration::from_millis(lasts_ms) }
}

fn at(milliseconds: u64) -> Moment {
    Moment::At(Duration::from_millis(milliseconds))
}

fn schedule() -> Vec<Fault> {
    let node = || "node-a".to_owned();
    let after = Moment::After { event: "node-a crash begins".into(), nth: 2, then: Duration::from_micros(1_500) };
    vec![
        crash("node-a", at(2_500), 800),
        Fault {
            fault: Kind::Partition(Partition { left: vec![node()], right: vec!["b".into(), "c".into()] }),
            start: after,
            lasts: Duration::from_secs(3),
        },
        Fault {
            fault: Kind::Stop(Stop { node: node(), grace: Duration::from_secs(5) }),
            start: at(0),
            lasts: Duration::ZERO,
        },
        Fault {
            fault: Kind::DiskFails(DiskFails {
                node: node(),
                operation: DiskOperation::Sync,
                path_contains: Some("log".into()),
                nth: Some(3),
            }),
            start: at(90_000),
            lasts: Duration::from_secs(60),
        },
    ]
}

#[test]
fn a_schedule_reads_well_in_a_review() {
    let schedule = schedule();
    let text = serde_json::to_string_pretty(&schedule).expect("plain data");
    let back: Vec<Fault> = serde_json::from_str(&text).expect("just written");
    assert_eq!(back, schedule);
    assert_snapshot!(text, @r#"
    [
      {
        "fault": {
          "crash": {
            "node": "node-a"
          }
        },
        "start": {
          "at": "2.5s"
        },
        "lasts": "800ms"
      },
      {
        "fault": {
          "partition": {
            "left": [
              "node-a"
            ],
            "right": [
              "b",
              "c"
            ]
          }
        },
        "start": {
          "after": {
            "event": "node-a crash begins",
            "nth": 2,
            "then": "1.5ms"
          }
        },
        "lasts": "3s"
      },
      {
        "fault": {
          "stop": {
            "node": "node-a",
            "grace": "5s"
          }
        },
        "start": {
          "at": "0s"
        },
        "lasts": "0s"
      },
      {
        "fault": {
          "disk_error": {
            "node": "node-a",
            "operation": "sync",
            "path_contains": "log",
            "nth": 3
          }
        },
        "start": {
          "at": "90s"
        },
        "lasts": "60s"
      }
    ]
    "#);
}

#[test]
fn a_fault_reads_well_in_a_line() {
    assert_snapshot!(schedule().iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"), @r#"
    crash node-a at 2.5s for 800ms
    partition node-a, b, c after "node-a crash begins" no. 2 for 3s
    stop node-a at 0s for 0s
    disk_error node-a at 90s for 60s
    "#);
}

#[test]
fn a_schedule_with_mistakes_is_refused() {
    let error = |text: &str| serde_json::from_str::<Fault>(text).expect_err("a mistake").to_string();
    let unknown = error(r#"{"fault": {"krash": {"node": "a"}}, "start": {"at": "1s"}, "lasts": "1s"}"#);
    let (said, known) = unknown.split_once(", expected one of ").expect("the known kinds follow");
    assert_snapshot!(said, @"unknown variant `krash`");
    assert!(Kind::NAMES.iter().all(|name| known.contains(&format!("`{name}`"))), "{known}");
    assert_snapshot!(error(r#"{"fault": {"crash": {"nod": "a"}}, "start": {"at": "1s"}, "lasts": "1s"}"#), @"unknown field `nod`, expected `node` at line 1 column 26");
    assert_snapshot!(error(r#"{"fault": {"crash": {"node": "a"}}, "start": {"at": "1"}, "lasts": "1s"}"#), @r#""1" is not a duration such as "2.5s", "150ms" or "3min" at line 1 column 56"#);
}

/// A world with nodes `a` and `b`, whose programs only run; gives what happened to nodes, and the effects.
fn happened(schedule: Vec<Fault>, heal_after_ms: u64) -> String {
    run_test(move || async move {
        let desk = Desk::new();
        let recorder: Recorder<(), ()> = Recorder::new(desk.signals());
        let observer = recorder.clone();
        let mut nemesis = Nemesis::new(&desk, move |node, event| observer.node(node, event));
        for name in ["a", "b"] {
            let node = rt::world::add_node(name);
            let boot = move || drop(rt::world::spawn_on(node, std::future::pending::<()>()));
            boot();
            nemesis = nemesis.node(name, node, boot);
        }
        let loose = nemesis.release(&schedule).expect("both nodes are known");
        rt::time::sleep(Duration::from_millis(heal_after_ms)).await;
        let effects = loose.heal().await;
        let told: Vec<String> =
            effects.iter().map(|effect| format!("{}: {} {}", effect.fault, effect.amount, effect.unit)).collect();
        format!("{}{}", recorder.take().to_text(), told.join("\n"))
    })
}

#[test]
fn overlapping_crashes_start_the_node_once_when_the_last_is_over() {
    assert_snapshot!(happened(vec![crash("a", at(100), 500), crash("a", at(200), 1_000)], 5_000), @r"
        0.100000  #0     a: crash begins
        0.200000  #1     a: crash begins
        0.600000  #2     a: crash is over (1 tasks ended)
        1.200000  #3     a: starts
        1.200000  #4     a: crash is over (0 tasks ended)
    crash a at 100ms for 500ms: 1 tasks ended
    crash a at 200ms for 1s: 0 tasks ended
    ");
}

/// Lets three faults of one kind overlap: `outer` from 0 to 10 s, `inner` from 1 to 3 s within it, and `inner` again from 9 to 12 s
/// across its end. Gives how long `work` takes on node `a`, in tenths of a second, before all, at the five times between, and after.
fn overlapped<F: Future<Output = ()> + Send + 'static>(
    outer: Value,
    inner: Value,
    work: impl Fn(NodeId) -> F + Send + 'static,
) -> Vec<u128> {
    let fault = |kind: Value, start: Duration, lasts: u64| Fault {
        fault: serde_json::from_value(kind).expect("a fault"),
        start: Moment::At(start),
        lasts: Duration::from_secs(lasts),
    };
    let begin = Duration::from_secs(1);
    let seconds = |seconds: u64| begin + Duration::from_secs(seconds);
    let schedule = [fault(outer, begin, 10), fault(inner.clone(), seconds(1), 2), fault(inner, seconds(9), 3)];
    run_test(move || async move {
        let mut nemesis = Nemesis::new(&Desk::new(), |_, _| {});
        let nodes = ["a", "b"].map(rt::world::add_node);
        for (name, node) in ["a", "b"].into_iter().zip(nodes) {
            nemesis = nemesis.node(name, node, || {});
        }
        let loose = nemesis.release(&schedule).expect("both nodes are known");
        let mut took = Vec::new();
        for milliseconds in [0, 1_200, 2_200, 4_200, 10_200, 11_200, 13_200] {
            rt::time::sleep(Duration::from_millis(milliseconds).saturating_sub(rt::world::elapsed())).await;
            let start = rt::world::elapsed();
            rt::world::spawn_on(nodes[0], work(nodes[1])).await.expect("it ends");
            took.push((rt::world::elapsed() - start).as_millis() / 100);
        }
        loose.heal().await;
        took
    })
}

/// A connection that is refused takes a round trip, or is given up.
async fn round_trip(to: NodeId) {
    let nobody = SocketAddr::new(rt::world::ip(to), 1);
    let _ = rt::time::timeout(Duration::from_millis(700), TcpStream::connect(nobody)).await;
}

#[test]
fn overlapping_losses_restore_what_the_others_demand() {
    let loss =
        |left: &str, right: &str, percent: u8| json!({"loss": {"left": left, "right": right, "percent": percent}});
    assert_eq!(overlapped(loss("a", "b", 100), loss("b", "a", 0), round_trip), [0, 7, 0, 7, 0, 0, 0]);
    assert_eq!(overlapped(loss("a", "b", 0), loss("b", "a", 100), round_trip), [0, 0, 7, 0, 7, 7, 0]);
}

#[test]
fn overlapping_latencies_restore_what_the_others_demand() {
    let latency = |left: &str, right: &str, time: &str| json!({"latency": {"left": left, "right": right, "min": time, "max": time}});
    let took = overlapped(latency("a", "b", "105ms"), latency("b", "a", "205ms"), round_trip);
    assert_eq!(took, [0, 2, 4, 2, 4, 4, 0]);
}

#[test]
fn overlapping_slow_processors_restore_what_the_others_demand() {
    let slow = |poll: &str| json!({"slow_cpu": {"node": "a", "poll": poll}});
    let work = |_| async {
        for _ in 0..11 {
            rt::task::yield_now().await;
        }
    };
    assert_eq!(overlapped(slow("10ms"), slow("30ms"), work), [0, 1, 3, 1, 3, 3, 0]);
}

#[test]
fn overlapping_slow_disks_restore_what_the_others_demand() {
    let slow = |time: &str| json!({"slow_disk": {"node": "a", "min": time, "max": time}});
    let work = |_| async {
        let file = rt::fs::OpenOptions::new().write(true).create(true).open("/file").expect("a new file");
        file.write_at(b"something", 0).expect("there is space");
        file.sync_data().await.expect("the disk works");
    };
    assert_eq!(overlapped(slow("105ms"), slow("305ms"), work), [0, 1, 3, 1, 3, 3, 0]);
}

#[test]
fn a_fault_starts_after_the_nth_event() {
    let second = Moment::After { event: "a crash begins".into(), nth: 2, then: Duration::from_millis(50) };
    assert_snapshot!(happened(vec![crash("a", at(100), 10), crash("a", at(500), 10), crash("b", second, 10)], 5_000), @r#"
        0.100000  #0     a: crash begins
        0.110000  #1     a: starts
        0.110000  #2     a: crash is over (1 tasks ended)
        0.500000  #3     a: crash begins
        0.510000  #4     a: starts
        0.510000  #5     a: crash is over (1 tasks ended)
        0.550000  #6     b: crash begins
        0.560000  #7     b: starts
        0.560000  #8     b: crash is over (1 tasks ended)
    crash a at 100ms for 10ms: 1 tasks ended
    crash a at 500ms for 10ms: 1 tasks ended
    crash b after "a crash begins" no. 2 for 10ms: 1 tasks ended
    "#);
}

#[test]
fn healing_ends_what_goes_on_and_what_would_come() {
    let never = Moment::After { event: "never".into(), nth: 1, then: Duration::ZERO };
    assert_snapshot!(happened(vec![crash("a", at(100), 60_000), crash("b", never, 10), crash("b", at(70_000), 10)], 1_000), @r#"
        0.100000  #0     a: crash begins
        1.000000  #1     a: starts
        1.000000  #2     a: crash is over (1 tasks ended)
    crash a at 100ms for 60s: 1 tasks ended
    crash b after "never" no. 1 for 10ms: 0 tasks ended
    crash b at 70s for 10ms: 0 tasks ended
    "#);
}

#[test]
fn a_program_that_does_not_stop_is_killed() {
    let stop = Fault {
        fault: Kind::Stop(Stop { node: "a".into(), grace: Duration::from_secs(1) }),
        start: at(0),
        lasts: Duration::from_secs(2),
    };
    assert_snapshot!(happened(vec![stop], 10_000), @r"
        0.000000  #0     a: stop begins
        1.000000  #1     a: does not stop in time and is killed
        3.000000  #2     a: starts
        3.000000  #3     a: stop is over (1 tasks ended)
    stop a at 0s for 2s: 1 tasks ended
    ");
}

#[test]
fn a_node_that_nobody_knows_is_refused() {
    run_test(|| async {
        let error = Nemesis::new(&Desk::new(), |_, _| {}).release(&[crash("x", at(1), 1)]).expect_err("unknown");
        assert_snapshot!(error, @r#"fault "crash x at 1ms for 1ms" names node "x", which this run does not have"#);
    });
}

#[test]
fn signals_count_and_wake() {
    run_test(|| async {
        let signals = Signals::new();
        signals.occurred("a");
        signals.nth("a", 1).await;
        let waiting = signals.clone();
        let task = rt::task::spawn(async move { waiting.nth("a", 3).await });
        signals.occurred("b");
        signals.occurred("a");
        rt::time::sleep(Duration::from_millis(1)).await;
        assert!(!task.is_finished());
        signals.occurred("a");
        task.await.expect("it ends");
        assert_eq!((signals.count("a"), signals.count("b"), signals.count("c")), (3, 1, 0));
    });
}
