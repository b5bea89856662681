//! Storing a message as durably as configured before anyone is told of it.
use crate::broker::Broker;
use crate::delay;
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use crate::{timer_send, transaction};
use bytes::Bytes;
use protocol::message::{Properties, batch, property};
use protocol::{PhysicalOffset, StoredMessage, SysFlag};
use rt::time::Duration;
use store::{Appended, FlushError, NewMessage};
use tracing::warn;

/// The system flag's bits that say what a message is to a transaction.
const TRANSACTION_BITS: i32 = SysFlag::TRANSACTION_ROLLBACK;

/// Most messages of one batch.
pub(crate) const BATCH_MAX: usize = 32 * 1024 - 1;

/// How late a request may go on on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(20);

/// How long the answer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until the message is as durable as the broker is configured for.
    Durable,
    /// Not at all (property WAIT=false, one-way sends).
    No,
}

impl Wait {
    /// What the message's own properties ask for.
    pub fn of(properties: &Properties) -> Wait {
        match properties.get(property::WAIT_STORE_MSG_OK) {
            Some(text) if text.eq_ignore_ascii_case("false") => Wait::No,
            _ => Wait::Durable,
        }
    }
}

/// A message that is stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub appended: Appended,
    pub status: PutStatus,
    /// The slot in which it waits for its moment, Unix milliseconds.
    pub slot_ms: Option<i64>,
}

/// What is stored already, to be stored once more in that queue: its age and its tries go with it.
pub(crate) fn again(
    broker: &Broker,
    message: StoredMessage,
    (topic, queue_id): (String, i32),
    properties: String,
) -> NewMessage {
    NewMessage {
        topic,
        queue_id,
        flag: message.flag,
        sys_flag: message.sys_flag.0,
        born_timestamp: message.born_timestamp,
        born_host: message.born_host,
        store_host: broker.advertised(),
        reconsume_times: message.reconsume_times,
        prepared_transaction_offset: 0,
        properties,
        body: message.body,
    }
}

/// Stores one message; a message with a delay level goes to its level's queue first, one with a moment to the timer topic.
pub(crate) async fn put(
    broker: &Broker,
    mut message: NewMessage,
    properties: Properties,
    wait: Wait,
) -> Result<Stored, Refusal> {
    check(broker, &message.topic, &properties)?;
    let slot_ms = divert(broker, &mut message, properties)?;
    let (appended, status) = put_as_is(broker, message, wait).await?;
    Ok(Stored { appended, status, slot_ms })
}

/// Sends a message that is to come later to where it waits; tells the slot of one with a moment (Unix milliseconds).
pub(crate) fn divert(
    broker: &Broker,
    message: &mut NewMessage,
    properties: Properties,
) -> Result<Option<i64>, Refusal> {
    if delay::level(&properties) > 0 {
        delay::divert(broker, message, properties);
        return Ok(None);
    }
    timer_send::divert(broker, message, properties)
}

/// Stores one message without looking at its delay or moment.
pub(crate) async fn put_as_is(
    broker: &Broker,
    message: NewMessage,
    wait: Wait,
) -> Result<(Appended, PutStatus), Refusal> {
    let appended = append(broker, message).await?;
    let status = durable(broker, appended.end, wait).await?;
    rt::dawdle!("server.durable_message_told_late", LATE);
    Ok((appended, status))
}

/// Stores one message and does not wait: nobody may be told of it before [`durable`] returns.
pub(crate) async fn append(broker: &Broker, message: NewMessage) -> Result<Appended, Refusal> {
    require_writable(broker)?;
    rt::dawdle!("server.append_late", LATE);
    let bytes = message.body.len();
    let appended = broker.store.append(message).inspect_err(|_| broker.stats.puts_failed.add(1))?;
    broker.stats.puts.add(1);
    broker.stats.put_bytes.add(u64::try_from(bytes).expect("a size"));
    Ok(appended)
}

