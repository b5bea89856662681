//! END_TRANSACTION (37): a producer says what became of its transaction. RESUME_CHECK_HALF_MESSAGE (323): an operator wants one that was
//! given up to be asked for again.
use super::halves::Claim;
use super::{HALF_TOPIC, as_half, op_message, target};
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use protocol::frame::Command;
use protocol::header::{EndTransactionRequest, ResumeCheckHalfMessageRequest};
use protocol::message::property;
use protocol::{MessageId, PhysicalOffset, StoredMessage, SysFlag};
use rt::time::unix_ms;
use store::NewMessage;
use tracing::{info, warn};

/// What a producer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Commit,
    RollBack,
}

impl Decision {
    /// None as long as the producer does not know: nobody waits for an answer to that.
    fn of(bits: i32) -> Option<Decision> {
        match bits {
            SysFlag::TRANSACTION_COMMIT => Some(Decision::Commit),
            SysFlag::TRANSACTION_ROLLBACK => Some(Decision::RollBack),
            _ => None,
        }
    }
}

/// Serves the end of a transaction. Told again it changes nothing.
pub(crate) async fn end(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: EndTransactionRequest = call.request.header()?;
    if broker.is_slave() {
        return Err(Refusal::TransactionOnSlave);
    }
    let Some(decision) = Decision::of(header.commit_or_rollback) else {
        rt::probe!("server.transaction.producer_does_not_know");
        return Err(Refusal::NoAnswer);
    };
    // Before it is known what is decided, a second end of a transaction would look like a first one.
    broker.halves_known.cancelled().await;
    let half = read(broker, header.commit_log_offset).await?.ok_or(Refusal::NoHalf)?;
    check(broker, &header, &half)?;
    let Some(claim) = broker.halves().claim(half.queue_offset.get(), as_half(&half)) else {
        rt::probe!("server.transaction.ended_again");
        return Ok(call.ok());
    };
    match decide(broker, decision, half, &claim).await {
        Ok(end) => {
            broker.halves().settle(&claim);
            // The same waits as the message's own send: whoever hears of the end may rely on it.
            put::durable(broker, end, Wait::Durable).await?;
            Ok(call.ok())
        }
        Err(refusal) => {
            rt::probe!("server.transaction.not_ended");
            broker.halves().give_back(claim);
            Err(refusal)
        }
    }
}

/// The half message at this place of the log.
pub(super) async fn read(broker: &Broker, at: PhysicalOffset) -> Result<Option<StoredMessage>, Refusal> {
    let Some(record) = broker.store.record_at(at).await? else { return Ok(None) };
    Ok(StoredMessage::decode(&record).ok().filter(|message| message.topic == HALF_TOPIC))
}

fn check(broker: &Broker, header: &EndTransactionRequest, half: &StoredMessage) -> Result<(), Refusal> {
    if half.properties.get(property::PRODUCER_GROUP).unwrap_or_default() != header.producer_group {
        return Err(Refusal::HalfOfOtherGroup);
    }
    if half.queue_offset != header.tran_state_table_offset {
        return Err(Refusal::HalfAtOtherOffset);
    }
    let immunity = as_half(half).immunity;
    if let Some(immunity) = immunity.filter(|_| !header.from_transaction_check) {
        let limit_ms = immunity.max(broker.config.timing.transaction_timeout).as_millis();
        if u128::try_from(unix_ms() - half.born_timestamp).unwrap_or(0) > limit_ms {
            return Err(Refusal::TransactionEndTooLate);
        }
    }
    Ok(())
}

/// Puts the decision into the log; answers the end of what it wrote.
async fn decide(
    broker: &Broker,
    decision: Decision,
    half: StoredMessage,
    claim: &Claim,
) -> Result<PhysicalOffset, Refusal> {
    if decision == Decision::Commit {
        let message = final_message(broker, half)?;
        put::append(broker, message).await?;
    }
    // From here on the transaction is decided. Without its op message its producer is asked after a restart, and says the same again.
    match put::append(broker, op_message(broker, &claim.offsets())).await {
        Ok(op) => Ok(op.end),
        Err(refusal) if decision == Decision::Commit => {
            warn!(%refusal, offsets = ?claim.offsets(), "op message of a committed transaction not stored");
            Ok(broker.store.log_end())
        }
        Err(refusal) => Err(refusal),
    }
}

/// The message as consumers get it. It is no half any more, and a retry of it is none either.
fn final_message(broker: &Broker, half: StoredMessage) -> Result<NewMessage, Refusal> {
    let (topic, queue_id) = target(&half.properties).ok_or(Refusal::HalfWithoutTarget)?;
    let prepared_transaction_offset = half.physical_offset.get();
    let mut properties = half.properties.clone();
    for name in
        [property::TRANSACTION_PREPARED, property::TRANSACTION_CHECK_TIMES, property::TRANSACTION_PREPARED_QUEUE_OFFSET]
    {
        properties.remove(name);
    }
    let again = put::again(broker, half, (topic, queue_id), properties.to_text());
    let sys_flag = again.sys_flag & !SysFlag::TRANSACTION_ROLLBACK | SysFlag::TRANSACTION_COMMIT;
    let mut message = NewMessage { sys_flag, prepared_transaction_offset, ..again };
    put::divert(broker, &mut message, properties)?;
    Ok(message)
}

/// Serves an operator's wish: the half is open again, and its producer is asked as if for the first time.
pub(crate) async fn resume(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ResumeCheckHalfMessageRequest = call.request.header()?;
    broker.require_master()?;
    let id: MessageId = header.msg_id.as_deref().and_then(|id| id.parse().ok()).ok_or(Refusal::NoHalfToResume)?;
    let record = broker.store.record_at(id.offset).await?.ok_or(Refusal::NoHalfToResume)?;
    let given_up = StoredMessage::decode(&record).map_err(|_| Refusal::NoHalfToResume)?;
    if target(&given_up.properties).is_none() {
        return Err(Refusal::NoHalfToResume);
    }
    let mut properties = given_up.properties.clone();
    properties.insert(property::TRANSACTION_CHECK_TIMES, "0");
    let again = put::again(broker, given_up, (HALF_TOPIC.to_owned(), 0), properties.to_text());
    match put::put_as_is(broker, again, Wait::Durable).await? {
        (half, PutStatus::Ok) => {
            info!(offset = %half.queue_offset, "half message resumed");
            Ok(call.ok())
        }
        (_, status) => Err(Refusal::PutFailed(status.name())),
    }
}
