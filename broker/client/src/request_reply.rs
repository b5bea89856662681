//! Request and reply over topics: a message whose sender waits until a consumer has replied to it.
//!
//! A request carries an id and the client that waits. The reply goes as a message to the cluster's reply topic, and its broker hands it to
//! that client over the connection by which it produces.
use crate::error::{InvalidMessage, SendError};
use crate::instance::ClientInstance;
use crate::producer::Producer;
use crate::pull::BODY_BYTES_MAX;
use bytes::Bytes;
use protocol::header::PushReplyMessageRequest;
use protocol::message::property;
use protocol::{Command, Message, PhysicalOffset, Properties, QueueOffset, ResponseCode, StoredMessage, SysFlag};
use rt::sync::oneshot;
use std::time::Duration;
use thiserror::Error;
use tracing::warn;

/// What a reply's property says that it is.
const REPLY: &str = "reply";
/// Behind the cluster's name.
const REPLY_TOPIC: &str = "_REPLY_TOPIC";

/// Why a request has no reply.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The request is not sent, or that is not known.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It is sent, and nobody replied in time. It may be consumed nevertheless.
    #[error("no reply within {after:?}")]
    NoReply {
        /// How long the call waited.
        after: Duration,
    },
}

impl Producer {
    /// Sends a message and waits up to `timeout` for the reply of who consumes it (`DefaultMQProducer.request`).
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn request(&self, mut message: Message, timeout: Duration) -> Result<StoredMessage, RequestError> {
        let client = self.client();
        let id = client.unique_key();
        message.properties.insert(property::CORRELATION_ID, &id);
        message.properties.insert(property::REPLY_TO_CLIENT, client.client_id());
        message.properties.insert(property::TTL, timeout.as_millis().to_string());
        let (reply, replied) = oneshot::channel();
        let waiting = Waiting::new(client, id, reply);
        let exchange = async {
            self.make_known(&message.topic).await?;
            self.send(message).await?;
            // The sender goes only with the instance, which ends this wait as well.
            replied.await.map_err(|_| RequestError::NoReply { after: timeout })
        };
        let outcome = rt::time::timeout(timeout, exchange).await;
        drop(waiting);
        outcome.unwrap_or(Err(RequestError::NoReply { after: timeout }))
    }
}

/// The reply to a message that was sent by [`Producer::request`]; it is sent like any other.
///
/// # Errors
/// [`InvalidMessage::NoRequest`]: nobody waits for a reply to this message.
pub fn reply_to(request: &StoredMessage, body: impl Into<Bytes>) -> Result<Message, InvalidMessage> {
    let said = |name| request.properties.get(name).ok_or(InvalidMessage::NoRequest { missing: name });
    let mut reply = Message::new(format!("{}{REPLY_TOPIC}", said(property::CLUSTER)?), body);
    reply.properties.insert(property::MSG_TYPE, REPLY);
    for name in [property::CORRELATION_ID, property::REPLY_TO_CLIENT, property::TTL] {
        reply.properties.insert(name, said(name)?);
    }
    Ok(reply)
}

/// Whether a message is a reply, which is sent by another request code.
pub(crate) fn is_reply(properties: &Properties) -> bool {
    properties.get(property::MSG_TYPE) == Some(REPLY)
}

/// A call that waits; it is forgotten when this is dropped.
struct Waiting<'a> {
    client: &'a ClientInstance,
    id: String,
}

impl<'a> Waiting<'a> {
    fn new(client: &'a ClientInstance, id: String, reply: oneshot::Sender<StoredMessage>) -> Waiting<'a> {
        client.await_reply(&id, reply);
        Waiting { client, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.client.forget_reply(&self.id);
    }
}

/// Serves PUSH_REPLY_MESSAGE_TO_CLIENT: hands the reply to the call that waits for it.
pub(crate) fn take_reply(client: &ClientInstance, request: &Command) -> Command {
    let refused = |remark: &str| Command::reply(request, ResponseCode::SystemError).with_remark(remark);
    let reply = match read(request) {
        Ok(reply) => reply,
        Err(what) => {
            warn!(what, "reply cannot be read");
            return refused(what);
        }
    };
    let id = reply.properties.get(property::CORRELATION_ID).unwrap_or_default();
    // The call may have run out of time in this moment.
    if client.forget_reply(id).is_some_and(|waiting| waiting.send(reply).is_ok()) {
        Command::reply(request, ResponseCode::Success)
    } else {
        refused("nobody waits for this reply")
    }
}

fn read(request: &Command) -> Result<StoredMessage, &'static str> {
    let header: PushReplyMessageRequest = request.header().map_err(|_| "header")?;
    let mut reply = StoredMessage {
        topic: header.topic,
        queue_id: header.queue_id,
        queue_offset: QueueOffset(0),
        physical_offset: PhysicalOffset(0),
        store_size: 0,
        flag: header.flag,
        sys_flag: SysFlag(header.sys_flag),
        born_timestamp: header.born_timestamp,
        born_host: address(&header.born_host).ok_or("bornHost")?,
        store_timestamp: header.store_timestamp,
        store_host: address(&header.store_host).ok_or("storeHost")?,
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        properties: Properties::parse(header.properties.as_deref().unwrap_or_default()),
        body: request.body.clone(),
    };
    reply.decompress(BODY_BYTES_MAX).map_err(|_| "compressed body")?;
    Ok(reply)
}

/// `ip:port`; Java writes a slash before it.
fn address(text: &str) -> Option<std::net::SocketAddr> {
    text.strip_prefix('/').unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::reply_to;
    use protocol::message::{RecordVersion, property};
    use protocol::{Properties, Record, StoredMessage, SysFlag};

    #[test]
    fn a_reply_names_who_waits_and_only_a_request_has_one() {
        let request = |properties: &[(&str, &str)]| {
            let properties: Properties = properties.iter().copied().collect();
            StoredMessage::from(Record {
                version: RecordVersion::V1,
                queue_id: 0,
                flag: 0,
                queue_offset: protocol::QueueOffset(0),
                physical_offset: protocol::PhysicalOffset(0),
                sys_flag: SysFlag(0),
                born_timestamp: 0,
                born_host: "10.0.0.1:1".parse().unwrap(),
                store_timestamp: 0,
                store_host: "10.0.0.1:1".parse().unwrap(),
                reconsume_times: 0,
                prepared_transaction_offset: 0,
                body: bytes::Bytes::new(),
                topic: "T".to_owned(),
                properties: properties.to_text().into(),
            })
        };
        let whole = [("CLUSTER", "c"), ("CORRELATION_ID", "7"), ("REPLY_TO_CLIENT", "p@1"), ("TTL", "3000")];
        let reply = reply_to(&request(&whole), "yes").unwrap();
        assert_eq!((reply.topic.as_str(), &reply.body[..]), ("c_REPLY_TOPIC", &b"yes"[..]));
        assert_eq!(reply.properties.get(property::MSG_TYPE), Some("reply"));
        assert_eq!(reply.properties.get(property::REPLY_TO_CLIENT), Some("p@1"));
        for missing in 0..whole.len() {
            let mut part = whole.to_vec();
            part.remove(missing);
            assert!(reply_to(&request(&part), "yes").is_err());
        }
    }
}