/// Stores the messages of a batch, all or none of them.
pub(crate) async fn put_batch(
    broker: &Broker,
    messages: Vec<NewMessage>,
    wait: Wait,
) -> Result<(Vec<Appended>, PutStatus), Refusal> {
    require_writable(broker)?;
    let (count, bytes) = (messages.len(), messages.iter().map(|message| message.body.len()).sum::<usize>());
    let appended = broker.store.append_batch(messages).inspect_err(|_| broker.stats.puts_failed.add(1))?;
    let end = appended.last().expect("the store refuses an empty batch").end;
    let status = durable(broker, end, wait).await?;
    broker.stats.puts.add(u64::try_from(count).expect("a count"));
    broker.stats.put_bytes.add(u64::try_from(bytes).expect("a size"));
    Ok((appended, status))
}

/// Refuses what asks for services that are not built, before a byte is stored.
pub(crate) fn check(broker: &Broker, topic: &str, properties: &Properties) -> Result<(), Refusal> {
    if transaction::is_marked(properties) {
        return Err(Refusal::TransactionForbidden(broker.own_ip()));
    }
    if properties.contains(property::INNER_NUM) && !broker.store.is_batch_topic(topic) {
        return Err(Refusal::InnerBatch);
    }
    Ok(())
}

/// Refuses flags of a send by which a producer says what a broker alone may say of a transaction.
pub(crate) fn check_flag(broker: &Broker, sys_flag: i32, begins_transaction: bool) -> Result<(), Refusal> {
    let transaction = sys_flag & TRANSACTION_BITS;
    if transaction != 0 && !(begins_transaction && transaction == SysFlag::TRANSACTION_PREPARED) {
        return Err(Refusal::TransactionForbidden(broker.own_ip()));
    }
    Ok(())
}

/// Refuses a batch in one record that no consumer could take apart, or whose queue has no room for it (`HookUtils.checkInnerBatch`).
pub(crate) fn check_inner_batch(
    broker: &Broker,
    (topic, sys_flag): (&str, i32),
    properties: &Properties,
    body: &Bytes,
) -> Result<(), Refusal> {
    let sys_flag = SysFlag(sys_flag);
    if !sys_flag.has(SysFlag::INNER_BATCH)
        && !sys_flag.has(SysFlag::NEED_UNWRAP)
        && !properties.contains(property::INNER_NUM)
    {
        return Ok(());
    }
    if !sys_flag.has(SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP) || !broker.store.is_batch_topic(topic) {
        return Err(Refusal::InnerBatch);
    }
    if delay::level(properties) > 0 || timer_send::asks(properties) {
        return Err(Refusal::DelayedBatch);
    }
    let count = batch::decode(body, BATCH_MAX)?.len();
    match properties.get(property::INNER_NUM).map(str::parse::<usize>) {
        Some(Ok(told)) if told == count && count > 0 => Ok(()),
        _ => Err(Refusal::InnerBatch),
    }
}

fn require_writable(broker: &Broker) -> Result<(), Refusal> {
    if broker.is_whole() { Ok(()) } else { Err(Refusal::ServiceNotAvailable) }
}

/// Waits for disk and slaves at the same time. Of two time-outs the slaves' is told, as Apache's broker does.
pub(crate) async fn durable(broker: &Broker, end: PhysicalOffset, wait: Wait) -> Result<PutStatus, Refusal> {
    if wait == Wait::No {
        return Ok(PutStatus::Ok);
    }
    let on_disk = async {
        if !broker.config.flush_sync {
            return Ok(PutStatus::Ok);
        }
        match broker.store.flushed(end, broker.config.timing.sync_flush_timeout).await {
            Ok(()) => Ok(PutStatus::Ok),
            Err(FlushError::Timeout { .. } | FlushError::BeyondEnd { .. }) => Ok(PutStatus::FlushDiskTimeout),
            // Whether the message survives is not known: the sender must not be told anything.
            Err(FlushError::Poisoned(_)) => Err(Refusal::NoAnswer),
        }
    };
    let (disk, slaves) = both(on_disk, broker.replicas.wait(end)).await;
    let status = match (disk?, slaves) {
        (disk, true) => disk,
        (_, false) => PutStatus::FlushSlaveTimeout,
    };
    if status != PutStatus::Ok {
        rt::probe!("server.put.weak_answer");
        warn!(%end, status = status.name(), "message stored, but not as durable as configured");
    }
    Ok(status)
}

/// Both results, the waits running at the same time.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    rt::select! {
        a = &mut first => (a, second.await),
        b = &mut second => (first.await, b),
    }
}
