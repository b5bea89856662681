//! Delivery of timer messages: one task of a master puts them on the wheel, stores again what is due, and flushes.
//!
//! Delivery is at least once: what was delivered since the last flush comes again after a crash. A message is due by the wall clock of the
//! broker that delivers, never before; a clock that is set back makes it late, one that is set forward makes it due. A delivery that fails is
//! tried until it succeeds. Until the first timer message there is no file, and the task only waits for it.
use crate::broker::Broker;
use crate::offset_requests::bounds;
use crate::put::{self, Wait};
use crate::recall::delete_key;
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use protocol::message::{Properties, property};
use protocol::{PhysicalOffset, QueueOffset, StoredMessage};
use rt::time::{Instant, sleep, unix_ms};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{
    AppendError, Enqueued, GetRequest, GetStatus, NewMessage, ReadError, TIMER_TOPIC, TagFilter, TimeBoundary, Timer,
    TimerConfig, TimerError, TimerUnit,
};
use tracing::{debug, error, info, warn};

/// Messages put on the wheel or delivered at a time.
const BATCH: usize = 32;
/// Pause after an error of the store.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// Pause before a delivery that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest sleep while something waits: the wall clock may be set meanwhile.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// How much longer than it should a message may have waited at most, as far as clocks and rounding are concerned.
const SLACK: Duration = Duration::from_secs(3600);

/// Why the task stops or pauses.
enum Trouble {
    Timer(TimerError),
    Refused(Refusal),
    /// The broker ends.
    Closing,
}

impl From<TimerError> for Trouble {
    fn from(error: TimerError) -> Trouble {
        Trouble::Timer(error)
    }
}

/// A timer message has come; the store's dispatch calls it.
pub(crate) fn arrived(broker: &Broker) {
    broker.timer_arrivals.notify_one();
}

/// The first place of the log that a timer message may need which is not delivered: what was stored longer ago than a message may wait,
/// counted back from what is delivered, does not wait any more. A slave counts from now: it does not deliver.
pub(crate) async fn waiting_from(broker: &Broker) -> Result<Option<PhysicalOffset>, ReadError> {
    let Some(config) = broker.config.store.timer else { return Ok(None) };
    let (min, max) = bounds(broker, TIMER_TOPIC, 0);
    let (idle_at, reached) = {
        let state = broker.timer();
        (state.idle_at, state.reached)
    };
    if min == max || idle_at.is_some_and(|idle_at| idle_at >= max) {
        return Ok(None);
    }
    let delivered_ms = match reached {
        _ if broker.is_slave() => unix_ms(),
        reached => reached.map_or(0, |reached| reached.read_ms),
    };
    let wait_ms = i64::try_from((config.delay_max + SLACK).as_millis()).unwrap_or(i64::MAX);
    let stored_ms = delivered_ms.saturating_sub(wait_ms);
    let first = broker.store.offset_by_time(TIMER_TOPIC, 0, stored_ms, TimeBoundary::Lower).await?;
    broker.store.place_of(TIMER_TOPIC, 0, first).await
}

/// The task. It ends with the broker, after a last flush.
pub(crate) async fn run(broker: Arc<Broker>, config: TimerConfig) {
    let first = async {
        // Nothing can be stored before.
        broker.wait_whole().await;
        while bounds(&broker, TIMER_TOPIC, 0).1 == QueueOffset(0) {
            broker.timer_arrivals.notified().await;
        }
    };
    rt::select! {
        () = broker.closing.cancelled() => return,
        () = first => {}
    }
    let Some(timer) = open(&broker, config).await else { return };
    let mut task = Task { broker, config, timer, flushed: Instant::now() };
    task.work().await;
    if task.broker.store.poisoned().is_none() {
        task.flush().await;
    }
}

async fn open(broker: &Arc<Broker>, config: TimerConfig) -> Option<Timer> {
    if let Ok(Some(text)) = broker.files.timer_metrics.load().await {
        broker.timer().take(text);
    }
    loop {
        match Timer::open(Arc::clone(&broker.store), config).await {
            Ok(timer) => {
                broker.timer().reached = Some(timer.flushed());
                info!(next = %timer.next(), "timer opened");
                return Some(timer);
            }
            Err(error) => error!(%error, "timer not opened, timer messages wait"),
        }
        rt::select! {
            () = broker.closing.cancelled() => return None,
            () = sleep(10 * ERROR_PAUSE) => {}
        }
    }
}

struct Task {
    broker: Arc<Broker>,
    config: TimerConfig,
    timer: Timer,
    flushed: Instant,
}

impl Task {
    async fn work(&mut self) {
        while !self.broker.closing.is_cancelled() {
            let pause = match self.turn().await {
                Ok(()) => self.until_next(),
                Err(Trouble::Closing) => return,
                Err(Trouble::Timer(TimerError::Doubtful { what })) => self.rebuild(what).await,
                Err(Trouble::Timer(TimerError::Poisoned(_)) | Trouble::Refused(Refusal::NoAnswer)) => return,
                Err(Trouble::Timer(error)) => {
                    warn!(%error, "timer messages wait");
                    Some(ERROR_PAUSE)
                }
                Err(Trouble::Refused(refusal)) => {
                    warn!(%refusal, "timer messages wait");
                    Some(ERROR_PAUSE)
                }
            };
            self.wait(pause).await;
        }
    }

