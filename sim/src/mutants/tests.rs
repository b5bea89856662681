use super::{Kill, Row, Small, Survival, to_text};
use crate::shrink::Size;
use insta::assert_snapshot;
use std::time::Duration;

fn row(name: &str, kill: Option<(&str, u64)>, seeds: u64) -> Row {
    let kill = kill.map(|(invariant, seed)| Kill {
        invariant: invariant.to_owned(),
        scenario: "counter_never_goes_back".to_owned(),
        seed,
    });
    let (reference, expected) = ("project#12".to_owned(), "the sum never goes back".to_owned());
    let (virtual_time, run_time) = (Duration::from_secs(60 * seeds), Duration::from_millis(1_234));
    Row {
        name: name.to_owned(),
        reference,
        expected,
        kill,
        seeds,
        virtual_time,
        run_time,
        small: None,
        basis: String::new(),
    }
}

#[test]
fn the_table_tells_who_killed_whom() {
    let size = |faults, operations| Size { faults, operations, events: 1_000, virtual_time: Duration::from_secs(9) };
    let small = Small {
        before: size(4, 940),
        after: size(1, 94),
        replays: 100,
        same: 100,
        clean_passes: true,
        survives: Some(Survival::AsItIs),
    };
    let rows = [
        Row { small: Some(small), ..row("no_sync", Some(("the sum never goes back", 17)), 18) },
        row("no_recovery", Some(("nothing panics", 3)), 4),
        row("late_reply", None, 2_000),
    ];
    assert_snapshot!(to_text(&rows));
}
