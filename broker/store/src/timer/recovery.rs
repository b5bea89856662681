//! What a life of the timer begins with: the files as the checkpoint claims them, if they agree with each other and with the log of messages.
use super::TIMER_TOPIC;
use super::config::TimerConfig;
use super::log::{self, TimerLog};
use super::wheel::Wheel;
use crate::error::{ReadError, TimerError};
use crate::layout::{self, Slot, TimerCheckpoint, TimerUnit};
use crate::store::Store;
use protocol::message::{StoredMessage, hash_code, property};
use protocol::{PhysicalOffset, QueueOffset};
use std::io;
use std::path::{Path, PathBuf};

/// What the files of an earlier life turned out to be.
pub(super) enum Opened {
    Whole(Wheel, TimerLog, QueueOffset),
    Doubtful(&'static str),
}

/// The message that a unit names, if it is the one that was put on the wheel.
pub(super) async fn record_of(store: &Store, unit: &TimerUnit) -> Result<Option<StoredMessage>, ReadError> {
    let Some(record) = store.record_at(unit.physical).await? else { return Ok(None) };
    let message = StoredMessage::decode(&record).ok();
    Ok(message.filter(|message| {
        message.topic == TIMER_TOPIC
            && i32::try_from(message.store_size) == Ok(unit.size)
            && message.properties.get(property::REAL_TOPIC).map(hash_code) == Some(unit.topic_hash)
    }))
}

/// Opens wheel and log as the checkpoint claims them. Slots that go beyond the claimed end are led back to before it; those messages are put on
/// the wheel again from the queue.
pub(super) async fn open_files(
    store: &Store,
    config: &TimerConfig,
    said: TimerCheckpoint,
    queue_min: QueueOffset,
) -> Result<Opened, TimerError> {
    let root = &store.config().root;
    let failed = |path: PathBuf| move |source| TimerError::Io { path, source };
    let Ok(end) = u64::try_from(said.log_bytes) else { return Ok(Opened::Doubtful("checkpoint")) };
    let wheel = Wheel::load(wheel_path(root), config.number(said.read_ms)).await.map_err(failed(wheel_path(root)))?;
    let log = TimerLog::open(log_dir(root), config.log_file_bytes, end).map_err(failed(log_dir(root)))?;
    let (Some(mut wheel), Some(mut log)) = (wheel, log) else { return Ok(Opened::Doubtful("lengths of files")) };
    if end > 0 && !wheel.has_file() {
        return Ok(Opened::Doubtful("no wheel"));
    }
    for number in wheel.numbers() {
        if !lead_back(&mut wheel, &log, config, number).await? {
            return Ok(Opened::Doubtful("a slot names no unit of its own"));
        }
    }
    let next = match log.last() {
        None => queue_min,
        Some(last) => match offset_of(store, &log, last).await? {
            Some(next) => next,
            None => return Ok(Opened::Doubtful("the last unit names another record")),
        },
    };
    log.cut().await.map_err(failed(log_dir(root)))?;
    if wheel.is_dirty() {
        wheel.flush().await.map_err(failed(wheel_path(root)))?;
    }
    Ok(Opened::Whole(wheel, log, next))
}

/// Leads a slot back to its last unit before the end of the log; `false` if its chain is broken.
async fn lead_back(wheel: &mut Wheel, log: &TimerLog, config: &TimerConfig, number: i64) -> Result<bool, TimerError> {
    let Some(slot) = wheel.get(number) else { return Ok(true) };
    let end = i64::try_from(log.end()).expect("far from the end of numbers");
    let mut kept = slot;
    loop {
        if kept.last < 0 {
            rt::probe!("store.timer.slot_led_back");
            wheel.remove(number);
            return Ok(true);
        }
        let Some(unit) = read_unit(log, config, kept.last, number).await? else { return Ok(false) };
        if kept.last < end {
            break;
        }
        kept = Slot { last: unit.previous, num: kept.num - unit.count(), ..kept };
    }
    if kept != slot {
        rt::probe!("store.timer.slot_led_back");
        wheel.put(kept);
    }
    Ok(true)
}

/// The queue offset behind the message of a unit; the queue's start if the message has been removed. `None`: it is another message.
async fn offset_of(store: &Store, log: &TimerLog, position: u64) -> Result<Option<QueueOffset>, TimerError> {
    let position = i64::try_from(position).expect("far from the end of numbers");
    let read = log.read(position).await;
    let unit = read.map_err(|source| TimerError::Io { path: log.dir().to_owned(), source })?;
    let Some(unit) = unit else { return Ok(None) };
    if unit.physical < store.log_min().max(PhysicalOffset::ZERO) {
        return Ok(Some(store.queue_bounds(TIMER_TOPIC, 0).unwrap_or_default().0));
    }
    Ok(record_of(store, &unit).await?.map(|message| message.queue_offset + 1))
}

pub(super) async fn read_unit(
    log: &TimerLog,
    config: &TimerConfig,
    position: i64,
    number: i64,
) -> Result<Option<TimerUnit>, TimerError> {
    let read = log.read(position).await;
    let unit = read.map_err(|source| TimerError::Io { path: log.dir().to_owned(), source })?;
    Ok(unit.filter(|unit| config.number(unit.slot_ms()) == number))
}

fn wheel_path(root: &Path) -> PathBuf {
    root.join(layout::TIMER_WHEEL_FILE)
}

fn log_dir(root: &Path) -> PathBuf {
    root.join(layout::TIMER_LOG_DIR)
}

pub(super) fn empty_wheel(root: &Path) -> Wheel {
    Wheel::empty(wheel_path(root))
}

pub(super) fn empty_log(root: &Path, config: &TimerConfig) -> TimerLog {
    TimerLog::empty(log_dir(root), config.log_file_bytes)
}

pub(super) async fn remove_files(root: &Path) -> io::Result<()> {
    match rt::fs::remove_file(wheel_path(root)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => rt::fs::sync_dir(root).await?,
    }
    let paths = log::list(&log_dir(root))?;
    for path in &paths {
        rt::fs::remove_file(path)?;
    }
    if paths.is_empty() { Ok(()) } else { rt::fs::sync_dir(log_dir(root)).await }
}
