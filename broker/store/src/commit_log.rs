//! The list of segments and the append lock: the one place where bytes enter the log.
use crate::error::{AppendError, ReadError, ReplicaError};
use crate::flush::FlushMark;
use crate::layout::{self, Entry};
use crate::poison::{Poison, PoisonCause};
use crate::segment::{Segment, segment_path};
use bytes::Bytes;
use protocol::message::record::blank_header;
use protocol::{PhysicalOffset, QueueOffset};
use rt::sync::watch;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Segments in log order, contiguous. Readers take a snapshot and keep files open for as long as they need them.
pub(crate) type Segments = Arc<Vec<Arc<Segment>>>;

#[derive(Debug)]
pub(crate) struct CommitLog {
    pub(crate) dir: PathBuf,
    segment_size: u64,
    segments: Mutex<Segments>,
    /// End of the written bytes, a copy of the appender's for readers.
    end: AtomicI64,
    /// End of the bytes that survive a power loss.
    flushed: watch::Sender<PhysicalOffset>,
    appender: Mutex<Appender>,
    /// Whether bytes came from a master, known without the append lock.
    is_replica: AtomicBool,
    poison: Arc<Poison>,
}

/// What the append lock guards.
#[derive(Debug)]
pub(crate) struct Appender {
    end: PhysicalOffset,
    store_timestamp: i64,
    next: NextOffsets,
    /// End of the bytes that came from a master and are not known to be dispatched.
    replica_end: Option<PhysicalOffset>,
    /// So many bytes behind `end` may hold rests of a failed write; they are cleared before the next.
    dirty: usize,
    closed: bool,
}

/// The next queue offset of each queue. Looked up only, never iterated, so the order of the map cannot be seen.
#[derive(Debug, Default)]
pub(crate) struct NextOffsets(HashMap<Box<str>, BTreeMap<i32, i64>>);

impl NextOffsets {
    pub(crate) fn get(&self, topic: &str, queue_id: i32) -> i64 {
        self.0.get(topic).and_then(|queues| queues.get(&queue_id)).copied().unwrap_or(0)
    }

    /// The queues of the topic begin anew.
    pub(crate) fn remove_topic(&mut self, topic: &str) {
        self.0.remove(topic);
    }

    /// The queue begins anew.
    pub(crate) fn remove(&mut self, topic: &str, queue_id: i32) {
        if let Some(queues) = self.0.get_mut(topic) {
            queues.remove(&queue_id);
        }
    }

    /// Offsets of a queue never go back, except by truncation, which builds the table anew.
    pub(crate) fn raise(&mut self, topic: &str, queue_id: i32, next: i64) {
        let queues = match self.0.get_mut(topic) {
            Some(queues) => queues,
            None => self.0.entry(topic.into()).or_default(),
        };
        let offset = queues.entry(queue_id).or_insert(0);
        *offset = next.max(*offset);
    }
}

/// Why bytes did not enter the log.
pub(crate) enum WriteError {
    NoSpace { at: PhysicalOffset, source: io::Error },
    CreateSegment { path: PathBuf, source: io::Error },
    Poisoned(PoisonCause),
}

impl From<WriteError> for AppendError {
    fn from(error: WriteError) -> AppendError {
        match error {
            WriteError::NoSpace { at, source } => AppendError::NoSpace { at, source },
            WriteError::CreateSegment { path, source } => AppendError::CreateSegment { path, source },
            WriteError::Poisoned(cause) => AppendError::Poisoned(cause),
        }
    }
}

impl From<WriteError> for ReplicaError {
    fn from(error: WriteError) -> ReplicaError {
        match error {
            WriteError::NoSpace { at, source } => ReplicaError::NoSpace { at, source },
            WriteError::CreateSegment { path, source } => ReplicaError::CreateSegment { path, source },
            WriteError::Poisoned(cause) => ReplicaError::Poisoned(cause),
        }
    }
}

impl CommitLog {
    /// A log of recovered segments: all of it, up to `mark`, is on disk.
    pub(crate) fn new(
        dir: PathBuf,
        segment_size: u64,
        segments: Vec<Arc<Segment>>,
        mark: FlushMark,
        next: NextOffsets,
        poison: Arc<Poison>,
    ) -> CommitLog {
        let FlushMark { end, store_timestamp } = mark;
        let appender = Appender { end, store_timestamp, next, replica_end: None, dirty: 0, closed: false };
        CommitLog {
            dir,
            segment_size,
            segments: Mutex::new(Arc::new(segments)),
            end: AtomicI64::new(end.0),
            flushed: watch::Sender::new(end),
            appender: Mutex::new(appender),
            is_replica: AtomicBool::new(false),
            poison,
        }
    }

