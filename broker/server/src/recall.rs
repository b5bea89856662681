//! RECALL_MESSAGE (370): a timer message is not to be delivered. A message of the same slot that says so waits beside it.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use protocol::frame::Command;
use protocol::header::{RecallMessageRequest, RecallMessageResponse};
use protocol::message::{Properties, RecallHandle, is_retry_topic, property};
use rt::time::unix_ms;
use store::NewMessage;

/// Tag of what a recall stores.
const RECALL_TAG: &str = "_RECALL_TAG_";

/// The handle that the answer to a send carries; none for a message that a consumer gave back.
pub(crate) fn handle(broker: &Broker, topic: &str, slot_ms: i64, unique_key: &str) -> Option<String> {
    let handle = RecallHandle {
        topic: topic.to_owned(),
        broker_name: broker.cluster.broker_name.clone(),
        // A moment of the slot that the message is in.
        deliver_ms: slot_ms + 1,
        unique_key: unique_key.to_owned(),
    };
    (!is_retry_topic(topic)).then(|| handle.encode())
}

/// What a message that deletes names its victim by.
pub(crate) fn delete_key(topic: &str, unique_key: &str) -> String {
    format!("{topic}+{unique_key}")
}

/// Serves a recall. It is answered when what it stores is as durable as a message; a victim that is delivered already stays so.
pub(crate) async fn recall(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: RecallMessageRequest = call.request.header()?;
    if !broker.config.recall {
        return Err(Refusal::RecallForbidden);
    }
    if broker.is_slave() {
        return Err(Refusal::RecallOnSlave);
    }
    if broker.topic(&header.topic).is_none() {
        return Err(Refusal::RecallTopic(header.topic));
    }
    let handle = RecallHandle::decode(&header.recall_handle).ok_or(Refusal::RecallHandle)?;
    if handle.topic != header.topic {
        return Err(Refusal::RecallOtherTopic);
    }
    if handle.broker_name != broker.cluster.broker_name {
        return Err(Refusal::RecallOtherBroker);
    }
    let config = broker.config.store.timer.ok_or(Refusal::NoTimer)?;
    let left_ms = handle.deliver_ms.saturating_sub(unix_ms());
    if left_ms <= 0 || u128::from(left_ms.unsigned_abs()) >= config.delay_max.as_millis() {
        return Err(Refusal::RecallMoment);
    }
    let properties = properties(&header, &handle);
    let message = NewMessage {
        topic: handle.topic.clone(),
        queue_id: 0,
        flag: 0,
        sys_flag: 0,
        born_timestamp: unix_ms(),
        born_host: call.connection.peer_addr(),
        store_host: broker.advertised(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        properties: properties.to_text(),
        body: bytes::Bytes::from_static(b"0"),
    };
    put::put(broker, message, properties, Wait::Durable).await?;
    let region = Some(broker.cluster.region_id.clone());
    Ok(call.ok().with_header(&RecallMessageResponse { msg_id: handle.unique_key, region }))
}

fn properties(header: &RecallMessageRequest, handle: &RecallHandle) -> Properties {
    let mut properties = Properties::new();
    properties.insert(property::TAGS, RECALL_TAG);
    properties.insert(property::UNIQUE_KEY, &handle.unique_key);
    properties.insert(property::TIMER_DEL_UNIQKEY, delete_key(&handle.topic, &handle.unique_key));
    properties.insert(property::TIMER_DELIVER_MS, handle.deliver_ms.to_string());
    if let Some(group) = &header.producer_group {
        properties.insert(property::PRODUCER_GROUP, group);
    }
    properties
}
