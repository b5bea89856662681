//! Whether the index of keys and the log say the same. Entries stand in the order of the log, so both are read side by side.
use super::{InspectError, Inspection, failed, numbered};
use crate::index::creation_time;
use crate::layout::{IndexEntry, IndexHeader, IndexSizes, key_hash};
use crate::scan::Facts;
use protocol::PhysicalOffset;
use rt::fs::File;
use std::path::{Path, PathBuf};

/// Entries read at once.
const CHUNK: u32 = 3_276;

/// The index of a store, as a walk over its entries.
pub(super) struct KeyCheck {
    sizes: IndexSizes,
    /// Whether headers and slots are on the disk too: while a store runs, entries are there first.
    is_clean: bool,
    /// The first record whose keys have no entry although records before it have, and how many keys that are.
    without: Option<(PhysicalOffset, u64)>,
    files: Vec<PathBuf>,
    open: Option<OpenFile>,
    /// The entry that the next key is compared with.
    next: Option<(IndexEntry, PathBuf, u64)>,
    has_begun: bool,
    /// What follows a difference cannot be compared any more.
    is_lost: bool,
}

struct OpenFile {
    path: PathBuf,
    file: File,
    sizes: IndexSizes,
    /// Numbers of the next entry and the one behind the last.
    next: u32,
    end: u32,
    /// Entries in memory, the next one last.
    ahead: Vec<IndexEntry>,
    /// The newest entry of each slot, as the entries read so far make them.
    slots: Vec<u32>,
    /// The header as it stands there, and as the records of the entries make it; none once an entry had no record.
    said: IndexHeader,
    made: Option<IndexHeader>,
    is_checked: bool,
    /// What the header said before its first entry is not known: the file before it was deleted.
    is_begin_unknown: bool,
}

impl KeyCheck {
    pub(super) fn open(dir: &Path, sizes: IndexSizes, is_clean: bool) -> Result<KeyCheck, InspectError> {
        let files = numbered(dir, creation_time)?.into_iter().rev().map(|(_, path)| path).collect();
        Ok(KeyCheck { sizes, is_clean, without: None, files, open: None, next: None, has_begun: false, is_lost: false })
    }

