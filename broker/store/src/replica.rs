//! The log as raw bytes: what a master sends, what a slave writes, and how a slave goes back.
use crate::commit_log::{NextOffsets, cut, kept};
use crate::config::FlushMode;
use crate::dispatch::DispatchError;
use crate::error::{ReadError, ReplicaError};
use crate::flush::FlushMark;
use crate::poison::PoisonCause;
use crate::segment::Segment;
use crate::store::Store;
use bytes::Bytes;
use protocol::PhysicalOffset;
use std::path::PathBuf;
use std::sync::Arc;

/// Ends inside of most records, in simulation.
const SHORT_READ: u32 = 100;
/// Bytes that a digest reads at once.
const DIGEST_CHUNK: u64 = 256 << 10;

/// Fingerprint of a log range: equal bytes give equal digests on every node; different bytes give different ones but for one case
/// in 2^64, as far as chance and not malice made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogDigest(pub u64);

impl Store {
    /// Log bytes from `from`: at most `max_bytes`, never past the end of the segment or the [confirm end](Store::confirm_end),
    /// empty there. Frames may cut records anywhere; the filler of a blank record is part of the log.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] if `from` is before the log or beyond its readable end.
    pub async fn read_log(&self, from: PhysicalOffset, max_bytes: u32) -> Result<Bytes, ReadError> {
        let end = self.confirm_end();
        self.check_range(from, from.max(end), end)?;
        let Some(segment) = self.log.segment_at(from).filter(|_| from < end) else { return Ok(Bytes::new()) };
        let max_bytes = if rt::buggify!("store.read_log_short") { max_bytes.min(SHORT_READ) } else { max_bytes };
        let length = (segment.end().min(end) - from).min(i64::from(max_bytes));
        segment.read(from, usize::try_from(length).expect("not negative, below 2^32")).await
    }

