use super::{CommitSource, Committed, OffsetTable, OffsetTableText};
use proptest::prelude::{Strategy, prop_oneof, proptest};

use CommitSource::{Pull, Update, UpdateAtSlave};

fn table(entries: &[(i32, i64)]) -> OffsetTable {
    let mut table = OffsetTable::default();
    for &(queue, offset) in entries {
        table.commit("T", "G", queue, offset, Update, 0);
    }
    table
}

#[test]
fn a_pull_never_lowers_and_an_update_may() {
    let check = |before, source, offset, outcome, after| {
        let mut table = table(&[(0, before)]);
        assert_eq!(table.commit("T", "G", 0, offset, source, 0), outcome);
        assert_eq!(table.query("T", "G", 0), Some(after));
    };
    check(5, Pull, 7, Committed::Advanced, 7);
    check(5, Update, 7, Committed::Advanced, 7);
    check(5, Pull, 5, Committed::Unchanged, 5);
    check(5, Pull, 3, Committed::Stale { kept: 5 }, 5);
    check(5, Update, 3, Committed::Lowered { before: 5 }, 3);
    check(5, UpdateAtSlave, 7, Committed::Advanced, 7);
    check(5, UpdateAtSlave, 3, Committed::Stale { kept: 5 }, 5);
}

/// The slave's copy is old: a client that takes a queue there begins, and commits, below what the group had got.
#[test]
fn a_queue_taken_over_at_a_slave_does_not_set_the_master_back() {
    let mut master = table(&[(0, 22)]);
    let mut slave = OffsetTable::from_text(&master.text());
    master.commit("T", "G", 0, 40, Update, 0);
    slave.commit("T", "G", 0, 46, UpdateAtSlave, 0);
    slave.commit("T", "G", 0, 23, UpdateAtSlave, 0);
    master.merge(&slave.text());
    assert_eq!(master.query("T", "G", 0), Some(46));
}

#[test]
fn two_first_commits_of_one_group_keep_both_queues() {
    let table = table(&[(0, 1), (1, 2)]);
    assert_eq!(
        (table.query("T", "G", 0), table.query("T", "G", 1), table.query("T", "G", 2)),
        (Some(1), Some(2), None)
    );
}

#[test]
fn a_reset_holds_until_a_pull_takes_it_and_survives_a_restart() {
    let mut table = table(&[(0, 9)]);
    table.reset("T", "G", 0, 2, 0);
    let mut table = OffsetTable::from_text(&table.text());
    assert_eq!(table.commit("T", "G", 0, 10, Update, 0), Committed::ResetPending);
    assert_eq!(table.query("T", "G", 0), Some(2));
    assert_eq!(table.take_reset("T", "G", 0), Some(2));
    assert_eq!(table.take_reset("T", "G", 0), None);
    assert_eq!(table.commit("T", "G", 0, 3, Update, 0), Committed::Advanced);
}

#[test]
fn offsets_above_the_queue_end_are_lowered_and_stay_low_against_an_old_copy() {
    let mut master = table(&[(0, 9), (1, 4)]);
    let slave = OffsetTable::from_text(&master.text());
    assert_eq!(master.lower_to_ends(|_, _| 6, 0), [("T@G".to_owned(), 0, 9, 6)]);
    master.merge(&slave.text());
    assert_eq!((master.query("T", "G", 0), master.query("T", "G", 1)), (Some(6), Some(4)));
}

#[test]
fn the_greater_progress_wins_at_fail_back() {
    let mut master = table(&[(0, 5), (1, 8)]);
    let slave = table(&[(0, 7), (1, 6), (2, 1)]);
    master.merge(&slave.text());
    assert_eq!([0, 1, 2].map(|queue| master.query("T", "G", queue)), [Some(7), Some(8), Some(1)]);
}

#[test]
fn a_copy_of_a_plain_table_replaces_whole_entries_as_apaches_slave_does() {
    let mut slave = table(&[(0, 7), (1, 6)]);
    slave.commit("T", "other", 0, 3, Update, 0);
    let mut plain: OffsetTableText = table(&[(0, 5)]).text();
    plain.lowered_table = None;
    slave.merge(&plain);
    assert_eq!([0, 1].map(|queue| slave.query("T", "G", queue)), [Some(5), None]);
    assert_eq!(slave.query("T", "other", 0), Some(3));
}

