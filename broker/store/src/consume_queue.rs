//! The index of one queue: entries, in the order of the log, name the records whose messages are in it. In a simple queue entry *n* is that
//! of queue offset *n*; in a batch queue each entry says its offset.
use crate::error::ReadError;
use crate::extension::{Extension, LastUnit, Units};
use crate::layout::{self, Entry, QueueEntry, QueueKind, Unit};
use crate::open_files::OpenFiles;
use crate::queue_files::{QueueFile, QueueFiles, Readable};
use protocol::{PhysicalOffset, QueueOffset};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Entries read at once when a file is looked through.
const SCAN_ENTRIES: usize = 3276;

/// One queue. Written by the dispatcher (or recovery) alone, read by all.
#[derive(Debug)]
pub(crate) struct ConsumeQueue {
    pub(crate) topic: Arc<str>,
    pub(crate) queue_id: i32,
    kind: QueueKind,
    dir: PathBuf,
    file_bytes: u64,
    /// What the entries have no room for, if that is or was kept.
    extension: Option<Extension>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: QueueFiles,
    /// Offset of the first message whose record is in the log; `max` if there is none.
    min: i64,
    /// Number of its entry; `written` if there is none.
    min_number: i64,
    /// One past the last message that readers see.
    max: i64,
    /// Number of the next entry to be written.
    written: i64,
    /// One past the last message, those of pending entries included.
    next: i64,
    /// End of the record of the last entry, pending ones included.
    last_end: PhysicalOffset,
    /// Entries from `written` on that are not written yet.
    pending: Vec<u8>,
}

/// What files hold that is whole.
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    /// Entries at the start of the last file.
    used: u64,
    /// End of the record of the last one.
    last_end: PhysicalOffset,
    /// One past its last message.
    next: QueueOffset,
    /// Place of the last unit that an entry names.
    last_unit: Option<u64>,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// It is the next entry.
    Added,
    /// It was there before.
    Known,
    /// Entries before it are missing.
    Gap { expected: i64 },
}

/// A readable run of entries in one file.
pub(crate) struct Run {
    kind: QueueKind,
    at: Readable,
    /// Number of the first one.
    first: i64,
    count: usize,
}

impl Run {
    pub(crate) async fn read(&self) -> io::Result<Vec<QueueEntry>> {
        let mut bytes = vec![0; self.count * self.kind.entry_bytes()];
        self.at.file.read_exact_at(&mut bytes, self.at.position).await?;
        let entries = bytes.chunks_exact(self.kind.entry_bytes()).zip(self.first..);
        Ok(entries.map(|(entry, number)| self.kind.decode(entry, number)).collect())
    }

    /// The error of a read of it.
    pub(crate) fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.at.path.clone(), position: self.at.position, source }
    }
}

impl ConsumeQueue {
    /// A queue without entries. Nothing is created on disk before the first entry.
    pub(crate) fn empty(
        (topic, queue_id, kind): (Arc<str>, i32, QueueKind),
        dir: PathBuf,
        file_bytes: u64,
        open_files: Arc<OpenFiles>,
        extension: Option<Extension>,
    ) -> ConsumeQueue {
        assert!(file_bytes.is_multiple_of(kind.entry_bytes() as u64), "a file holds whole entries");
        let files = QueueFiles::new(dir.clone(), file_bytes, open_files);
        let state = State {
            files,
            min: 0,
            min_number: 0,
            max: 0,
            written: 0,
            next: 0,
            last_end: PhysicalOffset::ZERO,
            pending: Vec::new(),
        };
        ConsumeQueue { topic, queue_id, kind, dir, file_bytes, extension, state: Mutex::new(state) }
    }

    /// Opens the files of a directory; [`keep_below`](Self::keep_below) must follow before anything is read.
    /// `Err` with the path if one is too long; a file of another name makes the caller rebuild the queue.
    pub(crate) fn adopt(&self, paths: &[(u64, PathBuf)], is_named: bool) -> io::Result<Result<(), (PathBuf, u64)>> {
        if let Some(extension) = &self.extension
            && let Err(too_long) = extension.load(is_named)?
        {
            return Ok(Err(too_long));
        }
        self.lock().files.adopt(paths, is_named)
    }

    /// The directory of its extension's files.
    pub(crate) fn extension_dir(&self) -> Option<&Path> {
        self.extension.as_ref().map(Extension::dir)
    }

    /// Whether new entries get a unit in its extension.
    pub(crate) fn is_extended(&self) -> bool {
        self.extension.as_ref().is_some_and(|extension| extension.is_written)
    }

