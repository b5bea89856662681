//! The producer: sends messages and says what is known of each.
use crate::calls;
use crate::config::ProducerConfig;
use crate::error::{CallError, Fate, SendError, SendFailure, StartError};
use crate::fault::{FaultTable, Sent};
use crate::instance::ClientInstance;
use crate::outgoing::Outgoing;
use crate::publish::{self, Avoid, RoundRobin};
use crate::validate;
use protocol::header::{RecallMessageRequest, RecallMessageResponse, SendMessageResponse};
use protocol::message::RecallHandle;
use protocol::{Command, Message, MessageQueue, QueueOffset, RequestCode, ResponseCode};
use rt::time::timeout;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tracing::debug;

/// How well a message is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStatus {
    /// As the broker's flush and replication settings promise.
    Ok,
    /// In memory and visible; the flush took too long.
    FlushDiskTimeout,
    /// In memory and visible; the copies took too long.
    FlushSlaveTimeout,
    /// In memory and visible; there are not enough slaves to copy to.
    SlaveNotAvailable,
}

impl SendStatus {
    fn of(code: Option<ResponseCode>) -> Option<SendStatus> {
        match code {
            Some(ResponseCode::Success) => Some(SendStatus::Ok),
            Some(ResponseCode::FlushDiskTimeout) => Some(SendStatus::FlushDiskTimeout),
            Some(ResponseCode::FlushSlaveTimeout) => Some(SendStatus::FlushSlaveTimeout),
            Some(ResponseCode::SlaveNotAvailable) => Some(SendStatus::SlaveNotAvailable),
            _ => None,
        }
    }
}

/// The message is stored.
#[derive(Clone, Debug)]
pub struct SendOutcome {
    /// How well.
    pub status: SendStatus,
    /// The message's unique key, which all attempts and all copies carry. Of a batch: the keys of its messages, joined by commas.
    pub message_id: String,
    /// The broker's id of this copy; of a batch one per message, joined by commas.
    pub offset_message_id: String,
    /// The queue that has it.
    pub queue: MessageQueue,
    /// Its offset there; of a batch that of the first message, the others follow.
    pub queue_offset: QueueOffset,
    /// By this a message that waits for a moment of its own can be taken back: see [`Producer::recall`]. None of any other.
    pub recall_handle: Option<String>,
    /// The attempts before the one that was answered. Those of unknown fate may have left further copies.
    pub attempts: Vec<FailedAttempt>,
}

/// An attempt to send that got no answer that says "stored".
#[derive(Clone, Debug)]
pub struct FailedAttempt {
    /// Where it was meant to go.
    pub queue: MessageQueue,
    /// Why it failed.
    pub error: CallError,
}

impl FailedAttempt {
    /// Whether a copy may exist.
    pub fn fate(&self) -> Fate {
        publish::fate(&self.error)
    }
}

/// Sends messages. One group is one producer of an instance. Dropping it forgets it; shutting it down tells the brokers as well.
pub struct Producer {
    sender: Sender,
}

impl Producer {
    /// Joins the group.
    ///
    /// # Errors
    /// The configuration is wrong, or the group has a producer in this instance already. That brokers or name servers cannot be reached
    /// is no error here.
    pub async fn start(instance: &ClientInstance, config: ProducerConfig) -> Result<Producer, StartError> {
        let producer = Producer::join(instance, config)?;
        instance.heartbeat_all().await;
        Ok(producer)
    }

    /// Joins the group; brokers hear of it with the next heartbeat.
    pub(crate) fn join(instance: &ClientInstance, config: ProducerConfig) -> Result<Producer, StartError> {
        validate::producer(&config)?;
        instance.register_producer(&config.group)?;
        Ok(Producer { sender: Sender::new(instance, config) })
    }

    /// Sends to a queue of the producer's choice; after a failure that another broker may not have, to another.
    ///
    /// # Errors
    /// See [`SendError`]; [`SendError::fate`] says whether a copy may exist nevertheless.
    pub async fn send(&self, message: Message) -> Result<SendOutcome, SendError> {
        self.sender.send(message).await
    }