    /// Puts on the wheel what has come, then delivers what is due. In this order: a message that deletes another one came before that was
    /// due.
    async fn turn(&mut self) -> Result<(), Trouble> {
        let now_ms = unix_ms();
        self.enqueue_up_to(bounds(&self.broker, TIMER_TOPIC, 0).1).await?;
        while let Some(number) = self.timer.due(now_ms) {
            self.deliver(number).await?;
            self.timer.finish(number);
            self.flush_if_due().await;
        }
        self.flush_if_due().await;
        self.broker.timer().idle_at = self.timer.due_ms().is_none().then(|| self.timer.next());
        Ok(())
    }

    async fn enqueue_up_to(&mut self, end: QueueOffset) -> Result<(), Trouble> {
        while self.timer.next() < end {
            let from = self.timer.next();
            let request = GetRequest {
                topic: TIMER_TOPIC.to_owned(),
                queue_id: 0,
                from,
                max_messages: u32::try_from(BATCH).expect("small"),
                max_bytes: 1 << 20,
                tags: TagFilter::All,
            };
            let outcome = self.broker.store.get(request).await.map_err(TimerError::from)?;
            if outcome.status != GetStatus::Found {
                // A hole: go on behind it, but never back.
                self.timer.pass_to(outcome.next);
                if self.timer.next() == from {
                    return Ok(());
                }
                continue;
            }
            for record in &outcome.records {
                let Ok(message) = StoredMessage::decode(record) else {
                    return Err(Trouble::Refused(Refusal::PutFailed("UNKNOWN_ERROR")));
                };
                if !self.enqueue(&message).await? {
                    return Ok(());
                }
            }
            self.flush_if_due().await;
        }
        Ok(())
    }

    /// `false`: others must be delivered first.
    async fn enqueue(&mut self, message: &StoredMessage) -> Result<bool, TimerError> {
        match self.timer.enqueue(message, unix_ms()).await? {
            Enqueued::Waits => {
                let topic = message.properties.get(property::REAL_TOPIC).unwrap_or_default();
                let deletes = message.properties.contains(property::TIMER_DEL_UNIQKEY);
                self.broker.timer().count(topic, if deletes { -1 } else { 1 });
            }
            Enqueued::Done => debug!(offset = %message.queue_offset, "timer message was delivered before"),
            Enqueued::Blocked => return Ok(false),
            Enqueued::Unusable => {
                warn!(offset = %message.physical_offset, "timer message names no moment or no topic, dropped");
            }
        }
        Ok(true)
    }

    /// Stores again what waits in a slot, in the order in which it came.
    async fn deliver(&mut self, number: i64) -> Result<(), Trouble> {
        let units = self.timer.units(number).await?;
        let mut deleted = BTreeSet::new();
        for unit in units.iter().filter(|unit| unit.deletes()) {
            if let Some(message) = self.timer.message(unit).await? {
                deleted.extend(message.properties.get(property::TIMER_DEL_UNIQKEY).map(str::to_owned));
            }
        }
        let units: Vec<TimerUnit> = units.into_iter().filter(|unit| !unit.deletes()).collect();
        for batch in units.chunks(BATCH) {
            let mut copies = Vec::new();
            for unit in batch {
                match self.timer.message(unit).await? {
                    Some(message) => copies.extend(copy(&self.broker, unit, message, &deleted)),
                    None => warn!("timer message removed before it was due"),
                }
            }
            let last = copies.len().saturating_sub(1);
            for (at, copy) in copies.into_iter().enumerate() {
                // The log is on the disk and with the slaves in its order: who has the last one has all.
                let wait = if at == last { Wait::Durable } else { Wait::No };
                self.store(copy, wait).await?;
            }
        }
        Ok(())
    }

    /// Tries until it succeeds, or until it is plain that it cannot.
    async fn store(&self, copy: Copied, wait: Wait) -> Result<(), Trouble> {
        let Copied { mut message, own_properties, real_topic } = copy;
        loop {
            match put::put_as_is(&self.broker, message.clone(), wait).await {
                Ok((_, status)) => {
                    if status != PutStatus::Ok {
                        // It is stored; storing it once more because a slave is slow would only repeat it.
                        warn!(status = status.name(), "timer message delivered, but not as durable as configured");
                    }
                    break;
                }
                Err(Refusal::NoAnswer) => return Err(Trouble::Refused(Refusal::NoAnswer)),
                Err(refusal) if is_hopeless(&refusal) && message.properties != own_properties => {
                    rt::probe!("server.timer.too_long_for_its_times");
                    message.properties.clone_from(&own_properties);
                }
                Err(refusal) if is_hopeless(&refusal) => {
                    error!(%refusal, topic = %message.topic, "timer message cannot be delivered, dropped");
                    break;
                }
                Err(refusal) => {
                    rt::probe!("server.timer.delivery_tried_again");
                    warn!(%refusal, topic = %message.topic, "timer message not delivered, tried again");
                    rt::select! {
                        () = self.broker.closing.cancelled() => return Err(Trouble::Closing),
                        () = sleep(RETRY_PAUSE) => {}
                    }
                }
            }
        }
        self.broker.timer().count(&real_topic, -1);
        Ok(())
    }

