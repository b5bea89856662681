//! Messages that wait for a moment of their own: the wheel, its log, and how far both have come.
//!
//! All of it is derived from the queue of the timer topic and one fact that is nowhere else, the checkpoint: *of the messages before offset Q,
//! those that were due before R were delivered*. So when wheel and log are in doubt they are emptied and filled again from the queue,
//! and what the checkpoint knows to be delivered is passed over.
//!
//! # Invariants
//! - What the checkpoint claims is on the disk: the log of messages first, then the timer log, then the wheel, then the claim.
//! - A slot is emptied after its messages were delivered, and no message of it is forgotten before.
//! - No file is made before the first timer message.
mod checkpoint;
pub(crate) mod config;
mod log;
mod recovery;
mod wheel;

use crate::commit_log::is_full;
use crate::error::{FlushError, TimerError};
use crate::layout::{Slot, TimerCheckpoint, TimerUnit, WHEEL_REACH};
use crate::store::Store;
use checkpoint::CheckpointFile;
use config::TimerConfig;
use log::TimerLog;
use protocol::QueueOffset;
use protocol::message::{StoredMessage, hash_code, property};
use recovery::{Opened, empty_log, empty_wheel, open_files, read_unit, record_of, remove_files};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wheel::Wheel;

/// The topic of messages that wait; its queue 0 has them all.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";

/// Slots that stay free between the oldest and the newest time of a wheel (`TIMER_BLANK_SLOTS`).
const BLANK_SLOTS: i64 = 60;
/// The most records looked at for a message's successor.
const COPIES_MAX: usize = 64;
const COPIES_BYTES_MAX: usize = 1 << 20;

/// What became of a message that was to be put on the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits.
    Waits,
    /// It was delivered already, or a later copy of it waits.
    Done,
    /// Its place is taken by messages that are overdue: deliver those first.
    Blocked,
    /// It does not say when it is due or where it belongs; nothing can be done with it.
    Unusable,
}

/// What earlier processes delivered: of the messages before `end`, those due before `before_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Past {
    end: QueueOffset,
    before_ms: i64,
}

/// The timer of one store. One task owns it: it puts messages on the wheel in the order of their queue, asks for what is
/// [due](Timer::due), delivers it, [finishes](Timer::finish) the slot and [flushes](Timer::flush).
pub struct Timer {
    store: Arc<Store>,
    config: TimerConfig,
    wheel: Wheel,
    log: TimerLog,
    checkpoint: CheckpointFile,
    /// Offset of the next message to put on the wheel.
    next: QueueOffset,
    past: Past,
    /// A message that is overdue by more than the wheel waits in a later slot than its own: the claim must not pass its own.
    oldest_ms: Option<i64>,
    is_dirty: bool,
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("next", &self.next).field("past", &self.past).finish_non_exhaustive()
    }
}