#[test]
fn strange_keys_and_values_are_ignored() {
    let text = r#"{"offsetTable":{"T@G":{0:5,"1":-3},"a@b@c":{0:1},"plain":{0:1}},"unknown":7}"#;
    let text: OffsetTableText = protocol::json::from_slice(text.as_bytes()).expect("lenient");
    let table = OffsetTable::from_text(&text);
    assert_eq!((table.query("T", "G", 0), table.query("T", "G", 1)), (Some(5), None));
    assert_eq!(table.topics_of("G"), ["T".to_owned()].into());
    assert_eq!(table.groups_of("a"), std::collections::BTreeSet::new());
}

#[test]
fn the_file_is_what_apaches_broker_writes_plus_our_fields() {
    let mut table = table(&[(0, 33), (1, 3)]);
    table.commit("T", "G", 1, 2, Update, 0);
    let text = String::from_utf8(protocol::json::to_vec(&table.text()).expect("plain data")).expect("UTF-8");
    insta::assert_snapshot!(text, @r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"groupTopicMap":{"G":["T"]},"offsetTable":{"T@G":{0:33,1:2}},"loweredTable":{"T@G":{1:1}}}"#);
    let again: OffsetTableText = protocol::json::from_slice(text.as_bytes()).expect("own text");
    assert_eq!(again.offset_table, table.text().offset_table);
    assert_eq!(again.lowered_table, table.text().lowered_table);
}

#[derive(Clone, Debug)]
enum Step {
    Commit(i32, i64, bool),
    Reset(i32, i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3i32, 0..20i64, proptest::bool::ANY)
            .prop_map(|(queue, offset, update)| Step::Commit(queue, offset, update)),
        (0..3i32, 0..20i64).prop_map(|(queue, offset)| Step::Reset(queue, offset)),
    ];
    proptest::collection::vec(step, 0..12)
}

fn run(steps: &[Step]) -> OffsetTable {
    let mut table = OffsetTable::default();
    for step in steps {
        match *step {
            Step::Commit(queue, offset, update) => {
                table.commit("T", "G", queue, offset, if update { Update } else { Pull }, 0);
            }
            Step::Reset(queue, offset) => {
                table.reset("T", "G", queue, offset, 0);
                table.take_reset("T", "G", queue);
            }
        }
    }
    table
}

proptest! {
    #[test]
    fn merging_is_the_same_in_any_order_and_any_number_of_times(a in steps(), b in steps()) {
        let (a, b) = (run(&a).text(), run(&b).text());
        let merged = |texts: &[&OffsetTableText]| {
            let mut table = OffsetTable::default();
            texts.iter().for_each(|text| table.merge(text));
            (table.text().offset_table, table.text().lowered_table)
        };
        assert_eq!(merged(&[&a, &b]), merged(&[&b, &a, &b]));
    }
}

/// The file of Apache's broker with `enableLmq`.
#[test]
fn offsets_of_light_queues_stand_apart_and_come_back() {
    let mut table = table(&[(0, 7)]);
    table.keep_light_apart();
    table.commit("%LMQ%a", "%LMQ%g", 0, 5, Update, 0);
    table.commit("%LMQ%a", "%LMQ%g", 0, 3, Update, 0);
    table.commit("T", "%LMQ%g", 0, 8, Update, 0);
    table.commit("T", "%LMQ%g", 1, 9, Update, 0);
    let text = protocol::json::to_vec(&table.text()).unwrap();
    let json = String::from_utf8(text.clone()).unwrap();
    let expected = r#""offsetTable":{"T@%LMQ%g":{1:9},"T@G":{0:7}},"lmqOffsetTable":{"%LMQ%a@%LMQ%g":3,"T@%LMQ%g":8}"#;
    assert!(json.contains(expected), "{json}");
    let again = OffsetTable::from_text(&protocol::json::from_slice::<OffsetTableText>(&text).unwrap());
    let offsets = |table: &OffsetTable| {
        [("%LMQ%a", "%LMQ%g", 0), ("T", "%LMQ%g", 0), ("T", "%LMQ%g", 1), ("T", "G", 0)]
            .map(|(topic, group, queue)| table.query(topic, group, queue))
    };
    assert_eq!(offsets(&again), [Some(3), Some(8), Some(9), Some(7)]);
    // A slave without light queues takes them in, and gives them back.
    let mut slave = OffsetTable::default();
    slave.merge(&table.text());
    assert_eq!(offsets(&slave), offsets(&again));
    assert_eq!(slave.text().lmq_offset_table, None);
}
