//! SEND_REPLY_MESSAGE (324, 325): the reply to a message whose sender waits for it. It is handed to that client over the connection by which
//! the client produces, and kept in the cluster's reply topic for who looks later (`ReplyMessageProcessor`).
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use crate::send;
use protocol::frame::Command;
use protocol::header::{PushReplyMessageRequest, SendMessageRequest};
use protocol::message::{Properties, property};
use protocol::{QueueOffset, RequestCode, ResponseCode};
use rt::time::{Duration, unix_ms};
use tracing::debug;

/// How long a client may take to confirm a reply.
const PUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// Message id of a reply that is not kept.
const NOT_KEPT: &str = "0";

/// Hands the reply over, keeps it, and tells whether it was handed over.
pub(crate) async fn send_reply(broker: &Broker, call: &Call, code: RequestCode) -> Result<Command, Refusal> {
    let header = SendMessageRequest::decode_any(code, &call.request.ext_fields)?;
    broker.require_master()?;
    put::check_flag(broker, header.sys_flag, false)?;
    let topic = send::check(broker, &header).await?;
    if call.request.body.is_empty() {
        return Err(Refusal::EmptyBody);
    }
    let mut properties = send::own_properties(broker, header.properties.as_deref());
    let unique_key = send::ensure_unique_key(broker, &mut properties);
    let queue_id = send::choose_queue(broker, &topic, header.queue_id)?;
    let pushed = push(broker, call, &header, queue_id, &mut properties).await;
    let (mut id, mut offset) = (NOT_KEPT.to_owned(), QueueOffset(0));
    if broker.config.store_replies {
        let mut message = send::message(broker, call, &header, &topic, queue_id);
        message.body = call.request.body.clone();
        message.properties = properties.to_text();
        // Who waits has it already, or is gone: whether it is kept changes nothing for the one who replies.
        match put::put(broker, message, properties, Wait::No).await {
            Ok(stored) => (id, offset) = (stored.appended.message_id.to_string(), stored.appended.queue_offset),
            Err(refusal) => debug!(%refusal, "reply not kept"),
        }
    }
    pushed?;
    Ok(send::answer(broker, call, PutStatus::Ok, send::reply(id, queue_id, offset, Some(unique_key))))
}

async fn push(
    broker: &Broker,
    call: &Call,
    header: &SendMessageRequest,
    queue_id: i32,
    properties: &mut Properties,
) -> Result<(), Refusal> {
    let client = properties.get(property::REPLY_TO_CLIENT).map(str::to_owned).ok_or(Refusal::ReplyToNobody)?;
    let peer = broker.producers().connection_of(&client);
    let connection = peer.and_then(|peer| broker.connections().get(&peer).cloned());
    let Some(connection) = connection else {
        rt::probe!("server.reply.client_gone");
        return Err(Refusal::ReplyClientGone(client));
    };
    let now_ms = unix_ms();
    properties.insert(property::PUSH_REPLY_TIME, now_ms.to_string());
    let push = PushReplyMessageRequest {
        producer_group: header.producer_group.clone(),
        topic: header.topic.clone(),
        default_topic: header.default_topic.clone(),
        default_topic_queue_nums: header.default_topic_queue_nums,
        queue_id,
        sys_flag: header.sys_flag,
        born_timestamp: header.born_timestamp,
        flag: header.flag,
        properties: Some(properties.to_text()),
        reconsume_times: header.reconsume_times,
        unit_mode: header.unit_mode,
        born_host: call.connection.peer_addr().to_string(),
        store_host: broker.advertised().to_string(),
        store_timestamp: now_ms,
    };
    let push = Command::request(RequestCode::PushReplyMessageToClient, &push).with_body(call.request.body.clone());
    match connection.request(push, PUSH_TIMEOUT).await {
        Ok(answer) if answer.response_code() == Some(ResponseCode::Success) => Ok(()),
        Ok(_) | Err(_) => Err(Refusal::ReplyNotTaken(client)),
    }
}