impl Timer {
    /// Opens the files of a store, or begins without any. Files that do not agree with each other or with the log of messages are emptied
    /// and filled again from the queue.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn open(store: Arc<Store>, config: TimerConfig) -> Result<Timer, TimerError> {
        let failed = |path: &Path, source| TimerError::Io { path: path.to_owned(), source };
        let root = store.config().root.clone();
        let file = CheckpointFile::load(&root).await.map_err(|source| failed(&root, source))?;
        let said = file.said();
        let (min, max) = store.queue_bounds(TIMER_TOPIC, 0).unwrap_or_default();
        // An end above the queue's is left behind by a lost suffix of the log: what is stored there next was not delivered.
        let past = Past { end: QueueOffset(said.master_next).clamp(min, max), before_ms: said.read_ms };
        let opened = open_files(&store, &config, said, min).await?;
        let timer = |wheel: Wheel, log, next| Timer {
            oldest_ms: wheel.first().map(|_| said.read_ms),
            store: Arc::clone(&store),
            config,
            wheel,
            log,
            checkpoint: file,
            next,
            past,
            is_dirty: false,
        };
        match opened {
            Opened::Whole(wheel, log, next) => Ok(timer(wheel, log, next.clamp(min, max))),
            Opened::Doubtful(what) => {
                let mut timer = timer(empty_wheel(&root), empty_log(&root, &config), min);
                timer.empty_files(what, said).await?;
                Ok(timer)
            }
        }
    }

    /// Offset of the next message of the timer topic's queue to [enqueue](Self::enqueue).
    #[must_use]
    pub fn next(&self) -> QueueOffset {
        self.next
    }

    /// Whether a flush has something to do.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Passes over entries of the queue that name no message.
    pub fn pass_to(&mut self, next: QueueOffset) {
        if next > self.next {
            self.next = next;
            self.is_dirty = true;
        }
    }

    /// Puts the next message of the queue on the wheel.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn enqueue(&mut self, message: &StoredMessage, now_ms: i64) -> Result<Enqueued, TimerError> {
        assert!(message.queue_offset >= self.next, "messages come in the order of their queue");
        let after = message.queue_offset + 1;
        let properties = &message.properties;
        let due_ms = properties.get(property::TIMER_OUT_MS).and_then(|text| text.parse::<i64>().ok());
        let (Some(due_ms), Some(topic)) = (due_ms.filter(|ms| *ms > 0), properties.get(property::REAL_TOPIC)) else {
            self.pass_to(after);
            return Ok(Enqueued::Unusable);
        };
        if message.queue_offset < self.past.end && self.is_done(message, due_ms).await? {
            rt::probe!("store.timer.delivered_passed_over");
            self.pass_to(after);
            return Ok(Enqueued::Done);
        }
        let (slot_ms, rolls) = self.slot_of(due_ms, now_ms);
        let number = self.config.number(slot_ms);
        if self.wheel.is_blocked(number) {
            rt::probe!("store.timer.slot_taken");
            return Ok(Enqueued::Blocked);
        }
        let deletes = properties.contains(property::TIMER_DEL_UNIQKEY);
        let roll_bit = if rolls { TimerUnit::ROLL } else { 0 };
        let delete_bit = if deletes { TimerUnit::DELETE } else { 0 };
        let write_ms = self.config.floor_ms(now_ms);
        let before = self.wheel.get(number);
        let unit = TimerUnit {
            previous: before.map_or(-1, |slot| slot.last),
            magic: TimerUnit::DEFAULT | roll_bit | delete_bit,
            write_ms,
            delay_ms: i32::try_from(slot_ms - write_ms).expect("inside the wheel"),
            physical: message.physical_offset,
            size: i32::try_from(message.store_size).expect("records fit a signed number"),
            topic_hash: hash_code(topic),
        };
        let position = i64::try_from(self.log.append(unit)).expect("far from the end of numbers");
        self.wheel.put(match before {
            Some(slot) => Slot { last: position, num: slot.num + unit.count(), ..slot },
            None => Slot { number, first: position, last: position, num: unit.count(), magic: 0 },
        });
        if slot_ms > self.config.floor_ms(due_ms) && !rolls {
            self.oldest_ms = Some(self.oldest_ms.map_or(due_ms, |oldest| oldest.min(due_ms)));
        }
        self.pass_to(after);
        Ok(Enqueued::Waits)
    }

    /// The slot in which a message waits, and whether that is only a stop on its way.
    fn slot_of(&self, due_ms: i64, now_ms: i64) -> (i64, bool) {
        let write_ms = self.config.floor_ms(now_ms);
        let window = i64::from(self.config.roll_window_slots);
        let excess = due_ms - write_ms - self.config.slots_ms(window);
        if excess >= 0 {
            // Apache's rule: the last stop shall not be a short one.
            let is_short = excess < self.config.slots_ms(window / 3);
            return (write_ms + self.config.slots_ms(if is_short { window / 2 } else { window }), true);
        }
        let oldest = write_ms - self.config.slots_ms(WHEEL_REACH - BLANK_SLOTS);
        (self.config.floor_ms(due_ms).max(oldest), false)
    }

    /// Whether an earlier process has delivered the message, or put a copy of it into the queue that waits in its place.
    async fn is_done(&self, message: &StoredMessage, due_ms: i64) -> Result<bool, TimerError> {
        if due_ms < self.past.before_ms {
            return Ok(true);
        }
        let window_ms = self.config.slots_ms(i64::from(self.config.roll_window_slots));
        if due_ms - self.config.floor_ms(message.store_timestamp) < window_ms {
            return Ok(false);
        }
        // It was far ahead when it came: it may have been rolled since.
        let Some(key) = message.properties.unique_key() else { return Ok(false) };
        let copies = self.store.records_by_key(TIMER_TOPIC, key, (COPIES_MAX, COPIES_BYTES_MAX), 0, i64::MAX).await?;
        let (rolls, due) = (roll_times(message), message.properties.get(property::TIMER_OUT_MS));
        let victim = message.properties.get(property::TIMER_DEL_UNIQKEY);
        Ok(copies.iter().filter_map(|record| StoredMessage::decode(record).ok()).any(|copy| {
            copy.queue_offset > message.queue_offset
                && roll_times(&copy) > rolls
                && copy.properties.unique_key() == Some(key)
                && copy.properties.get(property::TIMER_OUT_MS) == due
                && copy.properties.get(property::TIMER_DEL_UNIQKEY) == victim
        }))
    }

    /// The number of the first slot that waits, if its messages are due.
    #[must_use]
    pub fn due(&self, now_ms: i64) -> Option<i64> {
        self.due_ms().filter(|due_ms| *due_ms <= now_ms).and_then(|_| self.wheel.first()).map(|slot| slot.number)
    }

    /// When the first slot that waits is due, Unix milliseconds.
    #[must_use]
    pub fn due_ms(&self) -> Option<i64> {
        self.wheel.first().map(|slot| self.config.slots_ms(slot.number + 1))
    }

    /// The units of a slot in the order in which they were put there.
    ///
    /// # Errors
    /// [`TimerError::Doubtful`]: the log has not what the slot names; [`rebuild`](Self::rebuild) helps. Or the disk failed.
    pub async fn units(&self, number: i64) -> Result<Vec<TimerUnit>, TimerError> {
        let Some(slot) = self.wheel.get(number) else { return Ok(Vec::new()) };
        let (mut units, mut position) = (Vec::new(), slot.last);
        while position >= 0 {
            let unit = read_unit(&self.log, &self.config, position, number).await?;
            let unit = unit.filter(|unit| unit.previous < position);
            let unit = unit.ok_or(TimerError::Doubtful { what: "a slot names no unit of its own" })?;
            position = unit.previous;
            units.push(unit);
        }
        units.reverse();
        Ok(units)
    }

    /// The message of a unit; `None` if its record has been removed from the log of messages.
    ///
    /// # Errors
    /// [`TimerError::Doubtful`]: another record is there, or none; [`rebuild`](Self::rebuild) helps. Or the disk failed.
    pub async fn message(&self, unit: &TimerUnit) -> Result<Option<StoredMessage>, TimerError> {
        if unit.physical < self.store.log_min() {
            return Ok(None);
        }
        let doubt = TimerError::Doubtful { what: "a unit names another record" };
        let Some(message) = record_of(&self.store, unit).await? else { return Err(doubt) };
        let due_ms = message.properties.get(property::TIMER_OUT_MS).and_then(|text| text.parse().ok());
        let is_early = !unit.rolls()
            && due_ms.is_none_or(|due_ms| self.config.number(due_ms) > self.config.number(unit.slot_ms()));
        if is_early { Err(doubt) } else { Ok(Some(message)) }
    }

    /// All messages of the slot were delivered.
    pub fn finish(&mut self, number: i64) {
        self.wheel.remove(number);
        if self.wheel.first().is_none() {
            self.oldest_ms = None;
        }
        self.is_dirty = true;
    }

    /// How far the timer has come now.
    fn claims(&self, now_ms: i64) -> TimerCheckpoint {
        let said = self.checkpoint.said();
        let is_catching_up = self.next < self.past.end;
        let read_ms = if is_catching_up { self.past.before_ms } else { self.read_ms(now_ms) };
        let mut version = said.version;
        version.advance(0, now_ms);
        TimerCheckpoint {
            read_ms,
            log_bytes: i64::try_from(self.log.end()).expect("far from the end of numbers"),
            next: self.next.0,
            master_next: self.next.max(self.past.end).0,
            version,
        }
    }

    /// Everything before this moment was delivered.
    fn read_ms(&self, now_ms: i64) -> i64 {
        let first_ms = self.wheel.first().map_or(i64::MAX, |slot| self.config.slots_ms(slot.number));
        first_ms.min(self.config.floor_ms(now_ms)).min(self.oldest_ms.unwrap_or(i64::MAX))
    }

    /// What the last flush has made sure of.
    #[must_use]
    pub fn flushed(&self) -> TimerCheckpoint {
        self.checkpoint.said()
    }

    /// Makes all of it survive a power loss: waits until the log of messages is on the disk, then the timer log, the wheel and the claim.
    ///
    /// # Errors
    /// [`TimerError::Flush`] if the log of messages is not on the disk in time, [`TimerError::NoSpace`]: a later flush may do it.
    pub async fn flush(&mut self, now_ms: i64, timeout: Duration) -> Result<(), TimerError> {
        if !self.is_dirty {
            return Ok(());
        }
        let claims = self.claims(now_ms);
        // What was delivered, and what the units name.
        self.store.flushed(self.store.log_end(), timeout).await?;
        let log_dir = self.log.dir().to_owned();
        let flushed = self.log.flush().await;
        flushed.map_err(|source| self.failed("write the timer log", &log_dir, source))?;
        let flushed = self.wheel.flush().await;
        flushed.map_err(|source| self.failed("write", self.wheel.path(), source))?;
        let written = self.checkpoint.write(claims).await;
        written.map_err(|source| self.failed("write", self.checkpoint.path(), source))?;
        self.is_dirty = false;
        let removed = self.log.remove_before(self.store.log_min()).await;
        removed.map_err(|source| self.failed("remove files of", &log_dir, source))
    }

    /// Empties wheel and log, which are in doubt; the queue is to be put on the wheel again from its start.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub async fn rebuild(&mut self, now_ms: i64, timeout: Duration) -> Result<(), TimerError> {
        let claims = self.claims(now_ms);
        self.store.flushed(self.store.log_end(), timeout).await?;
        self.empty_files("while it runs", claims).await
    }

    async fn empty_files(&mut self, what: &'static str, claims: TimerCheckpoint) -> Result<(), TimerError> {
        rt::probe!("store.timer.rebuilt");
        tracing::warn!(what, "timer wheel in doubt, filled again from its queue");
        let (min, max) = self.store.queue_bounds(TIMER_TOPIC, 0).unwrap_or_default();
        self.past = Past { end: QueueOffset(claims.master_next).clamp(min, max), before_ms: claims.read_ms };
        let claims = TimerCheckpoint { log_bytes: 0, next: 0, ..claims };
        let written = self.checkpoint.write(claims).await;
        written.map_err(|source| self.failed("write", self.checkpoint.path(), source))?;
        let root = self.store.config().root.clone();
        let removed = remove_files(&root).await;
        removed.map_err(|source| self.failed("remove the timer's files of", &root, source))?;
        (self.wheel, self.log) = (empty_wheel(&root), empty_log(&root, &self.config));
        (self.next, self.oldest_ms, self.is_dirty) = (min, None, true);
        Ok(())
    }

    /// A full disk may have room again; after any other failure nobody knows what is on the disk.
    fn failed(&self, action: &'static str, path: &Path, source: io::Error) -> TimerError {
        if is_full(&source) {
            return TimerError::NoSpace { path: path.to_owned(), source };
        }
        TimerError::Poisoned(self.store.poison.set(action, path, source))
    }

    /// Panics if the parts do not agree: a bug.
    pub fn check_invariants(&self) {
        let end = i64::try_from(self.log.end()).expect("far from the end of numbers");
        for slot in self.wheel.numbers().into_iter().filter_map(|number| self.wheel.get(number)) {
            assert!(slot.first <= slot.last, "a slot's chain goes forward");
            assert!(slot.last < end, "a slot names a unit of the log");
        }
    }
}

