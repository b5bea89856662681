//! Whether the index of keys and the log say the same. Entries stand in the order of the log, so both are read side by side.
use super::{InspectError, Inspection, failed, numbered};
use crate::index::creation_time;
use crate::layout::{IndexEntry, IndexHeader, IndexSizes, key_hash};
use crate::scan::Facts;
use protocol::PhysicalOffset;
use rt::fs::File;
use std::path::{Path, PathBuf};

/// The index of a store, as a walk over its entries.
pub(super) struct KeyCheck {
    sizes: IndexSizes,
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
    /// Byte of entry 1, and numbers of the next entry and the one behind the last.
    first: u64,
    next: u64,
    end: u64,
}

impl KeyCheck {
    pub(super) fn open(dir: &Path, sizes: IndexSizes) -> Result<KeyCheck, InspectError> {
        let files = numbered(dir, creation_time)?.into_iter().rev().map(|(_, path)| path).collect();
        Ok(KeyCheck { sizes, files, open: None, next: None, has_begun: false, is_lost: false })
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
            let Some((entry, path, position)) = &self.next else { return Ok(()) };
            if entry.physical == facts.physical() && entry.hash == key_hash(facts.topic, key) {
                found.keys += 1;
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
            if entry.physical >= found.start {
                found.report(&path, position, format!("the entry of {} names no record that was found", words(&entry)));
            }
        }
    }

    async fn read_next(&mut self, found: &mut Inspection) -> Result<Option<(IndexEntry, PathBuf, u64)>, InspectError> {
        loop {
            if let Some(open) = &mut self.open
                && open.next < open.end
            {
                let position = open.first + (open.next - 1) * IndexEntry::BYTES as u64;
                let mut bytes = [0; IndexEntry::BYTES];
                open.file.read_exact_at(&mut bytes, position).await.map_err(failed(&open.path))?;
                open.next += 1;
                return Ok(Some((IndexEntry::decode(&bytes), open.path.clone(), position)));
            }
            let Some(path) = self.files.pop() else { return Ok(None) };
            self.open = OpenFile::open(path, self.sizes, found).await?;
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
    async fn open(path: PathBuf, sizes: IndexSizes, found: &mut Inspection) -> Result<Option<OpenFile>, InspectError> {
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
        let end = u64::from(IndexHeader::decode(&bytes, sizes).count);
        Ok(Some(OpenFile { path, file, first: sizes.entry_position(1), next: 1, end }))
    }
}
