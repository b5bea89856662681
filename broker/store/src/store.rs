//! The running store: its parts, its life, and its positions.
use crate::checkpoint::Checkpoint;
use crate::commit_log::CommitLog;
use crate::config::{FlushMode, StoreConfig};
use crate::consume_queues::ConsumeQueues;
use crate::dispatch::{Arrivals, BitMaps, Dispatcher, Placer};
use crate::error::StoreError;
use crate::flush::{FlushMark, LogFlusher, QueueFlusher};
use crate::index::Index;
use crate::layout;
use crate::poison::{Poison, PoisonCause};
use crate::recovery::RecoveryReport;
use protocol::{PhysicalOffset, QueueOffset};
use rt::fs::File;
use rt::sync::{CancellationToken, Notify, watch};
use rt::task::TaskGroup;
use std::sync::{Arc, Mutex};

/// A recovered store. [`start`](Store::start) it, and end it by [`shutdown`](Store::shutdown); a store that is only dropped is
/// recovered like one whose process has crashed.
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) log: CommitLog,
    pub(crate) queues: ConsumeQueues,
    pub(crate) index: Index,
    pub(crate) poison: Arc<Poison>,
    /// What may be dispatched, read and replicated.
    pub(crate) readable: watch::Sender<PhysicalOffset>,
    /// Where what the master has sent is no record any more.
    pub(crate) sent_damage: watch::Sender<Option<PhysicalOffset>>,
    pub(crate) dispatcher: rt::sync::Mutex<Dispatcher>,
    pub(crate) log_flusher: LogFlusher,
    pub(crate) queue_flusher: QueueFlusher,
    pub(crate) wake_flush: Notify,
    pub(crate) buffers: crate::append::Buffers,
    pub(crate) retention: crate::retention::Retention,
    dispatched: Mutex<FlushMark>,
    arrivals: Mutex<Option<Arc<dyn Arrivals>>>,
    bit_maps: Option<Arc<dyn BitMaps>>,
    tasks: Mutex<Option<TaskGroup>>,
    report: RecoveryReport,
    /// Held until the store is dropped.
    _lock: File,
}

/// What recovery hands over.
pub(crate) struct Recovered {
    pub(crate) config: StoreConfig,
    pub(crate) log: CommitLog,
    pub(crate) queues: ConsumeQueues,
    pub(crate) index: Index,
    pub(crate) poison: Arc<Poison>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) bit_maps: Option<Arc<dyn BitMaps>>,
    pub(crate) mark: FlushMark,
    pub(crate) report: RecoveryReport,
    pub(crate) lock: File,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Store");
        out.field("root", &self.config.root)
            .field("log_end", &self.log_end())
            .field("flushed_end", &self.flushed_end());
        out.field("dispatched_end", &self.dispatched_end()).finish_non_exhaustive()
    }
}

impl Store {
    /// All that was recovered is synced, readable and dispatched.
    pub(crate) fn new(parts: Recovered) -> Store {
        let mark = parts.mark;
        assert_eq!(mark.end, parts.log.end(), "the whole log is dispatched");
        Store {
            config: parts.config,
            log: parts.log,
            queues: parts.queues,
            index: parts.index,
            poison: parts.poison,
            readable: watch::Sender::new(mark.end),
            sent_damage: watch::Sender::new(None),
            dispatcher: rt::sync::Mutex::new(Dispatcher::at(mark)),
            log_flusher: LogFlusher::new(mark),
            queue_flusher: QueueFlusher::new(parts.checkpoint, mark),
            wake_flush: Notify::new(),
            buffers: crate::append::Buffers::default(),
            retention: crate::retention::Retention::default(),
            dispatched: Mutex::new(mark),
            arrivals: Mutex::new(None),
            bit_maps: parts.bit_maps,
            tasks: Mutex::new(None),
            report: parts.report,
            _lock: parts.lock,
        }
    }

    /// Starts flushing, dispatching and writing checkpoints, until `shutdown` is cancelled or [`Store::shutdown`] is called.
    /// Without it nothing becomes durable or readable.
    pub fn start(self: &Arc<Self>, shutdown: &CancellationToken) {
        let group = TaskGroup::child_of(shutdown);
        let token = group.token().clone();
        group.spawn(Arc::clone(self).flush_loop(token.clone()));
        group.spawn(Arc::clone(self).dispatch_loop(token.clone()));
        group.spawn(Arc::clone(self).checkpoint_loop(token));
        let before = self.tasks.lock().expect("no code that can panic runs under this lock").replace(group);
        assert!(before.is_none(), "a store is started once");
    }

