use super::{Difference, Divergence, Seen, Summary, different_events, different_reports};
use crate::report::Report;
use insta::assert_snapshot;

fn side(events: &[(u64, &str)]) -> Result<Vec<Seen>, String> {
    Ok(events.iter().map(|(index, text)| Seen { index: *index, text: format!("#{index} {text}") }).collect())
}

fn told(what: Difference) -> String {
    let divergence = Divergence { scenario: "counter_never_goes_back".to_owned(), seed: 7, what };
    Summary { seeds: 12, events: 123_456, divergences: vec![divergence] }.to_text()
}

#[test]
fn the_first_different_event_is_shown_with_both_sides() {
    let alone = side(&[(2, "pick task 1"), (3, "timer"), (4, "draw 5"), (5, "pick task 2")]);
    let batch = side(&[(3, "timer"), (4, "draw 9"), (5, "pick task 7")]);
    assert_snapshot!(told(different_events(alone, batch)), @r"
    counter_never_goes_back seed 7 is not deterministic:
      first different event
        before  #3 timer
        alone   #4 draw 5
        batch   #4 draw 9

    12 seeds twice, 123,456 events, divergences: 1
    ");
}

#[test]
fn a_run_that_ends_sooner_differs_where_it_ends() {
    let alone = side(&[(3, "timer")]);
    let batch = side(&[(3, "timer"), (4, "draw 9")]);
    assert_snapshot!(told(different_events(alone, batch)), @r"
    counter_never_goes_back seed 7 is not deterministic:
      first different event
        before  #3 timer
        alone   (the run has ended)
        batch   #4 draw 9

    12 seeds twice, 123,456 events, divergences: 1
    ");
}

#[test]
fn a_side_that_died_says_how() {
    let alone = Err("killed by signal 14".to_owned());
    assert_snapshot!(told(different_events(alone, side(&[(3, "timer")]))), @r"
    counter_never_goes_back seed 7 is not deterministic:
      one run is cut short
        alone   killed by signal 14
        batch   stands at #3 timer

    12 seeds twice, 123,456 events, divergences: 1
    ");
}

#[test]
fn reports_differ_in_a_line() {
    let report = |address: u64| Report { counts: [("address".to_owned(), address)].into(), ..Report::default() };
    assert_snapshot!(told(different_reports(&report(1), &report(2))), @r#"
    counter_never_goes_back seed 7 is not deterministic:
      equal traces, different reports
        alone   "address": 1
        batch   "address": 2

    12 seeds twice, 123,456 events, divergences: 1
    "#);
    assert_snapshot!(told(Difference::Plan), @r"
    counter_never_goes_back seed 7 is not deterministic:
      the seed draws different plans

    12 seeds twice, 123,456 events, divergences: 1
    ");
}
