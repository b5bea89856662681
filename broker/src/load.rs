//! `hotfire load`: sends and consumes messages through our own client and checks that each acknowledged one arrives.
//!
//! Each message has a number; a number is sent until a broker acknowledges it, over as many failures as happen, so a broker may be
//! killed and started again in the middle. The run is over when every number was acknowledged and consumed.

use client::{
    Admin, ClientConfig, ClientInstance, ConsumeContext, ConsumeFrom, ConsumeOutcome, ConsumerConfig, Listener,
    Producer, ProducerConfig, PushConsumer, SendStatus, TagExpression,
};
use protocol::{Message, StoredMessage};
use remoting::BoxFuture;
use rt::sync::{CancellationToken, watch};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, timeout, unix_ms};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Topics that brokers have for others to be created from.
const TEMPLATE_TOPIC: &str = "TBW102";
/// Wait before a number that failed is sent again.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// What to do.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Name servers, `host:port`.
    pub name_servers: Vec<String>,
    /// Topic; created with 4 queues if it is missing. Each run needs a topic that no other run uses at the time.
    pub topic: String,
    /// How many messages, 1 or more.
    pub messages: u64,
    /// Length of each body in bytes, 8 or more: it begins with the number.
    pub body_bytes: usize,
    /// Sends that wait for an answer at a time, 1 or more.
    pub in_flight: usize,
    /// The run fails after that long.
    pub time_limit: Duration,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadSummary {
    /// Messages acknowledged with SEND_OK.
    pub acknowledged: u64,
    /// Sends that failed, or got a weaker answer, and were repeated.
    pub repeated: u64,
    /// Numbers consumed at least once.
    pub consumed: u64,
    /// Deliveries of a number that had been delivered before.
    pub consumed_again: u64,
    /// From the first send to the last acknowledgement.
    pub sending: Duration,
    /// From the first send to the last first delivery.
    pub total: Duration,
}

/// A load run that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A client could not be started.
    #[error("client cannot be started")]
    Start(#[from] client::StartError),
    /// The topic could not be created.
    #[error("topic {topic} cannot be created")]
    Topic {
        /// The topic.
        topic: String,
        /// Why.
        source: client::CallError,
    },
    /// The time limit passed.
    #[error("after {after:?} {acknowledged} of {messages} messages were acknowledged and {consumed} consumed")]
    TimeLimit {
        /// The limit.
        after: Duration,
        /// Acknowledged by then.
        acknowledged: u64,
        /// Consumed by then.
        consumed: u64,
        /// All.
        messages: u64,
    },
}

/// Numbers that have arrived.
struct Arrivals {
    seen: Mutex<Vec<bool>>,
    first: watch::Sender<u64>,
    again: AtomicU64,
}

impl Listener for Arrivals {
    fn consume(&self, messages: Vec<StoredMessage>, _context: ConsumeContext) -> BoxFuture<'static, ConsumeOutcome> {
        for message in messages {
            let number = message.body.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
            let Some(index) = number.and_then(|number| usize::try_from(number).ok()) else { continue };
            let mut seen = self.seen.lock().expect("no code that can panic runs under this lock");
            match seen.get_mut(index) {
                Some(true) => {
                    self.again.fetch_add(1, Ordering::Relaxed);
                }
                Some(first) => {
                    *first = true;
                    self.first.send_modify(|count| *count += 1);
                }
                None => {}
            }
        }
        Box::pin(std::future::ready(ConsumeOutcome::Success))
    }
}

/// What the senders share.
struct Sending {
    producer: Producer,
    config: LoadConfig,
    next: AtomicU64,
    acknowledged: watch::Sender<u64>,
    repeated: AtomicU64,
}

