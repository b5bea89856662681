//! The index of one queue: entry *n*, 20 bytes, names the record with queue offset *n*.
use crate::error::ReadError;
use crate::layout::{self, ENTRY_SIZE, Entry};
use crate::open_files::{OpenFiles, PooledFile};
use protocol::{PhysicalOffset, QueueOffset};
use rt::fs::{File, OpenOptions};
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
    dir: PathBuf,
    file_bytes: u64,
    open_files: Arc<OpenFiles>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Sorted by start, contiguous.
    files: Vec<QueueFile>,
    /// First entry that names a record of the log; `max` if there is none.
    min: i64,
    /// One past the last entry that readers see.
    max: i64,
    /// End of the record of the last entry, pending ones included.
    last_end: PhysicalOffset,
    /// Entries from `max` on that are not written yet.
    pending: Vec<u8>,
    /// Counts changes of the files' names, and up to which count they survive a power loss.
    names: u64,
    names_synced: u64,
}

#[derive(Clone, Debug)]
struct QueueFile {
    /// Byte position in the queue of the file's first byte.
    start: u64,
    file: PooledFile,
    dirty_bytes: u64,
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
    file: File,
    position: u64,
    pub(crate) path: PathBuf,
    pub(crate) count: usize,
}

impl Run {
    pub(crate) async fn read(&self) -> io::Result<Vec<Entry>> {
        let mut bytes = vec![0; self.count * ENTRY_SIZE];
        self.file.read_exact_at(&mut bytes, self.position).await?;
        Ok(bytes.as_chunks::<ENTRY_SIZE>().0.iter().map(Entry::decode).collect())
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }
}

impl ConsumeQueue {
    /// A queue without entries. Nothing is created on disk before the first entry.
    pub(crate) fn empty(
        topic: Arc<str>,
        queue_id: i32,
        dir: PathBuf,
        file_bytes: u64,
        open_files: Arc<OpenFiles>,
    ) -> ConsumeQueue {
        assert!(file_bytes > 0, "a file holds entries");
        assert!(file_bytes.is_multiple_of(ENTRY_SIZE as u64), "a file holds whole entries");
        let state = State {
            files: Vec::new(),
            min: 0,
            max: 0,
            last_end: PhysicalOffset::ZERO,
            pending: Vec::new(),
            names: 0,
            names_synced: 0,
        };
        ConsumeQueue { topic, queue_id, dir, file_bytes, open_files, state: Mutex::new(state) }
    }

