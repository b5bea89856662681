use super::{Kill, Row, to_text};
use insta::assert_snapshot;
use std::time::Duration;

fn row(name: &str, kill: Option<(&str, u64)>, seeds: u64) -> Row {
    let kill = kill.map(|(invariant, seed)| Kill {
        invariant: invariant.to_owned(),
        scenario: "counter_never_goes_back".to_owned(),
        seed,
    });
    let (reference, expected) = ("project#12".to_owned(), "the sum never goes back".to_owned());
    Row { name: name.to_owned(), reference, expected, kill, seeds, real_time: Duration::from_millis(1_234) }
}

#[test]
fn the_table_tells_who_killed_whom() {
    let rows = [
        row("no_sync", Some(("the sum never goes back", 17)), 18),
        row("no_recovery", Some(("nothing panics", 3)), 4),
        row("late_reply", None, 2_000),
    ];
    assert_snapshot!(to_text(&rows), @r"
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     mutant        reference    killed by                                           scenario                  seed   seeds   seconds 
    ═════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     no_sync       project#12   the sum never goes back                             counter_never_goes_back     17      18       1.2 
     no_recovery   project#12   nothing panics (expected the sum never goes back)   counter_never_goes_back      3       4       1.2 
     late_reply    project#12   SURVIVED (expected the sum never goes back)         -                            -   2,000       1.2 
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    2 of 3 mutants killed
    ");
}
