//! Tag subscriptions: the only kind of filter the broker applies itself so far.
use protocol::message::tags_code;
use std::collections::BTreeSet;
use thiserror::Error;

/// Why a subscription text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum FilterError {
    #[error("tag expression {0:?} names no tag")]
    NoTag(String),
    #[error("expression type {0:?} is not supported")]
    TypeNotSupported(String),
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

    /// The filter of a subscription with its type; a missing type means tags.
    pub fn of(expression_type: Option<&str>, expression: &str) -> Result<TagFilter, FilterError> {
        match expression_type {
            None | Some("" | "TAG") => TagFilter::parse(expression),
            Some(other) => Err(FilterError::TypeNotSupported(other.to_owned())),
        }
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
    use super::{FilterError, TagFilter};
    use protocol::message::tags_code;

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
        assert_eq!(TagFilter::of(Some("SQL92"), "a > 1"), Err(FilterError::TypeNotSupported("SQL92".to_owned())));
        assert_eq!(TagFilter::of(None, "*"), Ok(TagFilter::All));
    }

    #[test]
    fn only_the_wanted_codes_pass() {
        let filter = TagFilter::parse("a || b").expect("valid");
        assert!(filter.passes(tags_code("a")));
        assert!(!filter.passes(tags_code("c")));
        assert!(TagFilter::All.passes(0));
    }
}
