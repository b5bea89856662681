//! The task that follows the half messages and what was decided of them, and asks the producers of those that stay open.
//!
//! A producer is asked by a message that it may never get, so a half is asked for again at each look, as often as the configuration says;
//! then it goes to [`UNDECIDED_TOPIC`]. Each time it is stored anew with the count, as Apache's broker does, so that a restart knows it. A
//! half whose producer is not connected is not counted: nobody was asked.
use super::halves::{CheckRules, Due, Half, Halves};
use super::{GROUP, HALF_TOPIC, OP_TOPIC, UNDECIDED_TOPIC, as_half, end, named_by_op, op_message, target};
use crate::broker::Broker;
use crate::offset_requests::bounds;
use crate::offsets::CommitSource;
use crate::put;
use crate::refusal::Refusal;
use crate::topics::{perm, plain};
use bytes::BytesMut;
use protocol::frame::Command;
use protocol::header::CheckTransactionStateRequest;
use protocol::message::record::{Record, RecordVersion};
use protocol::message::{Properties, property};
use protocol::{QueueOffset, RequestCode, StoredMessage, SysFlag};
use remoting::Connection;
use rt::time::{sleep, unix_ms};
use std::sync::Arc;
use std::time::Duration;
use store::{Appended, GetRequest, GetStatus, NewMessage, TagFilter};
use tracing::{debug, info, warn};

/// Messages read at a time.
const BATCH: u32 = 32;

/// A half is not given up for its age before, however short messages are kept.
const LEAST_AGE: Duration = Duration::from_secs(3600);

/// The task. It ends with the broker.
pub(crate) async fn run(broker: Arc<Broker>) {
    rt::select! {
        () = broker.closing.cancelled() => {}
        () = work(&broker) => {}
    }
}

async fn work(broker: &Broker) {
    // Nothing can be stored before.
    broker.wait_whole().await;
    let [half, op] = [HALF_TOPIC, OP_TOPIC].map(|topic| {
        let (min, max) = bounds(broker, topic, 0);
        let committed = broker.offsets().query(topic, GROUP, 0).unwrap_or(0);
        QueueOffset(committed).clamp(min, max).get()
    });
    *broker.halves() = Halves::starting_at(half, op);
    loop {
        match look(broker).await {
            Err(Refusal::NoAnswer) => return,
            Err(refusal) => warn!(%refusal, "half messages not checked"),
            Ok(()) => {}
        }
        let period = broker.config.timing.transaction_check_period;
        sleep(if rt::buggify!("server.transaction_check_early") { period / 10 } else { period }).await;
    }
}

/// Follows both queues to their ends, then asks for what is due.
async fn look(broker: &Broker) -> Result<(), Refusal> {
    // The halves first: an op message is stored after the half that it names.
    while read_halves(broker).await? {}
    while read_ops(broker).await? {}
    broker.halves_known.cancel();
    let rules = CheckRules {
        timeout: broker.config.timing.transaction_timeout,
        checks_max: broker.config.transaction_checks_max,
        age_max: broker.config.store.retention.reserved.max(LEAST_AGE),
    };
    let due = broker.halves().due(&rules, unix_ms());
    for (offset, due) in due {
        // One that cannot be handled must not keep the others waiting.
        match handle(broker, offset, due).await {
            Err(Refusal::NoAnswer) => return Err(Refusal::NoAnswer),
            Err(refusal) => warn!(offset, %refusal, "half message not checked"),
            Ok(()) => {}
        }
    }
    commit(broker).await
}

/// `false` at the end of the queue.
async fn read_halves(broker: &Broker) -> Result<bool, Refusal> {
    let from = broker.halves().next_half();
    let (messages, next) = read(broker, HALF_TOPIC, from).await?;
    let mut halves = broker.halves();
    for message in &messages {
        halves.read_half(message.queue_offset.get(), as_half(message));
    }
    halves.skip_halves(next);
    Ok(halves.next_half() > from)
}

