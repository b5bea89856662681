//! A program that is started with another version of its configuration, and with the first one again.

use super::{at, crash};
use crate::desk::Desk;
use crate::fault::{Fault, Moment};
use crate::history::Recorder;
use crate::nemesis::Nemesis;
use crate::report::Effect;
use insta::assert_snapshot;
use rt::world::{NodeId, disk, run_test};
use serde_json::{Value, json};
use std::time::Duration;

const STOP: &str = r#"{"stop": {"grace": "1s"}}"#;

fn reconfigure(configuration: &str, by: &str, start: Moment, lasts_ms: u64) -> Fault {
    let by: Value = serde_json::from_str(by).expect("JSON");
    let kind = json!({"reconfigure": {"node": "a", "configuration": configuration, "by": by}});
    Fault {
        fault: serde_json::from_value(kind).expect("as in a case file"),
        start,
        lasts: Duration::from_millis(lasts_ms),
    }
}

/// A server that notes each configuration that it was started with, and when it was asked to end.
async fn serve(configuration: String) {
    note(&configuration).await;
    rt::signal::termination().await.expect("it never fails");
    note("asked").await;
}

async fn note(line: &str) {
    let file = rt::fs::OpenOptions::new().write(true).create(true).open("/notes").expect("there is space");
    let end = file.len().expect("it is open");
    file.write_at(format!("{line};").as_bytes(), end).expect("there is space");
    file.sync_data().await.expect("the disk works");
    rt::fs::sync_dir("/").await.expect("the disk works");
}

/// What the server has noted, the effects, and what the history says of the node; all heals after that time.
fn served(schedule: Vec<Fault>, heal_after_ms: u64) -> (String, Vec<Effect>, String) {
    run_test(move || async move {
        let desk = Desk::new();
        let recorder: Recorder<(), ()> = Recorder::new(desk.signals());
        let observer = recorder.clone();
        let node = rt::world::add_node("a");
        let boot = move |configuration: &str| drop(rt::world::spawn_on(node, serve(configuration.to_owned())));
        boot("plain");
        let loose = Nemesis::new(&desk, move |node, event| observer.node(node, event))
            .configured_node("a", node, &["plain", "small", "large"], boot)
            .release(&schedule)
            .expect("node and configurations are known");
        rt::time::sleep(Duration::from_millis(heal_after_ms)).await;
        let effects = loose.heal().await;
        rt::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(rt::world::tasks(node), 1, "it is up again");
        (notes(node), effects, recorder.take().to_text())
    })
}

fn notes(node: NodeId) -> String {
    String::from_utf8(disk::read_file(node, "/notes").expect("it noted something")).expect("it is text")
}

fn amounts(effects: &[Effect]) -> Vec<u64> {
    effects.iter().map(|effect| effect.amount).collect()
}

#[test]
fn a_program_is_started_with_another_configuration_and_then_with_the_first_one() {
    let (notes, effects, told) = served(vec![reconfigure("small", STOP, at(1_000), 3_000)], 10_000);
    assert_eq!(notes, "plain;asked;small;asked;plain;");
    assert_eq!((amounts(&effects), effects[0].unit.as_str()), (vec![1], "reconfigured starts"));
    assert_snapshot!(told, @r"
        1.000000  #0     a: reconfigure begins
        1.010000  #1     a: starts with configuration small
        4.020000  #2     a: starts
        4.020000  #3     a: reconfigure is over (1 reconfigured starts)
    ");
    let (notes, effects, _) = served(vec![reconfigure("small", r#""crash""#, at(1_000), 3_000)], 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;small;plain;", vec![1]), "nobody was asked");
}

#[test]
fn healing_restores_the_first_configuration_at_once() {
    let never = Moment::After { event: "never".into(), nth: 1, then: Duration::ZERO };
    let faults = vec![reconfigure("small", STOP, at(1_000), 60_000), reconfigure("large", STOP, never, 10)];
    let (notes, effects, _) = served(faults, 2_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;asked;small;asked;plain;", vec![1, 0]));
}

#[test]
fn whoever_starts_the_program_meanwhile_starts_it_with_that_configuration() {
    let within = vec![reconfigure("small", STOP, at(1_000), 5_000), crash("a", at(2_000), 1_000)];
    let (notes, effects, _) = served(within, 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;asked;small;small;asked;plain;", vec![2, 1]));
    // It is down when the reconfiguration begins: the end of the crash makes it come true.
    let across = vec![crash("a", at(1_000), 2_000), reconfigure("small", STOP, at(2_000), 3_000)];
    let (notes, effects, _) = served(across, 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;small;asked;plain;", vec![1, 1]));
    // It is down from beginning to end: nothing noticed.
    let inside = vec![crash("a", at(1_000), 5_000), reconfigure("small", STOP, at(2_000), 1_000)];
    let (notes, effects, _) = served(inside, 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;plain;", vec![1, 0]));
}

#[test]
fn of_two_reconfigurations_the_last_one_begun_counts() {
    let crash = r#""crash""#;
    let within = vec![reconfigure("small", crash, at(1_000), 5_000), reconfigure("large", crash, at(2_000), 1_000)];
    let (notes, effects, _) = served(within, 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;small;large;small;plain;", vec![2, 1]));
    // The first one ends below the second: the program runs on.
    let across = vec![reconfigure("small", crash, at(1_000), 3_000), reconfigure("large", crash, at(2_000), 4_000)];
    let (notes, effects, _) = served(across, 10_000);
    assert_eq!((notes.as_str(), amounts(&effects)), ("plain;small;large;plain;", vec![1, 1]));
}

#[test]
fn a_reconfiguration_reads_well() {
    let fault = reconfigure("small", STOP, at(1_000), 3_000);
    assert_snapshot!(serde_json::to_string(&fault).expect("plain data"), @r#"{"fault":{"reconfigure":{"node":"a","configuration":"small","by":{"stop":{"grace":"1s"}}}},"start":{"at":"1s"},"lasts":"3s"}"#);
    assert_snapshot!(fault, @"reconfigure a at 1s for 3s");
}

#[test]
fn a_configuration_that_the_node_does_not_have_is_refused() {
    run_test(|| async {
        let nemesis = || Nemesis::new(&Desk::new(), |_, _| {});
        let refused = |nemesis: Nemesis, configuration: &str| {
            nemesis.release(&[reconfigure(configuration, STOP, at(1), 1)]).expect_err("unknown").to_string()
        };
        let node = rt::world::add_node("a");
        let configured = || nemesis().configured_node("a", node, &["plain", "small"], |_| {});
        assert_snapshot!(refused(configured(), "large"), @r#"fault "reconfigure a at 1ms for 1ms" wants configuration "large" of node "a", whose other ones are ["small"]"#);
        assert_snapshot!(refused(configured(), "plain"), @r#"fault "reconfigure a at 1ms for 1ms" wants configuration "plain" of node "a", whose other ones are ["small"]"#);
        assert_snapshot!(refused(nemesis().node("a", node, || {}), "small"), @r#"fault "reconfigure a at 1ms for 1ms" wants configuration "small" of node "a", whose other ones are []"#);
    });
}