    async fn flush_if_due(&mut self) {
        if self.timer.is_dirty() && self.flushed.elapsed() >= self.config.flush_interval {
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        self.flushed = Instant::now();
        match self.timer.flush(unix_ms(), self.broker.config.timing.sync_flush_timeout).await {
            Ok(()) => self.broker.timer().reached = Some(self.timer.flushed()),
            Err(error) => warn!(%error, "timer not flushed, tried again"),
        }
    }

    async fn rebuild(&mut self, what: &'static str) -> Option<Duration> {
        error!(what, "timer wheel does not agree with the log");
        self.broker.timer().forget();
        match self.timer.rebuild(unix_ms(), self.broker.config.timing.sync_flush_timeout).await {
            Ok(()) => Some(Duration::ZERO),
            Err(error) => {
                error!(%error, "timer wheel not emptied, tried again");
                Some(ERROR_PAUSE)
            }
        }
    }

    /// Time until something is due or must be flushed; none if nothing is.
    fn until_next(&self) -> Option<Duration> {
        let due = self.timer.due_ms().map(|due_ms| {
            let left_ms = u64::try_from(due_ms.saturating_sub(unix_ms())).unwrap_or(0);
            Duration::from_millis(left_ms).min(LOOK_PERIOD)
        });
        let flush = self.timer.is_dirty().then(|| self.config.flush_interval.saturating_sub(self.flushed.elapsed()));
        due.into_iter().chain(flush).min()
    }

    async fn wait(&self, pause: Option<Duration>) {
        rt::select! {
            () = self.broker.closing.cancelled() => {}
            () = self.broker.timer_arrivals.notified() => {}
            () = async {
                match pause {
                    Some(pause) => sleep(pause).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

/// A message to be stored again.
struct Copied {
    message: NewMessage,
    /// Its properties without what the wheel adds: that may be too much for a record.
    own_properties: String,
    real_topic: String,
}

/// What a unit that is due becomes; nothing if it is deleted, or says no place.
fn copy(broker: &Broker, unit: &TimerUnit, message: StoredMessage, deleted: &BTreeSet<String>) -> Option<Copied> {
    let real_topic = message.properties.get(property::REAL_TOPIC)?.to_owned();
    let own_properties = message.properties.to_text();
    let (topic, queue_id) = if unit.rolls() {
        (TIMER_TOPIC.to_owned(), 0)
    } else {
        let key = message.properties.unique_key().unwrap_or_default();
        if deleted.contains(&delete_key(&real_topic, key)) {
            rt::probe!("server.timer.recalled");
            debug!(topic = %real_topic, "timer message recalled");
            return None;
        }
        let queue_id = message.properties.get(property::REAL_QUEUE_ID).and_then(|text| text.parse().ok());
        let Some(queue_id) = queue_id.filter(|id| *id >= 0) else {
            warn!(offset = %message.physical_offset, "timer message names no queue, dropped");
            return None;
        };
        (real_topic.clone(), queue_id)
    };
    debug!(%topic, queue_id, "timer message delivered");
    let properties = with_times(message.properties.clone(), unit).to_text();
    let message = put::again(broker, message, (topic, queue_id), properties);
    Some(Copied { message, own_properties, real_topic })
}

/// The properties stay, so that a reader can see what the message went through.
fn with_times(mut properties: Properties, unit: &TimerUnit) -> Properties {
    properties.insert(property::TIMER_ENQUEUE_MS, unit.enqueued_ms().to_string());
    properties.insert(property::TIMER_DEQUEUE_MS, unix_ms().to_string());
    if unit.rolls() {
        rt::probe!("server.timer.rolled");
        let times = properties.get(property::TIMER_ROLL_TIMES).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        properties.insert(property::TIMER_ROLL_TIMES, (times + 1).to_string());
    }
    properties
}

/// Whether a message can never be stored as it is.
fn is_hopeless(refusal: &Refusal) -> bool {
    use AppendError as E;
    match refusal {
        Refusal::Append(error) => matches!(
            error,
            E::BodyTooLong { .. }
                | E::PropertiesTooLong { .. }
                | E::TopicTooLong { .. }
                | E::TopicName { .. }
                | E::PropertiesZero
                | E::TooLongForSegment { .. }
                | E::Encode(_)
                | E::QueueId { .. }
        ),
        _ => false,
    }
}
