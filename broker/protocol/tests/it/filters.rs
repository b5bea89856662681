//! Filter expressions and the bloom filter against tables that Apache RocketMQ 5.3.3 has filled in, and against texts of no shape.

use crate::golden::root;
use proptest::prelude::*;
use protocol::filter::{BitsArray, BloomFilter, Expression};
use protocol::{EvaluationError, FilterError, Properties};

fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("filter").join(name)).unwrap();
    text.lines().map(|line| line.split('\t').map(unescaped).collect()).collect()
}

fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                'f' => '\x0c',
                other => other,
            },
            other => other,
        });
    }
    plain
}

/// What a row of the tables has in its first column.
fn outcome(text: &str, properties: &Properties) -> &'static str {
    let Ok(expression) = Expression::parse(text) else { return "refused" };
    let printed = expression.to_string();
    assert_eq!(Expression::parse(&printed).as_ref(), Ok(&expression), "{text:?} is printed as {printed:?}");
    match expression.evaluate(properties) {
        Ok(Some(true)) => "true",
        Ok(Some(false)) => "false",
        Ok(None) => "null",
        Err(EvaluationError) => "fails",
    }
}

fn check_table(name: &str, rows_min: usize) {
    let rows = table(name);
    assert!(rows.len() >= rows_min, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [expected, expression, properties @ ..] = &row[..] else { panic!("{row:?} is no row") };
        let properties: Properties = properties.iter().map(|property| property.split_once('=').unwrap()).collect();
        let found = outcome(expression, &properties);
        if found != expected {
            wrong.push(format!("{found} instead of {row:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn chosen_expressions_mean_what_apaches_broker_takes_them_for() {
    check_table("chosen.tsv", 500);
}

#[test]
fn generated_expressions_mean_what_apaches_broker_takes_them_for() {
    check_table("generated.tsv", 3_500);
}

#[test]
fn a_bloom_filter_has_apaches_size_and_an_entry_apaches_bits() {
    let filter = BloomFilter::new(20, 32).unwrap();
    assert_eq!((filter.hashes(), filter.bits()), (3, 112));
    for row in table("bloom.tsv") {
        let number = |column: usize| row[column].parse::<i32>().unwrap();
        match row[0].as_str() {
            "size" => {
                let filter = BloomFilter::new(number(1), number(2)).unwrap();
                assert_eq!([filter.hashes(), filter.bits()], [number(3), number(4)], "{row:?}");
            }
            _ => {
                let entry = filter.of(&row[1]);
                assert_eq!(entry.bit_pos, [number(2), number(3), number(4)], "{row:?}");
                let mut bits = filter.empty();
                entry.put(&mut bits);
                let hex: String = bits.clone().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(hex, row[5], "{row:?}");
                assert!(filter.is_valid(&entry) && entry.is_hit(&bits));
                assert!(!entry.is_hit(&filter.empty()));
            }
        }
    }
}

#[test]
fn a_bloom_filter_of_another_size_is_not_taken_for_ours() {
    let filter = BloomFilter::new(20, 32).unwrap();
    let ours = filter.of_subscription("G", "T");
    assert!(!BloomFilter::new(20, 64).unwrap().is_valid(&ours));
    let mut damaged = ours.clone();
    damaged.bit_pos[0] = 112;
    assert!(!filter.is_valid(&damaged));
    damaged.put(&mut BitsArray::unset(112));
    assert!(!damaged.is_hit(&BitsArray::from_bytes(vec![0xFF; 14])));
    for (percent, entries) in [(0, 32), (100, 32), (20, 0), (-1, 32), (1, i32::MAX)] {
        let found = BloomFilter::new(percent, entries);
        assert!(found.is_none() || found.is_some_and(|filter| filter.bits() > 0), "{percent} {entries}");
    }
}

#[test]
fn an_error_names_the_place_and_what_is_there() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Expression::parse(text).unwrap_err().to_string(), expected, "{text:?}");
    };
    check("a >", "filter expression has the end instead of a property, a literal or ( at byte 3");
    check("a = 1 AND #", "filter expression has '#' at byte 10");
    check("a = 'x", "filter expression has a text without an end at byte 4");
    check("(a = 1", "filter expression has the end instead of ) at byte 6");
    check("a IS OR", "filter expression has OR instead of NULL at byte 5");
    check("a > 'x'", "filter expression compares 'x' by >, at byte 4");
    check("a = NULL", "filter expression compares NULL by =, at byte 4");
    check("5", "filter expression has 5 where true or false is needed, at byte 0");
    check("5 IN ('5')", "filter expression has 5 instead of a property before IN, at byte 0");
    check("a BETWEEN 3 AND 1", "filter expression has BETWEEN 3 AND 1, at byte 10");
    check("a > 9223372036854775808", "filter expression has the number 9223372036854775808, out of range, at byte 4");
}

#[test]
fn length_and_depth_are_limited_and_chains_are_not_deep() {
    let parse = |text: &str| Expression::parse(text).map(|_| ());
    let deep = |count: usize| format!("{}a = 1{}", "(".repeat(count), ")".repeat(count));
    assert_eq!(parse(&deep(100)), Ok(()));
    assert!(matches!(parse(&deep(10_000)), Err(FilterError::TooDeep { .. })));
    let nested = |count: usize| "NOT ".repeat(count) + "a";
    assert_eq!(parse(&nested(Expression::DEPTH_MAX)), Ok(()));
    assert!(matches!(parse(&nested(Expression::DEPTH_MAX + 1)), Err(FilterError::TooDeep { .. })));
    let text = nested(Expression::DEPTH_MAX);
    let expression = Expression::parse(&text).unwrap();
    assert_eq!(Expression::parse(&expression.to_string()), Ok(expression));
    assert!(matches!(parse(&format!("a{}", " IS NULL".repeat(101))), Err(FilterError::TooDeep { .. })));
    assert!(matches!(parse(&"-".repeat(5_000)), Err(FilterError::TooDeep { .. })));
    assert_eq!(parse(&format!("a = 1{}", " OR b = 2".repeat(5_000))), Ok(()));
    assert!(matches!(parse(&"a".repeat(Expression::LENGTH_MAX + 1)), Err(FilterError::TooLong { .. })));
}

/// Pieces of which texts near to expressions are made.
const PIECES: [&str; 40] = [
    "a",
    "b",
    "'x'",
    "''",
    "'it''s'",
    "1",
    "2.5",
    ".5",
    "1e3",
    "9999999999",
    "0",
    "TRUE",
    "false",
    "NULL",
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "IN",
    "IS",
    "CONTAINS",
    "startswith",
    "ENDSWITH",
    "=",
    "<>",
    ">",
    ">=",
    "<",
    "<=",
    "(",
    ")",
    "(",
    ")",
    ",",
    "+",
    "-",
    "--\n",
    "/**/",
    "'",
    "é",
];

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(text in any::<String>(), value in any::<String>()) {
        let properties: Properties = [("a", value.as_str())].into_iter().collect();
        outcome(&text, &properties);
    }

    #[test]
    fn pieces_in_any_order_are_an_expression_or_an_error_and_print_as_they_are(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24),
        spaced in any::<bool>(),
        value in prop::sample::select(vec!["", "x", "1", "2.5", "-1", "NaN", "true", " 1f"]),
    ) {
        let properties: Properties = [("a", value)].into_iter().collect();
        outcome(&pieces.join(if spaced { " " } else { "" }), &properties);
    }

    #[test]
    fn what_was_put_into_a_bloom_filter_is_hit(entries in prop::collection::vec(any::<String>(), 1..40)) {
        let filter = BloomFilter::new(20, 32).unwrap();
        let mut bits = filter.empty();
        for entry in &entries {
            filter.of(entry).put(&mut bits);
        }
        prop_assert!(entries.iter().all(|entry| filter.of(entry).is_hit(&bits)));
    }
}
