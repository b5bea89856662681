//! From files to a store whose log and queues agree, after any crash.
//!
//! Recovery starts at the segment that held the checkpoint's ends (or where Apache's rule says, for a checkpoint that is not
//! ours), keeps the queue entries of older records, walks the records after that with all checks, dispatches each, and cuts the
//! log behind the last good one. Every step may be interrupted and done again. What it hands out is on disk: bytes of which that
//! is not known are written once more and synced, because a page cache may hold what a failed sync did not store.
use crate::checkpoint::{Checkpoint, Claims, Ends};
use crate::commit_log::{CommitLog, NextOffsets, cut, kept, sync_names};
use crate::config::{DamagePolicy, IndexConfig, StoreConfig};
use crate::consume_queues::{ConsumeQueues, QueueSizes};
use crate::dispatch::{BitMaps, Placer};
use crate::error::StoreError;
use crate::flush::FlushMark;
use crate::index::Index;
use crate::layout::{self, IndexSizes};
use crate::log_scan::{LogScan, first_record, look_behind};
use crate::poison::Poison;
use crate::segment::Segment;
use crate::store::{Recovered, Store};
use crate::tombstones::Tombstones;
use protocol::{PhysicalOffset, RecordError};
use rt::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes written again at once.
const REWRITE_CHUNK: i64 = 1 << 20;

/// An opened store whose parts may not agree yet. Nothing can be read from it.
pub struct UnrecoveredStore {
    config: StoreConfig,
    lock: File,
    segments: Vec<Arc<Segment>>,
    queues: ConsumeQueues,
    index: Index,
    checkpoint: Checkpoint,
    bit_maps: Option<Arc<dyn BitMaps>>,
    is_clean: bool,
}

/// What recovery found and did.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    /// Whether the store was shut down in order.
    pub is_clean: bool,
    /// Where the walk over the records began.
    pub scanned_from: PhysicalOffset,
    /// Records looked at.
    pub scanned_records: u64,
    /// End of the log.
    pub end: PhysicalOffset,
    /// Whether queues had to be rebuilt from the start of the log.
    pub is_rebuilt: bool,
    /// What was cut off behind the end, if there was anything.
    pub dropped: Option<DroppedTail>,
}

/// Bytes that recovery cut off: a torn tail, or with [`DamagePolicy::DropTail`] everything behind a damaged record.
#[derive(Clone, Debug)]
pub struct DroppedTail {
    /// The segment.
    pub path: PathBuf,
    /// Where the log ends now.
    pub from: PhysicalOffset,
    /// What is wrong with the record that should start there.
    pub reason: RecordError,
    /// Whether the part that was known to be synced is concerned.
    pub is_synced_part: bool,
    /// Whole records that were found behind it and are dropped with it (looked for in the next 64 MiB).
    pub records_behind: u64,
}

impl std::fmt::Debug for UnrecoveredStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnrecoveredStore").field("root", &self.config.root).finish_non_exhaustive()
    }
}

impl UnrecoveredStore {
    /// Locks the store's directory, creating it if it is missing, and opens its files.
    ///
    /// # Errors
    /// The configuration is unusable or does not fit the files, another process holds the lock, or the disk failed.
    pub async fn open(config: StoreConfig) -> Result<UnrecoveredStore, StoreError> {
        config.validate()?;
        create_dirs(&config).await?;
        let lock = take_lock(&config.root)?;
        UnrecoveredStore::open_locked(config, lock).await
    }

    /// The same for a caller that has the directories and the lock.
    pub(crate) async fn open_locked(config: StoreConfig, lock: File) -> Result<UnrecoveredStore, StoreError> {
        let abort = config.root.join(layout::ABORT_FILE);
        let is_clean = match rt::fs::metadata(&abort) {
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(failed("look for", &abort)(error)),
        };
        let segments = load_segments(&config)?;
        let tombstones = Tombstones::load(&config.root).await?;
        let sizes = QueueSizes {
            file_bytes: config.consume_queue_file_bytes(),
            batch_file_bytes: config.batch_queue_file_bytes(),
            extension_file_bytes: config.extension_file_size,
            is_extended: config.extend_queues,
            open_max: config.open_queue_files_max,
        };
        let queues = ConsumeQueues::load(&config.root, sizes, is_clean, tombstones)?;
        let checkpoint =
            Checkpoint::open(&config.root).await.map_err(failed("open the checkpoint in", &config.root))?;
        let index = open_index(&config, is_clean, checkpoint.claims()).await?;
        Ok(UnrecoveredStore { config, lock, segments, queues, index, checkpoint, bit_maps: None, is_clean })
    }

