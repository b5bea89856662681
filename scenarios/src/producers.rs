//! Producers at work: each send becomes an operation of the history.

use crate::kinds::{Kind, Kinds};
use crate::machines::Machines;
use crate::operation::{Ask, HALF_QUEUE, Queue, Recorder, TIMER_QUEUE, Told};
use crate::plan::{Operation, Plan, TOPIC};
use crate::transactions::{self, Teller, has_transactions};
use client::{
    ClientConfig, ClientInstance, Fate, Producer, ProducerConfig, SendError, SendOutcome, SendStatus,
    TransactionProducer,
};
use protocol::message::property::{DELAY_TIME_LEVEL, TIMER_DELAY_SEC};
use protocol::{Message, MessageQueue};
use rt::sync::CancellationToken;
use sim::history::Pending;
use std::sync::Arc;
use std::time::Duration;

/// The body of a message: its key, filled up to its length.
pub fn body(key: &str, bytes: u32) -> Vec<u8> {
    let mut body = key.as_bytes().to_vec();
    body.push(b'|');
    body.resize(body.len().max(usize::try_from(bytes).expect("a body is small")), b'.');
    body
}

/// Whether a body is one that [`body`] makes for the key.
pub fn is_body_of(body: &[u8], key: &str) -> bool {
    body.strip_prefix(key.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"|"))
        .is_some_and(|rest| rest.iter().all(|byte| *byte == b'.'))
}

/// One call of a producer.
#[derive(Debug, Clone)]
struct Due {
    at: Duration,
    /// The messages: one, or a batch.
    keys: Vec<String>,
    body_bytes: u32,
    /// How long its local transaction takes, if it is sent in one.
    local: Duration,
}

/// What a producer node does from its (re)start on: the messages that are still due, one after the other.
pub fn boot(
    plan: &Plan,
    machines: &Machines,
    name: &str,
    recorder: &Recorder,
    started: Duration,
) -> impl Fn() + Send + Sync + 'static + use<> {
    let due = due(plan, name);
    let has_transactions = has_transactions(plan);
    let end = started + plan.duration;
    let node = machines.node(name);
    let config = client_config(plan, machines, name);
    let (name, recorder) = (name.to_owned(), recorder.clone());
    move || {
        let now = rt::world::elapsed();
        // A message that is due at the moment of a restart was asked for by the life before.
        let is_left = |due: &&Due| started + due.at > now || now == started;
        let due: Vec<Due> = due.iter().filter(is_left).cloned().collect();
        let (name, recorder, config) = (name.clone(), recorder.clone(), config.clone());
        drop(rt::world::spawn_on(node, async move {
            let token = CancellationToken::new();
            let instance = ClientInstance::start(config, &token).expect("the configuration is made here");
            let producer =
                Producer::start(&instance, ProducerConfig::new("producers")).await.expect("the first of its instance");
            let teller = Teller { client: name.clone(), recorder: recorder.clone() };
            let transactions = match has_transactions {
                true => Some(Transactions::join(&instance, teller).await),
                false => None,
            };
            for message in due {
                rt::time::sleep((started + message.at).saturating_sub(rt::world::elapsed())).await;
                if rt::world::elapsed() >= end {
                    break;
                }
                match (message.keys.as_slice(), &transactions) {
                    ([key], Some(transactions)) if Kind::of(key).fate.is_some() => transactions.begin(&message),
                    ([key], _) => drop(send(&producer, &name, key, message.body_bytes, None, &recorder).await),
                    (keys, _) => send_batch(&producer, &name, keys, message.body_bytes, &recorder).await,
                }
            }
            if transactions.is_some() {
                // Brokers may ask until the end.
                std::future::pending::<()>().await;
            }
            producer.shutdown().await;
            instance.shutdown().await;
        }));
    }
}

/// A producer that is in the middle of several transactions.
struct Transactions {
    producer: Arc<TransactionProducer>,
    client: String,
    recorder: Recorder,
}

impl Transactions {
    async fn join(instance: &ClientInstance, teller: Teller) -> Transactions {
        let (client, recorder) = (teller.client.clone(), teller.recorder.clone());
        let config = ProducerConfig::new(transactions::GROUP);
        let started = TransactionProducer::start(instance, config, &[TOPIC], Arc::new(teller)).await;
        Transactions { producer: Arc::new(started.expect("the first of its group")), client, recorder }
    }

    /// Sends the message; its local transaction does not keep the next one waiting.
    fn begin(&self, due: &Due) {
        let (producer, client, recorder) = (Arc::clone(&self.producer), self.client.clone(), self.recorder.clone());
        let due = due.clone();
        rt::task::spawn(async move {
            transactions::send(&producer, &client, &due.keys[0], due.body_bytes, due.local, &recorder).await;
        });
    }
}

