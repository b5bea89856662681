//! Level delay: a message with a level waits in its level's queue of `SCHEDULE_TOPIC_XXXX` and is stored again when it is due.
//!
//! Delivery is at least once: the level's offset is saved after the delivery, so a crash in between delivers again. A message is due
//! by its store time, which is the clock of the broker that took it; if that clock is set back, by the time since.
use crate::broker::Broker;
use crate::offset_requests::bounds;
use crate::put::{self, Wait};
use crate::refusal::Refusal;
use crate::reply::PutStatus;
use crate::topics::SCHEDULE_TOPIC;
use protocol::body::DataVersion;
use protocol::message::{Properties, property};
use protocol::{PhysicalOffset, QueueOffset, StoredMessage};
use rt::task::TaskGroup;
use rt::time::{Instant, sleep, unix_ms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{GetRequest, GetStatus, NewMessage, ReadError, TagFilter};
use tracing::{debug, warn};

/// Pause after an error of the store.
const ERROR_PAUSE: Duration = Duration::from_secs(10);
/// Messages read at a time.
const BATCH: u32 = 32;
/// After so many deliveries the data version rises (`delayOffsetUpdateVersionStep`).
const DELIVERIES_PER_VERSION: u32 = 200;

/// The table as text: `config/delayOffset.json` and the body of GET_ALL_DELAY_OFFSET.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DelayTableText {
    pub data_version: Option<DataVersion>,
    /// Level to the next queue offset to deliver.
    pub offset_table: BTreeMap<i32, i64>,
}

/// How far each level was delivered.
#[derive(Debug, Default)]
pub(crate) struct DelayTable {
    next: BTreeMap<i32, i64>,
    version: DataVersion,
    since_version: u32,
    changes: u64,
}

impl DelayTable {
    pub fn from_text(text: &DelayTableText) -> DelayTable {
        DelayTable {
            next: text.offset_table.clone(),
            version: text.data_version.unwrap_or_default(),
            ..DelayTable::default()
        }
    }

    pub fn text(&self) -> DelayTableText {
        DelayTableText { data_version: Some(self.version), offset_table: self.next.clone() }
    }

    /// A number that differs whenever the table differs.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether it says what its master's table says.
    pub fn is_copy_of(&self, text: &DelayTableText) -> bool {
        self.next == text.offset_table && self.version == text.data_version.unwrap_or_default()
    }

    /// A slave's copy of its master's table.
    pub fn become_copy(&mut self, text: &DelayTableText) {
        if !self.is_copy_of(text) {
            self.next.clone_from(&text.offset_table);
            self.version = text.data_version.unwrap_or_default();
            self.changes += 1;
        }
    }

    fn next(&self, level: i32) -> i64 {
        self.next.get(&level).copied().unwrap_or(0)
    }

    /// Moves the level's offset into the bounds of its queue: an offset above the end, which a lost suffix leaves behind, would pass
    /// over what is stored there next.
    fn correct(&mut self, level: i32, (min, max): (QueueOffset, QueueOffset)) {
        let next = self.next(level);
        let corrected = QueueOffset(next).clamp(min, max).get();
        if corrected != next {
            warn!(level, next, corrected, "delay offset outside its queue, corrected");
            self.next.insert(level, corrected);
            self.changes += 1;
        }
    }

    fn advance(&mut self, level: i32, next: i64, now_ms: i64) {
        self.next.insert(level, next);
        self.changes += 1;
        self.since_version += 1;
        if self.since_version >= DELIVERIES_PER_VERSION {
            self.since_version = 0;
            self.version.advance(0, now_ms);
        }
    }
}

/// The delay level a message asks for; 0 for none.
pub(crate) fn level(properties: &Properties) -> i32 {
    properties
        .get(property::DELAY_TIME_LEVEL)
        .and_then(|text| text.trim().parse().ok())
        .filter(|level| *level > 0)
        .unwrap_or(0)
}

