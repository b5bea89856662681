//! A message or a batch made ready: checked, keyed, compressed; the same for all attempts.
use crate::config::ProducerConfig;
use crate::error::InvalidMessage;
use crate::request_reply::is_reply;
use crate::validate;
use bytes::Bytes;
use protocol::header::SendMessageRequestV2;
use protocol::message::{BatchEntry, Properties, batch, compression, is_retry_topic, property};
use protocol::{Command, Message, MessageQueue, RequestCode, SysFlag};

/// What makes a message come later.
const LATER: [&str; 4] =
    [property::DELAY_TIME_LEVEL, property::TIMER_DELAY_SEC, property::TIMER_DELAY_MS, property::TIMER_DELIVER_MS];

/// What goes out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) topic: String,
    /// The unique key; of a batch the keys of its messages, joined by commas.
    pub(crate) message_id: String,
    body: Bytes,
    properties: String,
    flag: i32,
    sys_flag: SysFlag,
    code: RequestCode,
    /// How often the message was tried and may be tried, for the broker to count on: on retry topics only.
    tries: (i32, Option<i32>),
}

impl Outgoing {
    /// One message. `key` is used unless it has one already.
    pub(crate) fn single(
        mut message: Message,
        key: String,
        config: &ProducerConfig,
    ) -> Result<Outgoing, InvalidMessage> {
        validate::message(&message, config.max_message_size)?;
        give_key(&mut message, key);
        let tries = take_tries(&mut message);
        let (body, sys_flag) = if message.body.len() >= config.compress_body_over {
            let flag = SysFlag(SysFlag::COMPRESSED | SysFlag::COMPRESSION_ZLIB);
            (compression::compress_zlib(&message.body, config.compress_level), flag)
        } else {
            (message.body.clone(), SysFlag(0))
        };
        let properties = message.properties.to_text();
        validate::properties_size(properties.len())?;
        let message_id = message.unique_key().expect("a key was given above").to_owned();
        Ok(Outgoing {
            topic: message.topic,
            message_id,
            body,
            properties,
            flag: message.flag,
            sys_flag,
            code: if is_reply(&message.properties) {
                RequestCode::SendReplyMessageV2
            } else {
                RequestCode::SendMessageV2
            },
            tries,
        })
    }

    /// The half of a transaction of this group.
    pub(crate) fn into_half(mut self, group: &str) -> Result<Outgoing, InvalidMessage> {
        let mut properties = Properties::parse(&self.properties);
        if LATER.iter().any(|name| properties.contains(name)) {
            return Err(InvalidMessage::NotInTransaction { what: "a delayed message" });
        }
        properties.insert(property::TRANSACTION_PREPARED, "true");
        properties.insert(property::PRODUCER_GROUP, group);
        self.properties = properties.to_text();
        validate::properties_size(self.properties.len())?;
        self.sys_flag = SysFlag(self.sys_flag.0 | SysFlag::TRANSACTION_PREPARED);
        Ok(self)
    }

    /// Messages of one topic as one. Batches are never compressed.
    pub(crate) fn batch(
        mut messages: Vec<Message>,
        mut key: impl FnMut() -> String,
        config: &ProducerConfig,
    ) -> Result<Outgoing, InvalidMessage> {
        check_batch(&messages)?;
        for message in &mut messages {
            validate::message(message, config.max_message_size)?;
            give_key(message, key());
        }
        let keys: Vec<&str> = messages.iter().filter_map(Message::unique_key).collect();
        let message_id = keys.join(",");
        let body = batch::encode(&messages.iter().map(BatchEntry::of).collect::<Vec<_>>())?;
        validate::body_size(body.len(), config.max_message_size)?;
        let mut outer = Message::new(messages[0].topic.clone(), body);
        if let Some(wait) = messages[0].properties.get(property::WAIT_STORE_MSG_OK) {
            outer.properties.insert(property::WAIT_STORE_MSG_OK, wait);
        }
        // The broker puts the outer properties behind each message's own, so an outer unique key would become the key of all:
        // there is none.
        let properties = outer.properties.to_text();
        Ok(Outgoing {
            topic: outer.topic,
            message_id,
            body: outer.body,
            properties,
            flag: 0,
            sys_flag: SysFlag(0),
            code: RequestCode::SendBatchMessage,
            tries: (0, None),
        })
    }