    /// Whether bytes came from a master since the start.
    pub(crate) fn is_replica(&self) -> bool {
        self.is_replica.load(Ordering::Acquire)
    }

    pub(crate) fn segment_size(&self) -> u64 {
        self.segment_size
    }

    pub(crate) fn poison(&self) -> &Poison {
        &self.poison
    }

    pub(crate) fn segments(&self) -> Segments {
        Arc::clone(&self.segments.lock().expect("no code that can panic runs under this lock"))
    }

    /// Start of the first segment.
    pub(crate) fn min(&self) -> PhysicalOffset {
        self.segments().first().map_or(self.end(), |segment| segment.start())
    }

    pub(crate) fn end(&self) -> PhysicalOffset {
        PhysicalOffset(self.end.load(Ordering::Acquire))
    }

    pub(crate) fn flushed(&self) -> PhysicalOffset {
        *self.flushed.borrow()
    }

    pub(crate) fn watch_flushed(&self) -> watch::Receiver<PhysicalOffset> {
        self.flushed.subscribe()
    }

    /// Called by the flusher alone, and by truncation, which holds the flusher off.
    pub(crate) fn set_flushed(&self, to: PhysicalOffset) {
        assert!(to <= self.end(), "flushed {to} beyond the end {}", self.end());
        self.flushed.send_replace(to);
    }

    /// The segment that holds the byte at `at`.
    pub(crate) fn segment_at(&self, at: PhysicalOffset) -> Option<Arc<Segment>> {
        find(&self.segments(), at)
    }

    /// Bytes `at .. at + length`, inside one segment and below the log's end; `None` if they are not.
    pub(crate) async fn read(&self, at: PhysicalOffset, length: usize) -> Result<Option<Bytes>, ReadError> {
        let end = i64::try_from(length).ok().map(|length| at + length);
        match end.and_then(|end| self.segment_of(at, end)) {
            Some(segment) => segment.read(at, length).await.map(Some),
            None => Ok(None),
        }
    }

    /// The segment that holds the whole record of an entry, below the log's end; `None` if the log does not reach there (any more).
    pub(crate) fn segment_of_record(&self, entry: &Entry) -> Option<Arc<Segment>> {
        self.segment_of(entry.physical, entry.end()).filter(|_| entry.size >= 0)
    }