/// Sends a message with a level to the level's queue instead of its own.
pub(crate) fn divert(broker: &Broker, message: &mut NewMessage, mut properties: Properties) {
    let asked = level(&properties);
    if asked == 0 || message.topic == SCHEDULE_TOPIC {
        return;
    }
    let level = asked.min(i32::try_from(broker.cluster.delay_levels.len()).expect("few levels"));
    for name in [property::TIMER_DELIVER_MS, property::TIMER_DELAY_SEC, property::TIMER_DELAY_MS] {
        properties.remove(name);
    }
    properties.insert(property::DELAY_TIME_LEVEL, level.to_string());
    properties.insert(property::REAL_TOPIC, std::mem::replace(&mut message.topic, SCHEDULE_TOPIC.to_owned()));
    properties.insert(property::REAL_QUEUE_ID, message.queue_id.to_string());
    message.queue_id = level - 1;
    message.properties = properties.to_text();
}

/// Starts a task for each level.
pub(crate) fn start(broker: &Arc<Broker>, tasks: &TaskGroup) {
    for (at, &delay) in broker.cluster.delay_levels.iter().enumerate() {
        let level = i32::try_from(at).expect("few levels") + 1;
        let broker = Arc::clone(broker);
        tasks.spawn(async move {
            rt::select! {
                () = broker.closing.cancelled() => {}
                () = run(&broker, level, delay) => {}
            }
        });
    }
}

/// The first place of the log that a delayed message needs which is not delivered.
pub(crate) async fn undelivered_from(broker: &Broker) -> Result<Option<PhysicalOffset>, ReadError> {
    let mut first: Option<PhysicalOffset> = None;
    for level in 1..=i32::try_from(broker.cluster.delay_levels.len()).expect("few levels") {
        let (min, max) = bounds(broker, SCHEDULE_TOPIC, level - 1);
        let next = QueueOffset(broker.delays().next(level)).clamp(min, max);
        if next < max
            && let Some(place) = broker.store.place_of(SCHEDULE_TOPIC, level - 1, next).await?
        {
            first = Some(first.map_or(place, |first| first.min(place)));
        }
    }
    Ok(first)
}

async fn run(broker: &Broker, level: i32, delay: Duration) {
    // Nothing can be stored before.
    broker.wait_whole().await;
    broker.delays().correct(level, bounds(broker, SCHEDULE_TOPIC, level - 1));
    let mut set_back = None;
    loop {
        match deliver_due(broker, level, delay, &mut set_back).await {
            Ok(Look::Again { after }) => sleep(after).await,
            Ok(Look::OnArrival) => broker.level_arrivals[place(level)].notified().await,
            Err(refusal) => {
                warn!(level, %refusal, "delayed messages not delivered");
                sleep(ERROR_PAUSE).await;
            }
        }
    }
}

/// When a level's queue is to be looked at again.
enum Look {
    /// Something waits there, or may.
    Again { after: Duration },
    /// It is empty: eighteen levels that looked ten times a second would be most of what an idle broker does.
    OnArrival,
}

/// A message of the level has come; the store's dispatch calls it for each message of [`SCHEDULE_TOPIC`].
pub(crate) fn arrived(broker: &Broker, queue_id: i32) {
    if let Some(level) = usize::try_from(queue_id).ok().and_then(|place| broker.level_arrivals.get(place)) {
        level.notify_one();
    }
}

fn place(level: i32) -> usize {
    usize::try_from(level - 1).expect("levels begin at 1")
}

/// The clock was set back: what was stored before has a store time that is still to come.
#[derive(Clone, Copy, Debug)]
struct SetBack {
    /// When that was seen, by the clock that nobody sets.
    seen: Instant,
    /// The end of the level's queue by then.
    end: QueueOffset,
}

/// Delivers what is due of one level.
async fn deliver_due(
    broker: &Broker,
    level: i32,
    delay: Duration,
    set_back: &mut Option<SetBack>,
) -> Result<Look, Refusal> {
    let scan = broker.config.timing.delay_scan_period;
    let (min, max) = bounds(broker, SCHEDULE_TOPIC, level - 1);
    let from = QueueOffset(broker.delays().next(level)).clamp(min, max);
    if from == max {
        return Ok(Look::OnArrival);
    }
    let request = GetRequest {
        topic: SCHEDULE_TOPIC.to_owned(),
        queue_id: level - 1,
        from,
        max_messages: BATCH,
        max_bytes: 1 << 20,
        tags: TagFilter::All,
    };
    let outcome = broker.store.get(request).await?;
    if outcome.status != GetStatus::Found {
        // A hole: go on behind it, but never back.
        let next = outcome.next.max(from).get();
        broker.delays().advance(level, next, unix_ms());
        return Ok(Look::Again { after: scan });
    }
    for record in &outcome.records {
        let message = StoredMessage::decode(record).map_err(|_| Refusal::PutFailed("UNKNOWN_ERROR"))?;
        let left = left(&message, delay, max, set_back);
        if !left.is_zero() {
            // By the wall clock, which may be set meanwhile: hence the bound.
            return Ok(Look::Again { after: left.min(scan) });
        }
        let next = message.queue_offset.get() + 1;
        deliver(broker, message).await?;
        broker.delays().advance(level, next, unix_ms());
    }
    Ok(Look::Again { after: Duration::ZERO })
}

