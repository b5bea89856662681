//! Making bytes survive a power loss: group commit, the interval flush, and the order in which the checkpoint may claim it.
//!
//! One flusher syncs segments in log order and moves the flushed end behind each; however many appends wait, one sync answers all
//! that were written before it began. A segment's name is synced with its first bytes: bytes in a file that no directory names
//! are lost.
use crate::checkpoint::{Checkpoint, Claims, Ends};
use crate::commit_log::{CommitLog, sync_names};
use crate::error::FlushError;
use crate::layout;
use crate::poison::PoisonCause;
use crate::store::Store;
use protocol::PhysicalOffset;
use rt::sync::{CancellationToken, Mutex};
use rt::time::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the log and the store time of the last record before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlushMark {
    pub(crate) end: PhysicalOffset,
    pub(crate) store_timestamp: i64,
}

/// Syncs the log. The lock is held during a sync: there is one at a time, and truncation keeps it out.
#[derive(Debug)]
pub(crate) struct LogFlusher {
    /// How many calls of [`Store::flushed`] have begun to wait.
    waits: AtomicU64,
    /// How far the log was dispatched when the last sync began: a record boundary, and synced.
    turn: Mutex<FlushMark>,
}

/// Syncs the queues and owns the checkpoint.
#[derive(Debug)]
pub(crate) struct QueueFlusher {
    turn: Mutex<QueueFlush>,
}

#[derive(Debug)]
pub(crate) struct QueueFlush {
    checkpoint: Checkpoint,
    /// Every entry of the records below is synced, in queues and index.
    synced: FlushMark,
    /// Store time of the last message that the synced index has; 0 if it has none.
    index_timestamp: i64,
}

impl LogFlusher {
    pub(crate) fn new(synced: FlushMark) -> LogFlusher {
        LogFlusher { waits: AtomicU64::new(0), turn: Mutex::new(synced) }
    }

    /// Keeps syncs out until the guard is dropped.
    pub(crate) async fn hold(&self) -> rt::sync::MutexGuard<'_, FlushMark> {
        self.turn.lock().await
    }

    /// Syncs what was written before the call. `dispatched` is asked once at the start; `moved` hears of each step of the
    /// flushed end.
    pub(crate) async fn flush(
        &self,
        log: &CommitLog,
        dispatched: impl Fn() -> FlushMark,
        moved: impl Fn(PhysicalOffset),
    ) -> Result<(), PoisonCause> {
        let mut synced = self.turn.lock().await;
        log.poison().check()?;
        let boundary = dispatched();
        let end = log.end();
        let flushed = log.flushed();
        if end > flushed {
            let segments = log.segments();
            for segment in segments.iter().filter(|segment| segment.end() > flushed && segment.start() < end) {
                let failed = |action, path, source| log.poison().set(action, path, source);
                segment.sync().await.map_err(|source| failed("sync", segment.path(), source))?;
                if !segment.is_named() {
                    let named = sync_names(&log.dir, &segments).await;
                    named.map_err(|source| failed("sync the directory", &log.dir, source))?;
                }
                let reached = segment.end().min(end);
                log.set_flushed(reached);
                moved(reached);
            }
        }
        *synced = boundary;
        Ok(())
    }
}

/// Who shares a sync. Writers that the last sync has answered come back within moments, one after the other: a sync that begins with the
/// first of them makes all the others wait for a second one.
#[derive(Debug, Default)]
struct Company {
    /// Waits that had begun when the last sync did.
    seen: u64,
    /// How many of them it answered.
    answered: u64,
}

impl Company {
    /// How often others may run before a sync begins with fewer. A bound for the case that writers have left: some microseconds.
    const YIELDS_MAX: u32 = 32;

    /// Returns when as many wait as the last sync answered.
    async fn gather(&mut self, waits: &AtomicU64) {
        let mut come = waits.load(Ordering::Relaxed);
        for _ in 0..Self::YIELDS_MAX {
            if come - self.seen >= self.answered {
                break;
            }
            rt::task::yield_now().await;
            come = waits.load(Ordering::Relaxed);
        }
        *self = Company { seen: come, answered: come - self.seen };
    }
}

