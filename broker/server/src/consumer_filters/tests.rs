use super::{FilterTable, FilterTableText};
use protocol::PhysicalOffset;
use protocol::body::SubscriptionData;
use protocol::filter::BloomFilter;
use std::time::Duration;
use store::EntryFilter;

/// What Apache's `ConsumerFilterManager` writes, with the bloom filter of its own tests: 64 entries, 20 % errors.
const SAVED_BY_APACHE: &[u8] = include_bytes!("../../../../fixtures/golden/filter/consumerFilter.json");
const DAY: Duration = Duration::from_secs(86_400);

fn table(entries: i32) -> FilterTable {
    FilterTable::new(BloomFilter::new(20, entries).expect("in range"))
}

fn sql(topic: &str, text: &str, version: i64) -> SubscriptionData {
    SubscriptionData::by_sql(topic, text, version)
}

/// Topic, group, text, version and whether it is dead.
fn look(table: &FilterTable) -> Vec<String> {
    let text = table.text();
    let all = text.filter_data_by_topic.values().flat_map(|topic| topic.group_filter_data.values());
    all.map(|filter| {
        let dead = if filter.dead { " dead" } else { "" };
        format!("{} {} {} {}{dead}", filter.topic, filter.consumer_group, filter.expression, filter.client_version)
    })
    .collect()
}

#[test]
fn the_file_is_apaches() {
    let text: FilterTableText = protocol::json::from_slice(SAVED_BY_APACHE).expect("well-formed");
    // But for white space: Apache writes numbers of an array side by side.
    let mut on_one_line = SAVED_BY_APACHE.to_vec();
    on_one_line.retain(|byte| !byte.is_ascii_control());
    assert_eq!(protocol::json::to_vec(&text).expect("plain values"), on_one_line);
    let mut table = table(64);
    table.load(text.clone(), 0);
    let filter = &text.filter_data_by_topic["T"].group_filter_data["G2"];
    assert!(filter.dead);
    assert_eq!(table.text().filter_data_by_topic["T"].group_filter_data["G2"], *filter);
    assert_eq!(look(&table), ["T G1 a > 1 AND b = 'x' 7 dead", "T G2 a IS NOT NULL 8 dead", "U G1 TAGS = 'q' 9 dead"]);
    assert_eq!(table.changes(), 0, "nothing to be saved");
}

#[test]
fn bits_of_another_bloom_filter_and_damaged_entries_are_not_taken_over() {
    let text: FilterTableText = protocol::json::from_slice(SAVED_BY_APACHE).expect("well-formed");
    let mut other = table(32);
    other.load(text.clone(), 0);
    assert!(look(&other).is_empty());
    let mut damaged = text;
    let groups = &mut damaged.filter_data_by_topic.get_mut("T").expect("there").group_filter_data;
    groups.get_mut("G1").expect("there").expression = "a >".to_owned();
    let mut table = table(64);
    table.load(damaged, 0);
    assert_eq!(look(&table), ["T G2 a IS NOT NULL 8 dead", "U G1 TAGS = 'q' 9 dead"]);
}

#[test]
fn a_newer_version_replaces_an_older_one_and_never_the_other_way() {
    let mut table = table(32);
    let mut check = |subscription: SubscriptionData, now_ms, expected: &[&str]| {
        let before = table.changes();
        let was = look(&table);
        table.register("G", &[subscription], now_ms, PhysicalOffset(0));
        assert_eq!(look(&table), expected);
        assert_eq!(table.changes() > before, was != expected, "{expected:?}");
    };
    check(sql("T", "a = 1", 5), 100, &["T G a = 1 5"]);
    check(sql("T", "a = 2", 5), 200, &["T G a = 1 5"]);
    check(sql("T", "a = 2", 4), 200, &["T G a = 1 5"]);
    check(sql("T", "a = 1", 6), 300, &["T G a = 1 6"]);
    check(sql("T", "a = 2", 7), 300, &["T G a = 2 7"]);
    check(sql("U", "b", 7), 400, &["T G a = 2 7 dead", "U G b 7"]);
    check(sql("T", "a = 2", 7), 500, &["T G a = 2 7", "U G b 7 dead"]);
    check(SubscriptionData::by_tags("T", "x", 8), 600, &["T G a = 2 7", "U G b 7 dead"]);
    check(sql("T", "a =", 9), 600, &["U G b 7 dead"]);
    check(sql("T", "", 10), 600, &["U G b 7 dead"]);
}