    fn segment_of(&self, at: PhysicalOffset, end: PhysicalOffset) -> Option<Arc<Segment>> {
        self.segment_at(at).filter(|segment| end <= segment.end().min(self.end()))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Appender> {
        self.appender.lock().expect("a panic under the append lock is a bug and ends the node")
    }

    /// Finds room for `length` bytes in one piece: fills the last segment with a blank record and starts the next if they do not
    /// fit. Returns the segment of the appender's end.
    pub(crate) fn make_room(&self, appender: &mut Appender, length: usize) -> Result<Arc<Segment>, WriteError> {
        assert!(length as u64 + layout::BLANK_HEADER as u64 <= self.segment_size, "checked by the caller");
        self.clear_dirty(appender)?;
        if let Some(segment) = find(&self.segments(), appender.end) {
            let room = usize::try_from(segment.end() - appender.end).expect("the end lies in this segment");
            if length + layout::BLANK_HEADER <= room {
                return Ok(segment);
            }
            self.write(appender, &segment, &blank_header(room), room)?;
            rt::probe!("store.segment.rolled");
        }
        self.next_segment(appender)
    }

    /// Writes `bytes` at the appender's end and moves the end by `advance` bytes (more than were written for a blank record).
    pub(crate) fn write(
        &self,
        appender: &mut Appender,
        segment: &Segment,
        bytes: &[u8],
        advance: usize,
    ) -> Result<(), WriteError> {
        let at = appender.end;
        if let Err(source) = segment.write(at, bytes) {
            return Err(self.write_failed(appender, segment, bytes.len(), source));
        }
        appender.end = at + i64::try_from(advance).expect("no longer than a segment");
        self.end.store(appender.end.0, Ordering::Release);
        Ok(())
    }

    /// Writes a master's bytes at the appender's end, over as many segments as they take.
    pub(crate) fn write_replica(&self, appender: &mut Appender, mut bytes: &[u8]) -> Result<(), WriteError> {
        self.is_replica.store(true, Ordering::Release);
        self.clear_dirty(appender)?;
        while !bytes.is_empty() {
            let segment = self.next_segment(appender)?;
            let room = usize::try_from(segment.end() - appender.end).expect("the end lies in this segment");
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.write(appender, &segment, now, now.len())?;
            appender.replica_end = Some(appender.end);
            bytes = later;
        }
        Ok(())
    }

    /// An empty log begins where its master's last segment begins.
    pub(crate) fn begin_at(&self, appender: &mut Appender, at: PhysicalOffset) {
        assert!(self.segments().is_empty(), "only an empty log has no beginning");
        appender.end = at;
        self.end.store(at.0, Ordering::Release);
        self.flushed.send_replace(at);
    }

    /// The segment that starts at the appender's end, or that holds it; created if it is missing.
    pub(crate) fn next_segment(&self, appender: &Appender) -> Result<Arc<Segment>, WriteError> {
        let mut segments = self.segments.lock().expect("no code that can panic runs under this lock");
        if let Some(segment) = find(&segments, appender.end) {
            return Ok(segment);
        }
        let start = appender.end;
        let segment = Segment::create(&self.dir, start, self.segment_size).map_err(|source| {
            let path = segment_path(&self.dir, start);
            WriteError::CreateSegment { path, source }
        })?;
        let segment = Arc::new(segment);
        let mut list = Vec::clone(&segments);
        list.push(Arc::clone(&segment));
        *segments = Arc::new(list);
        Ok(segment)
    }

    /// Whether the segment is the oldest of several: the last one is never removed.
    pub(crate) fn is_removable(&self, oldest: &Arc<Segment>) -> bool {
        matches!(&self.segments()[..], [first, _, ..] if Arc::ptr_eq(first, oldest))
    }

    /// Retention only: the log begins with the next segment. Readers that hold this one read on.
    pub(crate) fn forget_oldest(&self, oldest: &Arc<Segment>) {
        let mut segments = self.segments.lock().expect("no code that can panic runs under this lock");
        assert!(segments.len() > 1, "the last segment stays");
        assert!(Arc::ptr_eq(&segments[0], oldest), "the oldest goes first");
        *segments = Arc::new(segments[1..].to_vec());
    }

    /// Truncation only: the list ends with the segment that holds `to`, and the log at `to`.
    pub(crate) fn cut(&self, appender: &mut Appender, keep: Vec<Arc<Segment>>, to: PhysicalOffset) {
        *self.segments.lock().expect("no code that can panic runs under this lock") = Arc::new(keep);
        appender.end = to;
        appender.dirty = 0;
        appender.replica_end = Some(to);
        self.is_replica.store(true, Ordering::Release);
        self.end.store(to.0, Ordering::Release);
        if self.flushed() > to {
            self.flushed.send_replace(to);
        }
    }

    /// A full disk may have taken a part of the bytes. Nothing of them may ever be read as a record: their head is cleared now if
    /// the disk allows it, and all of them before the next write. Any other error leaves the file in an unknown state.
    fn write_failed(&self, appender: &mut Appender, segment: &Segment, length: usize, source: io::Error) -> WriteError {
        if !is_full(&source) {
            return WriteError::Poisoned(self.poison.set("write", segment.path(), source));
        }
        rt::probe!("store.append.no_space");
        appender.dirty = appender.dirty.max(length);
        // May fail as the write did: `dirty` stays, so it is done before anything else is written.
        let _ = segment.write(appender.end, &[0; layout::BLANK_HEADER][..length.min(layout::BLANK_HEADER)]);
        WriteError::NoSpace { at: appender.end, source }
    }

    fn clear_dirty(&self, appender: &mut Appender) -> Result<(), WriteError> {
        if appender.dirty == 0 {
            return Ok(());
        }
        if let Some(segment) = find(&self.segments(), appender.end) {
            let zeros = vec![0; appender.dirty];
            if let Err(source) = segment.write(appender.end, &zeros) {
                return Err(self.write_failed(appender, &segment, zeros.len(), source));
            }
        }
        appender.dirty = 0;
        Ok(())
    }

    pub(crate) fn check_invariants(&self) {
        let appender = self.lock();
        let segments = self.segments();
        for pair in segments.windows(2) {
            assert_eq!(pair[0].end(), pair[1].start(), "segments are contiguous");
        }
        if let (Some(first), Some(last)) = (segments.first(), segments.last()) {
            assert!(first.start() <= appender.end, "the end lies behind the start");
            assert!(appender.end <= last.end(), "the end lies in the last segment");
        }
        assert_eq!(appender.end, self.end(), "readers see the appender's end");
        assert!(self.flushed() <= appender.end, "only written bytes are flushed");
    }
}

impl Appender {
    pub(crate) fn end(&self) -> PhysicalOffset {
        self.end
    }