    /// Sends to this queue, once.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_to(&self, message: Message, queue: &MessageQueue) -> Result<SendOutcome, SendError> {
        let outgoing = self.sender.prepare(message)?;
        self.sender.once(&outgoing, queue).await
    }

    /// Sends messages of one topic as one: all are stored in one queue with consecutive offsets, or none is.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_batch(&self, messages: Vec<Message>) -> Result<SendOutcome, SendError> {
        let outgoing = self.sender.prepare_batch(messages)?;
        self.sender.with_retries(&outgoing).await
    }

    /// As [`send_batch`](Self::send_batch), to this queue, once.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_batch_to(&self, messages: Vec<Message>, queue: &MessageQueue) -> Result<SendOutcome, SendError> {
        let outgoing = self.sender.prepare_batch(messages)?;
        self.sender.once(&outgoing, queue).await
    }

    /// Hands a message to the connection and returns: whether it is stored is never known. Returns the queue it was meant for and its
    /// unique key.
    ///
    /// # Errors
    /// Nothing was sent.
    pub async fn send_oneway(&self, message: Message) -> Result<(MessageQueue, String), SendError> {
        self.sender.oneway(message).await
    }

    /// Takes back a message that waits for a moment of its own (`DefaultMQProducer.recallMessage`); returns its unique key. One that is
    /// delivered already stays so, and that is no error.
    ///
    /// # Errors
    /// The handle is none, its broker cannot be reached, or it refuses: it must have `recallMessageEnable`, and the moment must be to come.
    pub async fn recall(&self, topic: &str, handle: &str) -> Result<String, CallError> {
        let RecallHandle { broker_name, .. } = RecallHandle::decode(handle).ok_or(CallError::RecallHandle)?;
        let queue = MessageQueue { topic: topic.to_owned(), broker_name, queue_id: 0 };
        let header = RecallMessageRequest {
            producer_group: Some(self.group().to_owned()),
            topic: topic.to_owned(),
            recall_handle: handle.to_owned(),
            broker_name: Some(queue.broker_name.clone()),
        };
        let answer = self.ask_master_of(&queue, Command::request(RequestCode::RecallMessage, &header)).await?;
        Ok(answer.header::<RecallMessageResponse>()?.msg_id)
    }

    /// The queues that messages of the topic may go to now.
    ///
    /// # Errors
    /// There is no route, or it has no queue to send to.
    pub async fn publish_queues(&self, topic: &str) -> Result<Vec<MessageQueue>, SendError> {
        Ok(self.sender.queues(topic, self.sender.deadline()).await?.to_vec())
    }

    /// Sends the half of a transaction, as [`send`](Self::send).
    pub(crate) async fn send_half(&self, message: Message) -> Result<SendOutcome, SendError> {
        self.sender.with_retries(&self.sender.prepare(message)?.into_half(&self.sender.config.group)?).await
    }

    /// Asks the master of the queue's broker to do something, and waits until it has.
    pub(crate) async fn ask_master_of(&self, queue: &MessageQueue, request: Command) -> Result<Command, CallError> {
        let (client, limit) = (&self.sender.client, self.sender.config.send_timeout);
        let asked = async {
            let addr = client.master_of(queue).await?;
            calls::success(&addr, client.call(&addr, request, limit).await?)
        };
        timeout(limit, asked).await.unwrap_or(Err(CallError::Deadline { after: limit }))
    }

    pub(crate) fn client(&self) -> &ClientInstance {
        &self.sender.client
    }

    /// Every broker of the topic knows this client when this returns: one that it has never heard of could hand it nothing.
    pub(crate) async fn make_known(&self, topic: &str) -> Result<(), SendError> {
        if self.sender.client.routes(|routes| routes.publish_queues(topic)).is_empty() {
            self.sender.queues(topic, self.sender.deadline()).await?;
            self.sender.client.heartbeat_all().await;
        }
        Ok(())
    }

    pub(crate) fn group(&self) -> &str {
        &self.sender.config.group
    }

    /// Leaves the group and tells the brokers.
    pub async fn shutdown(self) {
        self.sender.client.unregister_producer(&self.sender.config.group).await;
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.sender.client.forget_producer(&self.sender.config.group);
    }
}

/// Sending as such, without membership: also what a consumer uses to hand messages back.
pub(crate) struct Sender {
    client: ClientInstance,
    config: ProducerConfig,
    faults: Mutex<FaultTable>,
    rounds: Mutex<BTreeMap<String, RoundRobin>>,
}

