//! Transactions: a message that consumers get only if the program's own transaction succeeds.
//!
//! The producer stores the message as a half, runs the local transaction, and tells the broker what became of it. If that news is lost, or
//! the transaction takes its time, the broker asks any producer of the group.
use crate::config::ProducerConfig;
use crate::error::{CallError, SendError, StartError};
use crate::instance::ClientInstance;
use crate::producer::{Producer, SendOutcome, SendStatus};
use crate::pull::BODY_BYTES_MAX;
use protocol::header::{CheckTransactionStateRequest, EndTransactionRequest};
use protocol::message::property;
use protocol::{Command, Message, MessageId, RequestCode, StoredMessage, SysFlag};
use remoting::{BoxFuture, Connection};
use std::sync::Arc;
use tracing::{debug, warn};

/// What a program knows of its local transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// It succeeded: consumers are to get the message.
    Commit,
    /// It failed: nobody is to get the message.
    RollBack,
    /// It is not decided yet: the broker is to ask again.
    Unknown,
}

impl TransactionState {
    fn bits(self) -> i32 {
        match self {
            TransactionState::Commit => SysFlag::TRANSACTION_COMMIT,
            TransactionState::RollBack => SysFlag::TRANSACTION_ROLLBACK,
            TransactionState::Unknown => SysFlag::TRANSACTION_NONE,
        }
    }
}

/// Answers a broker that asks what became of a transaction.
pub trait TransactionListener: Send + Sync + 'static {
    /// What became of the transaction of this message, which any producer of the group may have sent, also one that has ended since.
    fn check(&self, message: StoredMessage) -> BoxFuture<'static, TransactionState>;
}

/// What is known of a transaction after the call.
#[derive(Debug)]
pub struct TransactionOutcome {
    /// The half message. Its offset is the one among the halves; consumers see another.
    pub half: SendOutcome,
    /// What the local transaction said; [`TransactionState::RollBack`] if it was not run, because the half is not stored as well as promised.
    pub state: TransactionState,
    /// Whether the broker took note of it. If not, it asks.
    pub told: Result<(), CallError>,
}

/// Sends messages in transactions. Like [`Producer`] it is one group of an instance.
pub struct TransactionProducer {
    producer: Producer,
}

impl TransactionProducer {
    /// Joins the group; from now on the brokers of `topics` may ask `listener`. Without a topic here a producer that was started again
    /// would be known to no broker before it sends, and what its former life left open would stay so.
    ///
    /// # Errors
    /// As [`Producer::start`]. Topics without a route are no error: their brokers hear of this producer once there is one.
    pub async fn start(
        instance: &ClientInstance,
        config: ProducerConfig,
        topics: &[&str],
        listener: Arc<dyn TransactionListener>,
    ) -> Result<TransactionProducer, StartError> {
        let group = config.group.clone();
        let producer = Producer::join(instance, config)?;
        instance.listen_to_transactions(&group, listener);
        for topic in topics {
            if let Err(error) = producer.make_known(topic).await {
                warn!(topic, %error, "brokers of the topic cannot ask for transactions yet");
            }
        }
        instance.heartbeat_all().await;
        Ok(TransactionProducer { producer })
    }

    /// Sends a half message, runs `local` once it is stored, and tells the broker what that said.
    ///
    /// # Errors
    /// The half is not stored, or whether it is stored is not known, and `local` was not run. A half that was stored nevertheless is asked
    /// for by the broker.
    pub async fn send<F: Future<Output = TransactionState> + Send>(
        &self,
        message: Message,
        local: impl FnOnce(&SendOutcome) -> F + Send,
    ) -> Result<TransactionOutcome, SendError> {
        let half = self.producer.send_half(message).await?;
        let state = match half.status {
            SendStatus::Ok => local(&half).await,
            _ => TransactionState::RollBack,
        };
        let told = self.tell(&half, state).await;
        if let Err(error) = &told {
            debug!(id = %half.message_id, %error, "end of the transaction not told, the broker will ask");
        }
        Ok(TransactionOutcome { half, state, told })
    }

    async fn tell(&self, half: &SendOutcome, state: TransactionState) -> Result<(), CallError> {
        if state == TransactionState::Unknown {
            return Ok(());
        }
        let place: MessageId = half.offset_message_id.parse()?;
        let header = EndTransactionRequest {
            topic: Some(half.queue.topic.clone()),
            producer_group: self.producer.group().to_owned(),
            tran_state_table_offset: half.queue_offset,
            commit_log_offset: place.offset,
            commit_or_rollback: state.bits(),
            from_transaction_check: false,
            msg_id: half.message_id.clone(),
            transaction_id: Some(half.message_id.clone()),
        };
        let end = Command::request(RequestCode::EndTransaction, &header);
        self.producer.ask_master_of(&half.queue, end).await.map(|_| ())
    }

    /// Leaves the group and tells the brokers. Who asks from then on asks the others of the group.
    pub async fn shutdown(self) {
        self.producer.shutdown().await;
    }
}

/// Serves CHECK_TRANSACTION_STATE: asks the program and tells the broker, over the connection by which it asked.
pub(crate) fn answer_check(client: &ClientInstance, connection: Connection, request: &Command) {
    let (header, message) = match read_check(request) {
        Ok(read) => read,
        Err(what) => return warn!(what, "question about a transaction cannot be read"),
    };
    let group = message.properties.get(property::PRODUCER_GROUP).unwrap_or_default().to_owned();
    let Some(listener) = client.transaction_listener(&group) else {
        return debug!(group, "asked about a transaction of a group that is not here");
    };
    let id = header.msg_id.clone().unwrap_or_else(|| message.message_id());
    client.spawn(async move {
        let state = listener.check(message).await;
        let end = EndTransactionRequest {
            topic: header.topic,
            producer_group: group,
            tran_state_table_offset: header.tran_state_table_offset,
            commit_log_offset: header.commit_log_offset,
            commit_or_rollback: state.bits(),
            from_transaction_check: true,
            msg_id: id,
            transaction_id: header.transaction_id,
        };
        let mut end = Command::request(RequestCode::EndTransaction, &end);
        end.mark_oneway();
        if let Err(error) = connection.send_oneway(end).await {
            debug!(%error, "state of a transaction not told, the broker will ask again");
        }
    });
}

fn read_check(request: &Command) -> Result<(CheckTransactionStateRequest, StoredMessage), &'static str> {
    let header = request.header::<CheckTransactionStateRequest>().map_err(|_| "header")?;
    let mut message = StoredMessage::decode(&request.body).map_err(|_| "message")?;
    message.decompress(BODY_BYTES_MAX).map_err(|_| "compressed body")?;
    Ok((header, message))
}
