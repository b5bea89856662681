//! Faults of whole machines: suspended, out of memory, replaced, restarted in turn.

use super::{at, happened};
use crate::atlas::{Area, Atlas};
use crate::desk::Desk;
use crate::fault::{Fault, Moment};
use crate::nemesis::Nemesis;
use crate::report::Effect;
use insta::assert_snapshot;
use rt::time::{Instant, sleep, unix_ms};
use rt::world::{NodeId, WorldConfig, disk, run_test};
use serde_json::{Value, json};
use std::time::Duration;

const S: Duration = Duration::from_secs(1);

fn fault(kind: Value, start: Moment, lasts_ms: u64) -> Fault {
    let fault = serde_json::from_value(kind).expect("as in a case file");
    Fault { fault, start, lasts: Duration::from_millis(lasts_ms) }
}

/// An atlas of what the programs here keep, of which so many nodes may lose theirs.
fn atlas(damaged_max: usize) -> Atlas {
    Atlas::new().with(Area::new("names", &["a", "b"], "/data", damaged_max))
}

/// As [`let_loose_on`], where nothing may be lost.
async fn let_loose(kind: Value, lasts_ms: u64) -> (Vec<Effect>, [NodeId; 2]) {
    let_loose_on(&Desk::new(), &Atlas::new(), &[fault(kind, at(1_000), lasts_ms)]).await
}

/// Nodes `a` and `b` that keep a file each; what the faults did, once they have come and gone.
async fn let_loose_on(desk: &Desk, atlas: &Atlas, faults: &[Fault]) -> (Vec<Effect>, [NodeId; 2]) {
    let nodes = ["a", "b"].map(rt::world::add_node);
    let mut nemesis = Nemesis::new(desk, |_, _| {}).atlas(atlas);
    for (name, node) in ["a", "b"].into_iter().zip(nodes) {
        let boot = move || drop(rt::world::spawn_on(node, keep(name)));
        boot();
        nemesis = nemesis.node(name, node, boot);
    }
    let effects = nemesis.release(faults).expect("both are known").ended().await;
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
        let atlas = atlas(1);
        let wipe = fault(json!({"wiped_disk": {"node": "a"}}), at(1_000), 2_000);
        let (effects, nodes) = let_loose_on(&Desk::new(), &atlas, &[wipe]).await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (1, "files lost"));
        // Its program found no directory, and made it anew.
        assert_eq!(nodes.map(name_on), ["a", "b"]);
        assert_eq!(nodes.map(rt::world::incarnation), [1, 0]);
        assert_eq!((atlas.damaged("names"), atlas.refused()), (vec!["a".to_owned()], 0), "until it is repaired");
    });
}

#[test]
fn a_cloned_machine_comes_back_as_its_peer() {
    run_test(|| async {
        let atlas = atlas(1);
        let clone = fault(json!({"cloned_disk": {"node": "a", "from": "b"}}), at(1_000), 2_000);
        let (effects, nodes) = let_loose_on(&Desk::new(), &atlas, &[clone]).await;
        assert_eq!((effects[0].amount, effects[0].unit.as_str()), (1, "files copied"));
        assert_eq!(nodes.map(name_on), ["b", "b"]);
        assert_eq!(nodes.map(rt::world::tasks), [1, 1]);
        assert_eq!((atlas.damaged("names"), atlas.refused()), (vec!["a".to_owned()], 0), "until it is repaired");
    });
}

/// What the two nodes keep, how often each was ended, the amounts of the effects, and the refusals that the run's summary counts.
fn after_losses(atlas: Atlas, faults: Vec<Fault>) -> ([String; 2], [u32; 2], Vec<u64>, u64) {
    let desk = Desk::new();
    let inside = desk.clone();
    let main = move || async move {
        let (effects, nodes) = let_loose_on(&inside, &atlas, &faults).await;
        let amounts = effects.iter().map(|effect| effect.amount).collect();
        (nodes.map(name_on), nodes.map(rt::world::incarnation), amounts, atlas.refused())
    };
    let (value, report) = desk.run(WorldConfig::default(), main);
    let value: ([String; 2], [u32; 2], Vec<u64>, u64) = value.expect("nothing goes wrong");
    assert_eq!(report.counts.get("damages refused by the atlas").copied().unwrap_or_default(), value.3);
    value
}

#[test]
fn the_last_good_disk_is_neither_wiped_nor_cloned_over() {
    let names = |names: [&str; 2]| names.map(str::to_owned);
    let lose = |node: &str, start: u64| fault(json!({"wiped_disk": {"node": node}}), at(start), 500);
    let clone = |node: &str, from: &str, start: u64| {
        fault(json!({"cloned_disk": {"node": node, "from": from}}), at(start), 500)
    };
    // Nobody said what may be lost: the nodes are not even ended.
    let both = || vec![lose("a", 1_000), clone("b", "a", 2_000)];
    assert_eq!(after_losses(Atlas::new(), both()), (names(["a", "b"]), [0, 0], vec![0, 0], 2));
    assert_eq!(after_losses(atlas(0), both()), (names(["a", "b"]), [0, 0], vec![0, 0], 2));
    // One may be lost, again and again, and then the other is the last one.
    let many = vec![clone("a", "b", 1_000), lose("b", 2_000), lose("a", 3_000), clone("b", "a", 4_000)];
    assert_eq!(after_losses(atlas(1), many), (names(["a", "b"]), [2, 0], vec![1, 0, 1, 0], 2));
    assert_eq!(after_losses(atlas(2), both()), (names(["a", "a"]), [1, 1], vec![1, 1], 0));
    // Two at one instant: one of them.
    let at_once = vec![lose("a", 1_000), lose("b", 1_000)];
    let (_, incarnations, amounts, refused) = after_losses(atlas(1), at_once);
    assert_eq!((incarnations.iter().sum::<u32>(), amounts.iter().sum::<u64>(), refused), (1, 1, 1));
    // What the nodes keep is not what the atlas speaks of.
    let elsewhere = Atlas::new().with(Area::new("log", &["a", "b"], "/log", 2));
    assert_eq!(after_losses(elsewhere, both()), (names(["a", "b"]), [0, 0], vec![0, 0], 2));
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