    /// A reader of the units that entries name.
    pub(crate) fn units(&self) -> Option<Units<'_>> {
        self.extension.as_ref().map(Extension::units)
    }

    /// The directory of its files.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn bounds(&self) -> (QueueOffset, QueueOffset) {
        let state = self.lock();
        // While a queue that begins above 0 gets its first entry, its minimum is already known and its entries are not readable.
        (QueueOffset(state.min.min(state.max)), QueueOffset(state.max))
    }

    /// End of the record of the last entry.
    pub(crate) fn last_end(&self) -> PhysicalOffset {
        self.lock().last_end
    }

    /// Takes an entry; readers see it after [`write_pending`](Self::write_pending).
    pub(crate) fn push(&self, queued: &QueueEntry, unit: &Unit) -> Push {
        assert!(queued.offset.0 >= 0, "queue offsets are checked where they enter");
        let mut state = self.lock();
        if queued.offset.0 < state.next {
            return Push::Known;
        }
        if queued.offset.0 > state.next {
            return Push::Gap { expected: state.next };
        }
        let address = self.extension.as_ref().filter(|extension| extension.is_written).and_then(|it| it.push(unit));
        let entry = Entry { tags_code: address.unwrap_or(queued.entry.tags_code), ..queued.entry };
        // An entry of a simple queue stands for one message, whatever its record holds.
        let count = if self.kind == QueueKind::Simple { 1 } else { queued.count };
        let queued = QueueEntry { entry, count, ..*queued };
        self.kind.encode(&queued, unit.store_timestamp, &mut state.pending);
        state.next = queued.next().0;
        state.last_end = entry.end();
        Push::Added
    }

    /// Whether a record whose offset the queue has already shows that its entries are those of a former topic of the name: it lies behind
    /// all of them and has the first offset, or there are none.
    pub(crate) fn is_of_former_topic(&self, offset: QueueOffset, entry: &Entry) -> bool {
        let last_end = self.lock().last_end;
        entry.physical >= last_end && (offset.0 == 0 || last_end == PhysicalOffset::ZERO)
    }

    /// Makes a queue without entries begin at `offset`; a simple one with blank entries from the start of that file (Apache's rule, so that
    /// an entry's place always says its offset).
    pub(crate) fn begin_at(&self, offset: QueueOffset) {
        let mut state = self.lock();
        assert!(state.next == 0, "only an empty queue has no beginning");
        state.min = offset.0;
        if self.kind == QueueKind::Batch {
            (state.max, state.next) = (offset.0, offset.0);
            return;
        }
        let position = layout::entry_position(offset);
        let first = self.numbers_in(position - position % self.file_bytes);
        (state.min_number, state.max, state.written, state.next) = (offset.0, first, first, first);
        self.fill(&mut state, Entry::BLANK, offset.0 - first);
    }

    /// Puts holes where entries can never be known again, so that an entry's place still says its offset. Entries of batch queues say theirs.
    pub(crate) fn fill_gap(&self, count: i64) {
        let mut state = self.lock();
        match self.kind {
            QueueKind::Batch => state.next += count,
            QueueKind::Simple => {
                let hole = Entry::hole(state.last_end);
                self.fill(&mut state, hole, count);
            }
        }
    }

    fn fill(&self, state: &mut State, entry: Entry, count: i64) {
        for _ in 0..count {
            let queued = QueueEntry { entry, offset: QueueOffset(state.next), count: 1 };
            self.kind.encode(&queued, 0, &mut state.pending);
            state.next += 1;
        }
    }

    /// Whether more messages than entries of a file can stand for are missing before `offset`.
    pub(crate) fn is_too_wide(&self, expected: i64, offset: QueueOffset) -> bool {
        let messages = match self.kind {
            QueueKind::Simple => 1,
            QueueKind::Batch => layout::BATCH_MESSAGES_MAX,
        };
        (offset.0 - expected) / messages > self.numbers_in(self.file_bytes)
    }

    /// How many entries so many bytes hold.
    fn numbers_in(&self, bytes: u64) -> i64 {
        i64::try_from(bytes / self.kind.entry_bytes() as u64).expect("positions of files are signed 64-bit numbers")
    }

    /// Where an entry lies.
    fn position(&self, number: i64) -> u64 {
        u64::try_from(number).expect("not negative").saturating_mul(self.kind.entry_bytes() as u64)
    }

    /// Writes the pending entries and makes them readable. After an error nothing has become readable, and the call may be
    /// repeated.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        let mut state = self.lock();
        if let Some(extension) = &self.extension {
            extension.write_pending()?;
        }
        let position = self.position(state.written);
        let State { files, pending, .. } = &mut *state;
        files.write(position, pending)?;
        state.written += self.numbers_in(state.pending.len() as u64);
        state.max = state.next;
        state.pending.clear();
        Ok(())
    }

    /// Entries from that of `from` on that lie in one file, at most `count`; `None` if no file has it (any more).
    pub(crate) async fn run(&self, from: QueueOffset, count: usize) -> io::Result<Option<Run>> {
        if from.0 < 0 || from >= self.bounds().1 {
            return Ok(None);
        }
        let number = match self.kind {
            QueueKind::Simple => from.0,
            QueueKind::Batch => self.number_of(from).await?,
        };
        self.run_at(number, count)
    }

    fn run_at(&self, first: i64, count: usize) -> io::Result<Option<Run>> {
        let state = self.lock();
        let Some(readable) = usize::try_from(state.written - first).ok().filter(|left| *left > 0) else {
            return Ok(None);
        };
        let Some(at) = state.files.at(self.position(first))? else { return Ok(None) };
        let in_file = usize::try_from(self.numbers_in(at.length)).expect("not negative");
        Ok(Some(Run { kind: self.kind, at, first, count: count.min(readable).min(in_file) }))
    }

    /// Number of the entry that a message of a batch queue has.
    async fn number_of(&self, offset: QueueOffset) -> io::Result<i64> {
        let (mut low, mut high) = {
            let state = self.lock();
            (self.numbers_in(state.files.start().unwrap_or(0)), state.written)
        };
        while low < high {
            let middle = low + (high - low) / 2;
            // Files of entries that are gone go first.
            let is_before = self.queued_at(middle).await?.is_none_or(|queued| queued.next() <= offset);
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    async fn queued_at(&self, number: i64) -> io::Result<Option<QueueEntry>> {
        match self.run_at(number, 1)? {
            Some(run) => Ok(run.read().await?.first().copied()),
            None => Ok(None),
        }
    }

    /// The first queue offset of the next file after the one that would hold `from`, as far as that can be told.
    pub(crate) fn next_file(&self, from: QueueOffset) -> QueueOffset {
        if self.kind == QueueKind::Batch {
            return from + 1;
        }
        let entries = self.numbers_in(self.file_bytes);
        QueueOffset(from.0.saturating_add(entries) / entries * entries)
    }

    /// One entry.
    async fn entry(&self, offset: QueueOffset) -> io::Result<Option<QueueEntry>> {
        match self.run(offset, 1).await? {
            Some(run) => Ok(run.read().await?.first().copied()),
            None => Ok(None),
        }
    }

    /// One entry, for a reader.
    pub(crate) async fn read_entry(&self, offset: QueueOffset) -> Result<Option<QueueEntry>, ReadError> {
        self.entry(offset).await.map_err(|source| ReadError::Io { path: self.dir.clone(), position: 0, source })
    }

    /// Keeps the entries whose records end at or below `limit`, up to the first that is none; clears or removes the rest. `min`
    /// becomes the first entry whose record is still in the log, which begins at `log_min`.
    pub(crate) async fn keep_below(&self, limit: PhysicalOffset, log_min: PhysicalOffset) -> io::Result<()> {
        let files = {
            let mut state = self.lock();
            state.pending.clear();
            state.files.all().to_vec()
        };
        let first = files.first().map_or(0, |file| file.start);
        let (mut keep, mut prefix) = (first, Prefix::default());
        // Files before the last three are older than any entry that a crash can have left unwritten (Apache's rule too); they
        // matter only if the cut lies in them.
        let mut from = files.len().saturating_sub(3);
        loop {
            for file in &files[from..] {
                prefix = self.valid_prefix(file, limit, prefix).await?;
                keep = file.start + prefix.used * self.kind.entry_bytes() as u64;
                if keep < file.start + self.file_bytes {
                    break;
                }
            }
            if from == 0 || keep > files[from].start {
                break;
            }
            (from, prefix) = (from - 1, Prefix::default());
        }
        {
            let mut state = self.lock();
            state.files.clear_from(keep)?;
            // The name of the first file says which offsets are used, even if no entry is left.
            state.written = self.numbers_in(keep);
            state.max = if self.kind == QueueKind::Simple { state.written } else { prefix.next.0 };
            (state.min, state.min_number, state.next) = (state.max, state.written, state.max);
            state.last_end = prefix.last_end;
        }
        if let Some(extension) = &self.extension {
            let last = match prefix.last_unit {
                Some(place) => LastUnit::At(place),
                None if from == 0 => LastUnit::None,
                None => LastUnit::Unknown,
            };
            extension.keep_through(last).await?;
        }
        if keep != first {
            self.find_min(self.numbers_in(first), log_min).await?;
        }
        Ok(())
    }

    /// What the start of a file holds that is used, in log order behind `before`, and ends at or below `limit`.
    async fn valid_prefix(&self, file: &QueueFile, limit: PhysicalOffset, before: Prefix) -> io::Result<Prefix> {
        let mut prefix = Prefix { used: 0, ..before };
        let handle = file.file.get()?;
        let entry_bytes = self.kind.entry_bytes();
        let mut chunk = vec![0; SCAN_ENTRIES * entry_bytes];
        loop {
            let position = prefix.used * entry_bytes as u64;
            let length = usize::try_from(self.file_bytes - position).map_or(chunk.len(), |rest| rest.min(chunk.len()));
            handle.read_exact_at(&mut chunk[..length], position).await?;
            for bytes in chunk[..length].chunks_exact(entry_bytes) {
                let queued = self.kind.decode(bytes, 0);
                let before = (prefix.last_end, prefix.next);
                let Some(last_end) = self.kind.end_after(&queued, before, limit) else { return Ok(prefix) };
                let last_unit = layout::place_of(queued.entry.tags_code).or(prefix.last_unit);
                prefix = Prefix { used: prefix.used + 1, last_end, next: queued.next(), last_unit };
            }
            if prefix.used * entry_bytes as u64 == self.file_bytes {
                return Ok(prefix);
            }
        }
    }

    /// Moves the minimum to the first entry whose record is still in the log, which begins at `log_min`, and removes the files before it, but
    /// never the last one: it says which offset is next. Each file is removed durably before the next, so that no crash leaves a hole.
    /// Returns how many.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn remove_below(&self, log_min: PhysicalOffset) -> Result<u32, (PathBuf, io::Error)> {
        let min_number = self.lock().min_number;
        self.find_min(min_number, log_min).await.map_err(|source| (self.dir.clone(), source))?;
        // The last entry before says which offset is next, should those behind it be cut.
        let kept = if self.kind == QueueKind::Batch { 1 } else { 0 };
        let position = self.position((self.lock().min_number - kept).max(0));
        let mut removed = 0;
        while let Some(dir) = { self.lock().files.remove_oldest_below(position)? } {
            rt::fs::sync_dir(&dir).await.map_err(|source| (dir, source))?;
            removed += 1;
        }
        let Some(extension) = &self.extension else { return Ok(removed) };
        let first = self.entry(self.bounds().0).await.map_err(|source| (self.dir.clone(), source))?;
        if let Some(place) = first.and_then(|queued| layout::place_of(queued.entry.tags_code)) {
            extension.remove_below(place).await?;
        }
        Ok(removed)
    }

    /// Moves the minimum to the first entry whose record is still in the log (`correctMinOffset`).
    async fn find_min(&self, first: i64, log_min: PhysicalOffset) -> io::Result<()> {
        let (mut low, mut high) = (first, self.lock().written);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.queued_at(middle).await?.map(|queued| queued.entry);
            // Blank entries come first, and records and holes lie in log order.
            if entry.is_some_and(|entry| entry != Entry::BLANK && entry.physical >= log_min) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let queued = self.queued_at(low).await?;
        let mut state = self.lock();
        state.min_number = low;
        state.min = match (self.kind, queued) {
            (QueueKind::Simple, _) => low,
            (QueueKind::Batch, Some(queued)) => queued.offset.0,
            (QueueKind::Batch, None) => state.max,
        };
        Ok(())
    }

    /// Removes everything: the queue's offsets begin anew.
    pub(crate) fn reset(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.files.clear_from(0)?;
        if let Some(extension) = &self.extension {
            extension.reset()?;
        }
        state.pending.clear();
        (state.min, state.min_number, state.max, state.written, state.next) = (0, 0, 0, 0, 0);
        state.last_end = PhysicalOffset::ZERO;
        Ok(())
    }

    /// Bytes written since the last sync.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.extension.as_ref().map_or(0, Extension::dirty_bytes) + self.lock().files.dirty_bytes()
    }

    /// Whether there is anything to sync: bytes, or names.
    pub(crate) fn is_dirty(&self) -> bool {
        self.extension.as_ref().is_some_and(Extension::is_dirty) || self.lock().files.is_dirty()
    }

    /// Makes the entries that readers see at the moment of the call survive a power loss, and the files' names.
    pub(crate) async fn sync(&self, root: &Path) -> Result<(), (PathBuf, io::Error)> {
        let unsynced = self.lock().files.unsynced();
        // Units before the entries that name them.
        if let Some(extension) = &self.extension {
            extension.sync().await?;
        }
        unsynced.sync(root).await?;
        self.lock().files.synced(&unsynced);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic under this lock is a bug and ends the node")
    }

    pub(crate) fn check_invariants(&self) {
        let state = self.lock();
        assert!(0 <= state.min, "offsets are not negative");
        assert!(state.min <= state.next, "the minimum is not above the maximum");
        assert!(state.pending.len().is_multiple_of(self.kind.entry_bytes()), "whole entries");
        state.files.check_invariants();
        drop(state);
        if let Some(extension) = &self.extension {
            extension.check_invariants();
        }
    }
}