    /// Whether it may go to that queue.
    pub(crate) fn check_queue(&self, queue: &MessageQueue) -> Result<(), InvalidMessage> {
        if queue.topic == self.topic {
            return Ok(());
        }
        Err(InvalidMessage::OtherTopic { topic: self.topic.clone(), queue_topic: queue.topic.clone() })
    }

    /// The request of one attempt.
    pub(crate) fn request(&self, config: &ProducerConfig, queue: &MessageQueue, now_ms: i64) -> Command {
        let header = SendMessageRequestV2 {
            producer_group: config.group.clone(),
            topic: self.topic.clone(),
            default_topic: config.create_topic_key.clone(),
            default_topic_queue_nums: config.default_topic_queue_nums,
            queue_id: queue.queue_id,
            sys_flag: self.sys_flag.0,
            born_timestamp: now_ms,
            flag: self.flag,
            properties: Some(self.properties.clone()),
            reconsume_times: Some(self.tries.0),
            unit_mode: Some(false),
            max_reconsume_times: self.tries.1,
            batch: Some(self.code == RequestCode::SendBatchMessage),
            broker_name: Some(queue.broker_name.clone()),
        };
        Command::request(self.code, &header).with_body(self.body.clone())
    }
}

fn give_key(message: &mut Message, key: String) {
    if message.unique_key().is_none() {
        message.properties.insert(property::UNIQUE_KEY, key);
    }
    if !message.properties.contains(property::WAIT_STORE_MSG_OK) {
        // As every Java client says it.
        message.properties.insert(property::WAIT_STORE_MSG_OK, "true");
    }
}

/// Retried messages carry their tries as properties; on the wire they stand in the header.
fn take_tries(message: &mut Message) -> (i32, Option<i32>) {
    if !is_retry_topic(&message.topic) {
        return (0, None);
    }
    let mut take = |name| message.properties.remove(name).and_then(|text| text.parse().ok());
    (take(property::RECONSUME_TIME).unwrap_or(0), take(property::MAX_RECONSUME_TIMES))
}

