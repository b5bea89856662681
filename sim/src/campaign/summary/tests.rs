use super::Summary;
use crate::report::{Effect, Report};
use crate::scenario::tests::registry;
use crate::verdict::{EventId, Evidence, Violation};
use crate::worker::{Run, Task};
use insta::assert_snapshot;
use std::path::PathBuf;
use std::time::Duration;

fn run(scenario: &str, seed: u64, report: Report) -> Run {
    Run { task: Task::Seed { scenario: scenario.to_owned(), seed }, report, real_time: Duration::from_millis(250) }
}

fn effect(kind: &str, amount: u64, unit: &str) -> Effect {
    Effect { kind: kind.to_owned(), fault: format!("{kind} a at 1s for 2s"), amount, unit: unit.to_owned() }
}

fn report(effects: Vec<Effect>) -> Report {
    let probes = [("log rolled".to_owned(), 3), ("log torn".to_owned(), 0)].into();
    let counts = [("messages acknowledged".to_owned(), 1_500)].into();
    Report { events: 54_321, virtual_time: Duration::from_secs(600), effects, probes, counts, ..Report::default() }
}

#[test]
fn a_campaign_reads_at_a_glance() {
    let registry = registry();
    let mut summary = Summary::new(&registry.select(&[]).expect("all"));
    let crash = || effect("crash", 7, "tasks ended");
    summary
        .add(&run("acked_write_survives", 1, report(vec![crash(), effect("partition", 0, "packets dropped")])), None);
    summary.add(&run("offset_never_goes_back", 2, report(vec![crash(), crash()])), None);
    let at = |event: usize, text: &str| Evidence {
        event: EventId(event),
        at: Duration::from_micros(1_500_000 * event as u64),
        text: text.to_owned(),
    };
    let violation = Violation::new("offset never goes back", "the offset was 7 and then 5")
        .because([at(9, "op 5 ok 5"), at(4, "op 2 ok 7")]);
    let failed = Report { violations: vec![violation], ..report(vec![effect("loss", 1_234_567, "packets lost")]) };
    summary.add(&run("offset_never_goes_back", 4, failed), Some(PathBuf::from("cases/offset_never_goes_back-4.json")));
    summary.real_time = Duration::from_millis(812);
    assert_snapshot!(summary.to_text("cargo sim", " (shard 2/8)"), @r#"
    ───────────────────────────────────────────────────────────────────────────────
     scenario                 seeds   violations    events   virtual time   x real 
    ═══════════════════════════════════════════════════════════════════════════════
     acked_write_survives         1            0    54,321        10m 00s    2,400 
     offset_never_goes_back       2            1   108,642        20m 00s    2,400 
     all                          3            1   162,963        30m 00s    2,400 
    ───────────────────────────────────────────────────────────────────────────────

    ────────────────────────────────────────────────────────────────
     fault       enabled in   effective in                   effect 
    ════════════════════════════════════════════════════════════════
     crash           2 runs         2 runs           21 tasks ended 
     loss            1 runs         1 runs   1,234,567 packets lost 
     partition       1 runs         0 runs        0 packets dropped 
    ────────────────────────────────────────────────────────────────

    4,500 messages acknowledged

    offset_never_goes_back at seed 4
      "offset never goes back": the offset was 7 and then 5
            6.000000  #4     op 2 ok 7
           13.500000  #9     op 5 ok 5
      reproduce: cargo sim run offset_never_goes_back --seed 4    (saved as cases/offset_never_goes_back-4.json)

    3 seeds in 0.8 s (shard 2/8): 1 seed with a violation
    "#);
    assert_snapshot!(summary.probe_table(), @r"
    ─────────────────────────
     probe        reached in 
    ═════════════════════════
     log rolled       3 runs 
     log torn         0 runs 
    ─────────────────────────
    ");
    assert!(!summary.is_clean());
}

#[test]
fn a_fault_that_had_ten_chances_and_no_effect_fails_the_campaign() {
    let mut summary = Summary::new(&registry().select(&[]).expect("all"));
    for seed in 0..10 {
        assert!(summary.is_clean(), "{seed} runs");
        let partition = effect("partition", 0, "packets dropped");
        summary.add(&run("acked_write_survives", seed, report(vec![partition])), None);
    }
    assert_eq!(summary.idle_faults(), ["partition"]);
    assert!(!summary.is_clean());
    let text = summary.to_text("cargo sim", "");
    assert!(text.contains("fault partition was enabled in 10 runs and never had any effect"), "{text}");
}
