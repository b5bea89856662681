//! What a consumer wants of a topic: messages with some tags, or with some properties.
use crate::error::ConfigError;
use protocol::body::SubscriptionData;

/// Which messages of a topic are wanted. The text of an SQL92 expression means what it means to the broker: see
/// [`protocol::filter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSelector(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Tags(String),
    Sql(String),
}

impl MessageSelector {
    /// Every message.
    pub fn all() -> MessageSelector {
        MessageSelector::tags(SubscriptionData::ALL)
    }

    /// `a || b`: messages with one of these tags. Spaces around tags and empty parts do not count; no tag at all, or `*`, is
    /// everything.
    pub fn tags(text: &str) -> MessageSelector {
        MessageSelector(Kind::Tags(text.trim().to_owned()))
    }

    /// `a > 5 AND b IS NOT NULL`: messages for whose properties this SQL92 expression is true. Brokers must allow it
    /// (`enablePropertyFilter`), and understand it.
    pub fn sql(expression: &str) -> MessageSelector {
        MessageSelector(Kind::Sql(expression.to_owned()))
    }

    /// An empty expression is refused here: an empty text means everything in a subscription by tags.
    pub(crate) fn check(&self, topic: &str) -> Result<(), ConfigError> {
        match &self.0 {
            Kind::Sql(expression) if expression.trim().is_empty() => {
                Err(ConfigError::EmptyExpression { topic: topic.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// The selector as part of a heartbeat. `version` orders the selectors of one client for the broker.
    pub(crate) fn subscribe(&self, topic: &str, version: i64) -> SubscriptionData {
        match &self.0 {
            Kind::Tags(tags) => SubscriptionData::by_tags(topic, tags, version),
            Kind::Sql(expression) => SubscriptionData::by_sql(topic, expression, version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MessageSelector;

    fn check(text: &str, expected_text: &str, expected_tags: &[&str]) {
        let data = MessageSelector::tags(text).subscribe("T", 1);
        assert_eq!(data.sub_string, expected_text, "{text:?}");
        assert_eq!(data.tags_set.iter().map(String::as_str).collect::<Vec<_>>(), expected_tags, "{text:?}");
    }

    #[test]
    fn expression_is_split_at_double_bars() {
        check("", "*", &[]);
        check(" * ", "*", &[]);
        check("a", "a", &["a"]);
        check(" b||a || ", "b||a ||", &["a", "b"]);
        assert_eq!(MessageSelector::all(), MessageSelector::tags("*"));
    }

    #[test]
    fn an_expression_goes_as_it_is_and_leaves_the_choice_to_the_broker() {
        let data = MessageSelector::sql(" a > 1").subscribe("T", 3);
        assert_eq!((data.expression_type.as_str(), data.sub_string.as_str(), data.sub_version), ("SQL92", " a > 1", 3));
        assert!(data.matches(None) && data.matches(Some("x")) && !data.is_tag_type());
        assert!(MessageSelector::sql(" ").check("T").is_err());
        assert!(MessageSelector::tags(" ").check("T").is_ok());
    }

    #[test]
    fn only_exact_tags_match() {
        // Two tags with one hash code: the broker cannot tell them apart.
        let data = MessageSelector::tags("Aa").subscribe("T", 1);
        assert_eq!(data.code_set, MessageSelector::tags("BB").subscribe("T", 1).code_set);
        assert!(data.matches(Some("Aa")));
        assert!(!data.matches(Some("BB")));
        assert!(!data.matches(None));
    }
}
