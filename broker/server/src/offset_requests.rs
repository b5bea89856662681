//! Requests about offsets: committed ones, and the ends of queues.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::offsets::{CommitSource, Committed};
use crate::refusal::Refusal;
use crate::slave_sync::speaks_of_the_log;
use protocol::body::ResetOffsetBody;
use protocol::frame::Command;
use protocol::header::{
    BoundaryType, GetEarliestStoreTimeRequest, GetEarliestStoreTimeResponse, GetMaxOffsetRequest, GetMinOffsetRequest,
    OffsetResponse, QueryConsumerOffsetRequest, ResetOffsetRequest, SearchOffsetRequest, UpdateConsumerOffsetRequest,
};
use protocol::{MessageQueue, QueueOffset};
use rt::time::unix_ms;
use store::{GetRequest, TagFilter, TimeBoundary};
use tracing::{info, warn};

/// QUERY_CONSUMER_OFFSET. A group without an offset starts at 0 as long as the queue still has its first message, unless the client
/// asks to be told.
pub(crate) async fn query(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: QueryConsumerOffsetRequest = call.request.header()?;
    let found = broker.offsets().query(&header.topic, &header.consumer_group, header.queue_id);
    if let Some(offset) = found {
        return Ok(call.ok().with_header(&OffsetResponse { offset: QueueOffset(offset) }));
    }
    if header.set_zero_if_not_found == Some(false) {
        return Err(Refusal::NoOffsetNoZero);
    }
    if !starts_at_zero(broker, &header.topic, header.queue_id).await? {
        return Err(Refusal::NoOffset);
    }
    Ok(call.ok().with_header(&OffsetResponse { offset: QueueOffset(0) }))
}

/// Whether a new group reads the queue from its beginning: it has its first message still, and near enough to the log's end.
async fn starts_at_zero(broker: &Broker, topic: &str, queue_id: i32) -> Result<bool, Refusal> {
    let (min, max) = bounds(broker, topic, queue_id);
    if min > QueueOffset(0) || max == QueueOffset(0) {
        return Ok(min <= QueueOffset(0));
    }
    let first = GetRequest {
        topic: topic.to_owned(),
        queue_id,
        from: QueueOffset(0),
        max_messages: 1,
        max_bytes: 1,
        tags: TagFilter::All,
    };
    Ok(!broker.store.get(first).await?.suggest_slave)
}

/// UPDATE_CONSUMER_OFFSET: stored as the client says, backwards too, except above the end of the queue and while a reset waits.
pub(crate) fn update(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: UpdateConsumerOffsetRequest = call.request.header()?;
    if broker.group(&header.consumer_group).is_none() {
        return Err(Refusal::OffsetGroup(header.consumer_group));
    }
    let queues = broker.topic(&header.topic).map(|topic| topic.read_queue_nums.max(topic.write_queue_nums));
    // A slave's copy of the topics may be older than its messages.
    let replicated = || broker.store.queue_bounds(&header.topic, header.queue_id).is_some();
    if queues.is_none() && !replicated() {
        return Err(Refusal::OffsetTopic(header.topic));
    }
    let offset = header.commit_offset.get();
    if header.queue_id < 0 || (queues.is_none_or(|queues| header.queue_id >= queues) && !replicated()) {
        return Err(Refusal::Parameter { name: "queueId", value: header.queue_id.to_string() });
    }
    if offset < 0 {
        return Err(Refusal::Parameter { name: "commitOffset", value: offset.to_string() });
    }
    let source = if broker.is_slave() { CommitSource::UpdateAtSlave } else { CommitSource::Update };
    match commit(broker, &header.topic, &header.consumer_group, header.queue_id, offset, source) {
        Committed::ResetPending => Ok(call.ok().with_remark("Offset has been previously reset")),
        _ => Ok(call.ok()),
    }
}

/// Stores a client's progress. On a master it cannot pass the end of the queue: a client that read more than is left after a lost
/// suffix must not skip what is written there next. (A master that is not whole may get that suffix back: it waits with this.)
pub(crate) fn commit(
    broker: &Broker,
    topic: &str,
    group: &str,
    queue_id: i32,
    offset: i64,
    source: CommitSource,
) -> Committed {
    let mut offset = offset;
    if broker.is_whole() {
        let (_, end) = bounds(broker, topic, queue_id);
        if offset > end.get() {
            warn!(topic, group, queue_id, offset, end = end.get(), "commit above the end of the queue, lowered to it");
            offset = end.get();
        }
    }
    let committed = broker.offsets().commit(topic, group, queue_id, offset, source, unix_ms());
    match committed {
        Committed::Lowered { before } => warn!(topic, group, queue_id, before, offset, "commit lowers the offset"),
        Committed::Stale { kept } => info!(topic, group, queue_id, kept, offset, "smaller commit not taken"),
        Committed::Advanced | Committed::Unchanged | Committed::ResetPending => {}
    }
    committed
}

