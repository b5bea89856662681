//! The ext fields of a command.

use crate::text_map::TextMap;
use std::ops::Range;

/// Text fields in the order in which they were put or read; the last of two equal keys wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtFields(TextMap);

impl ExtFields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No fields yet; those of this header are to come, and `more_bytes` of texts that it has escaped.
    pub(crate) fn over(header: &str, more_bytes: usize) -> Self {
        Self(TextMap::over(header, more_bytes))
    }

    /// Sets a field to a part of the header [over](Self::over) which the fields were made.
    #[inline]
    pub(crate) fn insert_part(&mut self, header: &str, key: Range<usize>, value: Range<usize>) {
        self.0.insert_part(header, key, value);
    }

    /// Sets a field.
    pub fn insert(&mut self, key: impl AsRef<str>, value: impl AsRef<str>) {
        self.0.insert(key.as_ref(), value.as_ref());
    }

    /// Sets a field to a number's decimal text.
    pub fn insert_number(&mut self, key: impl AsRef<str>, value: i64) {
        self.0.insert(key.as_ref(), itoa::Buffer::new().format(value));
    }

    /// The field's text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// Takes a field out.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
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

    /// The fields in order, as UTF-8.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.bytes()
    }

    /// The fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}
