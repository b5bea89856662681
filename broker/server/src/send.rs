//! SEND_MESSAGE (10, 310) and SEND_BATCH_MESSAGE (320).
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::names::{RETRY_PREFIX, check_topic};
use crate::put::{self, BATCH_MAX, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use crate::topics::{self, perm, plain};
use crate::{recall, timer_send, transaction};
use protocol::body::TopicConfig;
use protocol::frame::Command;
use protocol::header::{SendMessageRequest, SendMessageResponse};
use protocol::message::{Properties, batch, property};
use protocol::{QueueOffset, RequestCode, SysFlag};
use rt::time::unix_ms;
use store::NewMessage;

/// Topic flags of unit mode.
const UNIT: i32 = 1;
const UNIT_SUB: i32 = 2;
/// The system flag's bit "the topic's messages may have several tags".
const MULTI_TAGS: i32 = 2;
/// Clients older than this do not send their own limit of retries (V3_4_9).
pub(crate) const VERSION_WITH_MAX_RECONSUME: i32 = 90;

/// Serves a send: checks, stores, and tells where the message is.
pub(crate) async fn send(broker: &Broker, call: &Call, code: RequestCode) -> Result<Command, Refusal> {
    let header = SendMessageRequest::decode_any(code, &call.request.ext_fields)?;
    broker.require_master()?;
    let sent = if header.batch == Some(true) {
        batch_send(broker, call, header).await
    } else {
        single(broker, call, header).await
    };
    match sent {
        Ok((status, reply)) => Ok(answer(broker, call, status, reply)),
        Err(refusal) => Err(refusal),
    }
}

/// What a producer is told, with what every answer says.
pub(crate) fn answer(broker: &Broker, call: &Call, status: PutStatus, reply: SendMessageResponse) -> Command {
    let (region, trace_on) = (Some(broker.cluster.region_id.clone()), Some(broker.cluster.trace_on));
    Command::reply(&call.request, status.code()).with_header(&SendMessageResponse { region, trace_on, ..reply })
}

async fn single(
    broker: &Broker,
    call: &Call,
    header: SendMessageRequest,
) -> Result<(PutStatus, SendMessageResponse), Refusal> {
    let mut properties = own_properties(broker, header.properties.as_deref());
    put::check_flag(broker, header.sys_flag, transaction::is_marked(&properties))?;
    let topic = check(broker, &header).await?;
    if call.request.body.is_empty() {
        return Err(Refusal::EmptyBody);
    }
    let inner = (header.topic.as_str(), header.sys_flag);
    put::check_inner_batch(broker, inner, &properties, &call.request.body)?;
    let unique_key = ensure_unique_key(broker, &mut properties);
    let queue_id = choose_queue(broker, &topic, header.queue_id)?;
    let mut message = message(broker, call, &header, &topic, queue_id);
    message.body = call.request.body.clone();
    if header.topic.starts_with(RETRY_PREFIX) {
        give_up_or_retry(broker, call, &header, &mut message, &mut properties).await?;
    }
    let queue_id = message.queue_id;
    let wait = wait_of(call, &properties);
    if transaction::begins(&message, &properties) {
        let (half, status) = transaction::prepare(broker, message, properties, wait).await?;
        return Ok((status, reply(half.message_id.to_string(), queue_id, half.queue_offset, Some(unique_key))));
    }
    properties.remove(property::TRANSACTION_PREPARED);
    message.properties = properties.to_text();
    let topic = message.topic.clone();
    let put::Stored { appended, status, slot_ms } = put::put(broker, message, properties, wait).await?;
    let recall_handle = slot_ms.and_then(|slot_ms| recall::handle(broker, &topic, slot_ms, &unique_key));
    let reply = reply(appended.message_id.to_string(), queue_id, appended.queue_offset, Some(unique_key));
    Ok((status, SendMessageResponse { recall_handle, ..reply }))
}

async fn batch_send(
    broker: &Broker,
    call: &Call,
    header: SendMessageRequest,
) -> Result<(PutStatus, SendMessageResponse), Refusal> {
    put::check_flag(broker, header.sys_flag, false)?;
    if header.topic.starts_with(RETRY_PREFIX) {
        return Err(Refusal::BatchToRetry(header.topic));
    }
    let topic = check(broker, &header).await?;
    let queue_id = choose_queue(broker, &topic, header.queue_id)?;
    let outer = Properties::parse(header.properties.as_deref().unwrap_or(""));
    put::check_inner_batch(broker, (&header.topic, header.sys_flag), &outer, &call.request.body)?;
    let mut messages = Vec::new();
    for entry in batch::decode(&call.request.body, BATCH_MAX)? {
        if entry.body.is_empty() {
            return Err(Refusal::EmptyBody);
        }
        let text = std::str::from_utf8(&entry.properties).map_err(|_| Refusal::Properties)?;
        let properties = own_properties(broker, Some(text));
        put::check(broker, &header.topic, &properties)?;
        if properties.contains(property::INNER_NUM) {
            return Err(Refusal::InnerBatch);
        }
        if crate::delay::level(&properties) > 0 || timer_send::asks(&properties) {
            return Err(Refusal::DelayedBatch);
        }
        let mut message = message(broker, call, &header, &topic, queue_id);
        message.flag = entry.flag;
        message.body = entry.body;
        message.properties = properties.to_text();
        messages.push(message);
    }
    if messages.is_empty() {
        return Err(Refusal::EmptyBody);
    }
    if broker.store.is_batch_topic(&header.topic)
        && let Some(unique_key) = outer.unique_key()
    {
        let one = message(broker, call, &header, &topic, queue_id);
        let one = in_one_record(broker, call, &header, one, messages.len());
        let (appended, status) = put::put_as_is(broker, one, wait_of(call, &outer)).await?;
        let stored =
            reply(appended.message_id.to_string(), queue_id, appended.queue_offset, Some(unique_key.to_owned()));
        return Ok((status, SendMessageResponse { batch_uniq_id: Some(unique_key.to_owned()), ..stored }));
    }
    let (appended, status) = put::put_batch(broker, messages, wait_of(call, &outer)).await?;
    let ids: Vec<String> = appended.iter().map(|appended| appended.message_id.to_string()).collect();
    let first = appended.first().expect("a batch is not empty").queue_offset;
    Ok((status, reply(ids.join(","), queue_id, first, outer.unique_key().map(str::to_owned))))
}

/// A batch as it was sent: one record, that its consumers take apart.
fn in_one_record(
    broker: &Broker,
    call: &Call,
    header: &SendMessageRequest,
    one: NewMessage,
    count: usize,
) -> NewMessage {
    let mut properties = own_properties(broker, header.properties.as_deref());
    properties.insert(property::INNER_NUM, count.to_string());
    NewMessage {
        sys_flag: one.sys_flag | SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP,
        properties: properties.to_text(),
        body: call.request.body.clone(),
        ..one
    }
}

/// Nobody hears the answer to a one-way send, so it does not wait for it.
fn wait_of(call: &Call, properties: &Properties) -> Wait {
    if call.request.is_oneway() { Wait::No } else { Wait::of(properties) }
}

pub(crate) fn reply(
    msg_id: String,
    queue_id: i32,
    queue_offset: QueueOffset,
    unique_key: Option<String>,
) -> SendMessageResponse {
    SendMessageResponse {
        msg_id,
        queue_id,
        queue_offset,
        transaction_id: unique_key,
        batch_uniq_id: None,
        recall_handle: None,
        region: None,
        trace_on: None,
    }
}

/// The checks before a message is looked at; answers its topic, created if need be and allowed.
pub(crate) async fn check(broker: &Broker, header: &SendMessageRequest) -> Result<TopicConfig, Refusal> {
    let known = broker.topic(&header.topic);
    if broker.config.permission & perm::WRITE == 0 && known.as_ref().is_some_and(|topic| topic.order) {
        return Err(Refusal::BrokerNotWritable(broker.own_ip()));
    }
    check_topic(&header.topic)?;
    if !topics::clients_may_send(&header.topic) {
        return Err(Refusal::SendForbidden(header.topic.clone()));
    }
    let topic = match known {
        Some(topic) => topic,
        None => create(broker, header).await.ok_or_else(|| Refusal::NoTopic(header.topic.clone()))?,
    };
    let queues = topic.write_queue_nums.max(topic.read_queue_nums);
    if header.queue_id >= queues {
        return Err(Refusal::SendQueue { queue_id: header.queue_id, topic: header.topic.clone(), queues });
    }
    Ok(topic)
}

async fn create(broker: &Broker, header: &SendMessageRequest) -> Option<TopicConfig> {
    let retry = header.topic.starts_with(RETRY_PREFIX);
    let sys_flag = match (header.unit_mode.unwrap_or(false), retry) {
        (true, true) => UNIT_SUB,
        (true, false) => UNIT,
        (false, _) => 0,
    };
    let created = broker.topics().for_send(
        &header.topic,
        &header.default_topic,
        header.default_topic_queue_nums,
        sys_flag,
        unix_ms(),
    );
    if let Some((topic, new)) = created {
        if new {
            broker.topic_created(&topic.topic_name).await;
        }
        return Some(topic);
    }
    if !retry {
        return None;
    }
    let mut config = plain(&header.topic, 1, perm::READ_WRITE);
    config.topic_sys_flag = sys_flag;
    Some(broker.ensure_topic(config).await)
}

/// The queue asked for, or any.
pub(crate) fn choose_queue(broker: &Broker, topic: &TopicConfig, asked: i32) -> Result<i32, Refusal> {
    if asked >= 0 {
        return Ok(asked);
    }
    if topic.write_queue_nums <= 0 {
        return Err(Refusal::SendQueue {
            queue_id: asked,
            topic: topic.topic_name.clone(),
            queues: topic.write_queue_nums,
        });
    }
    Ok(broker.random_below(topic.write_queue_nums))
}

pub(crate) fn own_properties(broker: &Broker, text: Option<&str>) -> Properties {
    let mut properties = Properties::parse(text.unwrap_or(""));
    properties.remove(property::POP_CK);
    properties.insert(property::MSG_REGION, &broker.cluster.region_id);
    properties.insert(property::TRACE_SWITCH, if broker.cluster.trace_on { "true" } else { "false" });
    properties.insert(property::CLUSTER, &broker.cluster.cluster_name);
    properties
}

/// Every single message can be found by a key; producers normally make it themselves.
pub(crate) fn ensure_unique_key(broker: &Broker, properties: &mut Properties) -> String {
    if let Some(key) = properties.unique_key() {
        return key.to_owned();
    }
    let key = broker.unique_key();
    properties.insert(property::UNIQUE_KEY, key.clone());
    key
}

pub(crate) fn message(
    broker: &Broker,
    call: &Call,
    header: &SendMessageRequest,
    topic: &TopicConfig,
    queue_id: i32,
) -> NewMessage {
    let multi = topic.topic_filter_type == protocol::header::TopicFilterType::MultiTag;
    NewMessage {
        topic: header.topic.clone(),
        queue_id,
        flag: header.flag,
        sys_flag: header.sys_flag | if multi { MULTI_TAGS } else { 0 },
        born_timestamp: header.born_timestamp,
        born_host: call.connection.peer_addr(),
        store_host: broker.advertised(),
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        properties: String::new(),
        body: bytes::Bytes::new(),
    }
}

/// A consumer's own retry, sent as a message: after too many it ends in the dead letter topic. While an orderly consumer of the group
/// holds a queue its retries would overtake, so they end there at once.
async fn give_up_or_retry(
    broker: &Broker,
    call: &Call,
    header: &SendMessageRequest,
    message: &mut NewMessage,
    properties: &mut Properties,
) -> Result<(), Refusal> {
    let group = header.topic.strip_prefix(RETRY_PREFIX).expect("called for retry topics only");
    let config = broker.find_group(group).await.ok_or_else(|| Refusal::NoGroup(group.to_owned()))?;
    let asked = header.max_reconsume_times.filter(|_| call.request.version >= VERSION_WITH_MAX_RECONSUME);
    let max = asked.unwrap_or(config.retry_max_times);
    let orderly = broker.locks().holds_any(group, broker.now());
    if message.reconsume_times <= max && !orderly {
        return Ok(());
    }
    let dead = broker.ensure_topic(plain(&topics::dead_letter_topic(group), 1, perm::READ_WRITE)).await;
    properties.insert(property::DELAY_TIME_LEVEL, "-1");
    message.topic = dead.topic_name;
    message.queue_id = 0;
    Ok(())
}
