//! Transactions: a half message waits, seen by nobody, until its producer commits it or rolls it back; a producer that does not say is
//! asked (`TransactionalMessageService`).
//!
//! A half message lies in [`HALF_TOPIC`]. What was decided of it is told by an op message in [`OP_TOPIC`], which names its queue offset
//! there; Apache's broker reads both. A commit stores the message where it was meant to go, and its op message next to it in the log.
//!
//! | module | what it holds |
//! |---|---|
//! | `halves` | which halves are open: a core without IO |
//! | `end` | END_TRANSACTION, RESUME_CHECK_HALF_MESSAGE |
//! | `check` | the task that follows both queues and asks producers |
//!
//! # Invariants
//! - A half message is in no queue but that of [`HALF_TOPIC`].
//! - A transaction has one final message, however often its end is told; a second one only if the broker ended after it had stored the
//!   first and before its op message was on the disk.
//! - The committed offset of [`GROUP`] in [`HALF_TOPIC`] never passes an open half, and its offset in [`OP_TOPIC`] no op message that a
//!   restart needs.
use crate::broker::Broker;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use bytes::Bytes;
use halves::Half;
use protocol::message::{Properties, property};
use protocol::{PhysicalOffset, StoredMessage, SysFlag};
use rt::time::unix_ms;
use std::time::Duration;
use store::{Appended, NewMessage};

pub(crate) mod check;
pub(crate) mod end;
pub(crate) mod halves;

/// Where half messages wait.
pub(crate) const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Says which halves are decided.
pub(crate) const OP_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
/// Where halves go whose producer never said.
pub(crate) const UNDECIDED_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
/// Whose committed offsets say how far both topics are done with.
pub(crate) const GROUP: &str = "CID_RMQ_SYS_TRANS";

/// Tag of an op message.
const OP_TAG: &str = "d";
/// Between the half offsets of an op message.
const OP_SEPARATOR: char = ',';

/// Whether a producer says that the message is a half.
pub(crate) fn is_marked(properties: &Properties) -> bool {
    properties.get(property::TRANSACTION_PREPARED).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// Whether a send is the first half of a transaction. What a consumer sends back is not, whatever its properties still say.
pub(crate) fn begins(message: &NewMessage, properties: &Properties) -> bool {
    let is_sent_back = message.reconsume_times > 0 && crate::delay::level(properties) > 0;
    is_marked(properties) && !is_sent_back
}

/// Stores a half message. A delay or moment that it asks for counts from its commit.
pub(crate) async fn prepare(
    broker: &Broker,
    mut message: NewMessage,
    mut properties: Properties,
    wait: Wait,
) -> Result<(Appended, PutStatus), Refusal> {
    if broker.config.reject_transactions {
        return Err(Refusal::TransactionForbidden(broker.own_ip()));
    }
    if let Some(key) = properties.unique_key().map(str::to_owned) {
        properties.insert(property::TRANSACTION_ID, key);
    }
    properties.insert(property::REAL_TOPIC, std::mem::replace(&mut message.topic, HALF_TOPIC.to_owned()));
    properties.insert(property::REAL_QUEUE_ID, message.queue_id.to_string());
    message.queue_id = 0;
    message.sys_flag &= !SysFlag::TRANSACTION_ROLLBACK;
    message.properties = properties.to_text();
    put::put_as_is(broker, message, wait).await
}

/// Where a half message was meant to go.
fn target(half: &Properties) -> Option<(String, i32)> {
    let topic = half.get(property::REAL_TOPIC)?;
    let queue_id = half.get(property::REAL_QUEUE_ID)?.parse().ok().filter(|id| *id >= 0)?;
    Some((topic.to_owned(), queue_id))
}

/// The first place of the log that an open half needs. Until it is known which are open, all of it.
pub(crate) fn open_from(broker: &Broker) -> Option<PhysicalOffset> {
    match broker.is_slave() || broker.halves_known.is_cancelled() {
        true => broker.halves().needed_from(),
        false => Some(PhysicalOffset(0)),
    }
}

/// What is remembered of a half message.
fn as_half(message: &StoredMessage) -> Half {
    let number = |name: &str| message.properties.get(name).and_then(|text| text.trim().parse::<u64>().ok());
    Half {
        // Every send has a unique key; what lies in the queue without one is a transaction of its own.
        id: message.properties.unique_key().map_or_else(|| message.physical_offset.to_string(), str::to_owned),
        physical: message.physical_offset,
        since_ms: message.born_timestamp.min(message.store_timestamp),
        stored_ms: message.store_timestamp,
        checks: number(property::TRANSACTION_CHECK_TIMES).map_or(0, |times| u32::try_from(times).unwrap_or(u32::MAX)),
        immunity: number(property::CHECK_IMMUNITY_TIME_IN_SECONDS).map(Duration::from_secs),
    }
}

/// The op message of halves that are decided.
fn op_message(broker: &Broker, offsets: &[i64]) -> NewMessage {
    let body: String = offsets.iter().flat_map(|offset| [offset.to_string(), OP_SEPARATOR.to_string()]).collect();
    let mut properties = Properties::new();
    properties.insert(property::TAGS, OP_TAG);
    properties.insert(property::UNIQUE_KEY, broker.unique_key());
    properties.insert(property::WAIT_STORE_MSG_OK, "false");
    NewMessage {
        topic: OP_TOPIC.to_owned(),
        queue_id: 0,
        flag: 0,
        sys_flag: 0,
        born_timestamp: unix_ms(),
        born_host: broker.advertised(),
        store_host: broker.advertised(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        properties: properties.to_text(),
        body: Bytes::from(body),
    }
}

/// The half offsets that an op message names. Brokers before 5.0 wrote one number without a comma; what is no number is passed over.
fn named_by_op(body: &[u8]) -> Vec<i64> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.split(OP_SEPARATOR).filter_map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::named_by_op;

    #[test]
    fn an_op_message_names_offsets_of_halves() {
        assert_eq!(named_by_op(b"7,8,12,"), [7, 8, 12]);
        assert_eq!(named_by_op(b"41"), [41]);
        assert_eq!(named_by_op(b"7,,x,9"), [7, 9]);
        assert_eq!(named_by_op(&[0xFF, b'7']), Vec::<i64>::new());
    }
}
