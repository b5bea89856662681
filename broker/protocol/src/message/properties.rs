//! Properties of a message and their one-line form.

use crate::lossy::lossy;
use crate::text_map::TextMap;
use memchr::{memchr, memchr_iter};

/// Ends a name.
const NAME_END: u8 = 0x01;
/// Ends a property.
const PROPERTY_END: u8 = 0x02;

/// A broker adds three properties of its own, of about as many bytes.
const ADDED_USUAL: usize = 64;

/// Names and values in the order in which they were put or read; putting a name again replaces the value in its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(TextMap);

impl Properties {
    /// No properties.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `name 0x01 value 0x02 …` leniently: the last end may be missing, segments shorter than three characters and those
    /// with an empty name or value are dropped, of equal names the last wins.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut properties = TextMap::over(text, ADDED_USUAL);
        for (at, segment) in segments(text.as_bytes()) {
            if let Some(name_bytes) = memchr(NAME_END, segment)
                && name_bytes > 0
                && name_bytes + 1 < segment.len()
            {
                let name_end = at + name_bytes;
                properties.insert_part(text, at..name_end, name_end + 1..at + segment.len());
            }
        }
        Self(properties)
    }

    /// Reads the stored form; bytes that are not UTF-8 become replacement characters, as in Java.
    #[must_use]
    pub fn parse_bytes(bytes: &[u8]) -> Self {
        Self::parse(&lossy(bytes))
    }

    /// The one-line form with its last end, as 5.x writes it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let bytes = self.0.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        let mut text = String::with_capacity(bytes);
        for (name, value) in self.iter() {
            text.push_str(name);
            text.push(char::from(NAME_END));
            text.push_str(value);
            text.push(char::from(PROPERTY_END));
        }
        text
    }

    /// Sets a property.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        self.0.insert(name.as_ref(), value.as_ref());
    }

    /// Takes a property out, keeping the order of the others.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// A property's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    /// Whether the property is there.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter()
    }

    /// The tag.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.get(super::property::TAGS)
    }

    /// The index keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.get(super::property::KEYS).unwrap_or("").split(' ').filter(|key| !key.is_empty())
    }

    /// The unique key.
    #[must_use]
    pub fn unique_key(&self) -> Option<&str> {
        self.get(super::property::UNIQUE_KEY)
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(properties: I) -> Self {
        Self(properties.into_iter().collect())
    }
}

/// What stands between ends of properties, and where.
fn segments(stored: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut from = 0;
    memchr_iter(PROPERTY_END, stored).chain([stored.len()]).map(move |end| {
        let at = std::mem::replace(&mut from, end + 1);
        (at, &stored[at..end])
    })
}

/// The value of one property in the stored form, without building a table; of equal names the last wins.
#[must_use]
pub fn find<'a>(stored: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    for (_, segment) in segments(stored) {
        if let Some(rest) = segment.strip_prefix(name.as_bytes())
            && let Some((&NAME_END, value)) = rest.split_first()
            && !value.is_empty()
        {
            found = Some(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Properties, find};

    fn check(text: &str, expected: &[(&str, &str)]) {
        let properties = Properties::parse(text);
        assert_eq!(properties, expected.iter().copied().collect::<Properties>(), "{text:?}");
        for (name, value) in expected {
            assert_eq!(find(text.as_bytes(), name), Some(value.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn parses_as_java_does() {
        check("A\u{1}b\u{2}C\u{1}d", &[("A", "b"), ("C", "d")]);
        check("A\u{1}\u{2}B\u{1}x\u{2}", &[("B", "x")]);
        check("\u{1}v\u{2}K\u{1}v\u{1}w\u{2}", &[("K", "v\u{1}w")]);
        check("novalue\u{2}K\u{1}v", &[("K", "v")]);
        check("K\u{1}v\u{2}K\u{1}w\u{2}", &[("K", "w")]);
        check("", &[]);
    }

    #[test]
    fn find_needs_the_whole_name() {
        assert_eq!(find(b"UNIQ_KEYS\x01a\x02UNIQ_KEY\x01b", "UNIQ_KEY"), Some(b"b".as_slice()));
        assert_eq!(find(b"X\x01UNIQ_KEY\x02", "UNIQ_KEY"), None);
    }

    #[test]
    fn writes_the_last_end() {
        let properties: Properties = [("TAGS", "TagA"), ("WAIT", "true")].into_iter().collect();
        assert_eq!(properties.to_text(), "TAGS\u{1}TagA\u{2}WAIT\u{1}true\u{2}");
    }
}