fn due(plan: &Plan, name: &str) -> Vec<Due> {
    let mut due = Vec::new();
    for (burst, operation) in plan.operations.iter().enumerate() {
        let Operation::Send { producer, at, count, every, body_bytes, kinds } = operation else { continue };
        if producer == name {
            let numbers: Vec<u32> = (0..*count).collect();
            due.extend(numbers.chunks(at_once(kinds)).map(|numbers| Due {
                at: *at + *every * numbers[0],
                keys: numbers.iter().map(|number| format!("{name}.{burst}.{number}{}", kinds.of(*number))).collect(),
                body_bytes: *body_bytes,
                local: kinds.local * (numbers[0] % 3),
            }));
        }
    }
    due.sort_by_key(|due| due.at);
    due
}

fn at_once(kinds: &Kinds) -> usize {
    usize::try_from(kinds.batch.max(1)).expect("a batch is small")
}

/// A client's configuration on a node of the plan.
pub fn client_config(plan: &Plan, machines: &Machines, name: &str) -> ClientConfig {
    let names = crate::node_config::name_server_list(plan, machines.addresses());
    ClientConfig::new(names, machines.addresses()[name], name)
}

/// Sends one message and records what is known of it; whether it was promised.
pub async fn send(
    producer: &Producer,
    client: &str,
    key: &str,
    body_bytes: u32,
    queue: Option<&MessageQueue>,
    recorder: &Recorder,
) -> bool {
    let message = message(key, body_bytes);
    let pending = recorder.invoke(client, Ask::Send { key: key.to_owned() });
    let result = match queue {
        Some(queue) => producer.send_to(message, queue).await,
        None => producer.send(message).await,
    };
    match result {
        Ok(outcome) => {
            let promised = outcome.status == SendStatus::Ok;
            pending.ok(stored(&outcome, promised, Kind::of(key), 0));
            promised
        }
        Err(error) => {
            note_failure(pending, &error);
            false
        }
    }
}

/// Sends messages in one call, and records of each what is known of it.
async fn send_batch(producer: &Producer, client: &str, keys: &[String], body_bytes: u32, recorder: &Recorder) {
    let messages = keys.iter().map(|key| message(key, body_bytes)).collect();
    let pending: Vec<_> = keys.iter().map(|key| recorder.invoke(client, Ask::Send { key: key.clone() })).collect();
    let result = producer.send_batch(messages).await;
    for ((place, key), pending) in (0..).zip(keys).zip(pending) {
        match &result {
            Ok(outcome) => {
                pending.ok(stored(outcome, outcome.status == SendStatus::Ok, Kind::of(key), place));
            }
            Err(error) => note_failure(pending, error),
        }
    }
}

/// The message of that name.
pub fn message(key: &str, body_bytes: u32) -> Message {
    let mut message = Message::new(TOPIC, body(key, body_bytes)).with_keys(key);
    let kind = Kind::of(key);
    if let Some(tag) = kind.tag {
        message = message.with_tags(tag);
    }
    if kind.level > 0 {
        message = message.with_property(DELAY_TIME_LEVEL, kind.level.to_string());
    }
    if kind.seconds > 0 {
        message = message.with_property(TIMER_DELAY_SEC, kind.seconds.to_string());
    }
    message
}

/// Where the message is that stands at this place of the call.
pub fn stored(outcome: &SendOutcome, promised: bool, kind: Kind<'_>, place: i64) -> Told {
    let uncertain = outcome.attempts.iter().filter(|attempt| attempt.fate() == Fate::Unknown).count();
    let other_copies_max = u32::try_from(uncertain).expect("a call has few attempts");
    let (broker, offset) = (outcome.queue.broker_name.clone(), outcome.queue_offset.0 + place);
    if kind.fate.is_some() || kind.wait().is_some() {
        // The answer names the queue that was asked for, and the offset in that of the halves, the level or the timer.
        let id = match kind {
            Kind { fate: Some(_), .. } => HALF_QUEUE,
            Kind { level: 1.., .. } => kind.level - 1,
            _ => TIMER_QUEUE,
        };
        let queue = Queue { broker, id };
        return Told::Delayed { queue, offset, promised, other_copies_max };
    }
    Told::Stored { queue: Queue { broker, id: outcome.queue.queue_id }, offset, promised, other_copies_max }
}

/// A send that was not answered as one likes.
pub fn note_failure(pending: Pending<Ask, Told>, error: &SendError) {
    match error.fate() {
        Fate::NotStored => pending.fail(error.to_string()),
        Fate::Unknown => pending.unknown(error.to_string()),
    }
}