    /// Whether a message may be appended, given how far the log is dispatched.
    pub(crate) fn admit(&self, poison: &Poison, dispatched: PhysicalOffset) -> Result<(), AppendError> {
        poison.check().map_err(AppendError::Poisoned)?;
        if self.closed {
            return Err(AppendError::Closed);
        }
        match self.replica_end {
            Some(end) if dispatched < end => Err(AppendError::NotCaughtUp { end }),
            _ => Ok(()),
        }
    }

    /// The store time of the next record: the clock, but never back in log order.
    pub(crate) fn stamp(&mut self) -> i64 {
        self.store_timestamp = rt::time::unix_ms().max(self.store_timestamp);
        self.store_timestamp
    }

    /// No later record gets a store time below this one.
    pub(crate) fn raise_stamp(&mut self, store_timestamp: i64) {
        self.store_timestamp = self.store_timestamp.max(store_timestamp);
    }

    pub(crate) fn next_offset(&self, topic: &str, queue_id: i32) -> QueueOffset {
        QueueOffset(self.next.get(topic, queue_id))
    }

    pub(crate) fn raise_next(&mut self, topic: &str, queue_id: i32, next: QueueOffset) {
        self.next.raise(topic, queue_id, next.0);
    }

    /// The topic is removed: its queues begin anew.
    pub(crate) fn remove_topic(&mut self, topic: &str) {
        self.next.remove_topic(topic);
    }

    /// The master has begun the queue anew.
    pub(crate) fn remove_queue(&mut self, topic: &str, queue_id: i32) {
        self.next.remove(topic, queue_id);
    }

    /// Truncation only.
    pub(crate) fn replace_next(&mut self, next: NextOffsets) {
        self.next = next;
    }

    /// Whether the byte at `at` was sent by a master since the start.
    pub(crate) fn came_from_master(&self, at: PhysicalOffset) -> bool {
        self.replica_end.is_some_and(|end| at < end)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }
}

fn find(segments: &[Arc<Segment>], at: PhysicalOffset) -> Option<Arc<Segment>> {
    let index = segments.partition_point(|segment| segment.start() <= at).checked_sub(1)?;
    segments.get(index).filter(|segment| segment.contains(at)).cloned()
}

/// Errors after which the file is as before or holds a part of the bytes, and that may go away.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes the names in `dir` survive a power loss.
pub(crate) async fn sync_names(dir: &Path, segments: &[Arc<Segment>]) -> io::Result<()> {
    rt::fs::sync_dir(dir).await?;
    segments.iter().for_each(|segment| segment.set_named());
    Ok(())
}

/// How many segments a log that ends at `to` keeps. A segment without a byte stays only if it alone says where the log ends: an empty
/// slave is sent its master's last segment, and a first segment without a byte must not be in the way.
pub(crate) fn kept(segments: &[Arc<Segment>], to: PhysicalOffset) -> usize {
    let least = usize::from(to > PhysicalOffset::ZERO);
    segments.partition_point(|segment| segment.start() < to).max(least).min(segments.len())
}

/// Removes `gone`, newest first, and clears the last of `keep` from `to` on; all of it survives a power loss on return. A crash in
/// between leaves a log whose good records end at or behind `to`, and never one with a hole.
pub(crate) async fn cut(
    dir: &Path,
    keep: &[Arc<Segment>],
    gone: &[Arc<Segment>],
    to: PhysicalOffset,
) -> Result<(), (&'static str, PathBuf, io::Error)> {
    for segment in gone.iter().rev() {
        rt::fs::remove_file(segment.path()).map_err(|source| ("remove", segment.path().to_owned(), source))?;
    }
    sync_names(dir, keep).await.map_err(|source| ("sync the directory", dir.to_owned(), source))?;
    if let Some(last) = keep.last() {
        let failed = |action| move |source| (action, last.path().to_owned(), source);
        last.clear_from(to).map_err(failed("cut"))?;
        last.sync().await.map_err(failed("sync"))?;
    }
    Ok(())
}
