//! Text by text in the order of insertion: what ext fields and properties have in common.
//!
//! Real frames carry a dozen short entries: all their texts stand in one string, and a search looks at each entry. A hostile frame may
//! carry millions: above [`FEW_MAX`] entries or [`TEXT_MAX`] bytes they are hashed.

use indexmap::IndexMap;
use std::ops::Range;

/// Entries up to which a search looks at each.
const FEW_MAX: usize = 32;
/// Bytes up to which the texts, and what replaced ones leave behind, stand in one string; offsets into it are 32 bits.
const TEXT_MAX: usize = 1 << 20;
/// A request and a message have about as many entries, of as many bytes together.
const ENTRIES_USUAL: usize = 12;
const TEXT_BYTES_USUAL: usize = 240;

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
    // Keys as bytes: a slice of them needs no look at where characters begin.
    #[inline]
    fn place(&self, key: &[u8], mark: u8) -> Option<usize> {
        if self.marks >> mark & 1 == 0 {
            return None;
        }
        let text = self.text.as_bytes();
        self.entries
            .iter()
            .position(|entry| entry.mark == mark && text[entry.key.from as usize..entry.key.to as usize] == *key)
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

    #[inline]
    fn insert(&mut self, key: &str, value: &str) {
        if self.entries.capacity() == 0 {
            self.entries = Vec::with_capacity(ENTRIES_USUAL);
            self.text = String::with_capacity(TEXT_BYTES_USUAL.max(key.len() + value.len()));
        }
        let mark = mark(key.as_bytes());
        match self.place(key.as_bytes(), mark) {
            Some(place) => self.entries[place].value = self.write(value),
            None => {
                self.marks |= 1 << mark;
                let (key, value) = (self.write(key), self.write(value));
                self.entries.push(Entry { key, value, mark });
            }
        }
    }

    /// As [`insert`](Self::insert), for parts of the text that is here.
    #[inline]
    fn insert_part(&mut self, key: Range<usize>, value: Range<usize>) {
        let place = |at: usize| u32::try_from(at).expect("a text that could grow too long is hashed");
        let value = Span { from: place(value.start), to: place(value.end) };
        let bytes = &self.text.as_bytes()[key.clone()];
        let mark = mark(bytes);
        match self.place(bytes, mark) {
            Some(place) => self.entries[place].value = value,
            None => {
                self.marks |= 1 << mark;
                let key = Span { from: place(key.start), to: place(key.end) };
                self.entries.push(Entry { key, value, mark });
            }
        }
    }

    fn remove(&mut self, key: &str) -> Option<String> {
        // Its mark stays: another key may have the same.
        let entry = self.place(key.as_bytes(), mark(key.as_bytes())).map(|place| self.entries.remove(place))?;
        Some(self.text(entry.value).to_owned())
    }
}

/// One of 64, by length, first and last letter.
#[inline]
fn mark(key: &[u8]) -> u8 {
    let (first, last) = (key.first().copied().unwrap_or(0), key.last().copied().unwrap_or(0));
    let letters = u64::from(first).wrapping_mul(7) ^ u64::from(last);
    ((letters.wrapping_mul(5) ^ key.len() as u64) & 63) as u8
}

impl Default for TextMap {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

impl TextMap {
    /// An empty map that keeps this text, whose parts may be [put](Self::insert_part) without a copy; `more_bytes`: room for others.
    pub(crate) fn over(text: &str, more_bytes: usize) -> Self {
        if text.len() > TEXT_MAX {
            return Self::Many(IndexMap::new());
        }
        let mut kept = String::with_capacity(text.len() + more_bytes);
        kept.push_str(text);
        Self::Few(Few { text: kept, entries: Vec::with_capacity(ENTRIES_USUAL), marks: 0 })
    }

    pub(crate) fn insert(&mut self, key: &str, value: &str) {
        match self.few_with_room(key.len().saturating_add(value.len())) {
            Ok(few) => few.insert(key, value),
            Err(many) => drop(many.insert(key.to_owned(), value.to_owned())),
        }
    }

    /// As [`insert`](Self::insert), for parts of the text [over](Self::over) which the map was made.
    #[inline]
    pub(crate) fn insert_part(&mut self, text: &str, key: Range<usize>, value: Range<usize>) {
        match self {
            Self::Few(few) if few.entries.len() < FEW_MAX => few.insert_part(key, value),
            _ => self.insert(&text[key], &text[value]),
        }
    }

    /// The few entries if as many bytes more fit; else all of them, hashed from now on.
    #[inline]
    fn few_with_room(&mut self, bytes: usize) -> Result<&mut Few, &mut IndexMap<String, String>> {
        if let Self::Few(few) = self
            && !few.has_room(bytes)
        {
            self.hash();
        }
        match self {
            Self::Few(few) => Ok(few),
            Self::Many(entries) => Err(entries),
        }
    }

    #[cold]
    fn hash(&mut self) {
        *self = Self::Many(self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
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
            Self::Few(few) => {
                let place = few.place(key.as_bytes(), mark(key.as_bytes()))?;
                Some(few.text(few.entries[place].value))
            }
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

    /// As [`iter`](Self::iter), without a look at where characters begin.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|place| match self {
            Self::Few(few) => {
                let (text, entry) = (few.text.as_bytes(), &few.entries[place]);
                let part = |span: Span| &text[span.from as usize..span.to as usize];
                (part(entry.key), part(entry.value))
            }
            Self::Many(_) => {
                let (key, value) = self.at(place);
                (key.as_bytes(), value.as_bytes())
            }
        })
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
            prop_assert!(map.bytes().eq(map.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()))));
            prop_assert_eq!(&map, &model.iter().rev().map(|(key, value)| (key.as_str(), value.as_str())).collect::<TextMap>());
        }
    }

    proptest! {
        /// A map over a text, into which other texts are put too, is the map of copies.
        #[test]
        fn a_map_over_a_text_is_the_map_of_its_parts(parts in proptest::collection::vec(("[a-c]{0,2}", "[a-z]{0,9}", proptest::bool::ANY), 0..48)) {
            let text: String = parts.iter().flat_map(|(key, value, _)| [key.as_str(), value.as_str()]).collect();
            let (mut map, mut copies) = (TextMap::over(&text, 0), TextMap::default());
            let mut at = 0;
            for (key, value, is_part) in &parts {
                let (value_at, end) = (at + key.len(), at + key.len() + value.len());
                if *is_part {
                    map.insert_part(&text, at..value_at, value_at..end);
                    copies.insert(key, value);
                } else {
                    map.insert(key, "another");
                    copies.insert(key, "another");
                }
                at = end;
            }
            prop_assert!(map.iter().eq(copies.iter()));
        }
    }

    #[test]
    fn a_map_over_a_huge_text_does_not_keep_it() {
        let text = "v".repeat(TEXT_MAX + 1);
        let mut map = TextMap::over(&text, 0);
        map.insert_part(&text, 0..1, 1..3);
        assert!(matches!(map, TextMap::Many(_)));
        assert_eq!(map.get("v"), Some("vv"));
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
