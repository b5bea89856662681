//! Which messages a reader wants: by tags, or by an expression over properties.
use crate::consumer_filters::FilterByBits;
use protocol::body::SubscriptionData;
use protocol::filter::Expression;
use protocol::message::{property, tags_code};
use protocol::{Properties, message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::EntryFilter;
use thiserror::Error;

/// Why a subscription text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum FilterError {
    #[error("tag expression {0:?} names no tag")]
    NoTag(String),
    #[error("expression type {0:?} is not supported")]
    TypeNotSupported(String),
    #[error(transparent)]
    Expression(#[from] protocol::FilterError),
}

/// What one pull wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    /// Looked at in the queue's entries.
    Tags(TagFilter),
    /// Looked at in the records.
    Properties(PropertyFilter),
}

/// A filter over the properties of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PropertyFilter {
    /// Every message by one expression (`ExpressionMessageFilter`), and what of it bit maps tell if it is the one that the group's heartbeats
    /// told.
    Expression(Arc<Expression>, Option<FilterByBits>),
    /// Of a group's retry topic: each by the expression for the topic it was sent to (`ExpressionForRetryMessageFilter`).
    ByRetriedTopic(BTreeMap<String, Arc<Expression>>),
}

impl Filter {
    /// What of it can be seen in the queue's entries.
    pub fn tags(&self) -> TagFilter {
        match self {
            Filter::Tags(tags) => tags.clone(),
            Filter::Properties(_) => TagFilter::All,
        }
    }
}

impl PropertyFilter {
    /// What can be seen in the queue's entries.
    pub fn of_entries(&self) -> &dyn EntryFilter {
        match self {
            PropertyFilter::Expression(_, Some(bits)) => bits,
            _ => &store::TagFilter::All,
        }
    }

    /// A message whose topic has no expression is wanted.
    pub fn wants(&self, properties: &Properties) -> bool {
        match self {
            PropertyFilter::Expression(expression, _) => expression.matches(properties),
            PropertyFilter::ByRetriedTopic(expressions) => properties
                .get(property::RETRY_TOPIC)
                .and_then(|topic| expressions.get(topic))
                .is_none_or(|expression| expression.matches(properties)),
        }
    }

    /// Whether a stored message is wanted.
    pub fn wants_record(&self, record: &[u8]) -> bool {
        message::RecordView::parse(record).is_ok_and(|record| self.wants(&Properties::parse_bytes(record.properties())))
    }
}

/// The expression of a subscription that is not by tags.
pub(crate) fn expression(subscription: &SubscriptionData) -> Result<Expression, FilterError> {
    if subscription.expression_type != SubscriptionData::SQL {
        return Err(FilterError::TypeNotSupported(subscription.expression_type.clone()));
    }
    Ok(Expression::parse(&subscription.sub_string)?)
}

/// Which tags codes a reader wants. Codes are Java hash codes: a collision lets a wrong tag through, and the client checks the text again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TagFilter {
    All,
    Codes(BTreeSet<i64>),
}

impl TagFilter {
    /// Reads `*`, or tags joined by `||`. An empty text is `*`.
    pub fn parse(expression: &str) -> Result<TagFilter, FilterError> {
        if expression.is_empty() || expression == "*" {
            return Ok(TagFilter::All);
        }
        let pieces: Vec<&str> = expression.split("||").collect();
        if pieces.iter().all(|piece| piece.is_empty()) {
            return Err(FilterError::NoTag(expression.to_owned()));
        }
        Ok(TagFilter::Codes(
            pieces.iter().map(|piece| piece.trim()).filter(|tag| !tag.is_empty()).map(tags_code).collect(),
        ))
    }

    pub fn passes(&self, code: i64) -> bool {
        match self {
            TagFilter::All => true,
            TagFilter::Codes(codes) => codes.contains(&code),
        }
    }

    /// The codes wanted; `None` = all.
    pub fn codes(&self) -> Option<&BTreeSet<i64>> {
        match self {
            TagFilter::All => None,
            TagFilter::Codes(codes) => Some(codes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FilterError, PropertyFilter, TagFilter, expression};
    use protocol::body::SubscriptionData;
    use protocol::filter::Expression;
    use protocol::message::tags_code;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn tag_expressions() {
        let codes = |tags: &[&str]| Ok(TagFilter::Codes(tags.iter().map(|tag| tags_code(tag)).collect()));
        let check = |text: &str, expected| assert_eq!(TagFilter::parse(text), expected, "{text:?}");
        check("", Ok(TagFilter::All));
        check("*", Ok(TagFilter::All));
        check("a", codes(&["a"]));
        check(" a || b||c ", codes(&["a", "b", "c"]));
        check("a||", codes(&["a"]));
        check(" ", codes(&[]));
        check("||", Err(FilterError::NoTag("||".to_owned())));
    }

    #[test]
    fn only_sql_is_understood() {
        let mut subscription = SubscriptionData::by_sql("T", "a > 1", 1);
        assert!(expression(&subscription).is_ok());
        subscription.sub_string.clear();
        assert!(matches!(expression(&subscription), Err(FilterError::Expression(_))));
        subscription.expression_type = "XPATH".to_owned();
        assert_eq!(expression(&subscription), Err(FilterError::TypeNotSupported("XPATH".to_owned())));
    }

    #[test]
    fn a_message_that_comes_again_is_judged_by_the_filter_of_its_first_topic() {
        let wanted = Arc::new(Expression::parse("a = 'x'").expect("valid"));
        let filter = PropertyFilter::ByRetriedTopic(BTreeMap::from([("T".to_owned(), wanted)]));
        let check = |properties: &[(&str, &str)], expected| {
            assert_eq!(filter.wants(&properties.iter().copied().collect()), expected, "{properties:?}");
        };
        check(&[("RETRY_TOPIC", "T"), ("a", "x")], true);
        check(&[("RETRY_TOPIC", "T"), ("a", "y")], false);
        check(&[("RETRY_TOPIC", "T")], false);
        check(&[("RETRY_TOPIC", "U"), ("a", "y")], true);
        check(&[("a", "y")], true);
    }

    #[test]
    fn only_the_wanted_codes_pass() {
        let filter = TagFilter::parse("a || b").expect("valid");
        assert!(filter.passes(tags_code("a")));
        assert!(!filter.passes(tags_code("c")));
        assert!(TagFilter::All.passes(0));
    }
}
