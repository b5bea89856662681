//! One pull: what the request says and what the answer means.
use crate::assignment::PullPoint;
use crate::calls;
use crate::config::{ConsumerConfig, MessageModel};
use crate::error::CallError;
use bytes::Bytes;
use protocol::body::SubscriptionData;
use protocol::header::{PullMessageRequest, PullMessageResponse, PullSysFlag};
use protocol::message::{batch, decode_all};
use protocol::{Command, MessageQueue, QueueOffset, RequestCode, ResponseCode, StoredMessage, SysFlag};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// A body that claims to become longer than this, in bytes, is not decompressed.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// What a broker says to a pull.
#[derive(Clone, Debug)]
pub(crate) struct Pulled {
    pub(crate) status: Status,
    /// Where to go on.
    pub(crate) next: QueueOffset,
    /// Broker id to pull from next time.
    pub(crate) replica: i64,
}

#[derive(Clone, Debug)]
pub(crate) enum Status {
    /// These messages, as stored, in order of their offsets.
    Found(Vec<StoredMessage>),
    /// Nothing new, or nothing that matches, up to `next`.
    Nothing,
    /// The offset asked for is outside the queue, or was reset; `next` is a right one.
    OffsetIllegal,
}

/// The flags and the progress that a pull carries. Progress counts as a commit only in clustering, only if it is above 0, and never at
/// a slave; it stands in the header all the same, as in the Java client.
pub(crate) fn commit(model: MessageModel, progress: Option<QueueOffset>, to_slave: bool) -> (PullSysFlag, QueueOffset) {
    let flags = PullSysFlag(PullSysFlag::SUSPEND);
    if model == MessageModel::Broadcasting {
        return (flags, QueueOffset::ZERO);
    }
    let offset = progress.unwrap_or(QueueOffset(-1));
    let commits = offset > QueueOffset::ZERO && !to_slave;
    (if commits { flags.with(PullSysFlag::COMMIT_OFFSET) } else { flags }, offset)
}

/// The request.
pub(crate) fn request(
    config: &ConsumerConfig,
    subscription: &SubscriptionData,
    queue: &MessageQueue,
    point: PullPoint,
    to_slave: bool,
) -> Command {
    let (flags, commit_offset) = commit(config.model, point.progress, to_slave);
    let header = PullMessageRequest {
        consumer_group: config.group.clone(),
        topic: queue.topic.clone(),
        queue_id: queue.queue_id,
        queue_offset: point.from,
        max_msg_nums: if rt::buggify!("client.pull_one_message") { 1 } else { config.pull_batch_size },
        sys_flag: flags.0,
        commit_offset,
        suspend_timeout_millis: i64::try_from(config.broker_suspend_max.as_millis()).unwrap_or(i64::MAX),
        // The broker knows the expression from the heartbeat.
        subscription: None,
        sub_version: subscription.sub_version,
        expression_type: Some(subscription.expression_type.clone()),
        max_msg_bytes: Some(config.pull_batch_size_bytes),
        request_source: None,
        proxy_forward_client_id: None,
    };
    Command::request(RequestCode::PullMessage, &header).with_ext("bname", queue.broker_name.clone())
}

/// The answer.
pub(crate) fn read(addr: &str, answer: &Command) -> Result<Pulled, CallError> {
    let code = answer.response_code();
    if !matches!(
        code,
        Some(
            ResponseCode::Success
                | ResponseCode::PullNotFound
                | ResponseCode::PullRetryImmediately
                | ResponseCode::PullOffsetMoved
        )
    ) {
        return Err(calls::refused(addr, answer.clone()));
    }
    let header: PullMessageResponse = answer.header()?;
    let status = match code {
        Some(ResponseCode::Success) => Status::Found(decode(answer.body.clone())?),
        Some(ResponseCode::PullOffsetMoved) => Status::OffsetIllegal,
        _ => Status::Nothing,
    };
    Ok(Pulled { status, next: header.next_begin_offset, replica: header.suggest_which_broker_id })
}

/// The messages of an answer, with plain bodies.
fn decode(body: Bytes) -> Result<Vec<StoredMessage>, CallError> {
    let mut messages = Vec::new();
    for mut message in decode_all(body)? {
        if let Err(error) = message.decompress(BODY_BYTES_MAX) {
            // The queue must go on; the flag tells the listener that the body is still compressed.
            warn!(topic = %message.topic, offset = %message.queue_offset, %error, "body left compressed");
        }
        if message.sys_flag.has(SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP) {
            messages.extend(unwrap_batch(&message)?);
        } else {
            messages.push(message);
        }
    }
    Ok(messages)
}

/// The messages of an inner batch: one record at the broker, with consecutive offsets.
fn unwrap_batch(outer: &StoredMessage) -> Result<Vec<StoredMessage>, CallError> {
    const MESSAGES_MAX: usize = 1 << 16;
    let entries = batch::decode(&outer.body, MESSAGES_MAX)?;
    let inner = entries.into_iter().zip(0..).map(|(entry, index)| StoredMessage {
        queue_offset: outer.queue_offset + index,
        flag: entry.flag,
        sys_flag: outer.sys_flag.without(SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP),
        properties: entry.properties(),
        body: entry.body,
        ..outer.clone()
    });
    Ok(inner.collect())
}

/// The messages that are wanted: brokers choose by the hash of a tag only.
pub(crate) fn wanted(messages: Vec<StoredMessage>, subscription: &SubscriptionData) -> Vec<Arc<StoredMessage>> {
    messages.into_iter().filter(|message| subscription.matches(message.properties.tags())).map(Arc::new).collect()
}

/// How long to wait after a pull that failed.
pub(crate) fn delay_after(error: &CallError, on_error: Duration) -> Duration {
    /// A broker that is short of resources asks to come back soon.
    const FLOW_CONTROL_DELAY: Duration = Duration::from_millis(20);
    if error.code() == Some(ResponseCode::FlowControl) { FLOW_CONTROL_DELAY } else { on_error }
}

#[cfg(test)]
mod tests;