async fn read_ops(broker: &Broker) -> Result<bool, Refusal> {
    let from = broker.halves().next_op();
    let (messages, next) = read(broker, OP_TOPIC, from).await?;
    let mut halves = broker.halves();
    for message in &messages {
        halves.read_op(message.queue_offset.get(), &named_by_op(&message.body));
    }
    halves.skip_ops(next);
    Ok(halves.next_op() > from)
}

/// Messages from there on, and where to go on.
async fn read(broker: &Broker, topic: &str, from: i64) -> Result<(Vec<StoredMessage>, i64), Refusal> {
    let (_, max) = bounds(broker, topic, 0);
    if QueueOffset(from) >= max {
        return Ok((Vec::new(), from));
    }
    let request = GetRequest {
        topic: topic.to_owned(),
        queue_id: 0,
        from: QueueOffset(from),
        max_messages: BATCH,
        max_bytes: 1 << 20,
        tags: TagFilter::All,
    };
    let outcome = broker.store.get(request).await?;
    if outcome.status != GetStatus::Found {
        // A hole, or what has expired.
        return Ok((Vec::new(), outcome.next.get().max(from)));
    }
    let decoded = outcome.records.iter().map(StoredMessage::decode).collect::<Result<Vec<_>, _>>();
    Ok((decoded.map_err(|_| Refusal::PutFailed("UNKNOWN_ERROR"))?, outcome.next.get()))
}

async fn handle(broker: &Broker, offset: i64, due: Due) -> Result<(), Refusal> {
    // Ended meanwhile, perhaps.
    let Some(known) = broker.halves().get(offset).cloned() else { return Ok(()) };
    let Some(half) = end::read(broker, known.physical).await? else {
        warn!(offset, place = %known.physical, "half message has gone, its transaction stays undecided");
        return decide(broker, offset, known).await;
    };
    if target(&half.properties).is_none() {
        warn!(offset, "half message names no queue, dropped");
        return decide(broker, offset, known).await;
    }
    match due {
        Due::GiveUp => give_up(broker, half, known).await,
        Due::Ask => ask(broker, half, known).await,
    }
}

/// Nothing more is done with the half.
async fn decide(broker: &Broker, offset: i64, half: Half) -> Result<(), Refusal> {
    in_place_of(broker, offset, half, None).await.map(|_| ())
}

async fn give_up(broker: &Broker, half: StoredMessage, known: Half) -> Result<(), Refusal> {
    rt::probe!("server.transaction.given_up");
    let offset = half.queue_offset.get();
    warn!(offset, id = %known.id, checks = known.checks, "transaction given up, its producer never said");
    let topic = broker.ensure_topic(plain(UNDECIDED_TOPIC, 1, perm::READ_WRITE)).await.topic_name;
    let properties = half.properties.to_text();
    let copy = put::again(broker, half, (topic, 0), properties);
    let id = known.id.clone();
    in_place_of(broker, offset, known, Some(copy)).await?;
    broker.halves().given_up(id);
    Ok(())
}

async fn ask(broker: &Broker, half: StoredMessage, known: Half) -> Result<(), Refusal> {
    let group = half.properties.get(property::PRODUCER_GROUP).unwrap_or_default().to_owned();
    let Some(producer) = any_producer(broker, &group) else {
        rt::probe!("server.transaction.nobody_to_ask");
        debug!(group, offset = %half.queue_offset, "transaction is open and its producer not connected");
        return Ok(());
    };
    let offset = half.queue_offset.get();
    let mut properties = half.properties.clone();
    let checks = known.checks.saturating_add(1);
    properties.insert(property::TRANSACTION_CHECK_TIMES, checks.to_string());
    if !properties.contains(property::TRANSACTION_PREPARED_QUEUE_OFFSET) {
        properties.insert(property::TRANSACTION_PREPARED_QUEUE_OFFSET, offset.to_string());
    }
    let copy = put::again(broker, half, (HALF_TOPIC.to_owned(), 0), properties.to_text());
    let Some(appended) = in_place_of(broker, offset, known.clone(), Some(copy.clone())).await? else { return Ok(()) };
    let open = Half { physical: appended.physical, stored_ms: appended.store_timestamp, checks, ..known };
    broker.halves().stored_again(appended.queue_offset.get(), open);
    info!(group, offset = %appended.queue_offset, checks, "producer is asked what became of its transaction");
    let question = question(copy, &appended, &properties)?;
    // It may be lost; then the next look asks again.
    if let Err(error) = producer.send_oneway(question).await {
        debug!(group, %error, "question not sent");
    }
    Ok(())
}