/// Time until a message is due; none if it is.
///
/// By the wall clock, as its store time. If that is ahead of the clock, the clock was set back, and nobody knows by how much: then the
/// message waits for its delay once more, by the clock that nobody sets, from the moment when this was seen, and so do all that were in
/// the level's queue by then (`end`). So a message is never early, and late by no more than its delay.
fn left(message: &StoredMessage, delay: Duration, end: QueueOffset, set_back: &mut Option<SetBack>) -> Duration {
    let now = unix_ms();
    if message.store_timestamp <= now {
        return left_by_clock(message.store_timestamp, delay, now);
    }
    let known = set_back.filter(|known| message.queue_offset < known.end).unwrap_or_else(|| {
        rt::probe!("server.delay.clock_set_back");
        let ahead_ms = message.store_timestamp - now;
        warn!(ahead_ms, %end, "clock set back, delayed messages wait for their delay once more");
        SetBack { seen: Instant::now(), end }
    });
    *set_back = Some(known);
    delay.saturating_sub(known.seen.elapsed())
}

fn left_by_clock(stored_ms: i64, delay: Duration, now_ms: i64) -> Duration {
    let waited = Duration::from_millis(u64::try_from(now_ms - stored_ms).unwrap_or(0));
    delay.saturating_sub(waited)
}

/// Stores the message where it was meant to go. Its properties stay, so that a reader can see what it went through.
async fn deliver(broker: &Broker, message: StoredMessage) -> Result<(), Refusal> {
    let target = message.properties.get(property::REAL_TOPIC).map(str::to_owned);
    let queue_id =
        message.properties.get(property::REAL_QUEUE_ID).and_then(|text| text.parse().ok()).filter(|id| *id >= 0);
    let (Some(topic), Some(queue_id)) = (target, queue_id) else {
        warn!(offset = %message.physical_offset, "delayed message names no queue, dropped");
        return Ok(());
    };
    debug!(%topic, queue_id, "delayed message delivered");
    let properties = message.properties.to_text();
    let again = put::again(broker, message, (topic, queue_id), properties);
    // The level's offset moves past it, so the copy must be as durable as the original was promised to be.
    match put::put_as_is(broker, again, Wait::Durable).await? {
        (_, PutStatus::Ok) => Ok(()),
        (_, status) => {
            // It is stored; storing it once more because a slave is slow would only repeat it.
            warn!(status = status.name(), "delayed message delivered, but not as durable as configured");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DelayTable, DelayTableText, left_by_clock};
    use protocol::QueueOffset;
    use std::time::Duration;

    #[test]
    fn a_message_is_due_when_its_delay_has_passed_by_the_clock() {
        let left = |now_ms| left_by_clock(1_000, Duration::from_secs(5), now_ms).as_millis();
        assert_eq!([1_000, 3_500, 5_999, 6_000, 9_000].map(left), [5_000, 2_500, 1, 0, 0]);
    }

    #[test]
    fn an_offset_outside_its_queue_is_moved_to_the_nearer_end() {
        let check = |next: i64, expected: i64| {
            let text = DelayTableText { offset_table: [(3, next)].into(), ..DelayTableText::default() };
            let mut table = DelayTable::from_text(&text);
            table.correct(3, (QueueOffset(4), QueueOffset(9)));
            assert_eq!(table.next(3), expected);
            assert_eq!(table.changes() > 0, next != expected);
        };
        check(0, 4);
        check(4, 4);
        check(9, 9);
        check(12, 9);
    }
}
