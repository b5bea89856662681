//! Text by text in the order of insertion: what ext fields and properties have in common.
//!
//! Real frames carry a dozen short entries: all their texts stand in one string, and a search looks at each entry. A hostile frame may
//! carry millions: above [`FEW_MAX`] entries or [`TEXT_MAX`] bytes they are hashed.

use indexmap::IndexMap;

/// Entries up to which a search looks at each.
const FEW_MAX: usize = 32;
/// Bytes up to which the texts, and what replaced ones leave behind, stand in one string; offsets into it are 32 bits.
const TEXT_MAX: usize = 1 << 20;
/// A request and a message have about as many entries, of as many bytes each.
const ENTRIES_USUAL: usize = 12;
const ENTRY_BYTES_USUAL: usize = 20;

/// An ordered map. Putting a key again replaces the value in its place.
#[derive(Debug, Clone)]
pub(crate) enum TextMap {
    Few(Few),
    Many(IndexMap<String, String>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Few {
    text: String,
    entries: Vec<Entry>,
    /// A bit for each [mark](mark) of a key that was put: most searches for what is not there end here.
    marks: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Span,
    value: Span,
    mark: u8,
}

/// A part of the text.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u32,
    to: u32,
}

impl Few {
    fn place(&self, key: &str) -> Option<usize> {
        let mark = mark(key);
        if self.marks >> mark & 1 == 0 {
            return None;
        }
        self.entries.iter().position(|entry| entry.mark == mark && self.text(entry.key) == key)
    }

    fn text(&self, span: Span) -> &str {
        &self.text[span.from as usize..span.to as usize]
    }

    fn at(&self, place: usize) -> (&str, &str) {
        let entry = self.entries[place];
        (self.text(entry.key), self.text(entry.value))
    }

    fn write(&mut self, text: &str) -> Span {
        let from = self.end();
        self.text.push_str(text);
        Span { from, to: self.end() }
    }

    fn end(&self) -> u32 {
        u32::try_from(self.text.len()).expect("a text that could grow too long is hashed")
    }

    /// Whether an entry of so many bytes more is still among few.
    fn has_room(&self, bytes: usize) -> bool {
        self.entries.len() < FEW_MAX && self.text.len().saturating_add(bytes) <= TEXT_MAX
    }

    fn insert(&mut self, key: &str, value: &str) {
        if self.entries.is_empty() {
            self.entries.reserve(ENTRIES_USUAL);
            self.text.reserve(ENTRIES_USUAL * ENTRY_BYTES_USUAL);
        }
        match self.place(key) {
            Some(place) => self.entries[place].value = self.write(value),
            None => {
                let mark = mark(key);
                self.marks |= 1 << mark;
                let (key, value) = (self.write(key), self.write(value));
                self.entries.push(Entry { key, value, mark });
            }
        }
    }

    fn remove(&mut self, key: &str) -> Option<String> {
        // Its mark stays: another key may have the same.
        let entry = self.place(key).map(|place| self.entries.remove(place))?;
        Some(self.text(entry.value).to_owned())
    }
}

/// One of 64, by length, first and last letter.
fn mark(key: &str) -> u8 {
    let bytes = key.as_bytes();
    let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
    let letters = u64::from(first).wrapping_mul(7) ^ u64::from(last);
    ((letters.wrapping_mul(5) ^ bytes.len() as u64) & 63) as u8
}

impl Default for TextMap {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

impl TextMap {
    /// Room for a usual number of entries, of so many bytes together.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self::Few(Few {
            text: String::with_capacity(bytes.min(TEXT_MAX)),
            entries: Vec::with_capacity(ENTRIES_USUAL),
            marks: 0,
        })
    }

    pub(crate) fn insert(&mut self, key: &str, value: &str) {
        match self.few_with_room(key.len().saturating_add(value.len())) {
            Ok(few) => few.insert(key, value),
            Err(many) => drop(many.insert(key.to_owned(), value.to_owned())),
        }
    }

    /// The few entries if as many bytes more fit; else all of them, hashed from now on.
    fn few_with_room(&mut self, bytes: usize) -> Result<&mut Few, &mut IndexMap<String, String>> {
        if let Self::Few(few) = self
            && !few.has_room(bytes)
        {
            *self = Self::Many(self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        }
        match self {
            Self::Few(few) => Ok(few),
            Self::Many(entries) => Err(entries),
        }
    }

    /// Takes an entry out, keeping the order of the others.
    pub(crate) fn remove(&mut self, key: &str) -> Option<String> {
        match self {
            Self::Few(few) => few.remove(key),
            Self::Many(entries) => entries.shift_remove(key),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        match self {
            Self::Few(few) => few.place(key).map(|place| few.at(place).1),
            Self::Many(entries) => entries.get(key).map(String::as_str),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.entries.len(),
            Self::Many(entries) => entries.len(),
        }
    }

    fn at(&self, place: usize) -> (&str, &str) {
        match self {
            Self::Few(few) => few.at(place),
            Self::Many(entries) => {
                let (key, value) = entries.get_index(place).expect("callers stay below the length");
                (key, value)
            }
        }
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

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        entries.into_iter().for_each(|(key, value)| map.insert(key.as_ref(), value.as_ref()));
        map
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW_MAX, TEXT_MAX, TextMap};
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
                    prop_assert_eq!(map.remove(&key), model.shift_remove(&key));
                } else {
                    map.insert(&key, &value);
                    model.insert(key, value);
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(map.iter().eq(model.iter().map(|(key, value)| (key.as_str(), value.as_str()))));
            prop_assert_eq!(&map, &model.iter().rev().map(|(key, value)| (key.as_str(), value.as_str())).collect::<TextMap>());
        }
    }

    #[test]
    fn texts_that_are_replaced_without_end_are_not_kept() {
        let mut map = TextMap::default();
        let value = "v".repeat(TEXT_MAX / 4);
        (0..100).for_each(|_| map.insert("key", &value));
        assert!(matches!(map, TextMap::Many(_)));
        assert_eq!((map.len(), map.get("key")), (1, Some(value.as_str())));
    }

    #[test]
    fn a_hostile_number_of_entries_is_searched_fast() {
        let many: TextMap = (0..200_000).map(|key| (key.to_string(), "v")).collect();
        assert_eq!(many.len(), 200_000);
        assert!(many.len() > FEW_MAX);
        assert_eq!(many.get("199999"), Some("v"));
    }
}