/// Decides all halves of the transaction; `copy` is stored in their place. None if somebody decides them already.
async fn in_place_of(
    broker: &Broker,
    offset: i64,
    half: Half,
    copy: Option<NewMessage>,
) -> Result<Option<Appended>, Refusal> {
    let Some(claim) = broker.halves().claim(offset, half) else { return Ok(None) };
    let written = async {
        let appended = match copy {
            Some(copy) => Some(put::append(broker, copy).await?),
            None => None,
        };
        put::append(broker, op_message(broker, &claim.offsets())).await?;
        Ok(appended)
    };
    match written.await {
        Ok(appended) => {
            broker.halves().settle(&claim);
            Ok(appended)
        }
        Err(refusal) => {
            broker.halves().give_back(claim);
            Err(refusal)
        }
    }
}

/// Any member of the group can say.
fn any_producer(broker: &Broker, group: &str) -> Option<Connection> {
    let peers: Vec<_> = broker.producers().members(group)?.keys().copied().collect();
    let connections = broker.connections();
    let connected: Vec<_> = peers.iter().filter_map(|peer| connections.get(peer)).cloned().collect();
    drop(connections);
    let count = i32::try_from(connected.len()).ok().filter(|count| *count > 0)?;
    connected.into_iter().nth(usize::try_from(broker.random_below(count)).expect("not negative"))
}

/// CHECK_TRANSACTION_STATE, with the message as it was meant to be.
fn question(half: NewMessage, appended: &Appended, properties: &Properties) -> Result<Command, Refusal> {
    let (topic, queue_id) = target(properties).ok_or(Refusal::HalfWithoutTarget)?;
    let record = Record {
        version: RecordVersion::for_topic(&topic),
        queue_id,
        flag: half.flag,
        queue_offset: appended.queue_offset,
        physical_offset: appended.physical,
        sys_flag: SysFlag(half.sys_flag).with_hosts(half.born_host.ip(), half.store_host.ip()),
        born_timestamp: half.born_timestamp,
        born_host: half.born_host,
        store_timestamp: appended.store_timestamp,
        store_host: half.store_host,
        reconsume_times: half.reconsume_times,
        prepared_transaction_offset: 0,
        body: half.body,
        topic,
        properties: half.properties.into(),
    };
    let mut body = BytesMut::new();
    record.encode(&mut body).map_err(|_| Refusal::Properties)?;
    let id = properties.unique_key().map(str::to_owned);
    let header = CheckTransactionStateRequest {
        topic: Some(HALF_TOPIC.to_owned()),
        tran_state_table_offset: appended.queue_offset,
        commit_log_offset: appended.physical,
        msg_id: id.clone(),
        transaction_id: id,
        offset_msg_id: Some(appended.message_id.to_string()),
    };
    let mut question = Command::request(RequestCode::CheckTransactionState, &header).with_body(body.freeze());
    question.mark_oneway();
    Ok(question)
}

/// Remembers how far both queues are done with, once what that speaks of is on the disk: a power loss must not take a decision whose half
/// is passed over.
async fn commit(broker: &Broker) -> Result<(), Refusal> {
    let done = [HALF_TOPIC, OP_TOPIC].into_iter().zip(broker.halves().done());
    let news: Vec<_> =
        done.filter(|(topic, done)| *done > broker.offsets().query(topic, GROUP, 0).unwrap_or(0)).collect();
    if news.is_empty() {
        return Ok(());
    }
    let end = broker.store.log_end();
    if broker.store.flushed(end, broker.config.timing.sync_flush_timeout).await.is_err() {
        return Ok(());
    }
    for (topic, done) in news {
        broker.offsets().commit(topic, GROUP, 0, done, CommitSource::Pull, unix_ms());
    }
    Ok(())
}