#[test]
fn a_dead_filter_is_kept_for_a_day() {
    let mut table = table(32);
    table.register("G", &[sql("T", "a = 1", 5)], 1000, PhysicalOffset(0));
    table.register("H", &[sql("T", "a = 1", 5)], 1000, PhysicalOffset(0));
    table.end(2000, |_, group| group == "G");
    table.end(3000, |_, group| group == "G");
    let day_ms = 86_400_000;
    table.clean(2000 + day_ms - 1, DAY);
    assert_eq!(look(&table), ["T G a = 1 5 dead", "T H a = 1 5"]);
    table.clean(2000 + day_ms, DAY);
    assert_eq!(look(&table), ["T H a = 1 5"]);
    assert_eq!(table.of_group("H").len(), 1);
    // A clock that was set back: dead all the same.
    table.end(5, |_, _| true);
    assert_eq!(look(&table), ["T H a = 1 5 dead"]);
}

/// The bit maps that Apache's broker made of the messages of its group with an expression.
#[test]
fn bit_maps_are_apaches() {
    let manifest: serde_json::Value =
        serde_json::from_slice(include_bytes!("../../../../fixtures/golden/store/features.manifest.json"))
            .expect("a manifest");
    let mut table = table(32);
    let expression = sql("GoldenFilter", "price > 10 AND region = 'east'", 5);
    table.register("golden_sql_group", &[expression], 1000, PhysicalOffset(0));
    let records = manifest["commitLog"]["records"].as_array().expect("records");
    let records: Vec<_> = records.iter().filter(|record| record["topic"] == "GoldenFilter").collect();
    let units = manifest["consumeQueueExt"]["GoldenFilter/0"].as_array().expect("units");
    let mut hits = 0;
    for (record, unit) in records.iter().zip(units.iter().filter(|unit| unit["address"].is_i64())) {
        let properties = record["propertiesString"].as_str().expect("text");
        let found = table.bit_map("GoldenFilter", properties.as_bytes());
        let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, unit["bitMap"], "{}", record["body"]);
        let by_bits = table.get("GoldenFilter", "golden_sql_group").expect("registered").by_bits();
        hits += usize::from(by_bits.wants(PhysicalOffset(5), None, &found));
    }
    assert!(records.len() >= 12 && hits > 0 && hits < records.len(), "{hits} of {}", records.len());
    assert_eq!(table.bit_map("Other", b""), [0; 0], "nobody filters it");
}

#[test]
fn only_bit_maps_that_tell_of_the_expression_are_believed() {
    let mut table = table(32);
    let wants = |table: &FilterTable, at: i64| {
        let by_bits = table.get("T", "G").expect("registered").by_bits();
        by_bits.wants(PhysicalOffset(at), None, &[0; 14])
    };
    table.register("G", &[sql("T", "a = 1", 5)], 1000, PhysicalOffset(700));
    assert_eq!([wants(&table, 699), wants(&table, 700)], [true, false]);
    // Another expression: what was dispatched before tells of the old one.
    table.register("G", &[sql("T", "a = 2", 6)], 1000, PhysicalOffset(900));
    assert_eq!([wants(&table, 899), wants(&table, 900)], [true, false]);
    let mut restarted = super::FilterTable::new(BloomFilter::new(20, 32).expect("in range"));
    restarted.load(table.text(), 2000);
    assert!(wants(&restarted, 5_000));
    restarted.bits_begin_at(PhysicalOffset(1_000));
    assert_eq!([wants(&restarted, 999), wants(&restarted, 1_000)], [true, false]);
}