    /// Opens the files of a directory; [`keep_below`](Self::keep_below) must follow before anything is read.
    /// `Err` with the path if one is too long; a file of another name makes the caller rebuild the queue.
    pub(crate) fn adopt(&self, paths: &[(u64, PathBuf)], is_named: bool) -> io::Result<Result<(), (PathBuf, u64)>> {
        let mut files = Vec::with_capacity(paths.len());
        for (start, path) in paths {
            let file = OpenOptions::new().write(true).open(path)?;
            let length = file.len()?;
            if length > self.file_bytes {
                return Ok(Err((path.clone(), length)));
            }
            if length < self.file_bytes {
                file.set_len(self.file_bytes)?;
            }
            let file = PooledFile::new(&self.open_files, path.clone(), file);
            files.push(QueueFile { start: *start, file, dirty_bytes: 0 });
        }
        let mut state = self.lock();
        state.files = files;
        state.names += u64::from(!is_named);
        Ok(Ok(()))
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

    /// Takes the entry of queue offset `offset`; readers see it after [`write_pending`](Self::write_pending).
    pub(crate) fn push(&self, offset: QueueOffset, entry: Entry) -> Push {
        assert!(offset.0 >= 0, "queue offsets are checked where they enter");
        let mut state = self.lock();
        let next = state.next();
        if offset.0 < next {
            return Push::Known;
        }
        if offset.0 > next {
            return Push::Gap { expected: next };
        }
        state.pending.extend_from_slice(&entry.encode());
        state.last_end = entry.end();
        Push::Added
    }

    /// Whether a record whose offset the queue has already shows that its entries are those of a former topic of the name: it lies behind
    /// all of them and has the first offset, or there are none.
    pub(crate) fn is_of_former_topic(&self, offset: QueueOffset, entry: &Entry) -> bool {
        let last_end = self.lock().last_end;
        entry.physical >= last_end && (offset.0 == 0 || last_end == PhysicalOffset::ZERO)
    }

    /// Makes a queue without entries begin at `offset`, with blank entries from the start of that file (Apache's rule, so that
    /// an entry's place always says its offset).
    pub(crate) fn begin_at(&self, offset: QueueOffset) {
        let mut state = self.lock();
        assert!(state.next() == 0, "only an empty queue has no beginning");
        let position = layout::entry_position(offset);
        let file_start = position - position % self.file_bytes;
        let first = entries_in(file_start);
        state.min = offset.0;
        state.max = first;
        state.fill(Entry::BLANK, offset.0 - first);
    }

    /// Puts holes where entries can never be known again, so that an entry's place still says its offset.
    pub(crate) fn fill_gap(&self, count: i64) {
        let mut state = self.lock();
        let hole = Entry::hole(state.last_end);
        state.fill(hole, count);
    }

    /// Whether more entries than fit a file are missing before the entry of `offset`.
    pub(crate) fn is_too_wide(&self, expected: i64, offset: QueueOffset) -> bool {
        offset.0 - expected > self.file_entries()
    }

    /// How many entries fit a file.
    fn file_entries(&self) -> i64 {
        entries_in(self.file_bytes)
    }

    /// Writes the pending entries and makes them readable. After an error nothing has become readable, and the call may be
    /// repeated.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        let mut state = self.lock();
        let mut done = 0;
        while done < state.pending.len() {
            let position = layout::entry_position(QueueOffset(state.max)) + done as u64;
            let index = self.file_for(&mut state, position)?;
            let at = position - state.files[index].start;
            let length =
                usize::try_from(self.file_bytes - at).map_or(usize::MAX, |room| room.min(state.pending.len() - done));
            state.files[index].file.get()?.write_at(&state.pending[done..done + length], at)?;
            state.files[index].dirty_bytes += length as u64;
            done += length;
        }
        state.max = state.next();
        state.pending.clear();
        Ok(())
    }

    /// Entries from `from` on that lie in one file, at most `count`; `None` if no file has `from` (any more).
    pub(crate) fn run(&self, from: QueueOffset, count: usize) -> io::Result<Option<Run>> {
        let state = self.lock();
        if from.0 < 0 || from.0 >= state.max {
            return Ok(None);
        }
        let position = layout::entry_position(from);
        let Some(file) = state.file_at(position, self.file_bytes) else { return Ok(None) };
        let handle = match file.file.get() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let in_file = (file.start + self.file_bytes - position) / ENTRY_SIZE as u64;
        let readable = u64::try_from(state.max - from.0).expect("checked above");
        let count = usize::try_from(in_file.min(readable)).map_or(count, |there| there.min(count));
        let path = file.file.path().to_owned();
        Ok(Some(Run { file: handle, position: position - file.start, path, count }))
    }

    /// The first queue offset of the next file after the one that would hold `from`.
    pub(crate) fn next_file(&self, from: QueueOffset) -> QueueOffset {
        let entries = self.file_entries();
        QueueOffset(from.0.saturating_add(entries) / entries * entries)
    }

    /// One entry.
    pub(crate) async fn entry(&self, offset: QueueOffset) -> io::Result<Option<Entry>> {
        match self.run(offset, 1)? {
            Some(run) => Ok(run.read().await?.first().copied()),
            None => Ok(None),
        }
    }

    /// One entry, for a reader.
    pub(crate) async fn read_entry(&self, offset: QueueOffset) -> Result<Option<Entry>, ReadError> {
        let position = layout::entry_position(offset);
        self.entry(offset).await.map_err(|source| ReadError::Io { path: self.dir.clone(), position, source })
    }