fn check_batch(messages: &[Message]) -> Result<(), InvalidMessage> {
    let Some(first) = messages.first() else { return Err(InvalidMessage::EmptyBatch) };
    if is_retry_topic(&first.topic) {
        return Err(InvalidMessage::NotBatchable { what: "retried messages" });
    }
    let wait = |message: &Message| message.properties.get(property::WAIT_STORE_MSG_OK) != Some("false");
    for message in messages {
        if message.topic != first.topic {
            return Err(InvalidMessage::MixedBatch { what: "topic" });
        }
        if wait(message) != wait(first) {
            return Err(InvalidMessage::MixedBatch { what: "waiting for the store" });
        }
        if LATER.iter().any(|name| message.properties.contains(name)) {
            return Err(InvalidMessage::NotBatchable { what: "delayed messages" });
        }
        if message.properties.contains(property::TRANSACTION_PREPARED) {
            return Err(InvalidMessage::NotBatchable { what: "half messages" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Outgoing;
    use crate::config::ProducerConfig;
    use crate::error::InvalidMessage;
    use protocol::header::SendMessageRequestV2;
    use protocol::message::{batch, compression, property};
    use protocol::{Message, MessageQueue, RequestCode, SysFlag};

    fn single(message: Message) -> Result<Outgoing, InvalidMessage> {
        Outgoing::single(message, "KEY".into(), &ProducerConfig::new("g"))
    }

    fn header(outgoing: &Outgoing) -> SendMessageRequestV2 {
        let queue = MessageQueue::new(outgoing.topic.clone(), "b", 3);
        let request = outgoing.request(&ProducerConfig::new("g"), &queue, 42);
        request.header().unwrap()
    }

    #[test]
    fn a_message_gets_a_key_and_keeps_its_own() {
        assert_eq!(single(Message::new("T", "x")).unwrap().message_id, "KEY");
        let own = Message::new("T", "x").with_property(property::UNIQUE_KEY, "OWN");
        assert_eq!(single(own).unwrap().message_id, "OWN");
    }

    #[test]
    fn header_says_what_the_broker_needs() {
        let header = header(&single(Message::new("T", "x").with_tags("a")).unwrap());
        assert_eq!((header.queue_id, header.born_timestamp, header.sys_flag), (3, 42, 0));
        assert_eq!(header.properties.as_deref(), Some("TAGS\u{1}a\u{2}UNIQ_KEY\u{1}KEY\u{2}WAIT\u{1}true\u{2}"));
        assert_eq!((header.batch, header.reconsume_times, header.max_reconsume_times), (Some(false), Some(0), None));
    }

    #[test]
    fn large_bodies_are_compressed() {
        let body = vec![7; 4096];
        let outgoing = single(Message::new("T", body.clone())).unwrap();
        assert_eq!(header(&outgoing).sys_flag, SysFlag::COMPRESSED | SysFlag::COMPRESSION_ZLIB);
        let plain =
            compression::decompress(&outgoing.body, SysFlag(outgoing.sys_flag.0).compression().unwrap(), 5000).unwrap();
        assert_eq!(plain, body);
        assert_eq!(header(&single(Message::new("T", vec![7; 4095])).unwrap()).sys_flag, 0);
    }

    #[test]
    fn tries_of_a_retried_message_move_to_the_header() {
        let message = Message::new("%RETRY%g", "x")
            .with_property(property::RECONSUME_TIME, "4")
            .with_property(property::MAX_RECONSUME_TIMES, "16");
        let header = header(&single(message).unwrap());
        assert_eq!((header.reconsume_times, header.max_reconsume_times), (Some(4), Some(16)));
        assert!(!header.properties.unwrap().contains("RECONSUME"));
    }

    #[test]
    fn what_no_broker_takes_is_refused_here() {
        let limit = 4 << 20;
        let cases = [
            (Message::new("", "x"), InvalidMessage::Topic { topic: String::new() }),
            (Message::new("T", ""), InvalidMessage::EmptyBody),
            (Message::new("T", vec![0; limit + 1]), InvalidMessage::TooLarge { bytes: limit + 1, limit }),
            (
                Message::new("SCHEDULE_TOPIC_XXXX", "x"),
                InvalidMessage::ReservedTopic { topic: "SCHEDULE_TOPIC_XXXX".into() },
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(single(message).unwrap_err(), expected);
        }
        let long = Message::new("T", "x").with_property("p", "x".repeat(33_000));
        assert!(matches!(single(long), Err(InvalidMessage::PropertiesTooLong { .. })));
    }

    fn make_batch(messages: Vec<Message>) -> Result<Outgoing, InvalidMessage> {
        let mut count = 0;
        let key = || {
            count += 1;
            format!("K{count}")
        };
        Outgoing::batch(messages, key, &ProducerConfig::new("g"))
    }

    #[test]
    fn a_batch_carries_its_messages_with_a_key_each_and_none_of_its_own() {
        let outgoing = make_batch(vec![Message::new("T", "a"), Message::new("T", "b")]).unwrap();
        assert_eq!(outgoing.message_id, "K1,K2");
        assert_eq!(header(&outgoing).properties.as_deref(), Some("WAIT\u{1}true\u{2}"));
        let entries = batch::decode(&outgoing.body, 10).unwrap();
        let keys: Vec<String> = entries.iter().map(|e| e.properties().unique_key().unwrap().to_owned()).collect();
        assert_eq!(keys, ["K1", "K2"]);
        let queue = MessageQueue::new("T", "b", 0);
        assert_eq!(
            outgoing.request(&ProducerConfig::new("g"), &queue, 0).request_code(),
            Some(RequestCode::SendBatchMessage)
        );
    }

    #[test]
    fn batches_must_be_uniform() {
        let one = || Message::new("T", "a");
        let cases = [
            (vec![], InvalidMessage::EmptyBatch),
            (vec![one(), Message::new("U", "a")], InvalidMessage::MixedBatch { what: "topic" }),
            (
                vec![one(), one().with_property(property::WAIT_STORE_MSG_OK, "false")],
                InvalidMessage::MixedBatch { what: "waiting for the store" },
            ),
            (
                vec![one().with_property(property::DELAY_TIME_LEVEL, "1")],
                InvalidMessage::NotBatchable { what: "delayed messages" },
            ),
            (vec![Message::new("%RETRY%g", "a")], InvalidMessage::NotBatchable { what: "retried messages" }),
        ];
        for (messages, expected) in cases {
            assert_eq!(make_batch(messages).unwrap_err(), expected);
        }
    }
}
