//! `hotfire load`: sends and consumes messages through our own client and checks that each acknowledged one arrives.
//!
//! Each message has a number; a number is sent until a broker acknowledges it, over as many failures as happen, so a broker may be
//! killed and started again in the middle. When every number was acknowledged and consumed, a second group reads them all again from the
//! beginning: what was delivered before a crash and lost by it is noticed too.

use client::{
    Admin, ClientConfig, ClientInstance, ConsumeContext, ConsumeFrom, ConsumeOutcome, ConsumerConfig, Listener,
    MessageSelector, Producer, ProducerConfig, PushConsumer, SendStatus,
};
use protocol::{Message, StoredMessage};
use remoting::BoxFuture;
use rt::rand::RngCore;
use rt::sync::{CancellationToken, watch};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, timeout};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::{debug, info};

/// Topics that brokers have for others to be created from.
const TEMPLATE_TOPIC: &str = "TBW102";
/// Wait before a number that failed is sent again.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// How often a run tells how far it is.
const REPORTS: u64 = 20;
/// Each body begins with the run and the message's number in it, 8 bytes each.
pub const BODY_BYTES_MIN: usize = 16;

/// What to do.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Name servers, `host:port`.
    pub name_servers: Vec<String>,
    /// Topic; created with 4 queues if it is missing. What other runs sent to it is passed over.
    pub topic: String,
    /// How many messages, 1 or more.
    pub messages: u64,
    /// Length of each body in bytes, [`BODY_BYTES_MIN`] or more.
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
    /// Numbers that a second group found at the end.
    pub kept: u64,
    /// From the first send to the last acknowledgement.
    pub sending: Duration,
    /// From the first send to the last number that the second group found.
    pub total: Duration,
}

impl fmt::Display for LoadSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.sending.as_secs_f64();
        let counts = [
            ("acknowledged", self.acknowledged),
            ("repeated", self.repeated),
            ("consumed", self.consumed),
            ("consumed again", self.consumed_again),
            ("kept", self.kept),
        ];
        for (name, count) in counts {
            writeln!(out, "{name:<20}{count:>12}")?;
        }
        writeln!(out, "{:<20}{seconds:>12.3}", "seconds sending")?;
        writeln!(out, "{:<20}{:>12.3}", "seconds in all", self.total.as_secs_f64())?;
        // A run shorter than the clock's tick has no rate.
        let rate = if seconds > 0.0 { self.acknowledged as f64 / seconds } else { 0.0 };
        writeln!(out, "{:<20}{rate:>12.0}", "messages/s")
    }
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
    #[error(
        "after {after:?} {acknowledged} of {messages} messages were acknowledged, {consumed} consumed and {kept} found again at the end"
    )]
    TimeLimit {
        /// The limit.
        after: Duration,
        /// Acknowledged by then.
        acknowledged: u64,
        /// Consumed by then.
        consumed: u64,
        /// Found by the second group by then.
        kept: u64,
        /// All.
        messages: u64,
    },
}

/// The run that a message belongs to, and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    run: u64,
    number: u64,
}

impl Mark {
    fn body(self, bytes: usize) -> Vec<u8> {
        assert!(bytes >= BODY_BYTES_MIN, "a body of {bytes} bytes has no room for its mark");
        let mut body = self.run.to_be_bytes().to_vec();
        body.extend(self.number.to_be_bytes());
        body.resize(bytes, 0);
        body
    }

    fn read(body: &[u8]) -> Option<Self> {
        let (run, rest) = body.split_first_chunk::<8>()?;
        Some(Self { run: u64::from_be_bytes(*run), number: u64::from_be_bytes(*rest.first_chunk::<8>()?) })
    }
}

/// Numbers that have arrived.
struct Arrivals {
    run: u64,
    seen: Mutex<Vec<bool>>,
    first: watch::Sender<u64>,
    again: AtomicU64,
}

impl Arrivals {
    fn new(config: &LoadConfig, run: u64) -> Self {
        let numbers = usize::try_from(config.messages).expect("64-bit addresses");
        Self { run, seen: Mutex::new(vec![false; numbers]), first: watch::Sender::new(0), again: AtomicU64::new(0) }
    }

    fn arrived(&self, body: &[u8]) {
        let Some(mark) = Mark::read(body).filter(|mark| mark.run == self.run) else { return };
        let Ok(index) = usize::try_from(mark.number) else { return };
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
}

impl Listener for Arrivals {
    fn consume(&self, messages: Vec<StoredMessage>, _context: ConsumeContext) -> BoxFuture<'static, ConsumeOutcome> {
        for message in messages {
            self.arrived(&message.body);
        }
        Box::pin(std::future::ready(ConsumeOutcome::Success))
    }
}

/// What the senders share.
struct Sending {
    producer: Producer,
    config: LoadConfig,
    run: u64,
    next: AtomicU64,
    acknowledged: watch::Sender<u64>,
    repeated: AtomicU64,
}