    /// Keeps the entries whose records end at or below `limit`, up to the first that is none; clears or removes the rest. `min`
    /// becomes the first entry whose record is still in the log, which begins at `log_min`.
    pub(crate) async fn keep_below(&self, limit: PhysicalOffset, log_min: PhysicalOffset) -> io::Result<()> {
        let files = {
            let mut state = self.lock();
            state.pending.clear();
            state.files.clone()
        };
        let first = files.first().map_or(0, |file| file.start);
        let (mut keep, mut last_end) = (first, PhysicalOffset::ZERO);
        // Files before the last three are older than any entry that a crash can have left unwritten (Apache's rule too); they
        // matter only if the cut lies in them.
        let mut from = files.len().saturating_sub(3);
        loop {
            for file in &files[from..] {
                let (used, end) = self.valid_prefix(file, limit, last_end).await?;
                keep = file.start + used * ENTRY_SIZE as u64;
                last_end = end;
                if keep < file.start + self.file_bytes {
                    break;
                }
            }
            if from == 0 || keep > files[from].start {
                break;
            }
            (from, last_end) = (from - 1, PhysicalOffset::ZERO);
        }
        self.clear_from(keep)?;
        {
            let mut state = self.lock();
            // The name of the first file says which offsets are used, even if no entry is left.
            state.max = entries_in(keep);
            state.min = state.max;
            state.last_end = last_end;
        }
        if keep != first {
            self.find_min(entries_in(first), log_min).await?;
        }
        Ok(())
    }

    /// How many entries at the start of a file are used, in log order, and end at or below `limit`; and the end of the last.
    async fn valid_prefix(
        &self,
        file: &QueueFile,
        limit: PhysicalOffset,
        before: PhysicalOffset,
    ) -> io::Result<(u64, PhysicalOffset)> {
        let (mut used, mut last_end) = (0, before);
        let handle = file.file.get()?;
        let mut chunk = vec![0; SCAN_ENTRIES * ENTRY_SIZE];
        loop {
            let position = used * ENTRY_SIZE as u64;
            let length = usize::try_from(self.file_bytes - position).map_or(chunk.len(), |rest| rest.min(chunk.len()));
            handle.read_exact_at(&mut chunk[..length], position).await?;
            for bytes in chunk[..length].as_chunks::<ENTRY_SIZE>().0 {
                match Entry::decode(bytes).end_after(last_end, limit) {
                    Some(end) => (used, last_end) = (used + 1, end),
                    None => return Ok((used, last_end)),
                }
            }
            if used * ENTRY_SIZE as u64 == self.file_bytes {
                return Ok((used, last_end));
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
        let min = self.lock().min;
        self.find_min(min, log_min).await.map_err(|source| (self.dir.clone(), source))?;
        let position = layout::entry_position(self.bounds().0);
        let mut removed = 0;
        loop {
            let oldest = {
                let state = self.lock();
                let is_below = |file: &&QueueFile| state.files.len() > 1 && file.start + self.file_bytes <= position;
                state.files.first().filter(is_below).cloned()
            };
            let Some(QueueFile { file, .. }) = oldest else { return Ok(removed) };
            match rt::fs::remove_file(file.path()) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err((file.path().to_owned(), source));
                }
                _ => {}
            }
            self.lock().files.remove(0);
            rt::fs::sync_dir(&self.dir).await.map_err(|source| (self.dir.clone(), source))?;
            removed += 1;
        }
    }

    /// Moves the minimum to the first entry whose record is still in the log (`correctMinOffset`).
    async fn find_min(&self, first: i64, log_min: PhysicalOffset) -> io::Result<()> {
        let max = self.bounds().1.0;
        let (mut low, mut high) = (first, max);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(QueueOffset(middle)).await?;
            // Blank entries come first, and records and holes lie in log order.
            if entry.is_some_and(|entry| entry != Entry::BLANK && entry.physical >= log_min) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.lock().min = low;
        Ok(())
    }

    /// Removes the files behind `position` and clears the rest of the file that holds it, or that is the first left of a queue whose
    /// older files were removed.
    fn clear_from(&self, position: u64) -> io::Result<()> {
        let mut state = self.lock();
        while let Some(file) = state.files.last() {
            let says_next = file.start == position && position > 0 && state.files.len() == 1;
            if file.start >= position && !says_next {
                rt::fs::remove_file(file.file.path())?;
                state.files.pop();
                state.names += 1;
                continue;
            }
            let at = position - file.start;
            if at < self.file_bytes {
                let handle = file.file.get()?;
                handle.set_len(at)?;
                handle.set_len(self.file_bytes)?;
                state.files.last_mut().expect("looked at above").dirty_bytes += layout::PAGE;
            }
            break;
        }
        Ok(())
    }