    /// Whom to ask for the bit maps of messages, in recovery and afterwards.
    pub fn set_bit_maps(&mut self, bit_maps: Arc<dyn BitMaps>) {
        self.bit_maps = Some(bit_maps);
    }

    /// As [`Store::make_batch_topic`], before recovery makes queues of the log: it makes all anew if those of the topic were of the other
    /// kind.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn make_batch_topic(&mut self, topic: &str) -> Result<(), StoreError> {
        self.queues.turn_into_batch_topic(topic).await
    }

    /// Makes log and queues agree.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::LogLost`] if synced records are gone and [`DamagePolicy::Refuse`] holds; or the
    /// disk failed. Recovery may be tried again.
    pub async fn recover(mut self) -> Result<Arc<Store>, StoreError> {
        let claims = self.checkpoint.claims();
        self.write_abort().await?;
        let (scan, is_rebuilt) = self.rebuild(claims).await?;
        let report = self.judge(&scan, claims, is_rebuilt).await?;
        if let Some(dropped) = &report.dropped {
            tracing::warn!(path = %dropped.path.display(), from = %dropped.from, reason = %dropped.reason,
                records_behind = dropped.records_behind, "log tail dropped");
        }
        let kept = self.settle_log(&scan, &report, claims).await?;
        // What is appended from here on is not of a topic that was removed.
        let lowered = self.queues.tombstones().lower(scan.end).await;
        lowered.map_err(|(path, source)| StoreError::Io { action: "write", path, source })?;
        let synced = self.queues.sync(|_| true).await;
        synced.map_err(|(path, source)| StoreError::Io { action: "sync", path, source })?;
        let synced = self.index.sync().await;
        synced.map_err(|(path, source)| StoreError::Io { action: "sync", path, source })?;
        let mark = FlushMark { end: scan.end, store_timestamp: scan.store_timestamp.unwrap_or(0) };
        let claims = Claims {
            log_timestamp: mark.store_timestamp,
            queue_timestamp: mark.store_timestamp,
            index_timestamp: self.index.newest().0,
            confirm: scan.last_record.map_or(claims.confirm.clamp(0, scan.end.0), |last| last.0),
            ends: Some(Ends { synced: scan.end, queues: scan.end }),
            ..claims
        };
        let written = self.checkpoint.write(claims).await;
        written.map_err(failed("write", &self.config.root.join(layout::CHECKPOINT_FILE)))?;
        self.queues.remove_stale()?;
        Ok(Arc::new(self.into_store(kept, mark, report)))
    }

    fn into_store(self, segments: Vec<Arc<Segment>>, mark: FlushMark, report: RecoveryReport) -> Store {
        let mut next = NextOffsets::default();
        for queue in self.queues.all() {
            next.raise(&queue.topic, queue.queue_id, queue.bounds().1.0);
        }
        let poison = Arc::new(Poison::new());
        let (dir, size) = (self.config.commit_log_dir(), self.config.segment_size);
        let log = CommitLog::new(dir, size, segments, mark, next, Arc::clone(&poison));
        let UnrecoveredStore { config, queues, index, checkpoint, bit_maps, lock, .. } = self;
        let store =
            Store::new(Recovered { config, log, queues, index, poison, checkpoint, bit_maps, mark, report, lock });
        store.check_invariants();
        store
    }

    /// Keeps the trusted entries and dispatches the rest of the log anew; from the very start if entries turn out to be missing.
    async fn rebuild(&self, claims: Claims) -> Result<(LogScan, bool), StoreError> {
        let log_min = self.log_min();
        if self.segments.is_empty() {
            for queue in self.queues.all() {
                queue.reset().map_err(failed("clear", self.queues.root()))?;
            }
            self.keep_keys_below(PhysicalOffset::ZERO).await?;
            return Ok((LogScan::empty(), false));
        }
        let first = match claims.ends {
            Some(ends) => self.segment_of(ends.synced.min(ends.queues)),
            None => {
                self.keep_entries_below(PhysicalOffset(i64::MAX)).await?;
                self.segment_by_apache(claims).await?
            }
        };
        let first = if self.queues.is_kind_changed() { 0 } else { first.min(self.segment_without_keys(claims)) };
        // A segment without one good record says nothing about the end of the one before it.
        for first in (0..=first).rev() {
            self.keep_entries_below(self.segments[first].start()).await?;
            let is_lost = first > 0 && self.queues.all().iter().all(|queue| queue.bounds().1.0 == 0);
            if is_lost {
                break;
            }
            let may_close_gaps = first == 0;
            let segments = &self.segments[first..];
            match LogScan::walk(segments, (self.placer(), &self.index), &self.config, may_close_gaps).await? {
                Some(scan) if scan.records > 0 || first == 0 => return Ok((scan, false)),
                Some(_) => {}
                None => break,
            }
        }
        tracing::warn!("queue entries are missing, consume queues are rebuilt from the whole log");
        self.keep_entries_below(log_min).await?;
        let scan = LogScan::walk(&self.segments, (self.placer(), &self.index), &self.config, true).await?;
        Ok((scan.expect("gaps were closed"), true))
    }

    fn placer(&self) -> Placer<'_> {
        let delay_levels_ms = &self.config.delay_levels_ms;
        Placer { queues: &self.queues, delay_levels_ms, bit_maps: self.bit_maps.as_deref() }
    }

    async fn keep_entries_below(&self, limit: PhysicalOffset) -> Result<(), StoreError> {
        let log_min = self.log_min();
        for queue in self.queues.all() {
            queue.keep_below(limit, log_min).await.map_err(failed("cut a queue in", self.queues.root()))?;
            // A crash came between the removal of a topic and that of its files.
            if self.queues.tombstones().end(&queue.topic).is_some_and(|end| queue.last_end() <= end) {
                queue.reset().map_err(failed("clear", self.queues.root()))?;
            }
        }
        self.keep_keys_below(limit).await
    }

    async fn keep_keys_below(&self, limit: PhysicalOffset) -> Result<(), StoreError> {
        let kept = self.index.keep_below(limit).await;
        kept.map_err(|(path, source)| StoreError::Io { action: "cut the index", path, source })
    }

    /// Whether what the scan found may be the end of the log, and what is dropped behind it.
    async fn judge(&self, scan: &LogScan, claims: Claims, is_rebuilt: bool) -> Result<RecoveryReport, StoreError> {
        let synced_end = claims.ends.map_or(PhysicalOffset::ZERO, |ends| ends.synced);
        let is_synced_part = scan.end < synced_end;
        let mut dropped = None;
        if let Some((path, reason)) = scan.problem.clone() {
            let (is_written, records_behind) = look_behind(&self.segments, scan.end).await?;
            if is_written || is_synced_part {
                dropped = Some(DroppedTail { path, from: scan.end, reason, is_synced_part, records_behind });
            }
        }
        if is_synced_part {
            let (offset, path) = (scan.end, self.config.commit_log_dir());
            let error = match dropped.clone() {
                Some(DroppedTail { path, reason: source, .. }) => {
                    StoreError::Damaged { path, offset, synced_end, source }
                }
                None => StoreError::LogLost { path, end: offset, synced_end },
            };
            match self.config.damage {
                DamagePolicy::Refuse => return Err(error),
                DamagePolicy::DropTail => tracing::error!(%error, "synced records are dropped"),
            }
        }
        Ok(RecoveryReport {
            is_clean: self.is_clean,
            scanned_from: scan.from,
            scanned_records: scan.records,
            end: scan.end,
            is_rebuilt,
            dropped,
        })
    }

    /// Cuts the log behind its end and makes the rest durable.
    async fn settle_log(
        &self,
        scan: &LogScan,
        report: &RecoveryReport,
        claims: Claims,
    ) -> Result<Vec<Arc<Segment>>, StoreError> {
        let (keep, gone) = self.segments.split_at(kept(&self.segments, scan.end));
        let dir = self.config.commit_log_dir();
        if !self.is_clean {
            let known = claims.ends.map_or(PhysicalOffset::ZERO, |ends| ends.synced);
            rewrite(keep, known.max(scan.from), scan.end).await?;
        }
        if !self.is_clean || !gone.is_empty() || report.dropped.is_some() {
            let done = cut(&dir, keep, gone, scan.end).await;
            done.map_err(|(action, path, source)| StoreError::Io { action, path, source })?;
        }
        for segment in keep.iter().filter(|segment| segment.end() > scan.from) {
            segment.sync().await.map_err(failed("sync", segment.path()))?;
        }
        sync_names(&dir, keep).await.map_err(failed("sync", &dir))?;
        Ok(keep.to_vec())
    }

    async fn write_abort(&self) -> Result<(), StoreError> {
        let path = self.config.root.join(layout::ABORT_FILE);
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(failed("create", &path))?;
        let written = file.write_at(self.config.process_id.to_string().as_bytes(), 0);
        written.map_err(failed("write", &path))?;
        file.sync_data().await.map_err(failed("sync", &path))?;
        rt::fs::sync_dir(&self.config.root).await.map_err(failed("sync", &self.config.root))
    }

    fn log_min(&self) -> PhysicalOffset {
        self.segments.first().map_or(PhysicalOffset::ZERO, |segment| segment.start())
    }

    /// The segment that holds the last byte before `end`, or the first.
    fn segment_of(&self, end: PhysicalOffset) -> usize {
        self.segments.partition_point(|segment| segment.start() < end).saturating_sub(1)
    }

    /// The first segment that has messages which the index does not know.
    fn segment_without_keys(&self, claims: Claims) -> usize {
        let (store_ms, indexed) = self.index.newest();
        let is_gone = store_ms == 0 && claims.index_timestamp > 0;
        // The index of an Apache broker that has crashed ends anywhere.
        let is_behind = claims.ends.is_none() && !self.is_clean;
        if self.config.index.is_some() && (is_gone || is_behind) { self.segment_of(indexed) } else { usize::MAX }
    }

    /// Where Apache's broker would begin: the last segment whose first record is good and, after a crash, is safely older than
    /// the checkpoint; after an orderly stop, is in the queues.
    async fn segment_by_apache(&self, claims: Claims) -> Result<usize, StoreError> {
        let dispatched = self.queues.last_end();
        for (index, segment) in self.segments.iter().enumerate().skip(1).rev() {
            let Some((physical, store_timestamp)) = first_record(segment).await? else { continue };
            let is_old = if self.is_clean { physical <= dispatched } else { store_timestamp <= claims.min_timestamp() };
            if store_timestamp != 0 && is_old {
                return Ok(index);
            }
        }
        Ok(0)
    }
}