    /// Appends bytes of the master's log at their own offset. They are in the page cache when the call returns.
    ///
    /// # Errors
    /// Bytes that do not start at the log's end are refused, whether they overlap or leave a gap. After a full disk
    /// [`Store::log_end`] says how many of them are in the log.
    pub fn append_replica(&self, at: PhysicalOffset, bytes: &[u8]) -> Result<(), ReplicaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (written, end) = {
            let mut appender = self.log.lock();
            self.poison.check().map_err(ReplicaError::Poisoned)?;
            if appender.is_closed() {
                return Err(ReplicaError::Closed);
            }
            if at != appender.end() {
                self.begin_empty(&mut appender, at)?;
            }
            (self.log.write_replica(&mut appender, bytes), appender.end())
        };
        // Bytes that filled a segment stay even if the next could not be created.
        self.appended(end);
        Ok(written?)
    }

    /// An empty log may begin at any segment: an empty slave begins with the last one of its master.
    fn begin_empty(&self, appender: &mut crate::commit_log::Appender, at: PhysicalOffset) -> Result<(), ReplicaError> {
        let end = appender.end();
        if !self.log.segments().is_empty() || at < end {
            return Err(ReplicaError::NotContiguous { at, end });
        }
        let segment_size = self.log.segment_size();
        if !u64::try_from(at.0).is_ok_and(|at| at.is_multiple_of(segment_size)) {
            return Err(ReplicaError::UnalignedStart { at, segment_size });
        }
        // Nothing was dispatched, flushed or read: the positions move together. The dispatcher follows the log's start.
        self.log.begin_at(appender, at);
        self.set_dispatched(FlushMark { end: at, store_timestamp: 0 });
        self.readable.send_replace(at);
        Ok(())
    }

    /// Makes a log that got a master's bytes fit for own appends: everything is synced and dispatched, and the head of a record whose
    /// rest did not come is cut off. Nobody may append meanwhile.
    ///
    /// # Errors
    /// [`ReplicaError::SentDamage`] if not all of them are records: those before are kept. After any failure of the disk but a full one the store is poisoned.
    pub async fn settle_replica(&self) -> Result<(), ReplicaError> {
        self.flush_log().await?;
        let damage = match self.dispatch_all().await {
            Ok(()) => None,
            Err(DispatchError::SentDamage { at }) => Some(at),
            Err(DispatchError::NoSpace(source)) => {
                return Err(ReplicaError::NoSpace { at: self.dispatched_end(), source });
            }
            Err(DispatchError::Poisoned(cause)) => return Err(ReplicaError::Poisoned(cause)),
        };
        self.log.lock().raise_stamp(self.dispatched_mark().store_timestamp);
        self.truncate_to(self.dispatched_end()).await?;
        damage.map_or(Ok(()), |at| Err(ReplicaError::SentDamage { at }))
    }

    /// Cuts the log at `to`, for good: when the call returns, no crash brings the bytes behind it back, and they are zero on
    /// disk. Queue entries of records that are not whole any more are gone too. A log cut at 0 keeps no segment, so that it may begin
    /// anywhere again.
    ///
    /// # Errors
    /// [`ReplicaError::TruncateRange`] if `to` is outside the log. After any failure of the disk the store is poisoned.
    pub async fn truncate_to(&self, to: PhysicalOffset) -> Result<(), ReplicaError> {
        // In this order everywhere: dispatcher, queues and checkpoint, log.
        let mut dispatcher = self.dispatcher.lock().await;
        let mut queue_turn = self.queue_flusher.hold().await;
        let mut log_turn = self.log_flusher.hold().await;
        self.poison.check().map_err(ReplicaError::Poisoned)?;
        let (min, end) = (self.log_min(), self.log_end());
        if to < min || to > end {
            return Err(ReplicaError::TruncateRange { to, min, end });
        }
        let holds_nothing = to == PhysicalOffset::ZERO && !self.log.segments().is_empty();
        if to == end && !holds_nothing {
            return Ok(());
        }
        rt::probe!("store.truncated");
        self.lower_tombstones(to).await?;
        let claims_path = queue_turn.path().to_owned();
        // First nothing claims more; then nothing shows more; then the bytes go.
        queue_turn.lower(to).await.map_err(|source| self.poison.set("write", &claims_path, source))?;
        self.readable.send_if_modified(|readable| std::mem::replace(readable, to.min(*readable)) > to);
        for queue in self.queues.all() {
            let kept = queue.keep_below(to, min).await;
            kept.map_err(|source| self.poison.set("cut a queue in", self.queues.root(), source))?;
        }
        let kept = self.index.keep_below(to).await;
        kept.map_err(|(path, source)| self.poison.set("cut the index", &path, source))?;
        let keep = self.cut_segments(to).await?;
        let boundary = self.boundary_below(to);
        let mark = FlushMark { end: boundary, store_timestamp: self.dispatched_mark().store_timestamp };
        {
            let mut appender = self.log.lock();
            self.log.cut(&mut appender, keep, to);
            let mut next = NextOffsets::default();
            for queue in self.queues.all() {
                next.raise(&queue.topic, queue.queue_id, queue.bounds().1.0);
            }
            appender.replace_next(next);
        }
        log_turn.end = log_turn.end.min(boundary);
        *dispatcher = crate::dispatch::Dispatcher::at(mark);
        self.sent_damage.send_if_modified(|damage| damage.take_if(|at| to <= *at).is_some());
        self.set_dispatched(mark);
        if self.config.flush_mode == FlushMode::Sync {
            self.readable.send_replace(self.flushed_end());
        } else {
            self.readable.send_replace(to);
        }
        Ok(())
    }

    /// What is written behind `to` from now on is not of a topic that was removed.
    async fn lower_tombstones(&self, to: PhysicalOffset) -> Result<(), PoisonCause> {
        let failed = |(path, source): (PathBuf, std::io::Error)| self.poison.set("write", &path, source);
        self.queues.tombstones().lower(to).await.map_err(failed)
    }

    /// Removes the segments behind `to` and clears the rest of the one that holds it, durably. The last segment stays, even if it
    /// is empty: the log goes on there.
    async fn cut_segments(&self, to: PhysicalOffset) -> Result<Vec<Arc<Segment>>, PoisonCause> {
        let segments = self.log.segments();
        let (keep, gone) = segments.split_at(kept(&segments, to));
        let done = cut(&self.log.dir, keep, gone, to).await;
        done.map_err(|(action, path, source)| self.poison.set(action, &path, source))?;
        Ok(keep.to_vec())
    }

    /// The latest record boundary at or below `to` that is known without reading: the end of a record in some queue, or the start
    /// of the segment. Records after it are dispatched again, which changes nothing for those that are in their queue.
    fn boundary_below(&self, to: PhysicalOffset) -> PhysicalOffset {
        let segment = self.log.segment_at(to - 1).map_or(self.log_min(), |segment| segment.start());
        let dispatched = self.dispatched_end();
        if dispatched <= to { dispatched } else { self.queues.last_end().max(segment).min(to) }
    }

    /// Digest of the log bytes `from .. to`, whatever records they are.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] if the range is not inside the log.
    pub async fn log_digest(&self, from: PhysicalOffset, to: PhysicalOffset) -> Result<LogDigest, ReadError> {
        self.check_range(from, to, self.log_end())?;
        let mut digest = Digest::new();
        let mut at = from;
        while at < to {
            let Some(segment) = self.log.segment_at(at) else {
                return Err(ReadError::OutOfRange { from, to, min: self.log_min(), end: self.log_end() });
            };
            let length = u64::try_from(segment.end().min(to) - at).expect("the segment holds `at`").min(DIGEST_CHUNK);
            let bytes = segment.read(at, usize::try_from(length).expect("a chunk")).await?;
            digest.add(&bytes);
            at = at + i64::try_from(length).expect("a chunk");
        }
        Ok(digest.finish())
    }

    fn check_range(&self, from: PhysicalOffset, to: PhysicalOffset, end: PhysicalOffset) -> Result<(), ReadError> {
        let min = self.log_min();
        if min <= from && from <= to && to <= end { Ok(()) } else { Err(ReadError::OutOfRange { from, to, min, end }) }
    }
}

/// CRC-32 above, a folded FNV-1a below: two unlike functions, so that one's blind spots are not the other's.
struct Digest {
    crc: crc32fast::Hasher,
    fnv: u64,
}

impl Digest {
    fn new() -> Digest {
        Digest { crc: crc32fast::Hasher::new(), fnv: 0xcbf2_9ce4_8422_2325 }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.fnv = bytes.iter().fold(self.fnv, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    fn finish(self) -> LogDigest {
        LogDigest(u64::from(self.crc.finalize()) << 32 | (self.fnv ^ self.fnv >> 32) & 0xffff_ffff)
    }
}

impl From<PoisonCause> for ReplicaError {
    fn from(cause: PoisonCause) -> ReplicaError {
        ReplicaError::Poisoned(cause)
    }
}