    /// Removes everything: the queue's offsets begin anew.
    pub(crate) fn reset(&self) -> io::Result<()> {
        self.clear_from(0)?;
        let mut state = self.lock();
        state.pending.clear();
        (state.min, state.max, state.last_end) = (0, 0, PhysicalOffset::ZERO);
        Ok(())
    }

    /// Bytes written since the last sync.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.lock().files.iter().map(|file| file.dirty_bytes).sum()
    }

    /// Whether there is anything to sync: bytes, or names.
    pub(crate) fn is_dirty(&self) -> bool {
        let state = self.lock();
        state.names != state.names_synced || state.files.iter().any(|file| file.dirty_bytes > 0)
    }

    /// Makes the entries that readers see at the moment of the call survive a power loss, and the files' names.
    pub(crate) async fn sync(&self, root: &Path) -> Result<(), (PathBuf, io::Error)> {
        let (files, names, is_named) = {
            let state = self.lock();
            let dirty = state.files.iter().filter(|file| file.dirty_bytes > 0).cloned().collect::<Vec<_>>();
            (dirty, state.names, state.names == state.names_synced)
        };
        for file in &files {
            let failed = |error| (file.file.path().to_owned(), error);
            file.file.get().map_err(failed)?.sync_data().await.map_err(failed)?;
        }
        if !is_named {
            let topic_dir = self.dir.parent().unwrap_or(root);
            for dir in [self.dir.as_path(), topic_dir, root] {
                rt::fs::sync_dir(dir).await.map_err(|error| (dir.to_owned(), error))?;
            }
        }
        let mut state = self.lock();
        for synced in &files {
            if let Some(file) = state.files.iter_mut().find(|file| file.start == synced.start) {
                file.dirty_bytes = file.dirty_bytes.saturating_sub(synced.dirty_bytes);
            }
        }
        state.names_synced = names;
        Ok(())
    }

    fn file_for(&self, state: &mut State, position: u64) -> io::Result<usize> {
        if let Some(index) =
            state.files.iter().rposition(|file| file.start <= position && position < file.start + self.file_bytes)
        {
            return Ok(index);
        }
        let start = position - position % self.file_bytes;
        assert!(state.files.last().is_none_or(|last| last.start < start), "files are created in order");
        if state.files.is_empty() {
            rt::fs::create_dir_all(&self.dir)?;
        }
        let path = self.dir.join(layout::file_name(start));
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.set_len(self.file_bytes)?;
        let file = PooledFile::new(&self.open_files, path, file);
        state.files.push(QueueFile { start, file, dirty_bytes: 0 });
        state.names += 1;
        Ok(state.files.len() - 1)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic under this lock is a bug and ends the node")
    }

    pub(crate) fn check_invariants(&self) {
        let state = self.lock();
        assert!(0 <= state.min, "offsets are not negative");
        assert!(state.min <= state.next(), "the minimum is not above the maximum");
        assert!(state.pending.len().is_multiple_of(ENTRY_SIZE), "whole entries");
        for pair in state.files.windows(2) {
            assert_eq!(pair[0].start + self.file_bytes, pair[1].start, "files are contiguous");
        }
    }
}

impl State {
    /// The offset of the next entry.
    fn next(&self) -> i64 {
        self.max + i64::try_from(self.pending.len() / ENTRY_SIZE).expect("pending entries are few")
    }

    fn fill(&mut self, entry: Entry, count: i64) {
        let bytes = entry.encode();
        for _ in 0..count {
            self.pending.extend_from_slice(&bytes);
        }
    }

    fn file_at(&self, position: u64, file_bytes: u64) -> Option<&QueueFile> {
        let index = self.files.partition_point(|file| file.start <= position).checked_sub(1)?;
        self.files.get(index).filter(|file| position < file.start + file_bytes)
    }
}

/// Queue offset of the entry at a byte position of the queue.
fn entries_in(position: u64) -> i64 {
    i64::try_from(position / ENTRY_SIZE as u64).expect("positions of files are signed 64-bit numbers")
}
