//! The determinism check catches what leaks, and names the first event.

use crate::{STAND, registry};
use sim::check::{self, Difference, Summary};

fn checked(scenario: &str, seeds: u64) -> Summary {
    let names = [scenario.to_owned()];
    check::run(&registry(), &STAND.launch(), &names, 0..seeds, |_| {}).expect("both sides speak")
}

/// The first divergence within some seeds: an address or a clock may agree by chance.
fn caught(scenario: &str) -> Difference {
    let mut summary = checked(scenario, 8);
    assert!(!summary.divergences.is_empty(), "{scenario} is not caught");
    assert!(summary.to_text().contains("is not deterministic"), "{}", summary.to_text());
    summary.divergences.remove(0).what
}

#[test]
fn planted_leaks_are_caught_with_both_sides() {
    for scenario in ["leaks_map_order", "leaks_clock", "leaks_static"] {
        let Difference::Event { before, alone, batch } = caught(scenario) else {
            panic!("{scenario}: no event is named")
        };
        let (before, alone, batch) =
            (before.expect("events before"), alone.expect("an event"), batch.expect("an event"));
        assert_eq!(alone.index, before.index + 1, "{scenario}");
        assert_eq!(alone.index, batch.index, "{scenario}");
        assert!(before.index > 1_500, "{scenario} leaks in round 1,500, not at event {}", before.index);
        assert!(alone.text.contains("timer") && batch.text.contains("timer"), "{scenario}: {alone:?} {batch:?}");
    }
}

#[test]
fn a_leak_that_no_event_sees_is_caught_in_the_report() {
    let Difference::Report { alone, batch } = caught("leaks_into_report") else { panic!("no line is named") };
    assert!(alone.contains("address") && batch.contains("address"), "{alone} {batch}");
}

#[test]
fn what_a_fresh_child_closes_is_no_leak() {
    for scenario in ["keeps_static", "keeps_map_order"] {
        assert_eq!(checked(scenario, 4).divergences, [], "{scenario}");
    }
}

#[test]
fn a_system_with_every_fault_is_deterministic() {
    for scenario in ["counter_never_goes_back", "counter_without_sync", "every_fault_has_an_effect"] {
        let summary = checked(scenario, 10);
        assert_eq!(summary.divergences, [], "{}", summary.to_text());
        assert!(summary.events > 1_000, "{summary:?}");
    }
}

#[test]
fn runs_that_die_alike_agree() {
    for scenario in ["dies_of_abort", "dies_of_panic_on_node", "dies_of_panic_of_judge"] {
        assert_eq!(checked(scenario, 1).divergences, [], "{scenario}");
    }
}