impl QueueFlusher {
    pub(crate) fn new(checkpoint: Checkpoint, synced: FlushMark) -> QueueFlusher {
        let index_timestamp = checkpoint.claims().index_timestamp;
        QueueFlusher { turn: Mutex::new(QueueFlush { checkpoint, synced, index_timestamp }) }
    }

    /// Keeps queue syncs and checkpoints out until the guard is dropped.
    pub(crate) async fn hold(&self) -> rt::sync::MutexGuard<'_, QueueFlush> {
        self.turn.lock().await
    }
}

impl QueueFlush {
    /// Lowers the claims before the log is cut at `to`: otherwise recovery would miss what is no longer there.
    pub(crate) async fn lower(&mut self, to: PhysicalOffset) -> std::io::Result<()> {
        self.synced.end = self.synced.end.min(to);
        let claims = self.checkpoint.claims();
        let ends = claims.ends.map(|ends| Ends { synced: ends.synced.min(to), queues: ends.queues.min(to) });
        // The time of the last message that the index will have is not known.
        self.index_timestamp = 0;
        let (confirm, index_timestamp) = (claims.confirm.min(to.0), 0);
        self.checkpoint.write(Claims { confirm, index_timestamp, ends, ..claims }).await
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.checkpoint.path()
    }

    /// Up to where the checkpoint says that records and their queue entries are on the disk.
    pub(crate) fn claimed_end(&self) -> PhysicalOffset {
        self.checkpoint.claims().ends.map_or(PhysicalOffset::ZERO, |ends| ends.queues.min(ends.synced))
    }
}

