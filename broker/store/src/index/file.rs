//! One index file: a hash table from message keys to places in the log.
//!
//! Entries only ever come to the end, each with the number of the entry that its slot named before. So the slots follow from the
//! entries: what a crash made of the slots does not matter, and which entries are whole is seen from their links.
use crate::layout::{IndexEntry, IndexHeader, IndexSizes, PAGE};
use protocol::PhysicalOffset;
use rt::fs::{File, OpenOptions};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Entries read at once when a file is looked through.
const SCAN_ENTRIES: u32 = 3_276;

/// An index file. Written by the dispatcher (or recovery) alone, read by all.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    file: File,
    sizes: IndexSizes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    header: IndexHeader,
    /// The newest entry of each slot, 0 for none; none once the file is full and synced: then they are read from it. Pages of the table
    /// that hold nothing cost no memory.
    newest: Option<Vec<u32>>,
    /// The last entries, which are not in the file yet.
    pending: Vec<u8>,
    /// Pages of the slots that the file does not have yet.
    dirty_pages: BTreeSet<u64>,
    /// Whether anything was written since the last sync.
    is_dirty: bool,
}

/// What a file's entries say.
#[derive(Debug)]
struct Table {
    header: IndexHeader,
    newest: Vec<u32>,
}

/// What is looked for: the hash of a key, and store times in Unix milliseconds, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) hash: i32,
    pub(crate) from_ms: i64,
    pub(crate) until_ms: i64,
}

