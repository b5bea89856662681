//! Handing a message back that could not be consumed: to its broker, else to any broker as a new message.
use crate::consumer::core::Core;
use crate::error::{CallError, SendError};
use protocol::header::ConsumerSendMsgBackRequest;
use protocol::message::{is_retry_topic, property, retry_topic};
use protocol::{Message, MessageQueue, StoredMessage};
use tracing::debug;

/// Deliveries of a message before it is buried, when the consumer does not say.
const RECONSUME_TIMES_DEFAULT: i32 = 16;

/// The level of a first retry; each further one is a level higher.
const FIRST_RETRY_LEVEL: i32 = 3;

impl Core {
    /// Returns when the message is safely elsewhere: then, and only then, it is done here.
    pub(crate) async fn send_back(
        &self,
        queue: &MessageQueue,
        message: &StoredMessage,
        delay_level: i32,
    ) -> Result<(), SendError> {
        match self.to_its_broker(queue, message, delay_level).await {
            Ok(()) => Ok(()),
            Err(error) => {
                debug!(?queue, offset = %message.queue_offset, %error, "not handed back to its broker, sending it as a new message");
                self.sender.send(self.as_new_message(message, delay_level)).await.map(|_| ())
            }
        }
    }

    async fn to_its_broker(
        &self,
        queue: &MessageQueue,
        message: &StoredMessage,
        delay_level: i32,
    ) -> Result<(), CallError> {
        let addr = self.client.master_of(queue).await?;
        let header = ConsumerSendMsgBackRequest {
            offset: message.physical_offset,
            group: self.config.group.clone(),
            delay_level,
            origin_msg_id: Some(message.message_id()),
            origin_topic: Some(first_topic(message).to_owned()),
            unit_mode: false,
            max_reconsume_times: Some(self.max_reconsume_times()),
        };
        self.client.call_send_back(&addr, &queue.broker_name, &header).await
    }

    fn max_reconsume_times(&self) -> i32 {
        self.config.max_reconsume_times.unwrap_or(RECONSUME_TIMES_DEFAULT)
    }

    /// The same message for the group's retry topic, with what the broker needs to count and to delay it.
    fn as_new_message(&self, message: &StoredMessage, delay_level: i32) -> Message {
        let mut properties = message.properties.clone();
        let max = self.max_reconsume_times();
        // A negative level asks for burial, and a broker buries what has used up its tries.
        let times = if delay_level < 0 { max } else { message.reconsume_times.saturating_add(1) };
        let level =
            if delay_level > 0 { delay_level } else { FIRST_RETRY_LEVEL.saturating_add(message.reconsume_times) };
        if !properties.contains(property::ORIGIN_MESSAGE_ID) {
            properties.insert(property::ORIGIN_MESSAGE_ID, message.message_id());
        }
        properties.insert(property::RETRY_TOPIC, first_topic(message));
        properties.insert(property::RECONSUME_TIME, times.to_string());
        properties.insert(property::MAX_RECONSUME_TIMES, max.to_string());
        properties.insert(property::DELAY_TIME_LEVEL, level.to_string());
        // A retried half message must not become a half message again.
        properties.remove(property::TRANSACTION_PREPARED);
        Message { topic: retry_topic(&self.config.group), flag: message.flag, body: message.body.clone(), properties }
    }
}

/// The topic that the message was sent to at first.
fn first_topic(message: &StoredMessage) -> &str {
    let retried = is_retry_topic(&message.topic);
    let first = if retried { message.properties.get(property::RETRY_TOPIC) } else { None };
    first.unwrap_or(&message.topic)
}
