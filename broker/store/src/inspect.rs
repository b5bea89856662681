//! A look through the files of a store, ours or Apache's: what is in them, and what is damaged. Nothing is written and nothing is locked,
//! so a store that runs may be looked at; what it appends meanwhile is no damage.
//!
//! The sizes of the files need not be known: a segment is as long as its file. Each record is read with all checks, and looked for in its
//! queue and in the index of keys; then each entry that no record stands for is named.
mod batches;
mod extension;
mod keys;
mod log;
mod queues;

use crate::config::IndexConfig;
use crate::layout::{self, IndexSizes};
use bytes::Bytes;
use keys::KeyCheck;
use log::LogWalk;
use protocol::PhysicalOffset;
use queues::QueueCheck;
use std::io;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Whether the store was stopped in order: it has no `abort` file.
    pub is_clean: bool,
    /// Offset of the log's first byte.
    pub start: PhysicalOffset,
    /// Offset behind its last record.
    pub end: PhysicalOffset,
    /// Segments of the log.
    pub segments: u64,
    /// Whole records.
    pub records: u64,
    /// Queues that have a directory.
    pub queues: u64,
    /// Queue entries that name a record of the log.
    pub entries: u64,
    /// Index entries that name a key of a record.
    pub keys: u64,
    /// What is wrong, in the order in which it was met; at most [`DAMAGE_MAX`].
    pub damage: Vec<Damage>,
    /// How much more is wrong.
    pub more_damage: u64,
    /// What was not looked at, and why.
    pub not_checked: Vec<String>,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// In this file.
    pub path: PathBuf,
    /// At this byte of it.
    pub position: u64,
    /// What it is.
    pub what: String,
}

/// More would hide what counts.
pub const DAMAGE_MAX: usize = 100;

/// Why a store could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct InspectError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the disk said.
    pub source: io::Error,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, byte {}: {}", self.path.display(), self.position, self.what)
    }
}

impl Inspection {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn report(&mut self, path: &Path, position: u64, what: impl Into<String>) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(Damage { path: path.to_owned(), position, what: what.into() });
        } else {
            self.more_damage += 1;
        }
    }
}

/// The records of a store's log, one after the other, past what is damaged.
pub struct LogReader {
    walk: LogWalk,
    found: Inspection,
}

impl LogReader {
    /// Opens the log of the store in `root`; `commit_log`: where it is, if not in `root/commitlog`.
    ///
    /// # Errors
    /// A file could not be opened.
    pub fn open(root: &Path, commit_log: Option<&Path>) -> Result<LogReader, InspectError> {
        let mut found = Inspection::default();
        let default_log = root.join(layout::COMMIT_LOG_DIR);
        let walk = LogWalk::open(commit_log.unwrap_or(&default_log), &mut found)?;
        Ok(LogReader { walk, found })
    }

    /// The next whole record, as it lies in the log.
    ///
    /// # Errors
    /// A file could not be read.
    pub async fn next(&mut self) -> Result<Option<Bytes>, InspectError> {
        let record = self.walk.next(&mut self.found).await?;
        Ok(record.map(|record| record.into_bytes()))
    }

    /// What was met so far that is no record.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.found.damage
    }
}

/// Looks through the store in `root`. `commit_log`: where its log is, if not in `root/commitlog`. `index`: how large the files of its index of
/// keys are, which they do not say themselves; none: they are not looked at. `watch` is told how many bytes of the log are behind, and how
/// many it has.
///
/// # Errors
/// A file or directory could not be read. That one is missing is damage, or nothing to tell of.
pub async fn inspect(
    root: &Path,
    commit_log: Option<&Path>,
    index: Option<IndexConfig>,
    mut watch: impl FnMut(u64, u64),
) -> Result<Inspection, InspectError> {
    let is_clean = rt::fs::metadata(root.join(layout::ABORT_FILE)).is_err();
    let mut found = Inspection { is_clean, ..Inspection::default() };
    let default_log = root.join(layout::COMMIT_LOG_DIR);
    let mut walk = LogWalk::open(commit_log.unwrap_or(&default_log), &mut found)?;
    let mut queues = QueueCheck::open(root, &mut found).await?;
    if rt::fs::metadata(root.join("compaction")).is_ok() {
        found.not_checked.push("compaction: Hotfire does not read it".to_owned());
    }
    if rt::fs::metadata(root.join(layout::TIMER_WHEEL_FILE)).is_ok() {
        found.not_checked.push("timer wheel and its log: in doubt they are made anew from their queue".to_owned());
    }
    let mut keys = match index {
        Some(IndexConfig { hash_slots: slots, entries }) => {
            Some(KeyCheck::open(&root.join(layout::INDEX_DIR), IndexSizes { slots, entries }, is_clean)?)
        }
        None => None,
    };
    while let Some(record) = walk.next(&mut found).await? {
        found.records += 1;
        let facts = record.facts();
        queues.take(&facts, &mut found).await?;
        if let Some(keys) = &mut keys {
            keys.take(&facts, &mut found).await?;
        }
        watch(walk.passed(), walk.length());
    }
    queues.finish(&walk, &mut found).await?;
    if let Some(keys) = &mut keys {
        keys.finish(&mut found).await?;
    }
    Ok(found)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> InspectError + use<'_> {
    move |source| InspectError { path: path.to_owned(), source }
}

/// Files of a directory whose names the store gives, with the number that each name is, in order; none if there is no such directory.
fn numbered(dir: &Path, number: fn(&Path) -> Option<u64>) -> Result<Vec<(u64, PathBuf)>, InspectError> {
    let paths = match rt::fs::read_dir(dir) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(dir)(error)),
    };
    let mut files: Vec<(u64, PathBuf)> = paths.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    Ok(files)
}
