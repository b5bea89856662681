//! What names and messages may look like, checked before anything is sent.
use crate::config::{ConsumerConfig, ProducerConfig};
use crate::error::{ConfigError, InvalidMessage};
use protocol::Message;
use protocol::message::is_retry_topic;

const TOPIC_LEN_MAX: usize = 127;
const RETRY_TOPIC_LEN_MAX: usize = 255;
const GROUP_LEN_MAX: usize = 120;
/// A record has 16 bits, signed, for the length of its properties.
const PROPERTIES_LEN_MAX: usize = 32_767;

/// Topics of the broker's own that users may not send to.
const RESERVED_TOPICS: [&str; 6] = [
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];

/// Groups that stand for "no group was given".
const PLACEHOLDER_GROUPS: [&str; 2] = ["DEFAULT_PRODUCER", "DEFAULT_CONSUMER"];

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'%' | b'|' | b'_' | b'-'))
}

/// A topic that a user may name.
pub(crate) fn topic(topic: &str) -> Result<(), InvalidMessage> {
    let limit = if is_retry_topic(topic) { RETRY_TOPIC_LEN_MAX } else { TOPIC_LEN_MAX };
    if !is_name(topic) || topic.len() > limit {
        return Err(InvalidMessage::Topic { topic: topic.into() });
    }
    Ok(())
}

/// A message that a user may send.
pub(crate) fn message(message: &Message, body_limit: usize) -> Result<(), InvalidMessage> {
    topic(&message.topic)?;
    if RESERVED_TOPICS.contains(&message.topic.as_str()) {
        return Err(InvalidMessage::ReservedTopic { topic: message.topic.clone() });
    }
    if message.body.is_empty() {
        return Err(InvalidMessage::EmptyBody);
    }
    body_size(message.body.len(), body_limit)
}

/// Size of a body, or of a batch of them.
pub(crate) fn body_size(bytes: usize, limit: usize) -> Result<(), InvalidMessage> {
    if bytes > limit { Err(InvalidMessage::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// Size of the property text.
pub(crate) fn properties_size(bytes: usize) -> Result<(), InvalidMessage> {
    let limit = PROPERTIES_LEN_MAX;
    if bytes > limit { Err(InvalidMessage::PropertiesTooLong { bytes, limit }) } else { Ok(()) }
}

fn group(group: &str) -> Result<(), ConfigError> {
    if !is_name(group) || group.len() > GROUP_LEN_MAX || PLACEHOLDER_GROUPS.contains(&group) {
        return Err(ConfigError::Group { group: group.into() });
    }
    Ok(())
}

fn range(field: &'static str, value: i64, min: i64, max: i64) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::Range { field, value, min, max }) }
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A producer's configuration.
pub(crate) fn producer(config: &ProducerConfig) -> Result<(), ConfigError> {
    group(&config.group)?;
    range("compress_level", config.compress_level.into(), 0, 9)?;
    range("default_topic_queue_nums", config.default_topic_queue_nums.into(), 1, 65_535)
}

/// A consumer's configuration.
pub(crate) fn consumer(config: &ConsumerConfig) -> Result<(), ConfigError> {
    group(&config.group)?;
    range("consume_concurrency", count(config.consume_concurrency), 1, 1000)?;
    range("consume_concurrently_max_span", config.consume_concurrently_max_span, 1, 65_535)?;
    range("pull_threshold_for_queue", count(config.pull_threshold_for_queue), 1, 65_535)?;
    range("pull_threshold_size_mib_for_queue", count(config.pull_threshold_size_mib_for_queue), 1, 1024)?;
    range("consume_message_batch_max_size", count(config.consume_message_batch_max_size), 1, 1024)?;
    range("pull_batch_size", config.pull_batch_size.into(), 1, 1024)?;
    range("pull_batch_size_bytes", config.pull_batch_size_bytes.into(), 1, i32::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::{consumer, producer, properties_size, topic};
    use crate::config::{ConsumerConfig, ProducerConfig};
    use crate::error::{ConfigError, InvalidMessage};

    #[test]
    fn topic_names_are_ascii_words() {
        for good in ["T", "%RETRY%g", "a-b_c|d", &"x".repeat(127)] {
            assert_eq!(topic(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "ä", "a.b", &"x".repeat(128)] {
            assert_eq!(topic(bad), Err(InvalidMessage::Topic { topic: bad.into() }));
        }
        assert_eq!(topic(&format!("%RETRY%{}", "x".repeat(248))), Ok(()));
    }

    #[test]
    fn group_must_be_chosen() {
        assert_eq!(producer(&ProducerConfig::new("g")), Ok(()));
        assert_eq!(
            producer(&ProducerConfig::new("DEFAULT_PRODUCER")),
            Err(ConfigError::Group { group: "DEFAULT_PRODUCER".into() })
        );
        assert!(consumer(&ConsumerConfig::new("")).is_err());
    }

    #[test]
    fn consumer_numbers_have_ranges() {
        assert_eq!(consumer(&ConsumerConfig::new("g")), Ok(()));
        let config = ConsumerConfig { pull_batch_size: 1025, ..ConsumerConfig::new("g") };
        assert_eq!(
            consumer(&config),
            Err(ConfigError::Range { field: "pull_batch_size", value: 1025, min: 1, max: 1024 })
        );
    }

    #[test]
    fn properties_must_fit_a_record() {
        assert_eq!(properties_size(32_767), Ok(()));
        assert!(properties_size(32_768).is_err());
    }
}