impl Sender {
    pub(crate) fn new(client: &ClientInstance, config: ProducerConfig) -> Sender {
        Sender { client: client.clone(), config, faults: Mutex::default(), rounds: Mutex::default() }
    }

    pub(crate) async fn send(&self, message: Message) -> Result<SendOutcome, SendError> {
        let outgoing = self.prepare(message)?;
        self.with_retries(&outgoing).await
    }

    fn prepare(&self, message: Message) -> Result<Outgoing, SendError> {
        Ok(Outgoing::single(message, self.client.unique_key(), &self.config)?)
    }

    fn prepare_batch(&self, messages: Vec<Message>) -> Result<Outgoing, SendError> {
        Ok(Outgoing::batch(messages, || self.client.unique_key(), &self.config)?)
    }

    /// When a call that begins now is out of time, as a time of the instance.
    fn deadline(&self) -> Duration {
        self.client.now() + self.config.send_timeout
    }

    async fn with_retries(&self, outgoing: &Outgoing) -> Result<SendOutcome, SendError> {
        let deadline = self.deadline();
        let mut queues = self.queues(&outgoing.topic, deadline).await?;
        let mut failed: Vec<FailedAttempt> = Vec::new();
        for attempt in 0..=self.config.retry_times_when_send_failed {
            let remaining = deadline.saturating_sub(self.client.now());
            if remaining.is_zero() {
                return self.out_of_time(outgoing, failed);
            }
            if attempt > 0 {
                // The route may have been refreshed meanwhile; if it has gone, the old one is better than nothing.
                let newer = self.client.routes(|routes| routes.publish_queues(&outgoing.topic));
                queues = if newer.is_empty() { queues } else { newer };
            }
            let last_broker = failed.last().map(|attempt| attempt.queue.broker_name.as_str());
            let queue = self.choose(&outgoing.topic, &queues, last_broker);
            let is_last = attempt == self.config.retry_times_when_send_failed;
            let limit = publish::attempt_timeout(remaining, self.config.attempt_timeout, is_last);
            match self.attempt(outgoing, &queue, limit).await {
                Ok(mut outcome) => {
                    outcome.attempts = failed;
                    return Ok(outcome);
                }
                Err(error) => {
                    debug!(%queue, %error, "attempt to send failed");
                    let retry = publish::may_retry(&error);
                    failed.push(FailedAttempt { queue, error });
                    if !retry {
                        break;
                    }
                }
            }
        }
        Err(SendError::Failed(SendFailure { attempts: failed, out_of_time: false }))
    }

    fn out_of_time(&self, outgoing: &Outgoing, attempts: Vec<FailedAttempt>) -> Result<SendOutcome, SendError> {
        if attempts.is_empty() {
            let cause = Some(CallError::Deadline { after: self.config.send_timeout });
            return Err(SendError::NoQueue { topic: outgoing.topic.clone(), cause });
        }
        Err(SendError::Failed(SendFailure { attempts, out_of_time: true }))
    }

    async fn once(&self, outgoing: &Outgoing, queue: &MessageQueue) -> Result<SendOutcome, SendError> {
        outgoing.check_queue(queue)?;
        self.client.publishes(&queue.topic);
        self.attempt(outgoing, queue, self.config.send_timeout).await.map_err(|error| {
            let attempts = vec![FailedAttempt { queue: queue.clone(), error }];
            SendError::Failed(SendFailure { attempts, out_of_time: false })
        })
    }

    async fn oneway(&self, message: Message) -> Result<(MessageQueue, String), SendError> {
        let outgoing = self.prepare(message)?;
        let deadline = self.deadline();
        let queues = self.queues(&outgoing.topic, deadline).await?;
        let queue = self.choose(&outgoing.topic, &queues, None);
        let request = outgoing.request(&self.config, &queue, rt::time::unix_ms());
        let told = async {
            let addr = self.client.master_of(&queue).await?;
            self.client.tell(&addr, request, deadline.saturating_sub(self.client.now())).await
        };
        match told.await {
            Ok(()) => Ok((queue, outgoing.message_id)),
            Err(error) => Err(SendError::Failed(SendFailure {
                attempts: vec![FailedAttempt { queue, error }],
                out_of_time: false,
            })),
        }
    }

