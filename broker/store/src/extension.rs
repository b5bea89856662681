//! The extension of one consume queue: what its entries have no room for.
//!
//! It is written before the entries that name its units, and synced before them, so that an entry that is trusted has its unit. A unit that
//! is missing all the same tells a reader's filter nothing: the message counts as wanted, and its reader looks itself.
use crate::layout::{self, UNIT_END, UNIT_END_BYTES, UNIT_MAX, Unit};
use crate::open_files::OpenFiles;
use crate::queue_files::{QueueFiles, files_of};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Written with its queue, read by all.
#[derive(Debug)]
pub(crate) struct Extension {
    dir: PathBuf,
    /// Whether new entries get units; those that are there are read either way.
    pub(crate) is_written: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: QueueFiles,
    /// Behind the last unit that is written.
    end: u64,
    /// What comes there and is not written yet.
    pending: Vec<u8>,
}

/// Which unit of a queue is the last that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastUnit {
    /// No entry names one.
    None,
    /// The one at this place.
    At(u64),
    /// Not known: entries that were not looked at may name some.
    Unknown,
}

/// Reads the units of neighbouring entries.
pub(crate) struct Units<'a> {
    extension: &'a Extension,
    chunk: (u64, Vec<u8>),
}

impl Extension {
    /// Without units. Nothing is created on disk before the first one.
    pub(crate) fn empty(dir: PathBuf, file_bytes: u64, is_written: bool, pool: Arc<OpenFiles>) -> Extension {
        let files = QueueFiles::new(dir.clone(), file_bytes, pool);
        Extension { dir, is_written, state: Mutex::new(State { files, end: 0, pending: Vec::new() }) }
    }

    /// Opens the files that are there; [`keep_through`](Self::keep_through) must follow. `Err` with the path and length of one that is too
    /// long.
    pub(crate) fn load(&self, is_named: bool) -> io::Result<Result<(), (PathBuf, u64)>> {
        let mut state = self.lock();
        let file_bytes = state.files.file_bytes();
        let found = match files_of(&self.dir, file_bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(())),
            found => found?,
        };
        match found {
            Ok(files) if files.windows(2).all(|pair| pair[0].0 + file_bytes == pair[1].0) => {
                state.files.adopt(&files, is_named)
            }
            // Nothing that must not be lost is in them.
            Ok(_) | Err(_) => {
                tracing::warn!(dir = %self.dir.display(), "files of an extension are missing or foreign, it begins anew");
                for path in rt::fs::read_dir(&self.dir)? {
                    rt::fs::remove_file(path)?;
                }
                Ok(Ok(()))
            }
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes a unit; returns what its entry says. None if there is no room for it: it is longer than a file, or the last place is taken.
    pub(crate) fn push(&self, unit: &Unit) -> Option<i64> {
        let bytes = unit.encode()?;
        let mut state = self.lock();
        let file_bytes = state.files.file_bytes();
        let size = bytes.len() as u64;
        let next = state.end + state.pending.len() as u64;
        let rest = file_bytes - next % file_bytes;
        let place = if size + UNIT_END_BYTES <= rest { next } else { next + rest };
        if size + UNIT_END_BYTES > file_bytes || place.checked_add(size).and_then(layout::address_of).is_none() {
            return None;
        }
        if place > next {
            let end_of_file = state.pending.len() + usize::try_from(rest).expect("shorter than a unit");
            state.pending.extend_from_slice(&UNIT_END);
            state.pending.resize(end_of_file, 0);
        }
        state.pending.extend_from_slice(&bytes);
        layout::address_of(place)
    }

    /// Writes the pending units. After an error the call may be repeated.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        let mut state = self.lock();
        let State { files, end, pending } = &mut *state;
        files.write(*end, pending)?;
        *end += pending.len() as u64;
        pending.clear();
        Ok(())
    }

    pub(crate) fn units(&self) -> Units<'_> {
        Units { extension: self, chunk: (0, Vec::new()) }
    }

    /// Clears what lies behind the last unit that is named. Where that cannot be told, nothing is written in the file again: no unit
    /// may come to lie where an entry expects another one.
    pub(crate) async fn keep_through(&self, last: LastUnit) -> io::Result<()> {
        self.lock().pending.clear();
        let end = match last {
            LastUnit::None => 0,
            LastUnit::Unknown => self.lock().files.end(),
            LastUnit::At(place) => match self.units().at(place).await? {
                Some(unit) => place + unit.size() as u64,
                None => {
                    rt::probe!("store.extension.unit_missing");
                    let file_bytes = self.lock().files.file_bytes();
                    (place - place % file_bytes).saturating_add(file_bytes)
                }
            },
        };
        let mut state = self.lock();
        // Where files are missing at the end, the extension begins anew behind them.
        let is_missing = end > state.files.end();
        state.files.clear_from(if is_missing { 0 } else { end })?;
        state.end = end;
        Ok(())
    }

    /// Removes the files before the unit of the queue's first entry, each durably before the next, but never the last one.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn remove_below(&self, place: u64) -> Result<(), (PathBuf, io::Error)> {
        while let Some(dir) = { self.lock().files.remove_oldest_below(place)? } {
            rt::fs::sync_dir(&dir).await.map_err(|source| (dir, source))?;
        }
        Ok(())
    }

    /// Removes everything.
    pub(crate) fn reset(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.files.clear_from(0)?;
        state.pending.clear();
        state.end = 0;
        Ok(())
    }

    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.lock().files.dirty_bytes()
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.lock().files.is_dirty()
    }

    /// Makes the units that are written at the moment of the call survive a power loss, and the files' names.
    pub(crate) async fn sync(&self) -> Result<(), (PathBuf, io::Error)> {
        let unsynced = self.lock().files.unsynced();
        // root/consumequeue_ext/topic/queue
        let root = self.dir.ancestors().nth(2).unwrap_or(&self.dir);
        unsynced.sync(root).await?;
        self.lock().files.synced(&unsynced);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic under this lock is a bug and ends the node")
    }

    pub(crate) fn check_invariants(&self) {
        let state = self.lock();
        state.files.check_invariants();
        assert!(state.end <= state.files.end() || state.files.all().is_empty(), "units lie in files");
    }
}

impl Units<'_> {
    /// The unit at a place; none if there is no whole one.
    pub(crate) async fn at(&mut self, place: u64) -> io::Result<Option<Unit>> {
        if let Some(unit) = self.in_chunk(place) {
            return Ok(Some(unit));
        }
        let Some(at) = self.extension.lock().files.at(place)? else { return Ok(None) };
        // Units lie next to each other, as their entries do.
        let length = usize::try_from(at.length).map_or(UNIT_MAX, |length| length.min(UNIT_MAX));
        let mut bytes = vec![0; length];
        at.file.read_exact_at(&mut bytes, at.position).await?;
        self.chunk = (place, bytes);
        Ok(self.in_chunk(place))
    }

    fn in_chunk(&self, place: u64) -> Option<Unit> {
        let skip = usize::try_from(place.checked_sub(self.chunk.0)?).ok()?;
        Unit::decode(self.chunk.1.get(skip..)?)
    }
}
