//! Text by text in the order of insertion: what ext fields and properties have in common.
//!
//! Real frames carry a dozen short entries, so a few are searched one by one and short texts need no allocation. A hostile frame may
//! carry millions: above [`FEW_MAX`] the entries are hashed.

use compact_str::CompactString;
use indexmap::IndexMap;

/// Entries up to which a search looks at each.
const FEW_MAX: usize = 32;
/// A request and a message have about as many.
const ENTRIES_USUAL: usize = 12;

/// An ordered map. Putting a key again replaces the value in its place.
#[derive(Debug, Clone)]
pub(crate) enum TextMap {
    Few(Few),
    Many(IndexMap<CompactString, CompactString>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Few {
    entries: Vec<(CompactString, CompactString)>,
    /// A bit for each [mark](mark) of a key that was put: most searches for what is not there end here.
    marks: u64,
}

impl Few {
    fn place(&self, key: &str) -> Option<usize> {
        if self.marks & mark(key) == 0 {
            return None;
        }
        self.entries.iter().position(|(other, _)| other == key)
    }
}

/// One bit of 64, by length, first and last letter.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
    let letters = u64::from(first).wrapping_mul(7) ^ u64::from(last);
    1 << ((letters.wrapping_mul(5) ^ bytes.len() as u64) & 63)
}

impl Default for TextMap {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

impl TextMap {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self::Few(Few { entries: Vec::with_capacity(entries.min(FEW_MAX)), marks: 0 })
    }

    pub(crate) fn insert(&mut self, key: CompactString, value: CompactString) {
        match self {
            Self::Few(few) => {
                if let Some(place) = few.place(&key) {
                    few.entries[place].1 = value;
                } else if few.entries.len() < FEW_MAX {
                    if few.entries.is_empty() {
                        few.entries.reserve(ENTRIES_USUAL);
                    }
                    few.marks |= mark(&key);
                    few.entries.push((key, value));
                } else {
                    let mut many: IndexMap<_, _> = std::mem::take(&mut few.entries).into_iter().collect();
                    many.insert(key, value);
                    *self = Self::Many(many);
                }
            }
            Self::Many(entries) => {
                entries.insert(key, value);
            }
        }
    }

    /// Takes an entry out, keeping the order of the others.
    pub(crate) fn remove(&mut self, key: &str) -> Option<CompactString> {
        match self {
            // Its mark stays: another key may have the same.
            Self::Few(few) => few.place(key).map(|place| few.entries.remove(place).1),
            Self::Many(entries) => entries.shift_remove(key),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        match self {
            Self::Few(few) => few.place(key).map(|place| few.entries[place].1.as_str()),
            Self::Many(entries) => entries.get(key).map(CompactString::as_str),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.entries.len(),
            Self::Many(entries) => entries.len(),
        }
    }

    fn at(&self, place: usize) -> (&str, &str) {
        let (key, value) = match self {
            Self::Few(few) => (&few.entries[place].0, &few.entries[place].1),
            Self::Many(entries) => entries.get_index(place).expect("callers stay below the length"),
        };
        (key, value)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        (0..self.len()).map(|place| self.at(place))
    }
}

/// The same entries in any order.
impl PartialEq for TextMap {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Eq for TextMap {}

impl<K: Into<CompactString>, V: Into<CompactString>> FromIterator<(K, V)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut map = Self::with_capacity(entries.size_hint().1.unwrap_or(0));
        entries.for_each(|(key, value)| map.insert(key.into(), value.into()));
        map
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW_MAX, TextMap};
    use indexmap::IndexMap;
    use proptest::prelude::*;

    proptest! {
        /// Around the bound both forms behave as one map.
        #[test]
        fn behaves_as_an_ordered_map(steps in proptest::collection::vec((0..48_u8, "[a-z]{0,30}", proptest::bool::weighted(0.2)), 0..200)) {
            let mut map = TextMap::default();
            let mut model: IndexMap<String, String> = IndexMap::new();
            for (key, value, removes) in steps {
                let key = format!("key{key}");
                if removes {
                    prop_assert_eq!(map.remove(&key).map(String::from), model.shift_remove(&key));
                } else {
                    map.insert(key.as_str().into(), value.as_str().into());
                    model.insert(key, value);
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(map.iter().eq(model.iter().map(|(key, value)| (key.as_str(), value.as_str()))));
            prop_assert_eq!(&map, &model.iter().rev().map(|(key, value)| (key.as_str(), value.as_str())).collect::<TextMap>());
        }
    }

    #[test]
    fn a_hostile_number_of_entries_is_searched_fast() {
        let many: TextMap = (0..200_000).map(|key| (key.to_string(), "v")).collect();
        assert_eq!(many.len(), 200_000);
        assert!(many.len() > FEW_MAX);
        assert_eq!(many.get("199999"), Some("v"));
    }
}
