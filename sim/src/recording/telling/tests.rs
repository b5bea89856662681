use super::telling;
use crate::recording::{Ending, NodeEvent, OperationLine, Recording};
use crate::verdict::{EventId, Evidence, Violation};
use std::time::Duration;

/// A write each second to one of ten registers; every 25 seconds something happens to a node.
fn long_run() -> Recording {
    let at = |second: usize| Duration::from_secs(second as u64);
    let operations = (0..1_000).map(|second| OperationLine {
        client: "client".into(),
        asked: at(second),
        ended: Some(at(second)),
        ending: Ending::Ok,
        ask: format!("write r-{}", second % 10),
        told: "done".into(),
        about: vec![format!("r-{}", second % 10)],
        events: (EventId(second * 10), Some(EventId(second * 10 + 1))),
    });
    let events = (0..40).map(|place| NodeEvent {
        node: "server".into(),
        at: at(place * 25),
        text: format!("event {place}"),
        event: EventId(place * 250 + 5),
    });
    Recording { operations: operations.collect(), events: events.collect(), ..Recording::default() }
}

fn proof(event: usize) -> Evidence {
    Evidence { event: EventId(event), at: Duration::from_secs(event as u64 / 10), text: String::new() }
}

#[test]
fn a_story_has_its_proofs_and_what_is_near_them_in_time_and_meaning() {
    let violation = Violation::new("v", "a write is gone").because([proof(5_031), proof(5_505)]);
    let tale = telling(&long_run(), &[violation], 12);
    assert_eq!(tale.about.iter().collect::<Vec<_>>(), ["r-3"]);
    let lines: Vec<String> = tale
        .moments
        .iter()
        .map(|moment| format!("{} {}{}", moment.at.as_secs(), if moment.proves { "> " } else { "" }, moment.text))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    483 client: write r-3 → done
    493 client: write r-3 → done
    500 server: event 20
    503 > client: write r-3 → done
    513 client: write r-3 → done
    525 server: event 21
    533 client: write r-3 → done
    543 client: write r-3 → done
    550 > server: event 22
    553 client: write r-3 → done
    563 client: write r-3 → done
    575 server: event 23
    ");
}

#[test]
fn a_verdict_without_proofs_still_names_what_it_is_about() {
    let violation = Violation::new("v", "the value of r-7, of two clients, went back");
    let tale = telling(&long_run(), &[violation], 50);
    assert_eq!(tale.about.iter().collect::<Vec<_>>(), ["r-7"]);
    assert_eq!(tale.moments.len(), 50);
}

#[test]
fn proofs_are_never_cut() {
    let proofs = (0..60).map(|place| proof(place * 10 + 1));
    let tale = telling(&long_run(), &[Violation::new("v", "many").because(proofs)], 5);
    assert_eq!(tale.moments.iter().filter(|moment| moment.proves).count(), 60);
}
