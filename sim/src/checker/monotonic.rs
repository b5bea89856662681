//! A value that may only grow, as each observer sees it.

use crate::verdict::EventId;
use std::collections::BTreeMap;

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading<K, V> {
    /// Whose readings are compared: an observer, a key, or both.
    pub key: K,
    /// What was read.
    pub value: V,
    /// The proof.
    pub event: EventId,
}

/// A value that went back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regression<K, V> {
    /// Whose readings.
    pub key: K,
    /// The highest value before, and its proof.
    pub high: (V, EventId),
    /// The lower one after it, and its proof.
    pub low: (V, EventId),
}

/// Finds each first step below the highest value so far, per key; readings in order of time. A value that goes back and stays
/// there is told once.
pub fn check<K: Ord + Clone, V: Ord + Clone>(
    readings: impl IntoIterator<Item = Reading<K, V>>,
) -> Vec<Regression<K, V>> {
    let mut highs: BTreeMap<K, (V, EventId)> = BTreeMap::new();
    let mut regressions = Vec::new();
    for Reading { key, value, event } in readings {
        if let Some(high) = highs.get(&key)
            && value < high.0
        {
            regressions.push(Regression { key: key.clone(), high: high.clone(), low: (value.clone(), event) });
        }
        highs.insert(key, (value, event));
    }
    regressions
}

#[cfg(test)]
mod tests {
    use super::{Reading, check};
    use crate::verdict::EventId;

    fn went_back(readings: &[(&str, i64)]) -> Vec<(String, i64, i64)> {
        let readings = readings.iter().enumerate().map(|(index, (key, value))| Reading {
            key: (*key).to_owned(),
            value: *value,
            event: EventId(index),
        });
        check(readings).into_iter().map(|found| (found.key, found.high.0, found.low.0)).collect()
    }

    #[test]
    fn growth_and_rest_are_fine() {
        assert!(went_back(&[("a", 1), ("a", 1), ("b", 0), ("a", 5), ("b", 3)]).is_empty());
    }

    #[test]
    fn a_step_back_is_told_once_with_both_sides() {
        assert_eq!(went_back(&[("a", 5), ("b", 9), ("a", 3), ("a", 3), ("a", 4)]), [("a".to_owned(), 5, 3)]);
        assert_eq!(
            went_back(&[("a", 5), ("a", 3), ("a", 6), ("a", 2)]),
            [("a".to_owned(), 5, 3), ("a".to_owned(), 6, 2)]
        );
    }
}
