//! What a consumer wants of a topic: a tag expression.
use protocol::body::SubscriptionData;

/// Tags joined by `||`, or everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagExpression(String);

impl TagExpression {
    /// Every message.
    pub fn all() -> TagExpression {
        TagExpression(SubscriptionData::ALL.to_owned())
    }

    /// `a || b`: messages with one of these tags. Spaces around tags and empty parts do not count; no tag at all, or `*`, is
    /// everything.
    pub fn tags(text: &str) -> TagExpression {
        TagExpression(text.trim().to_owned())
    }

    /// The expression as part of a heartbeat. `version` orders the expressions of one client for the broker.
    pub(crate) fn subscribe(&self, topic: &str, version: i64) -> SubscriptionData {
        SubscriptionData::by_tags(topic, &self.0, version)
    }
}

#[cfg(test)]
mod tests {
    use super::TagExpression;

    fn check(text: &str, expected_text: &str, expected_tags: &[&str]) {
        let data = TagExpression::tags(text).subscribe("T", 1);
        assert_eq!(data.sub_string, expected_text, "{text:?}");
        assert_eq!(data.tags_set.iter().map(String::as_str).collect::<Vec<_>>(), expected_tags, "{text:?}");
    }

    #[test]
    fn expression_is_split_at_double_bars() {
        check("", "*", &[]);
        check(" * ", "*", &[]);
        check("a", "a", &["a"]);
        check(" b||a || ", "b||a ||", &["a", "b"]);
        assert_eq!(TagExpression::all(), TagExpression::tags("*"));
    }

    #[test]
    fn only_exact_tags_match() {
        // Two tags with one hash code: the broker cannot tell them apart.
        let data = TagExpression::tags("Aa").subscribe("T", 1);
        assert_eq!(data.code_set, TagExpression::tags("BB").subscribe("T", 1).code_set);
        assert!(data.matches(Some("Aa")));
        assert!(!data.matches(Some("BB")));
        assert!(!data.matches(None));
    }
}