/// GET_MAX_OFFSET: one past the last readable message.
pub(crate) fn max(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetMaxOffsetRequest = call.request.header()?;
    let (_, max) = bounds(broker, &header.topic, header.queue_id);
    Ok(call.ok().with_header(&OffsetResponse { offset: max }))
}

/// GET_MIN_OFFSET: the first message still there.
pub(crate) fn min(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetMinOffsetRequest = call.request.header()?;
    let (min, _) = bounds(broker, &header.topic, header.queue_id);
    Ok(call.ok().with_header(&OffsetResponse { offset: min }))
}

/// SEARCH_OFFSET_BY_TIMESTAMP, by store time.
pub(crate) async fn by_time(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: SearchOffsetRequest = call.request.header()?;
    let boundary = match header.boundary_type {
        BoundaryType::Lower => TimeBoundary::Lower,
        BoundaryType::Upper => TimeBoundary::Upper,
    };
    let offset = broker.store.offset_by_time(&header.topic, header.queue_id, header.timestamp, boundary).await?;
    Ok(call.ok().with_header(&OffsetResponse { offset }))
}

/// GET_EARLIEST_MSG_STORETIME; -1 for an empty queue.
pub(crate) async fn earliest_time(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetEarliestStoreTimeRequest = call.request.header()?;
    let timestamp = broker.store.earliest_store_time(&header.topic, header.queue_id).await?.unwrap_or(-1);
    Ok(call.ok().with_header(&GetEarliestStoreTimeResponse { timestamp }))
}

/// GET_ALL_CONSUMER_OFFSET: the table, for a slave or a returning master.
pub(crate) fn all(broker: &Broker, call: &Call) -> Command {
    let text = broker.offsets().text();
    call.json(&text)
}

/// GET_ALL_DELAY_OFFSET: how far each delay level was delivered, for a slave.
pub(crate) fn all_delays(broker: &Broker, call: &Call) -> Command {
    let text = broker.delays().text();
    speaks_of_the_log(broker, call.json(&text))
}

/// INVOKE_BROKER_TO_RESET_OFFSET: the group continues elsewhere; its members learn it from their next pull. Saved before the answer.
pub(crate) async fn reset(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ResetOffsetRequest = call.request.header()?;
    if broker.is_slave() {
        return Err(Refusal::ResetOnSlave);
    }
    let topic = broker.topic(&header.topic).ok_or_else(|| Refusal::OffsetTopic(header.topic.clone()))?;
    if broker.group(&header.group).is_none() {
        return Err(Refusal::OffsetGroup(header.group));
    }
    let queues = if header.queue_id >= 0 {
        header.queue_id..header.queue_id.saturating_add(1)
    } else {
        0..topic.read_queue_nums
    };
    let mut targets = Vec::new();
    for queue_id in queues {
        let (min, max) = bounds(broker, &header.topic, queue_id);
        let offset = match header.offset.filter(|offset| header.queue_id >= 0 && offset.get() != -1) {
            Some(given) if given < min || given > max + 1 => {
                return Err(Refusal::ResetRange { offset: given.get(), min: min.get(), max: max.get() });
            }
            Some(given) => given,
            None if header.timestamp < 0 => max,
            None => broker.store.offset_by_time(&header.topic, queue_id, header.timestamp, TimeBoundary::Lower).await?,
        };
        targets.push((queue_id, offset.clamp(min, max)));
    }
    for &(queue_id, offset) in &targets {
        info!(topic = %header.topic, group = %header.group, queue_id, %offset, "offset reset");
        broker.offsets().reset(&header.topic, &header.group, queue_id, offset.get(), unix_ms());
    }
    broker.save_offsets().await;
    let queue = |queue_id| MessageQueue {
        topic: header.topic.clone(),
        broker_name: broker.cluster.broker_name.clone(),
        queue_id,
    };
    let offset_table = targets.into_iter().map(|(queue_id, offset)| (queue(queue_id), offset.get())).collect();
    Ok(call.json(&ResetOffsetBody { offset_table }))
}

/// First and one past the last offset of a queue; a queue that does not exist is empty.
pub(crate) fn bounds(broker: &Broker, topic: &str, queue_id: i32) -> (QueueOffset, QueueOffset) {
    broker.store.queue_bounds(topic, queue_id).unwrap_or((QueueOffset(0), QueueOffset(0)))
}
