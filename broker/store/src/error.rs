//! One error enum per operation family.
use crate::poison::PoisonCause;
use protocol::{PhysicalOffset, QueueOffset, RecordError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A configuration no store can work with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `mappedFileSizeCommitLog` out of range.
    #[error("mappedFileSizeCommitLog {size} is out of range")]
    SegmentSize {
        /// The value.
        size: u64,
    },
    /// `maxHashSlotNum` and `maxIndexNum` make no file, or one above 2 GiB.
    #[error("maxHashSlotNum {hash_slots} and maxIndexNum {entries} make no index file")]
    IndexSize {
        /// `maxHashSlotNum`.
        hash_slots: u32,
        /// `maxIndexNum`.
        entries: u32,
    },
    /// `mappedFileSizeConsumeQueue` out of range.
    #[error("mappedFileSizeConsumeQueue {size} is out of range")]
    ConsumeQueueFileSize {
        /// The value.
        size: u64,
    },
    /// `mapperFileSizeBatchConsumeQueue` out of range.
    #[error("mapperFileSizeBatchConsumeQueue {size} is out of range")]
    BatchQueueFileSize {
        /// The value.
        size: u64,
    },
    /// `mappedFileSizeConsumeQueueExt` out of range.
    #[error("mappedFileSizeConsumeQueueExt {size} is out of range")]
    ExtensionFileSize {
        /// The value.
        size: u64,
    },
    /// `maxMessageSize` out of range.
    #[error("maxMessageSize {size} is out of range")]
    MessageSize {
        /// The value.
        size: u32,
    },
    /// `deleteWhen` names an hour that no day has.
    #[error("deleteWhen {hour} is not an hour of the day, 0 to 23")]
    DeleteHour {
        /// The hour.
        hour: u8,
    },
    /// A level of disk use out of its range.
    #[error("{name} {percent} is not {min} to {max} percent")]
    DiskLevel {
        /// The level's key.
        name: &'static str,
        /// The value.
        percent: u32,
        /// The smallest value.
        min: u32,
        /// The largest value.
        max: u32,
    },
    /// `timerPrecisionMs` is none of the lengths that a slot may have.
    #[error("timerPrecisionMs {precision_ms} is not 100, 200, 500 or 1000")]
    TimerPrecision {
        /// The value.
        precision_ms: u32,
    },
    /// `timerRollWindowSlot` is not inside the wheel.
    #[error("timerRollWindowSlot {slots} is not 2 to 604740")]
    TimerRollWindow {
        /// The value.
        slots: u32,
    },
    /// `mappedFileSizeTimerLog` out of range.
    #[error("mappedFileSizeTimerLog {bytes} is out of range")]
    TimerLogSize {
        /// The value.
        bytes: u64,
    },
    /// An interval of zero would spin.
    #[error("{name} is zero")]
    ZeroInterval {
        /// The interval's key.
        name: &'static str,
    },
}