/// Sends and consumes until all has arrived.
///
/// # Errors
/// See [`LoadError`].
pub async fn run(config: LoadConfig) -> Result<LoadSummary, LoadError> {
    let token = CancellationToken::new();
    let _ends_all = token.clone().drop_guard();
    let name = format!("load-{}", unix_ms());
    let instance = ClientInstance::start(
        ClientConfig::new(config.name_servers.clone(), IpAddr::V4(Ipv4Addr::LOCALHOST), &name),
        &token,
    )?;
    let created = Admin::new(&instance).create_topic(TEMPLATE_TOPIC, &config.topic, 4).await;
    created.map_err(|source| LoadError::Topic { topic: config.topic.clone(), source })?;

    let numbers = usize::try_from(config.messages).unwrap_or(usize::MAX);
    let arrivals = Arc::new(Arrivals {
        seen: Mutex::new(vec![false; numbers]),
        first: watch::Sender::new(0),
        again: AtomicU64::new(0),
    });
    let mut consumer = ConsumerConfig::new(&name);
    consumer.consume_from = ConsumeFrom::FirstOffset;
    let consumer = PushConsumer::start(
        &instance,
        consumer,
        vec![(config.topic.clone(), TagExpression::all())],
        Arc::clone(&arrivals) as Arc<dyn Listener>,
    )
    .await?;

    let producer = Producer::start(&instance, ProducerConfig::new("hotfire_load")).await?;
    let sending = Arc::new(Sending {
        producer,
        config: config.clone(),
        next: AtomicU64::new(0),
        acknowledged: watch::Sender::new(0),
        repeated: AtomicU64::new(0),
    });
    let senders = TaskGroup::child_of(&token);
    let started = Instant::now();
    for _ in 0..config.in_flight {
        senders.spawn(send_numbers(Arc::clone(&sending)));
    }
    let (mut acknowledged, mut consumed) = (sending.acknowledged.subscribe(), arrivals.first.subscribe());
    let all = async {
        reaches(&mut acknowledged, config.messages).await;
        let sent = started.elapsed();
        reaches(&mut consumed, config.messages).await;
        sent
    };
    let sent = timeout(config.time_limit, all).await;
    let summary = LoadSummary {
        acknowledged: *sending.acknowledged.borrow(),
        repeated: sending.repeated.load(Ordering::Relaxed),
        consumed: *arrivals.first.borrow(),
        consumed_again: arrivals.again.load(Ordering::Relaxed),
        sending: sent.as_ref().copied().unwrap_or_default(),
        total: started.elapsed(),
    };
    senders.shutdown().await;
    consumer.shutdown().await;
    instance.shutdown().await;
    match sent {
        Ok(_) => Ok(summary),
        Err(_) => Err(LoadError::TimeLimit {
            after: config.time_limit,
            acknowledged: summary.acknowledged,
            consumed: summary.consumed,
            messages: config.messages,
        }),
    }
}

async fn reaches(count: &mut watch::Receiver<u64>, goal: u64) {
    // An error means that the counter is gone; it lives as long as this run.
    let _ = count.wait_for(|count| *count >= goal).await;
}

/// Takes numbers until there is none, and sends each until it is acknowledged.
async fn send_numbers(sending: Arc<Sending>) {
    loop {
        let number = sending.next.fetch_add(1, Ordering::Relaxed);
        if number >= sending.config.messages {
            return;
        }
        let mut body = number.to_be_bytes().to_vec();
        body.resize(sending.config.body_bytes.max(body.len()), 0);
        let message = Message::new(&sending.config.topic, body);
        loop {
            match sending.producer.send(message.clone()).await {
                Ok(outcome) if outcome.status == SendStatus::Ok => break,
                Ok(outcome) => tracing::debug!(number, status = ?outcome.status, "weak answer"),
                Err(error) => tracing::debug!(number, %error, "send failed"),
            }
            sending.repeated.fetch_add(1, Ordering::Relaxed);
            sleep(RETRY_AFTER).await;
        }
        sending.acknowledged.send_modify(|count| *count += 1);
    }
}