    /// Compares the keys of a record with the entries that are next. Records before the first entry have none: files were deleted.
    pub(super) async fn take(&mut self, facts: &Facts<'_>, found: &mut Inspection) -> Result<(), InspectError> {
        if self.is_lost || facts.is_rollback() {
            return Ok(());
        }
        let [unique, others] = facts.keys();
        let others = others.as_deref().unwrap_or_default().split(' ').filter(|key| !key.is_empty());
        for key in unique.as_deref().into_iter().chain(others) {
            self.pass_over(facts.physical(), found).await?;
            let Some((entry, path, position)) = &self.next else {
                if self.has_begun && !self.is_lost {
                    self.without.get_or_insert((facts.physical(), 0)).1 += 1;
                }
                continue;
            };
            if entry.physical == facts.physical() && entry.hash == key_hash(facts.topic, key) {
                found.keys += 1;
                if let Some(open) = &mut self.open {
                    open.confirm(entry, *position, facts.store_timestamp(), found);
                }
                (self.next, self.has_begun) = (None, true);
            } else if self.has_begun {
                let (at, words) = (facts.physical(), words(entry));
                let what =
                    format!("the entry of {words} stands where key {key:?} of the record at log offset {at} must");
                found.report(path, *position, what);
                self.is_lost = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Names entries behind the last record.
    pub(super) async fn finish(&mut self, found: &mut Inspection) -> Result<(), InspectError> {
        if self.is_lost {
            return Ok(());
        }
        if let Some((at, count)) = self.without.filter(|_| self.is_clean) {
            let path = self.open.as_ref().map_or_else(PathBuf::new, |open| open.path.clone());
            found.report(&path, 0, format!("{count} keys of the records from log offset {at} on have no entry"));
        }
        self.pass_over(PhysicalOffset(i64::MAX), found).await
    }

    /// Goes on to the first entry that names a place from `at` on. Those before it name no record that has such a key, unless the log begins
    /// behind them.
    async fn pass_over(&mut self, at: PhysicalOffset, found: &mut Inspection) -> Result<(), InspectError> {
        loop {
            if self.next.is_none() {
                self.next = self.read_next(found).await?;
            }
            let Some((entry, path, position)) = self.next.take_if(|(entry, ..)| entry.physical < at) else {
                return Ok(());
            };
            if let Some(open) = &mut self.open {
                open.made = None;
            }
            if entry.physical >= found.start {
                found.report(&path, position, format!("the entry of {} names no record that was found", words(&entry)));
            }
        }
    }

    async fn read_next(&mut self, found: &mut Inspection) -> Result<Option<(IndexEntry, PathBuf, u64)>, InspectError> {
        loop {
            if let Some(open) = &mut self.open {
                if open.next < open.end
                    && let Some(next) = open.read_next(self.is_clean, found).await?
                {
                    return Ok(Some(next));
                }
                if self.is_clean && !open.is_checked {
                    open.check_slots(found).await?;
                    open.check_header(found);
                    open.is_checked = true;
                }
            }
            let Some(path) = self.files.pop() else { return Ok(None) };
            let before =
                self.open.take().map(|open| if self.is_clean { open.said } else { open.made.unwrap_or(open.said) });
            self.open = OpenFile::open(path, self.sizes, self.is_clean, before, found).await?;
            if self.open.is_none() {
                self.is_lost = true;
                return Ok(None);
            }
        }
    }
}

fn words(entry: &IndexEntry) -> String {
    format!("key hash {} at log offset {}", entry.hash, entry.physical)
}

impl OpenFile {
    /// None for a file that has another length: nothing in it is where it is looked for.
    async fn open(
        path: PathBuf,
        sizes: IndexSizes,
        is_clean: bool,
        before: Option<IndexHeader>,
        found: &mut Inspection,
    ) -> Result<Option<OpenFile>, InspectError> {
        let file = File::open(&path).map_err(failed(&path))?;
        let (length, expected) = (file.len().map_err(failed(&path))?, sizes.file_bytes());
        if length != expected {
            found.not_checked.push(format!(
                "the index from {} on: the file has {length} bytes, and maxHashSlotNum={}, maxIndexNum={} make {expected}",
                path.display(),
                sizes.slots,
                sizes.entries
            ));
            return Ok(None);
        }
        let mut bytes = [0; IndexHeader::BYTES];
        file.read_exact_at(&mut bytes, 0).await.map_err(failed(&path))?;
        let said = IndexHeader::decode(&bytes, sizes);
        Ok(Some(OpenFile {
            path,
            file,
            sizes,
            next: 1,
            // How many are whole is found out as recovery does it.
            end: if is_clean { said.count } else { sizes.entries },
            ahead: Vec::new(),
            slots: vec![0; sizes.slots as usize],
            said,
            made: Some(before.map_or(IndexHeader::EMPTY, IndexHeader::follower)),
            is_checked: false,
            is_begin_unknown: before.is_none() && found.start > PhysicalOffset::ZERO,
        }))
    }

    /// A record was found for the entry that was read last. Where the file begins with entries without records, its seconds cannot be
    /// compared.
    fn confirm(&mut self, entry: &IndexEntry, position: u64, store_ms: i64, found: &mut Inspection) {
        let Some(made) = &mut self.made else { return };
        let seconds = made.seconds_since_begin(store_ms);
        let is_first = self.next == 2;
        if entry.seconds != seconds && !(is_first && self.is_begin_unknown) {
            let (words, stands) = (words(entry), entry.seconds);
            found.report(&self.path, position, format!("the entry of {words} says {stands} seconds, not {seconds}"));
        }
        made.take(entry.physical, store_ms, entry.previous == 0);
    }

    fn check_header(&self, found: &mut Inspection) {
        if let Some(made) = self.made.filter(|made| *made != self.said) {
            found.report(&self.path, 0, format!("the header is {:?}, its entries make {made:?}", self.said));
        }
    }

    /// The next entry; none where the entries of a store end that was not stopped in order.
    async fn read_next(
        &mut self,
        is_clean: bool,
        found: &mut Inspection,
    ) -> Result<Option<(IndexEntry, PathBuf, u64)>, InspectError> {
        let position = self.sizes.entry_position(self.next);
        if self.ahead.is_empty() {
            let mut bytes = vec![0; (self.end - self.next).min(CHUNK) as usize * IndexEntry::BYTES];
            self.file.read_exact_at(&mut bytes, position).await.map_err(failed(&self.path))?;
            self.ahead = bytes.as_chunks().0.iter().rev().map(IndexEntry::decode).collect();
        }
        let Some(entry) = self.ahead.pop() else { return Ok(None) };
        let slot = &mut self.slots[self.sizes.slot_of(entry.hash)];
        if !is_clean && (!entry.is_used() || entry.previous != *slot) {
            self.end = self.next;
            return Ok(None);
        }
        if entry.previous != *slot {
            let (words, links, before) = (words(&entry), entry.previous, *slot);
            found.report(&self.path, position, format!("the entry of {words} links to entry {links}, not to {before}"));
        }
        *slot = self.next;
        self.next += 1;
        Ok(Some((entry, self.path.clone(), position)))
    }

    /// Names the slots that are not as the entries make them.
    async fn check_slots(&self, found: &mut Inspection) -> Result<(), InspectError> {
        let mut bytes = vec![0; self.sizes.slots_bytes()];
        let first = IndexHeader::BYTES as u64;
        self.file.read_exact_at(&mut bytes, first).await.map_err(failed(&self.path))?;
        for (slot, (bytes, expected)) in bytes.as_chunks::<4>().0.iter().zip(&self.slots).enumerate() {
            let named = u32::from_be_bytes(*bytes);
            if named != *expected {
                let what = format!("slot {slot} names entry {named}, not {expected}");
                found.report(&self.path, first + slot as u64 * 4, what);
            }
        }
        Ok(())
    }
}