/// A slave keeps no wheel: it takes over how far its master has come, for the day on which it delivers itself. The log of this store must
/// have all that the master's had when it said so, and be on the disk that far.
///
/// # Errors
/// The disk failed.
pub async fn take_over_timer_checkpoint(root: &Path, master: TimerCheckpoint) -> Result<(), TimerError> {
    let failed = |source| TimerError::Io { path: root.to_owned(), source };
    let mut file = CheckpointFile::load(root).await.map_err(failed)?;
    let TimerCheckpoint { read_ms, master_next, version, .. } = master;
    let said = TimerCheckpoint { read_ms, master_next, version, ..file.said() };
    if said == file.said() { Ok(()) } else { file.write(said).await.map_err(failed) }
}

/// What a store's checkpoint of the timer says; all zero if there is none.
///
/// # Errors
/// The disk failed.
pub async fn read_timer_checkpoint(root: &Path) -> Result<TimerCheckpoint, TimerError> {
    let file = CheckpointFile::load(root).await;
    file.map(|file| file.said()).map_err(|source| TimerError::Io { path: root.to_owned(), source })
}

fn roll_times(message: &StoredMessage) -> i64 {
    message.properties.get(property::TIMER_ROLL_TIMES).and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl From<FlushError> for TimerError {
    fn from(error: FlushError) -> TimerError {
        match error {
            FlushError::Poisoned(cause) => TimerError::Poisoned(cause),
            other => TimerError::Flush(other),
        }
    }
}