async fn open_index(config: &StoreConfig, is_clean: bool, claims: Claims) -> Result<Index, StoreError> {
    let Some(IndexConfig { hash_slots: slots, entries }) = config.index else { return Ok(Index::disabled()) };
    let dir = config.root.join(layout::INDEX_DIR);
    rt::fs::create_dir_durably(&dir).await.map_err(failed("create", &dir))?;
    // Of Apache's files nothing is known after a crash, but links between entries tell which of them are whole.
    let synced = claims.ends.map(|ends| ends.synced.min(ends.queues));
    let opened = Index::open(dir, IndexSizes { slots, entries }, is_clean, synced).await;
    opened.map_err(|(path, source)| StoreError::Io { action: "open an index file", path, source })
}

/// Writes what the page cache holds once more, so that the next sync covers it.
async fn rewrite(segments: &[Arc<Segment>], from: PhysicalOffset, to: PhysicalOffset) -> Result<(), StoreError> {
    for segment in segments.iter().filter(|segment| segment.end() > from && segment.start() < to) {
        let end = segment.end().min(to);
        let mut at = segment.start().max(from);
        while at < end {
            let length = (end - at).min(REWRITE_CHUNK);
            let bytes = segment.read(at, usize::try_from(length).expect("a chunk")).await.map_err(StoreError::from)?;
            segment.write(at, &bytes).map_err(failed("write", segment.path()))?;
            at = at + length;
        }
    }
    Ok(())
}

