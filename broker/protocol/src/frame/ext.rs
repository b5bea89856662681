//! The ext fields of a command.

use compact_str::CompactString;

use crate::text_map::TextMap;

/// Text fields in the order in which they were put or read; the last of two equal keys wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtFields(TextMap);

impl ExtFields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field.
    pub fn insert(&mut self, key: impl Into<CompactString>, value: impl Into<CompactString>) {
        self.0.insert(key.into(), value.into());
    }

    /// The field's text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// Takes a field out.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.0.remove(key).map(String::from)
    }

    /// Whether the field is there.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.get(key).is_some()
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter()
    }
}

impl<K: Into<CompactString>, V: Into<CompactString>> FromIterator<(K, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}