/// Sends and consumes until all has arrived.
///
/// # Errors
/// See [`LoadError`].
///
/// # Panics
/// If a figure of `config` is outside the range that [`LoadConfig`] states.
pub async fn run(config: LoadConfig) -> Result<LoadSummary, LoadError> {
    assert!(config.messages > 0, "a run without messages");
    assert!(config.in_flight > 0, "a run without senders");
    assert!(config.body_bytes >= BODY_BYTES_MIN, "bodies without room for their mark");
    let token = CancellationToken::new();
    let _ends_all = token.clone().drop_guard();
    let run = rt::rand::stream("load").next_u64();
    let name = format!("load-{run:016x}");
    // The address only tells one member of the group from another, and the name does.
    let client = ClientConfig::new(config.name_servers.clone(), IpAddr::V4(Ipv4Addr::LOCALHOST), &name);
    let instance = ClientInstance::start(client, &token)?;
    let created = Admin::new(&instance).create_topic(TEMPLATE_TOPIC, &config.topic, 4).await;
    created.map_err(|source| LoadError::Topic { topic: config.topic.clone(), source })?;

    let mut load = Load {
        arrivals: Arc::new(Arrivals::new(&config, run)),
        kept: Arc::new(Arrivals::new(&config, run)),
        sending: Arc::new(Sending {
            producer: Producer::start(&instance, ProducerConfig::new("hotfire_load")).await?,
            config,
            run,
            next: AtomicU64::new(0),
            acknowledged: watch::Sender::new(0),
            repeated: AtomicU64::new(0),
        }),
        instance,
        sent_after: Duration::ZERO,
    };
    let senders = TaskGroup::child_of(&token);
    let started = Instant::now();
    let after = load.sending.config.time_limit;
    let ended = timeout(after, load.perform(&name, &senders)).await;
    let total = started.elapsed();
    senders.shutdown().await;
    load.instance.shutdown().await;
    let summary = load.summary(total);
    match ended {
        Ok(performed) => performed.map(|()| summary),
        Err(_) => Err(LoadError::TimeLimit {
            after,
            acknowledged: summary.acknowledged,
            consumed: summary.consumed,
            kept: summary.kept,
            messages: load.sending.config.messages,
        }),
    }
}

/// One run.
struct Load {
    instance: ClientInstance,
    sending: Arc<Sending>,
    arrivals: Arc<Arrivals>,
    kept: Arc<Arrivals>,
    sent_after: Duration,
}

impl Load {
    /// Sends and consumes, then reads all again.
    async fn perform(&mut self, name: &str, senders: &TaskGroup) -> Result<(), LoadError> {
        let messages = self.sending.config.messages;
        let consumer = self.consume(name, &self.arrivals).await?;
        let started = Instant::now();
        for _ in 0..self.sending.config.in_flight {
            senders.spawn(send_numbers(Arc::clone(&self.sending)));
        }
        reaches(self.sending.acknowledged.subscribe(), messages).await;
        self.sent_after = started.elapsed();
        reaches(self.arrivals.first.subscribe(), messages).await;
        consumer.shutdown().await;
        info!("sent and consumed, reading all again");
        let second = self.consume(&format!("{name}-kept"), &self.kept).await?;
        reaches(self.kept.first.subscribe(), messages).await;
        second.shutdown().await;
        Ok(())
    }

    /// Starts a group of one member at the beginning of the topic.
    async fn consume(&self, group: &str, arrivals: &Arc<Arrivals>) -> Result<PushConsumer, LoadError> {
        let mut config = ConsumerConfig::new(group);
        config.consume_from = ConsumeFrom::FirstOffset;
        let subscriptions = vec![(self.sending.config.topic.clone(), MessageSelector::all())];
        let listener: Arc<dyn Listener> = Arc::clone(arrivals) as Arc<dyn Listener>;
        Ok(PushConsumer::start(&self.instance, config, subscriptions, listener).await?)
    }

    fn summary(&self, total: Duration) -> LoadSummary {
        LoadSummary {
            acknowledged: *self.sending.acknowledged.borrow(),
            repeated: self.sending.repeated.load(Ordering::Relaxed),
            consumed: *self.arrivals.first.borrow(),
            consumed_again: self.arrivals.again.load(Ordering::Relaxed),
            kept: *self.kept.first.borrow(),
            sending: self.sent_after,
            total,
        }
    }
}

async fn reaches(mut count: watch::Receiver<u64>, goal: u64) {
    // An error means that the counter is gone; it lives as long as this run.
    let _ = count.wait_for(|count| *count >= goal).await;
}

/// Takes numbers until there is none, and sends each until it is acknowledged.
async fn send_numbers(sending: Arc<Sending>) {
    let report_every = (sending.config.messages / REPORTS).max(1);
    loop {
        let number = sending.next.fetch_add(1, Ordering::Relaxed);
        if number >= sending.config.messages {
            return;
        }
        let body = Mark { run: sending.run, number }.body(sending.config.body_bytes);
        let message = Message::new(&sending.config.topic, body);
        loop {
            match sending.producer.send(message.clone()).await {
                Ok(outcome) if outcome.status == SendStatus::Ok => break,
                Ok(outcome) => debug!(number, status = ?outcome.status, "weak answer"),
                Err(error) => debug!(number, %error, "send failed"),
            }
            sending.repeated.fetch_add(1, Ordering::Relaxed);
            sleep(RETRY_AFTER).await;
        }
        sending.acknowledged.send_modify(|count| {
            *count += 1;
            if count.is_multiple_of(report_every) {
                info!(acknowledged = *count, "sending");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadSummary, Mark};
    use rt::time::Duration;

    #[test]
    fn a_body_tells_its_run_and_number() {
        let mark = Mark { run: u64::MAX - 1, number: 7 };
        assert_eq!(Mark::read(&mark.body(16)), Some(mark));
        assert_eq!(Mark::read(&mark.body(1000)), Some(mark));
        assert_eq!(Mark::read(&mark.body(16)[..15]), None);
    }

    #[test]
    fn the_summary_is_an_aligned_table() {
        let summary = LoadSummary {
            acknowledged: 10_000,
            repeated: 64,
            consumed: 10_000,
            consumed_again: 3,
            kept: 10_000,
            sending: Duration::from_millis(2500),
            total: Duration::from_millis(12_750),
        };
        insta::assert_snapshot!(summary, @r"
        acknowledged               10000
        repeated                      64
        consumed                   10000
        consumed again                 3
        kept                       10000
        seconds sending            2.500
        seconds in all            12.750
        messages/s                  4000
        ");
    }
}