fn load_segments(config: &StoreConfig) -> Result<Vec<Arc<Segment>>, StoreError> {
    let dir = config.commit_log_dir();
    let size = config.segment_size;
    let mut segments = Vec::<Arc<Segment>>::new();
    for path in rt::fs::read_dir(&dir).map_err(failed("list", &dir))? {
        if rt::fs::metadata(&path).map_err(failed("look at", &path))?.is_dir {
            continue;
        }
        let Some(start) = layout::parse_file_name(&path).filter(|start| start.is_multiple_of(size)) else {
            return Err(StoreError::ForeignFile { path, file_size: size });
        };
        let start = PhysicalOffset(i64::try_from(start).expect("checked with the name"));
        if segments.last().is_some_and(|last| last.end() != start) {
            return Err(StoreError::MissingFile { path });
        }
        segments.push(Arc::new(Segment::open(path, start, size)?));
    }
    Ok(segments)
}

pub(crate) async fn create_dirs(config: &StoreConfig) -> Result<(), StoreError> {
    let mut dirs = vec![config.root.clone(), config.commit_log_dir()];
    dirs.extend([layout::CONSUME_QUEUE_DIR, layout::BATCH_QUEUE_DIR].map(|dir| config.root.join(dir)));
    dirs.extend(config.extend_queues.then(|| config.root.join(layout::EXTENSION_DIR)));
    for dir in dirs {
        rt::fs::create_dir_durably(&dir).await.map_err(failed("create", &dir))?;
    }
    Ok(())
}

pub(crate) fn take_lock(root: &Path) -> Result<File, StoreError> {
    let path = root.join(layout::LOCK_FILE);
    let file = OpenOptions::new().write(true).create(true).open(&path).map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(StoreError::Locked { path }),
        Err(error) => return Err(failed("lock", &path)(error)),
    }
    file.write_at(b"lock", 0).map_err(failed("write", &path))?;
    Ok(file)
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}
