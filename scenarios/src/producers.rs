//! Producers at work: each send becomes an operation of the history.

use crate::kinds::{Kind, Kinds};
use crate::machines::Machines;
use crate::operation::{Ask, Queue, Recorder, TIMER_QUEUE, Told};
use crate::plan::{Operation, Plan, TOPIC};
use client::{ClientConfig, ClientInstance, Fate, Producer, ProducerConfig, SendError, SendOutcome, SendStatus};
use protocol::message::property::{DELAY_TIME_LEVEL, TIMER_DELAY_SEC};
use protocol::{Message, MessageQueue};
use rt::sync::CancellationToken;
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
            for message in due {
                rt::time::sleep((started + message.at).saturating_sub(rt::world::elapsed())).await;
                if rt::world::elapsed() >= end {
                    break;
                }
                match message.keys.as_slice() {
                    [key] => drop(send(&producer, &name, key, message.body_bytes, None, &recorder).await),
                    keys => send_batch(&producer, &name, keys, message.body_bytes, &recorder).await,
                }
            }
            producer.shutdown().await;
            instance.shutdown().await;
        }));
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
            match fate(&error) {
                Fate::NotStored => pending.fail(error.to_string()),
                Fate::Unknown => pending.unknown(error.to_string()),
            }
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
            Err(error) => match fate(error) {
                Fate::NotStored => pending.fail(error.to_string()),
                Fate::Unknown => pending.unknown(error.to_string()),
            },
        }
    }
}

/// The message of that name.
fn message(key: &str, body_bytes: u32) -> Message {
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
fn stored(outcome: &SendOutcome, promised: bool, kind: Kind<'_>, place: i64) -> Told {
    let uncertain = outcome.attempts.iter().filter(|attempt| attempt.fate() == Fate::Unknown).count();
    let other_copies_max = u32::try_from(uncertain).expect("a call has few attempts");
    let (broker, offset) = (outcome.queue.broker_name.clone(), outcome.queue_offset.0 + place);
    if kind.wait().is_some() {
        // The answer names the queue that was asked for, and the offset in that of the level or the timer.
        let id = if kind.level > 0 { kind.level - 1 } else { TIMER_QUEUE };
        let queue = Queue { broker, id };
        return Told::Delayed { queue, offset, promised, other_copies_max };
    }
    Told::Stored { queue: Queue { broker, id: outcome.queue.queue_id }, offset, promised, other_copies_max }
}

fn fate(error: &SendError) -> Fate {
    error.fate()
}
