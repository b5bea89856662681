//! Sizes, intervals, limits and policies of one store.
use crate::error::{ConfigError, StoreError};
use crate::layout;
use crate::light_queues::is_light;
use crate::retention::RetentionConfig;
use crate::scan::Check;
use crate::timer::config::TimerConfig;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When a message counts as stored (`flushDiskType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// `SYNC_FLUSH`: the sender waits until its bytes are on disk; nothing is readable earlier.
    Sync,
    /// `ASYNC_FLUSH`: the page cache is enough; a power loss loses a suffix of the log.
    Async,
}

/// What recovery does with a damaged record inside the part of the log that was synced.
///
/// Bytes beyond the synced part may be torn by any power loss; they are always dropped, and the [report](crate::RecoveryReport)
/// says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagePolicy {
    /// Do not start; the error names file and offset. The default: an operator decides whether acknowledged messages are given up.
    Refuse,
    /// What Apache RocketMQ does: drop the damaged record and all after it; the report says what was dropped.
    DropTail,
}

/// How large the files of the index of keys are: about `4 hash_slots + 20 entries` bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// `maxHashSlotNum`: 5 000 000.
    pub hash_slots: u32,
    /// `maxIndexNum`: 20 000 000; one less has room.
    pub entries: u32,
}

impl Default for IndexConfig {
    fn default() -> IndexConfig {
        IndexConfig { hash_slots: 5_000_000, entries: 20_000_000 }
    }
}

/// Configuration of a store. [`StoreConfig::new`] gives RocketMQ's defaults (`MessageStoreConfig`).
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// `storePathRootDir`.
    pub root: PathBuf,
    /// `storePathCommitLog`; `None` is `root/commitlog`.
    pub commit_log_dir: Option<PathBuf>,
    /// `mappedFileSizeCommitLog`, bytes: 1 GiB.
    pub segment_size: u64,
    /// `mappedFileSizeConsumeQueue`, bytes: 6 000 000; rounded up to whole entries.
    pub consume_queue_file_size: u64,
    /// `mapperFileSizeBatchConsumeQueue`, bytes: 13 800 000; rounded up to whole entries.
    pub batch_queue_file_size: u64,
    /// `enableConsumeQueueExt`: queues get an extension, in which filters find bit maps. What is there already is read either way.
    pub extend_queues: bool,
    /// `mappedFileSizeConsumeQueueExt`, bytes: 48 MiB.
    pub extension_file_size: u64,
    /// `hotfireOpenQueueFilesMax`: so many files of queues are open at a time, 1 or more: 500. Each further one that is used closes another.
    pub open_queue_files_max: usize,
    /// `flushDiskType`: asynchronous.
    pub flush_mode: FlushMode,
    /// `syncFlushTimeout`: 5 s. The store itself does not read it: it is the default time-out of who calls `flushed`.
    pub sync_flush_timeout: Duration,
    /// `flushIntervalCommitLog`: 500 ms.
    pub flush_interval: Duration,
    /// `flushCommitLogLeastPages`: 4 pages of 4096 bytes; fewer dirty pages wait for the thorough interval.
    pub flush_least_pages: u32,
    /// `flushCommitLogThoroughInterval`: 10 s.
    pub flush_thorough_interval: Duration,
    /// `flushIntervalConsumeQueue`: 1 s.
    pub queue_flush_interval: Duration,
    /// `flushConsumeQueueLeastPages`: 2.
    pub queue_flush_least_pages: u32,
    /// `flushConsumeQueueThoroughInterval`: 60 s. Recovery re-reads at most what was dispatched since, and the rest of that segment.
    pub queue_flush_thorough_interval: Duration,
    /// How often the checkpoint is written if it changed: 1 s.
    pub checkpoint_interval: Duration,
    /// `maxMessageSize`, bytes of body: 4 MiB.
    pub max_message_size: u32,
    /// `messageDelayLevel` in milliseconds, level 1 first: the delivery time in the queue entries of `SCHEDULE_TOPIC_XXXX`.
    pub delay_levels_ms: Vec<i64>,
    /// Memory of the machine in bytes, the base of `access_in_memory_max_ratio`: 24 GiB (Apache's fallback).
    pub memory_bytes: u64,
    /// `accessMessageInMemoryMaxRatio`, percent: 40. A reader further behind the log's end is sent to a slave.
    pub access_in_memory_max_ratio: u32,
    /// `maxTransferBytesOnMessageInMemory`: 262 144.
    pub max_transfer_bytes_memory: u32,
    /// `maxTransferCountOnMessageInMemory`: 32.
    pub max_transfer_count_memory: u32,
    /// `maxTransferBytesOnMessageInDisk`: 65 536.
    pub max_transfer_bytes_disk: u32,
    /// `maxTransferCountOnMessageInDisk`: 8.
    pub max_transfer_count_disk: u32,
    /// `maxFilterMessageSize`, bytes of queue entries looked at in one read: 16 000.
    pub max_filter_bytes: u32,
    /// The index of keys (`messageIndexEnable`); none: no message is found by its keys.
    pub index: Option<IndexConfig>,
    /// `enableMultiDispatch` together with `enableLmq`: messages are in the light queues that they name too. A store in which this was off for
    /// a while knows nothing of what came meanwhile.
    pub multi_dispatch: bool,
    /// `enabledAppendPropCRC`: each record ends with a checksum of all of it, which is looked at wherever a record has one. Without it a
    /// flipped bit is noticed in a body only.
    pub seal_records: bool,
    /// `forceVerifyPropCRC`: a record without that checksum is damaged.
    pub require_seals: bool,
    /// When old segments are removed.
    pub retention: RetentionConfig,
    /// Messages that wait for a moment (`timerWheelEnable`); none: they are refused.
    pub timer: Option<TimerConfig>,
    /// Damage inside the synced part of the log.
    pub damage: DamagePolicy,
    /// Written into the `abort` file.
    pub process_id: u32,
}

impl StoreConfig {
    /// RocketMQ's defaults in the directory `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> StoreConfig {
        StoreConfig {
            root: root.into(),
            commit_log_dir: None,
            segment_size: 1 << 30,
            consume_queue_file_size: 6_000_000,
            batch_queue_file_size: 13_800_000,
            extend_queues: false,
            extension_file_size: 48 << 20,
            open_queue_files_max: 500,
            flush_mode: FlushMode::Async,
            sync_flush_timeout: Duration::from_secs(5),
            flush_interval: Duration::from_millis(500),
            flush_least_pages: 4,
            flush_thorough_interval: Duration::from_secs(10),
            queue_flush_interval: Duration::from_secs(1),
            queue_flush_least_pages: 2,
            queue_flush_thorough_interval: Duration::from_secs(60),
            checkpoint_interval: Duration::from_secs(1),
            max_message_size: 4 << 20,
            delay_levels_ms: [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
                .map(|seconds| seconds * 1000)
                .to_vec(),
            memory_bytes: 24 << 30,
            access_in_memory_max_ratio: 40,
            max_transfer_bytes_memory: 262_144,
            max_transfer_count_memory: 32,
            max_transfer_bytes_disk: 65_536,
            max_transfer_count_disk: 8,
            max_filter_bytes: 16_000,
            index: Some(IndexConfig::default()),
            multi_dispatch: false,
            seal_records: false,
            require_seals: false,
            retention: RetentionConfig::default(),
            timer: Some(TimerConfig::default()),
            damage: DamagePolicy::Refuse,
            process_id: 0,
        }
    }

    /// The same with the sizes that the files of the store have: a segment and a file of a queue say their size by their length. A store
    /// without files keeps the sizes given. The files of the index do not say theirs. Light queues and extensions are taken to be wanted where
    /// there are some.
    ///
    /// # Errors
    /// A directory could not be read; with its path.
    pub fn with_sizes_of_files(mut self) -> Result<StoreConfig, StoreError> {
        if let Some(length) = first_length(&self.commit_log_dir())? {
            self.segment_size = length;
        }
        let queues = self.root.join(layout::CONSUME_QUEUE_DIR);
        if let Some(length) = queue_file_length(&queues)? {
            self.consume_queue_file_size = length;
        }
        let is_light_dir = |dir: &PathBuf| dir.file_name().and_then(|name| name.to_str()).is_some_and(is_light);
        self.multi_dispatch |= list(&queues)?.iter().any(is_light_dir);
        if let Some(length) = queue_file_length(&self.root.join(layout::BATCH_QUEUE_DIR))? {
            self.batch_queue_file_size = length;
        }
        if let Some(length) = queue_file_length(&self.root.join(layout::EXTENSION_DIR))? {
            (self.extend_queues, self.extension_file_size) = (true, length);
        }
        Ok(self)
    }

    /// The commit log's directory.
    #[must_use]
    pub fn commit_log_dir(&self) -> PathBuf {
        self.commit_log_dir.clone().unwrap_or_else(|| self.root.join(layout::COMMIT_LOG_DIR))
    }

    /// Bytes of a consume-queue file: the configured size rounded up to whole entries.
    #[must_use]
    pub fn consume_queue_file_bytes(&self) -> u64 {
        self.consume_queue_file_size.next_multiple_of(layout::ENTRY_SIZE as u64).max(layout::ENTRY_SIZE as u64)
    }

    /// The same of a file of a batch queue.
    #[must_use]
    pub fn batch_queue_file_bytes(&self) -> u64 {
        self.batch_queue_file_size
            .next_multiple_of(layout::BATCH_ENTRY_SIZE as u64)
            .max(layout::BATCH_ENTRY_SIZE as u64)
    }

    /// How closely bytes from the disk are looked at.
    pub(crate) fn check(&self) -> Check {
        match (self.require_seals, self.seal_records) {
            (true, _) => Check::Sealed,
            (false, true) => Check::Seal,
            (false, false) => Check::Content,
        }
    }

    /// Whether a store can work with these values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.segment_size < layout::SEGMENT_SIZE_MIN || self.segment_size > layout::SEGMENT_SIZE_MAX {
            return Err(ConfigError::SegmentSize { size: self.segment_size });
        }
        if self.consume_queue_file_size > layout::SEGMENT_SIZE_MAX {
            return Err(ConfigError::ConsumeQueueFileSize { size: self.consume_queue_file_size });
        }
        if self.batch_queue_file_size > layout::SEGMENT_SIZE_MAX {
            return Err(ConfigError::BatchQueueFileSize { size: self.batch_queue_file_size });
        }
        if !(layout::UNIT_MIN as u64 + layout::UNIT_END_BYTES..=layout::SEGMENT_SIZE_MAX)
            .contains(&self.extension_file_size)
        {
            return Err(ConfigError::ExtensionFileSize { size: self.extension_file_size });
        }
        if u64::from(self.max_message_size) > layout::MESSAGE_SIZE_MAX {
            return Err(ConfigError::MessageSize { size: self.max_message_size });
        }
        if let Some(IndexConfig { hash_slots, entries }) = self.index
            && (hash_slots == 0
                || entries < 2
                || u64::from(hash_slots) * 4 + u64::from(entries) * 20 > layout::SEGMENT_SIZE_MAX)
        {
            return Err(ConfigError::IndexSize { hash_slots, entries });
        }
        self.retention.validate()?;
        self.timer.map_or(Ok(()), |timer| timer.validate())?;
        for (name, interval) in [
            ("flushIntervalCommitLog", self.flush_interval),
            ("flushIntervalConsumeQueue", self.queue_flush_interval),
            ("checkpoint interval", self.checkpoint_interval),
            ("cleanResourceInterval", self.retention.interval),
        ] {
            if interval.is_zero() {
                return Err(ConfigError::ZeroInterval { name });
            }
        }
        Ok(())
    }
}

/// Bytes of a file of some queue below `root`.
fn queue_file_length(root: &Path) -> Result<Option<u64>, StoreError> {
    for topic in list(root)? {
        for queue in list(&topic)? {
            if let Some(length) = first_length(&queue)? {
                return Ok(Some(length));
            }
        }
    }
    Ok(None)
}

fn first_length(dir: &Path) -> Result<Option<u64>, StoreError> {
    let Some(first) = list(dir)?.into_iter().find(|path| layout::parse_file_name(path).is_some()) else {
        return Ok(None);
    };
    let metadata = rt::fs::metadata(&first);
    let length = metadata.map_err(|source| StoreError::Io { action: "measure", path: first, source })?.len;
    Ok((length > 0).then_some(length))
}

/// What a directory holds; nothing if there is none.
fn list(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match rt::fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        listed => listed.map_err(|source| StoreError::Io { action: "list", path: dir.to_owned(), source }),
    }
}