impl Store {
    /// Returns once everything below `end` survives a power loss. Many callers share one sync.
    ///
    /// # Errors
    /// [`FlushError::Timeout`] after `timeout` (`FLUSH_DISK_TIMEOUT`: the message may still become durable),
    /// [`FlushError::Poisoned`] if a sync failed: no answer may then be given.
    pub async fn flushed(&self, end: PhysicalOffset, timeout: Duration) -> Result<(), FlushError> {
        let mut flushed = self.log.watch_flushed();
        let mut poisoned = self.poison.watch();
        if *flushed.borrow_and_update() >= end {
            return Ok(());
        }
        if let Some(cause) = self.poison.get() {
            return Err(FlushError::Poisoned(cause));
        }
        let log_end = self.log.end();
        if end > log_end {
            return Err(FlushError::BeyondEnd { end, log_end });
        }
        self.log_flusher.waits.fetch_add(1, Ordering::Relaxed);
        self.wake_flush.notify_one();
        let reached = async {
            rt::select! {
                result = flushed.wait_for(|flushed| *flushed >= end) => result.is_ok(),
                _ = poisoned.wait_for(|poisoned| *poisoned) => false,
            }
        };
        match rt::time::timeout(timeout, reached).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(FlushError::Poisoned(self.poison.get().expect("the senders live as long as the store"))),
            Err(_) => {
                rt::probe!("store.flush.timeout");
                Err(FlushError::Timeout { end, after: timeout })
            }
        }
    }

    /// Syncs the log up to its present end.
    pub(crate) async fn flush_log(&self) -> Result<(), PoisonCause> {
        self.log_flusher.flush(&self.log, || self.dispatched_mark(), |reached| self.flushed_moved(reached)).await
    }

    /// Syncs every queue entry that is there now, then claims it in the checkpoint.
    pub(crate) async fn flush_queues(&self) -> Result<(), PoisonCause> {
        let mut turn = self.queue_flusher.hold().await;
        self.poison.check()?;
        let (mark, (index_timestamp, _)) = (self.dispatched_mark(), self.index.newest());
        let synced = self.queues.sync(|_| true).await;
        synced.map_err(|(path, source)| self.poison.set("sync", &path, source))?;
        self.index.sync().await.map_err(|(path, source)| self.poison.set("sync", &path, source))?;
        (turn.synced, turn.index_timestamp) = (mark, index_timestamp);
        self.write_checkpoint(&mut turn).await
    }

    /// Syncs the queues with many unsynced entries; the checkpoint does not hear of it.
    async fn flush_busy_queues(&self) -> Result<(), PoisonCause> {
        let turn = self.queue_flusher.hold().await;
        self.poison.check()?;
        let least_pages =
            if rt::buggify!("store.idle_queues_flushed") { 0 } else { self.config.queue_flush_least_pages.max(1) };
        let least = u64::from(least_pages) * layout::PAGE;
        let synced = self.queues.sync(|queue| queue.dirty_bytes() >= least).await;
        drop(turn);
        synced.map_err(|(path, source)| self.poison.set("sync", &path, source))
    }

    /// Writes what is synced now.
    async fn write_checkpoint(&self, turn: &mut QueueFlush) -> Result<(), PoisonCause> {
        let synced = *self.log_flusher.hold().await;
        let dispatched = self.dispatched_mark();
        // The flushed end of a replica may lie inside a record; what was dispatched ends with one.
        let log = if dispatched.end <= self.log.flushed() { dispatched } else { synced };
        let claims = Claims {
            log_timestamp: log.store_timestamp,
            queue_timestamp: turn.synced.store_timestamp,
            index_timestamp: turn.index_timestamp,
            ends: Some(Ends { synced: log.end, queues: turn.synced.end.min(log.end) }),
            ..turn.checkpoint.claims()
        };
        let written = turn.checkpoint.write(claims).await;
        written.map_err(|source| self.poison.set("write", turn.checkpoint.path(), source)).map(|_| ())
    }

    /// Task: syncs the log when someone waits, and at intervals.
    pub(crate) async fn flush_loop(self: Arc<Self>, shutdown: CancellationToken) {
        let mut thorough = Instant::now();
        let mut company = Company::default();
        loop {
            let is_wanted = rt::select! {
                () = shutdown.cancelled() => return,
                () = self.wake_flush.notified() => true,
                () = rt::time::sleep(self.config.flush_interval) => false,
            };
            let is_due = thorough.elapsed() >= self.config.flush_thorough_interval || rt::buggify!("store.flush_early");
            let dirty = u64::try_from(self.log.end() - self.log.flushed()).unwrap_or(0);
            if !is_wanted && !is_due && dirty / layout::PAGE < u64::from(self.config.flush_least_pages) {
                continue;
            }
            if is_due {
                thorough = Instant::now();
            }
            rt::dawdle!("store.flush_late", Duration::from_millis(20));
            company.gather(&self.log_flusher.waits).await;
            if self.flush_log().await.is_err() {
                return;
            }
        }
    }

    /// Task: syncs queues and writes the checkpoint at intervals.
    pub(crate) async fn checkpoint_loop(self: Arc<Self>, shutdown: CancellationToken) {
        let mut thorough = Instant::now();
        let mut queues = Instant::now();
        loop {
            rt::select! {
                () = shutdown.cancelled() => return,
                () = rt::time::sleep(self.config.checkpoint_interval.min(self.config.queue_flush_interval)) => {}
            }
            if rt::buggify!("store.checkpoint_skipped") {
                continue;
            }
            let is_due = thorough.elapsed() >= self.config.queue_flush_thorough_interval;
            let result = if is_due || rt::buggify!("store.queues_flushed_early") {
                (thorough, queues) = (Instant::now(), Instant::now());
                self.flush_queues().await
            } else if queues.elapsed() >= self.config.queue_flush_interval {
                queues = Instant::now();
                match self.flush_busy_queues().await {
                    Ok(()) => self.checkpoint_now().await,
                    failed => failed,
                }
            } else {
                self.checkpoint_now().await
            };
            if result.is_err() {
                return;
            }
        }
    }

    async fn checkpoint_now(&self) -> Result<(), PoisonCause> {
        let mut turn = self.queue_flusher.hold().await;
        self.poison.check()?;
        self.write_checkpoint(&mut turn).await
    }
}