impl IndexFile {
    /// Creates an empty file. Until its first entry it has the end of the one before it, as Apache's has.
    pub(crate) fn create(path: PathBuf, sizes: IndexSizes, before: Option<IndexHeader>) -> io::Result<IndexFile> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.set_len(sizes.file_bytes())?;
        let header = before.map_or(IndexHeader::EMPTY, |before| before.follower());
        Ok(IndexFile::of(path, file, sizes, header, Some(no_slots(sizes))))
    }

    /// Opens a file that is what it says, if its header tells the caller so.
    pub(crate) async fn open(
        path: PathBuf,
        sizes: IndexSizes,
        is_trusted: impl FnOnce(IndexHeader) -> bool,
    ) -> io::Result<Option<IndexFile>> {
        let (file, header) = opened(&path, sizes).await?;
        if !is_trusted(header) {
            return Ok(None);
        }
        if header.is_full(sizes) {
            return Ok(Some(IndexFile::of(path, file, sizes, header, None)));
        }
        let mut slots = vec![0; sizes.slots_bytes()];
        file.read_exact_at(&mut slots, IndexHeader::BYTES as u64).await?;
        let newest = slots.as_chunks().0.iter().map(|slot| newest_of(slot, header)).collect();
        Ok(Some(IndexFile::of(path, file, sizes, header, Some(newest))))
    }

    /// Opens a file that a crash may have left: keeps the entries that are whole and name places below `synced`. If it is not known what
    /// was synced, those of the last message go too: it may have had more.
    pub(crate) async fn recover(
        path: PathBuf,
        sizes: IndexSizes,
        synced: Option<PhysicalOffset>,
    ) -> io::Result<IndexFile> {
        let (file, said) = opened(&path, sizes).await?;
        let mut table = Table::read(&file, sizes, said, synced.unwrap_or(PhysicalOffset(i64::MAX))).await?;
        if synced.is_none() {
            table = Table::read(&file, sizes, said, table.header.end).await?;
        }
        empty_from(&file, sizes, table.header.count)?;
        let index = IndexFile::of(path, file, sizes, table.header, None);
        index.lock().replace(table);
        Ok(index)
    }

    fn of(path: PathBuf, file: File, sizes: IndexSizes, header: IndexHeader, newest: Option<Vec<u32>>) -> IndexFile {
        let (pending, dirty_pages) = (Vec::new(), BTreeSet::new());
        IndexFile {
            path,
            file,
            sizes,
            state: Mutex::new(State { header, newest, pending, dirty_pages, is_dirty: true }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> IndexHeader {
        self.lock().header
    }

    /// Adds an entry, or returns false because the file is full. Readers see it at once, the disk after
    /// [`write_pending`](Self::write_pending).
    pub(crate) fn put(&self, hash: i32, physical: PhysicalOffset, store_ms: i64) -> bool {
        assert!(hash >= 0, "the hash of a key has no sign");
        let mut state = self.lock();
        let State { header, newest: Some(newest), .. } = &mut *state else { return false };
        if header.is_full(self.sizes) {
            return false;
        }
        let slot = self.sizes.slot_of(hash);
        let previous = newest[slot];
        let entry = IndexEntry { hash, physical, seconds: header.seconds_since_begin(store_ms), previous };
        newest[slot] = header.count;
        header.take(physical, store_ms, previous == 0);
        state.pending.extend_from_slice(&entry.encode());
        state.dirty_pages.insert((IndexHeader::BYTES + slot * 4) as u64 / PAGE);
        state.is_dirty = true;
        true
    }

    /// Writes the entries that are not in the file yet, the header with the first of them: times of entries count from its begin.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.pending.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(state.pending.len() / IndexEntry::BYTES).expect("fewer than a file has");
        let first = state.header.count - count;
        if first <= 1 {
            self.file.write_at(&state.header.encode(), 0)?;
        }
        self.file.write_at(&state.pending, self.sizes.entry_position(first))?;
        state.pending.clear();
        Ok(())
    }

    /// Makes all entries survive a power loss, and the file one that Apache's broker can read.
    pub(crate) async fn sync(&self) -> io::Result<()> {
        self.write_pending()?;
        {
            let mut state = self.lock();
            if !state.is_dirty {
                return Ok(());
            }
            let State { header, newest, dirty_pages, is_dirty, .. } = &mut *state;
            for page in std::mem::take(dirty_pages) {
                let newest = newest.as_deref().expect("slots change while they are in memory only");
                let (position, bytes) = slots_in(newest, page);
                self.file.write_at(&bytes, position)?;
            }
            self.file.write_at(&header.encode(), 0)?;
            *is_dirty = false;
        }
        self.file.sync_data().await?;
        let mut state = self.lock();
        if state.header.is_full(self.sizes) && !state.is_dirty {
            state.newest = None;
        }
        Ok(())
    }

    /// Gives the entries up that name places from `limit` on.
    pub(crate) async fn keep_below(&self, limit: PhysicalOffset) -> io::Result<()> {
        self.write_pending()?;
        let said = self.header();
        if said.count <= 1 || said.end < limit {
            return Ok(());
        }
        let table = Table::read(&self.file, self.sizes, said, limit).await?;
        empty_from(&self.file, self.sizes, table.header.count)?;
        self.lock().replace(table);
        Ok(())
    }

    /// Places of messages that have the wanted hash and time, newest first, until `found` has `most` of them. A hash is no key: what
    /// is there must be looked at.
    pub(crate) async fn find(&self, wanted: Wanted, most: usize, found: &mut Vec<PhysicalOffset>) -> io::Result<()> {
        let slot = self.sizes.slot_of(wanted.hash);
        let (newest, header) = {
            let state = self.lock();
            (state.newest.as_ref().map(|newest| newest[slot]), state.header)
        };
        let mut number = match newest {
            Some(number) => number,
            None => {
                let mut bytes = [0; 4];
                self.file.read_exact_at(&mut bytes, (IndexHeader::BYTES + slot * 4) as u64).await?;
                newest_of(&bytes, header)
            }
        };
        while number > 0 && found.len() < most {
            let entry = self.entry(number).await?;
            // An entry is as old as its seconds say or up to a second younger.
            let from = header.begin_ms.saturating_add(i64::from(entry.seconds).saturating_mul(1000));
            let until = from.saturating_add(999);
            let is_wanted = entry.hash == wanted.hash && until >= wanted.from_ms && from <= wanted.until_ms;
            if is_wanted && !found.contains(&entry.physical) {
                found.push(entry.physical);
            }
            // Links lead to older entries only; anything else is damage, and would lead in a circle.
            if entry.previous >= number || until < wanted.from_ms {
                break;
            }
            number = entry.previous;
        }
        Ok(())
    }

    async fn entry(&self, number: u32) -> io::Result<IndexEntry> {
        let mut bytes = [0; IndexEntry::BYTES];
        {
            let state = self.lock();
            let pending = u32::try_from(state.pending.len() / IndexEntry::BYTES).expect("fewer than a file has");
            let written = state.header.count - pending;
            if let Some(place) = number.checked_sub(written) {
                let start = place as usize * IndexEntry::BYTES;
                bytes.copy_from_slice(&state.pending[start..start + IndexEntry::BYTES]);
                return Ok(IndexEntry::decode(&bytes));
            }
        }
        self.file.read_exact_at(&mut bytes, self.sizes.entry_position(number)).await?;
        Ok(IndexEntry::decode(&bytes))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code that can panic runs under this lock")
    }
}

impl State {
    /// What was read anew from the entries is not what the file's slots say.
    fn replace(&mut self, table: Table) {
        let end = (IndexHeader::BYTES + table.newest.len() * 4) as u64;
        (self.header, self.newest) = (table.header, Some(table.newest));
        self.dirty_pages = (0..=(end - 1) / PAGE).collect();
        self.is_dirty = true;
    }
}

fn no_slots(sizes: IndexSizes) -> Vec<u32> {
    vec![0; sizes.slots as usize]
}

/// A slot that names no entry of the file is an empty one.
fn newest_of(slot: &[u8; 4], header: IndexHeader) -> u32 {
    let number = u32::from_be_bytes(*slot);
    if number < header.count { number } else { 0 }
}

/// The part of a page of the file that is slots, and where it begins.
fn slots_in(newest: &[u32], page: u64) -> (u64, Vec<u8>) {
    let slots_end = (IndexHeader::BYTES + newest.len() * 4) as u64;
    let (start, end) = ((page * PAGE).max(IndexHeader::BYTES as u64), ((page + 1) * PAGE).min(slots_end));
    let slot_at =
        |position: u64| (usize::try_from(position).expect("a file of 2 GiB at most") - IndexHeader::BYTES) / 4;
    let slots = &newest[slot_at(start)..slot_at(end)];
    (start, slots.iter().flat_map(|number| number.to_be_bytes()).collect())
}

impl Table {
    fn new(sizes: IndexSizes, header: IndexHeader) -> Table {
        Table { header, newest: no_slots(sizes) }
    }

    /// The table of the entries that are whole, up to the first that is not or names a place from `limit` on.
    async fn read(file: &File, sizes: IndexSizes, said: IndexHeader, limit: PhysicalOffset) -> io::Result<Table> {
        let mut table = Table::new(sizes, said.emptied());
        let mut number = 1;
        while number < sizes.entries && said.begin_ms > 0 {
            let count = SCAN_ENTRIES.min(sizes.entries - number);
            let mut bytes = vec![0; count as usize * IndexEntry::BYTES];
            file.read_exact_at(&mut bytes, sizes.entry_position(number)).await?;
            for entry in bytes.as_chunks().0.iter().map(IndexEntry::decode) {
                let slot = sizes.slot_of(entry.hash);
                let follows = entry.physical >= table.header.end && entry.physical < limit;
                if !entry.is_used() || !follows || entry.previous != table.newest[slot] {
                    return Ok(table);
                }
                // Store times are not known to the millisecond, but for the first: the file begins with it.
                let is_first = table.header.count <= 1;
                let seconds = if is_first { 0 } else { i64::from(entry.seconds) };
                table.take(slot, entry, said.begin_ms.saturating_add(seconds * 1000));
            }
            number += count;
        }
        Ok(table)
    }

    fn take(&mut self, slot: usize, entry: IndexEntry, store_ms: i64) {
        let number = self.header.count;
        self.header.take(entry.physical, store_ms, self.newest[slot] == 0);
        self.newest[slot] = number;
    }
}

async fn opened(path: &Path, sizes: IndexSizes) -> io::Result<(File, IndexHeader)> {
    let file = OpenOptions::new().write(true).open(path)?;
    let length = file.len()?;
    if length > sizes.file_bytes() {
        let said = format!("it has {length} bytes, an index file has {}", sizes.file_bytes());
        return Err(io::Error::new(io::ErrorKind::InvalidData, said));
    }
    if length < sizes.file_bytes() {
        file.set_len(sizes.file_bytes())?;
    }
    let mut bytes = [0; IndexHeader::BYTES];
    file.read_exact_at(&mut bytes, 0).await?;
    Ok((file, IndexHeader::decode(&bytes, sizes)))
}

/// Old entries behind the last one must not be taken for new ones after the next crash.
fn empty_from(file: &File, sizes: IndexSizes, number: u32) -> io::Result<()> {
    file.set_len(sizes.entry_position(number))?;
    file.set_len(sizes.file_bytes())
}