    /// Refuses further appends, ends the tasks, dispatches and syncs everything, writes the checkpoint and removes the `abort`
    /// file (which stays if a replica's last record is incomplete).
    ///
    /// # Errors
    /// [`StoreError::Poisoned`] if a sync failed now or before; the `abort` file stays.
    pub async fn shutdown(&self) -> Result<(), StoreError> {
        self.log.lock().close();
        let group = self.tasks.lock().expect("no code that can panic runs under this lock").take();
        if let Some(group) = group {
            group.shutdown().await;
        }
        self.flush_log().await.map_err(StoreError::Poisoned)?;
        match self.dispatch_all().await {
            // Damage that a master has sent is cut by who is started next.
            Ok(()) | Err(crate::dispatch::DispatchError::SentDamage { .. }) => {}
            Err(crate::dispatch::DispatchError::Poisoned(cause)) => return Err(StoreError::Poisoned(cause)),
            Err(crate::dispatch::DispatchError::NoSpace(source)) => {
                let path = self.queues.root().to_owned();
                return Err(StoreError::Io { action: "write consume queues in", path, source });
            }
        }
        self.flush_queues().await.map_err(StoreError::Poisoned)?;
        if self.dispatched_end() < self.log_end() {
            return Ok(());
        }
        let path = self.config.root.join(layout::ABORT_FILE);
        let removed = match rt::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => rt::fs::sync_dir(&self.config.root).await,
        };
        removed.map_err(|source| StoreError::Io { action: "remove", path, source })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// What recovery found and did.
    #[must_use]
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.report
    }

    /// Start of the oldest byte of the log.
    #[must_use]
    pub fn log_min(&self) -> PhysicalOffset {
        self.log.min()
    }

    /// End of the bytes written, durable or not. On a replica it may lie inside a record.
    #[must_use]
    pub fn log_end(&self) -> PhysicalOffset {
        self.log.end()
    }

    /// End of the bytes that survive a power loss.
    #[must_use]
    pub fn flushed_end(&self) -> PhysicalOffset {
        self.log.flushed()
    }

    /// End of what may be dispatched, read and replicated: the flushed end with synchronous flush, else the log's end.
    #[must_use]
    pub fn confirm_end(&self) -> PhysicalOffset {
        *self.readable.borrow()
    }

    /// End of the records that are in their queues.
    #[must_use]
    pub fn dispatched_end(&self) -> PhysicalOffset {
        self.dispatched_mark().end
    }

    /// Bytes that are readable but not yet in the queues.
    #[must_use]
    pub fn dispatch_behind_bytes(&self) -> u64 {
        u64::try_from(self.confirm_end() - self.dispatched_end()).unwrap_or(0)
    }

    /// Start of the last segment: where an empty replica begins.
    #[must_use]
    pub fn last_segment_start(&self) -> PhysicalOffset {
        self.log.segments().last().map_or(self.log_end(), |segment| segment.start())
    }

    /// The [confirm end](Self::confirm_end) as it moves (down only by [`Store::truncate_to`]).
    #[must_use]
    pub fn ends(&self) -> watch::Receiver<PhysicalOffset> {
        self.readable.subscribe()
    }

    /// Where what a master has sent is no record any more: nothing behind it is dispatched until the log is cut there
    /// ([`Store::truncate_to`]).
    #[must_use]
    pub fn sent_damage(&self) -> watch::Receiver<Option<PhysicalOffset>> {
        self.sent_damage.subscribe()
    }

    /// Smallest offset of a queue and one past the largest; `None` if there is no such queue.
    #[must_use]
    pub fn queue_bounds(&self, topic: &str, queue_id: i32) -> Option<(QueueOffset, QueueOffset)> {
        self.queues.get(topic, queue_id).map(|queue| queue.bounds())
    }

    /// Every queue that has or had messages, by topic and id.
    #[must_use]
    pub fn queues(&self) -> Vec<(Arc<str>, i32)> {
        self.queues.all().iter().map(|queue| (Arc::clone(&queue.topic), queue.queue_id)).collect()
    }

    /// Whom to tell of readable messages; replaces who was told before.
    pub fn set_arrivals(&self, arrivals: Arc<dyn Arrivals>) {
        *self.arrivals.lock().expect("no code that can panic runs under this lock") = Some(arrivals);
    }

    /// Why the store accepts and confirms nothing any more. The node should stop.
    #[must_use]
    pub fn poisoned(&self) -> Option<PoisonCause> {
        self.poison.get()
    }

    /// Returns when the store is poisoned.
    pub async fn wait_poisoned(&self) -> PoisonCause {
        let mut seen = self.poison.watch();
        // The sender lives as long as `self`.
        let _ = seen.wait_for(|seen| *seen).await;
        self.poison.get().expect("set before it is seen")
    }

    /// Panics if the parts do not agree: a bug.
    pub fn check_invariants(&self) {
        self.log.check_invariants();
        self.queues.check_invariants();
        assert!(self.dispatched_end() <= self.log_end(), "only written records are dispatched");
        if self.config.flush_mode == FlushMode::Sync {
            assert!(self.confirm_end() <= self.flushed_end(), "with synchronous flush only synced bytes are readable");
        }
    }

    pub(crate) fn arrivals(&self) -> Option<Arc<dyn Arrivals>> {
        self.arrivals.lock().expect("no code that can panic runs under this lock").clone()
    }

    /// What entries are made with.
    pub(crate) fn placer(&self) -> Placer<'_> {
        let delay_levels_ms = &self.config.delay_levels_ms;
        Placer { queues: &self.queues, delay_levels_ms, bit_maps: self.bit_maps.as_deref() }
    }

    pub(crate) fn dispatched_mark(&self) -> FlushMark {
        *self.dispatched.lock().expect("no code that can panic runs under this lock")
    }

    pub(crate) fn set_dispatched(&self, mark: FlushMark) {
        *self.dispatched.lock().expect("no code that can panic runs under this lock") = mark;
    }

    /// The flushed end has moved up.
    pub(crate) fn flushed_moved(&self, to: PhysicalOffset) {
        if self.config.flush_mode == FlushMode::Sync {
            self.readable.send_replace(to);
        }
    }

    /// The log's end has moved up.
    pub(crate) fn appended(&self, end: PhysicalOffset) {
        match self.config.flush_mode {
            FlushMode::Sync => self.wake_flush.notify_one(),
            // Two appenders may come here in either order.
            FlushMode::Async => {
                self.readable.send_if_modified(|readable| {
                    let is_later = end > *readable;
                    *readable = end.max(*readable);
                    is_later
                });
            }
        }
    }
}
