//! Which names topics and groups may have.
use thiserror::Error;

pub(crate) const RETRY_PREFIX: &str = "%RETRY%";
pub(crate) const DLQ_PREFIX: &str = "%DLQ%";

const TOPIC_LENGTH_MAX: usize = 127;
const RETRY_LENGTH_MAX: usize = 255;
const GROUP_LENGTH_MAX: usize = 120;

/// A name that no topic or group can have. The texts are RocketMQ's, since scripts look for them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum NameError {
    #[error("The specified {kind} is blank.")]
    Blank { kind: &'static str },
    #[error("The specified {kind}: {name}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")]
    Characters { kind: &'static str, name: String },
    #[error("The specified {kind}: {name}, is longer than {kind} max length: {max}")]
    Length { kind: &'static str, name: String, max: usize },
    #[error(
        "The specified topic is DLQ or Retry topic: {name}, and it's longer than topic max length: {RETRY_LENGTH_MAX}"
    )]
    RetryLength { name: String },
}

/// Checks a topic's name.
pub(crate) fn check_topic(name: &str) -> Result<(), NameError> {
    check_characters("topic", name)?;
    if name.starts_with(RETRY_PREFIX) || name.starts_with(DLQ_PREFIX) {
        return if name.len() > RETRY_LENGTH_MAX {
            Err(NameError::RetryLength { name: name.to_owned() })
        } else {
            Ok(())
        };
    }
    check_length("topic", name, TOPIC_LENGTH_MAX)
}

/// Checks a group's name.
pub(crate) fn check_group(name: &str) -> Result<(), NameError> {
    check_characters("group", name)?;
    check_length("group", name, GROUP_LENGTH_MAX)
}

fn check_characters(kind: &'static str, name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Blank { kind });
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '|' | '-' | '_');
    if name.chars().all(legal) {
        Ok(())
    } else {
        Err(NameError::Characters { kind, name: name.chars().take(300).collect() })
    }
}

fn check_length(kind: &'static str, name: &str, max: usize) -> Result<(), NameError> {
    if name.len() <= max { Ok(()) } else { Err(NameError::Length { kind, name: name.to_owned(), max }) }
}

#[cfg(test)]
mod tests {
    use super::{check_group, check_topic};

    #[test]
    fn names() {
        let legal = ["T", "%RETRY%g", "a|b-c_d%9"]
            .map(String::from)
            .into_iter()
            .chain(["x".repeat(127), format!("%DLQ%{}", "x".repeat(250))]);
        for name in legal {
            assert_eq!(check_topic(&name), Ok(()), "{name}");
        }
        for name in [
            "".to_owned(),
            "  ".to_owned(),
            "a+b".to_owned(),
            "a b".to_owned(),
            "ä".to_owned(),
            "../x".to_owned(),
            "x".repeat(128),
            format!("%RETRY%{}", "x".repeat(249)),
        ] {
            assert!(check_topic(&name).is_err(), "{name}");
        }
        assert_eq!(check_group(&"g".repeat(120)), Ok(()));
        assert!(check_group(&"g".repeat(121)).is_err());
    }
}