/// A store that cannot be opened, recovered or shut down.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another process has this store open.
    #[error("{path} is locked: another process uses this store")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A name in a segment directory that is no 20-digit offset, or not a multiple of the file size.
    #[error("{path} is not the name of a store file of {file_size} bytes")]
    ForeignFile {
        /// The file.
        path: PathBuf,
        /// The configured file size.
        file_size: u64,
    },
    /// Two neighbouring segments do not touch: a file is missing.
    #[error("the file before {path} is missing")]
    MissingFile {
        /// The later file.
        path: PathBuf,
    },
    /// A file longer than configured: the configuration does not fit this store.
    #[error("{path} has {length} bytes instead of {expected}")]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
        /// The configured length.
        expected: u64,
    },
    /// A damaged record inside the synced part of the log, under [`DamagePolicy::Refuse`](crate::DamagePolicy::Refuse).
    #[error("{path} is damaged at log offset {offset}, and the log was synced up to {synced_end}: {source}")]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where the damaged record starts.
        offset: PhysicalOffset,
        /// End of the part that was known to be on disk.
        synced_end: PhysicalOffset,
        /// What is wrong with it.
        source: RecordError,
    },
    /// The log ends before what was synced, and there is no damaged record to show: files are missing or were cut.
    #[error("the commit log in {path} ends at {end}, but it was synced up to {synced_end}")]
    LogLost {
        /// The commit log's directory.
        path: PathBuf,
        /// Where the log ends.
        end: PhysicalOffset,
        /// Where it ended when it was synced.
        synced_end: PhysicalOffset,
    },
    /// A sync failed earlier, or during this operation.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// Why a message was not appended: no byte of it is in the log, now or after a crash.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The body is longer than `maxMessageSize`.
    #[error("message body has {size} bytes, maxMessageSize is {limit}")]
    BodyTooLong {
        /// Bytes of the body.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The properties are longer than a signed 16-bit length can say.
    #[error("message properties have {size} bytes, the limit is {limit}")]
    PropertiesTooLong {
        /// Bytes of the properties.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// With the offsets in its light queues the record is longer than a body may be.
    #[error("record with offsets of light queues has {size} bytes, the limit is {limit}")]
    LightRecordTooLong {
        /// Bytes of the record.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Properties that begin or end with a zero byte, or have 512 in a row: on disk they could not be told from torn ones.
    #[error("message properties have zero bytes where a torn write would leave them")]
    PropertiesZero,
    /// The topic is longer than allowed.
    #[error("topic has {size} bytes, the limit is {limit}")]
    TopicTooLong {
        /// Bytes of the topic.
        size: usize,
        /// The limit: 127, or 255 for a retry topic.
        limit: usize,
    },
    /// The topic is empty, or has a character that cannot be part of a file name.
    #[error("topic {topic:?} cannot be the name of a directory")]
    TopicName {
        /// The topic.
        topic: String,
    },
    /// A negative queue id.
    #[error("queue id {queue_id} is negative")]
    QueueId {
        /// The id.
        queue_id: i32,
    },
    /// A batch without messages, with messages of several queues, or with transaction states.
    #[error("batch is empty or not of one queue")]
    BadBatch,
    /// The record does not fit a segment.
    #[error("record of {size} bytes does not fit a segment of {segment_size}")]
    TooLongForSegment {
        /// Bytes of the record or batch.
        size: usize,
        /// `mappedFileSizeCommitLog`.
        segment_size: u64,
    },
    /// The record codec refused a field.
    #[error("message cannot be encoded")]
    Encode(#[from] RecordError),
    /// The disk is full. Nothing was stored, and the store goes on when there is room.
    #[error("no space left for the commit log at offset {at}")]
    NoSpace {
        /// Where the record would have started.
        at: PhysicalOffset,
        /// The system's answer.
        source: io::Error,
    },
    /// The next segment could not be created.
    #[error("cannot create commit-log segment {path}")]
    CreateSegment {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The disk is so full that no message is taken until there is room again.
    #[error("the disk is full: {used_percent} percent are used")]
    DiskFull {
        /// How full it was found, in percent.
        used_percent: u32,
    },
    /// Bytes received from a master are not dispatched yet, so queue offsets are not known.
    #[error("replicated bytes up to {end} are not dispatched yet")]
    NotCaughtUp {
        /// End of the replicated bytes.
        end: PhysicalOffset,
    },
    /// The store was shut down.
    #[error("the store is shut down")]
    Closed,
    /// A sync or a write failed: see [`Store::poisoned`](crate::Store::poisoned).
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// Why an append is not known to be on disk.
#[derive(Debug, thiserror::Error)]
pub enum FlushError {
    /// Not flushed in time (`FLUSH_DISK_TIMEOUT`): the message is in the log and may still become durable.
    #[error("log offset {end} is not flushed after {after:?}")]
    Timeout {
        /// What was waited for.
        end: PhysicalOffset,
        /// How long.
        after: Duration,
    },
    /// The bytes were cut off by [`Store::truncate_to`](crate::Store::truncate_to) while the caller waited, or never existed.
    #[error("log offset {end} is beyond the log's end {log_end}")]
    BeyondEnd {
        /// What was waited for.
        end: PhysicalOffset,
        /// The log's end.
        log_end: PhysicalOffset,
    },
    /// A sync failed: the bytes may be lost, and no answer may be given.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// Why bytes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A system call failed.
    #[error("cannot read {path} at {position}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Position in the file.
        position: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// The record at that offset is damaged.
    #[error("commit log is damaged at offset {offset}")]
    Damaged {
        /// Where the record starts.
        offset: PhysicalOffset,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A record lies at its place, but is not the one that the queue entry names.
    #[error("entry {queue_offset} of queue {queue_id} of {topic} names another record at {offset}")]
    WrongRecord {
        /// Topic of the queue.
        topic: String,
        /// Id of the queue.
        queue_id: i32,
        /// The entry.
        queue_offset: QueueOffset,
        /// Where its record should be.
        offset: PhysicalOffset,
    },
    /// A range outside the log.
    #[error("log range {from}..{to} is not inside {min}..{end}")]
    OutOfRange {
        /// Start of the range.
        from: PhysicalOffset,
        /// End of the range.
        to: PhysicalOffset,
        /// Start of the log.
        min: PhysicalOffset,
        /// End of the readable log.
        end: PhysicalOffset,
    },
}

/// Why nothing was removed, or not all that should be. Nothing else than what was asked for is gone.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// A system call failed.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// What the decision needs could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The topic cannot have queues.
    #[error("topic {topic:?} cannot be the name of a directory")]
    TopicName {
        /// The topic.
        topic: String,
    },
    /// A sync or a write failed.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// Why replicated bytes were not appended, or the log was not truncated.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The bytes do not start at the log's end.
    #[error("bytes for log offset {at} do not continue the log, which ends at {end}")]
    NotContiguous {
        /// Where the bytes belong.
        at: PhysicalOffset,
        /// The log's end.
        end: PhysicalOffset,
    },
    /// The first bytes of an empty log must start a segment.
    #[error("an empty log cannot start at {at}, which is not a multiple of the segment size {segment_size}")]
    UnalignedStart {
        /// Where the bytes belong.
        at: PhysicalOffset,
        /// `mappedFileSizeCommitLog`.
        segment_size: u64,
    },
    /// Truncation to a place outside the log.
    #[error("cannot truncate to {to}: the log is {min}..{end}")]
    TruncateRange {
        /// The wanted end.
        to: PhysicalOffset,
        /// Start of the log.
        min: PhysicalOffset,
        /// Its end.
        end: PhysicalOffset,
    },
    /// What the master has sent is no record from there on; it is cut off.
    #[error("the master has sent what is no record at log offset {at}")]
    SentDamage {
        /// Start of what is no record.
        at: PhysicalOffset,
    },
    /// The disk is full; [`Store::log_end`](crate::Store::log_end) says what is in the log.
    #[error("no space left for the commit log at offset {at}")]
    NoSpace {
        /// Where the bytes belong.
        at: PhysicalOffset,
        /// The system's answer.
        source: io::Error,
    },
    /// The next segment could not be created.
    #[error("cannot create commit-log segment {path}")]
    CreateSegment {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The store was shut down.
    #[error("the store is shut down")]
    Closed,
    /// A sync or a write failed.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// What stops the timer.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// Wheel and log do not agree with each other, or with the log of messages: [`Timer::rebuild`](crate::Timer::rebuild) helps.
    #[error("the timer's files are in doubt: {what}")]
    Doubtful {
        /// What does not agree.
        what: &'static str,
    },
    /// The disk failed.
    #[error("cannot read or write {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The disk is full; a later try may succeed.
    #[error("no space left for {path}")]
    NoSpace {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A message could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log of messages is not on the disk in time.
    #[error(transparent)]
    Flush(FlushError),
    /// A sync or a write failed.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}