    /// One attempt. Whatever happens, it is known afterwards whether the request may have left.
    async fn attempt(
        &self,
        outgoing: &Outgoing,
        queue: &MessageQueue,
        limit: Duration,
    ) -> Result<SendOutcome, CallError> {
        let begun = self.client.now();
        let result = self.ask(outgoing, queue, limit).await;
        let sent = match &result {
            Ok(_) => Sent::Answered,
            Err(CallError::Refused { .. }) => Sent::Refused,
            Err(CallError::Remoting(_)) => Sent::Silent,
            // Nothing of this attempt says anything about the broker.
            Err(_) => return result,
        };
        if self.config.send_latency_enable {
            let now = self.client.now();
            self.faults().update(&queue.broker_name, now.saturating_sub(begun), sent, now);
        }
        result
    }

    async fn ask(&self, outgoing: &Outgoing, queue: &MessageQueue, limit: Duration) -> Result<SendOutcome, CallError> {
        let deadline = self.client.now() + limit;
        let addr =
            timeout(limit, self.client.master_of(queue)).await.map_err(|_| CallError::Deadline { after: limit })??;
        let remaining = deadline.saturating_sub(self.client.now());
        if remaining.is_zero() {
            return Err(CallError::Deadline { after: limit });
        }
        rt::dawdle!("client.send_late", Duration::from_millis(20));
        let request = outgoing.request(&self.config, queue, rt::time::unix_ms());
        let answer = self.client.call(&addr, request, remaining).await?;
        outcome(outgoing, queue, &addr, answer)
    }

    /// The topic's queues. Without a usable route one is fetched; for a topic that no name server knows, that of the template topic is
    /// taken over.
    async fn queues(&self, topic: &str, deadline: Duration) -> Result<Arc<[MessageQueue]>, SendError> {
        self.client.publishes(topic);
        let known = self.client.routes(|routes| routes.publish_queues(topic));
        if !known.is_empty() {
            return Ok(known);
        }
        let after = deadline.saturating_sub(self.client.now());
        let fetched = timeout(after, self.fetch_route(topic)).await.unwrap_or(Err(CallError::Deadline { after }));
        let queues = self.client.routes(|routes| routes.publish_queues(topic));
        if queues.is_empty() {
            Err(SendError::NoQueue { topic: topic.into(), cause: fetched.err() })
        } else {
            Ok(queues)
        }
    }

    async fn fetch_route(&self, topic: &str) -> Result<(), CallError> {
        match self.client.refresh_route(topic).await {
            Err(CallError::NoRoute { .. }) => {
                let template = &self.config.create_topic_key;
                self.client.adopt_route(topic, template, self.config.default_topic_queue_nums).await
            }
            result => result,
        }
    }

    fn choose(&self, topic: &str, queues: &[MessageQueue], last_broker: Option<&str>) -> MessageQueue {
        let faults = self.faults();
        let mut rounds = self.rounds.lock().expect("no code that can panic runs under this lock");
        let round = rounds.entry(topic.to_owned()).or_insert_with(|| RoundRobin::new(self.client.draw()));
        let watched = self.config.send_latency_enable.then(|| (&*faults, self.client.now()));
        round.select(queues, Avoid { last_broker, faults: watched }).expect("there is at least one queue").clone()
    }

    fn faults(&self) -> MutexGuard<'_, FaultTable> {
        self.faults.lock().expect("no code that can panic runs under this lock")
    }
}

fn outcome(outgoing: &Outgoing, queue: &MessageQueue, addr: &str, answer: Command) -> Result<SendOutcome, CallError> {
    let Some(status) = SendStatus::of(answer.response_code()) else { return Err(calls::refused(addr, answer)) };
    let header: SendMessageResponse = answer.header()?;
    Ok(SendOutcome {
        status,
        message_id: header.batch_uniq_id.unwrap_or_else(|| outgoing.message_id.clone()),
        offset_message_id: header.msg_id,
        queue: MessageQueue { queue_id: header.queue_id, ..queue.clone() },
        queue_offset: header.queue_offset,
        recall_handle: header.recall_handle,
        attempts: Vec::new(),
    })
}
