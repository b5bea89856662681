//! CONSUMER_SEND_MSG_BACK: a message whose consumption failed comes again later, and at last into the dead letter topic.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use crate::send::VERSION_WITH_MAX_RECONSUME;
use crate::topics::{dead_letter_topic, perm, plain, retry_topic};
use protocol::StoredMessage;
use protocol::frame::Command;
use protocol::header::ConsumerSendMsgBackRequest;
use protocol::message::property;
use store::NewMessage;

/// The first retry waits for this level; each further one for the next.
const FIRST_RETRY_LEVEL: i32 = 3;

/// Stores a copy of the message for another try of its group.
pub(crate) async fn send_back(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ConsumerSendMsgBackRequest = call.request.header()?;
    broker.require_master()?;
    let group = broker.find_group(&header.group).await.ok_or_else(|| Refusal::NoGroup(header.group.clone()))?;
    if broker.config.permission & perm::WRITE == 0 {
        return Err(Refusal::BrokerNotWritable(broker.own_ip()));
    }
    if group.retry_queue_nums <= 0 {
        return Ok(call.ok());
    }
    let mut retry = plain(&retry_topic(&header.group), group.retry_queue_nums, perm::READ_WRITE);
    retry.topic_sys_flag = if header.unit_mode { 2 } else { 0 };
    let mut topic = broker.ensure_topic(retry).await;
    if topic.perm & perm::WRITE == 0 {
        return Err(Refusal::TopicNotWritable(topic.topic_name));
    }
    let record = broker.store.record_at(header.offset).await?.ok_or(Refusal::NoMessageAt(header.offset.get()))?;
    let failed = StoredMessage::decode(&record).map_err(|_| Refusal::NoMessageAt(header.offset.get()))?;
    let mut queue_id = broker.random_below(topic.write_queue_nums.max(1));

    let mut properties = failed.properties.clone();
    if !properties.contains(property::RETRY_TOPIC) {
        properties.insert(property::RETRY_TOPIC, failed.topic.clone());
    }
    properties.insert(property::WAIT_STORE_MSG_OK, "false");
    if !properties.contains(property::ORIGIN_MESSAGE_ID) {
        properties.insert(property::ORIGIN_MESSAGE_ID, failed.offset_message_id().to_string());
    }
    let asked = header.max_reconsume_times.filter(|_| call.request.version >= VERSION_WITH_MAX_RECONSUME);
    if failed.reconsume_times >= asked.unwrap_or(group.retry_max_times) || header.delay_level < 0 {
        topic = broker.ensure_topic(plain(&dead_letter_topic(&header.group), 1, perm::READ_WRITE)).await;
        queue_id = 0;
        properties.insert(property::DELAY_TIME_LEVEL, "0");
    } else {
        let level = if header.delay_level == 0 {
            FIRST_RETRY_LEVEL.saturating_add(failed.reconsume_times)
        } else {
            header.delay_level
        };
        properties.insert(property::DELAY_TIME_LEVEL, level.to_string());
    }
    let again = put::again(broker, failed, (topic.topic_name, queue_id), properties.to_text());
    let message = NewMessage { reconsume_times: again.reconsume_times.saturating_add(1), ..again };
    // The client forgets the message when this is answered, so the answer waits for the disk although the copy says WAIT=false.
    match put::put(broker, message, properties, Wait::Durable).await?.status {
        PutStatus::Ok => Ok(call.ok()),
        status => Err(Refusal::PutFailed(status.name())),
    }
}
