//! The timer log: one unit for each message that was put on the wheel, in the order of the timer topic's queue.
//!
//! Units of the last moments are in memory alone until a flush writes and syncs them: whatever a crash takes is put on the wheel again from
//! the queue, so the file never has to be ahead of anything.
use crate::layout::{self, TIMER_BLANK_BYTES, TimerUnit, file_name, timer_blank};
use rt::fs::{File, OpenOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// So much room a unit needs: itself, and the blank that may have to close its file.
pub(crate) const ROOM: u64 = (TimerUnit::BYTES + TIMER_BLANK_BYTES) as u64;

/// The files and what is not in them yet.
#[derive(Debug)]
pub(crate) struct TimerLog {
    dir: PathBuf,
    file_bytes: u64,
    /// By the position of their first byte.
    files: BTreeMap<u64, File>,
    end: u64,
    /// Units and blanks by position, that no file has yet.
    pending: BTreeMap<u64, Vec<u8>>,
    /// Files that were written since their last sync.
    dirty: BTreeSet<u64>,
    /// Whether files were made since the directory's last sync.
    has_new_names: bool,
}

impl TimerLog {
    /// A log without units, and without files until the first flush.
    pub(crate) fn empty(dir: PathBuf, file_bytes: u64) -> TimerLog {
        TimerLog {
            dir,
            file_bytes,
            files: BTreeMap::new(),
            end: 0,
            pending: BTreeMap::new(),
            dirty: BTreeSet::new(),
            has_new_names: false,
        }
    }

    /// Opens the files of a log that ends at `end`. `None`: they are not the files of such a log.
    pub(crate) fn open(dir: PathBuf, file_bytes: u64, end: u64) -> io::Result<Option<TimerLog>> {
        let mut log = TimerLog::empty(dir, file_bytes);
        log.end = end;
        for path in list(&log.dir)? {
            let start = layout::parse_file_name(&path).expect("listed by its name");
            let file = OpenOptions::new().write(true).open(&path)?;
            let length = file.len()?;
            if !start.is_multiple_of(file_bytes) || length > file_bytes {
                return Ok(None);
            }
            // A power loss may undo the second half of a cut; what is missing with it is found by the slots that name it.
            if length < file_bytes {
                file.set_len(file_bytes)?;
                log.dirty.insert(start);
            }
            log.files.insert(start, file);
        }
        let starts: Vec<u64> = log.files.keys().copied().collect();
        let is_row = starts.windows(2).all(|pair| pair[0] + file_bytes == pair[1]);
        let has_end = match (starts.first(), starts.last()) {
            (Some(&first), Some(&last)) => first <= end && end <= last + file_bytes,
            _ => end == 0,
        };
        let in_file = end % file_bytes;
        let is_boundary = in_file.is_multiple_of(TimerUnit::BYTES as u64) && in_file <= log.units_end();
        Ok((is_row && has_end && is_boundary).then_some(log))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Where the units of a file end, from its start.
    fn units_end(&self) -> u64 {
        (self.file_bytes - TIMER_BLANK_BYTES as u64) / TimerUnit::BYTES as u64 * TimerUnit::BYTES as u64
    }

    /// Position of the last unit; `None`: no file has one.
    pub(crate) fn last(&self) -> Option<u64> {
        let in_file = self.end % self.file_bytes;
        let last = match in_file {
            0 => (self.end - in_file).checked_sub(self.file_bytes)? + self.units_end() - TimerUnit::BYTES as u64,
            _ => self.end - TimerUnit::BYTES as u64,
        };
        (self.files.first_key_value().is_some_and(|(first, _)| *first <= last)).then_some(last)
    }

    /// Adds a unit in memory and says where.
    pub(crate) fn append(&mut self, unit: TimerUnit) -> u64 {
        let rest = self.file_bytes - self.end % self.file_bytes;
        if rest < ROOM {
            self.pending.insert(self.end, timer_blank(rest).to_vec());
            self.end += rest;
        }
        let position = self.end;
        self.pending.insert(position, unit.encode().to_vec());
        self.end += TimerUnit::BYTES as u64;
        position
    }

    /// The unit at a position; `None`: there is none.
    pub(crate) async fn read(&self, position: i64) -> io::Result<Option<TimerUnit>> {
        let Ok(position) = u64::try_from(position) else { return Ok(None) };
        if let Some(bytes) = self.pending.get(&position) {
            return Ok(bytes.as_slice().try_into().ok().and_then(TimerUnit::decode));
        }
        let in_file = position % self.file_bytes;
        let Some(file) = self.files.get(&(position - in_file)) else { return Ok(None) };
        if in_file + TimerUnit::BYTES as u64 > self.file_bytes {
            return Ok(None);
        }
        let mut bytes = [0; TimerUnit::BYTES];
        file.read_exact_at(&mut bytes, in_file).await?;
        Ok(TimerUnit::decode(&bytes))
    }

    /// Takes away what lies behind the end: later units would be taken for a continuation.
    pub(crate) async fn cut(&mut self) -> io::Result<()> {
        let (end, file_bytes) = (self.end, self.file_bytes);
        let later: Vec<u64> = self.files.range(end.max(1)..).map(|(start, _)| *start).collect();
        for start in &later {
            self.files.remove(start);
            rt::fs::remove_file(self.dir.join(file_name(*start)))?;
        }
        if !later.is_empty() {
            rt::fs::sync_dir(&self.dir).await?;
        }
        let in_file = end % file_bytes;
        if let Some(file) = self.files.get(&(end - in_file)) {
            file.set_len(in_file)?;
            file.set_len(file_bytes)?;
            self.dirty.insert(end - in_file);
        }
        Ok(())
    }

    /// Writes what is in memory and makes it survive a power loss.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.files.is_empty() && !self.pending.is_empty() {
            rt::fs::create_dir_durably(&self.dir).await?;
        }
        let mut run: Option<(u64, Vec<u8>)> = None;
        let pending = std::mem::take(&mut self.pending);
        let written = pending.iter().try_for_each(|(&position, bytes)| {
            if let Some((start, run)) = &mut run
                && *start + run.len() as u64 == position
                && !position.is_multiple_of(self.file_bytes)
            {
                run.extend_from_slice(bytes);
                return Ok(());
            }
            match run.replace((position, bytes.clone())) {
                Some((start, run)) => self.write(start, &run),
                None => Ok(()),
            }
        });
        let written = written.and_then(|()| run.map_or(Ok(()), |(start, run)| self.write(start, &run)));
        // What was written already is written once more, with the same bytes.
        self.pending = pending;
        written?;
        for &start in &self.dirty {
            self.files.get(&start).expect("written files are open").sync_data().await?;
        }
        self.dirty.clear();
        if self.has_new_names {
            rt::fs::sync_dir(&self.dir).await?;
            self.has_new_names = false;
        }
        self.pending.clear();
        Ok(())
    }

    fn write(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let in_file = position % self.file_bytes;
        let start = position - in_file;
        if !self.files.contains_key(&start) {
            let path = self.dir.join(file_name(start));
            let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
            file.set_len(self.file_bytes)?;
            self.files.insert(start, file);
            self.has_new_names = true;
        }
        self.dirty.insert(start);
        self.files[&start].write_at(bytes, in_file)
    }

    /// Removes the oldest files whose last record lies before `log_min`: their messages are gone.
    pub(crate) async fn remove_before(&mut self, log_min: protocol::PhysicalOffset) -> io::Result<()> {
        let mut is_changed = false;
        while self.files.len() > 1 {
            let Some((&first, file)) = self.files.first_key_value() else { break };
            let mut bytes = [0; TimerUnit::BYTES];
            file.read_exact_at(&mut bytes, self.units_end() - TimerUnit::BYTES as u64).await?;
            if TimerUnit::decode(&bytes).is_none_or(|unit| unit.physical >= log_min) {
                break;
            }
            self.files.remove(&first);
            rt::fs::remove_file(self.dir.join(file_name(first)))?;
            is_changed = true;
        }
        if is_changed {
            rt::fs::sync_dir(&self.dir).await?;
        }
        Ok(())
    }
}

/// The files of a log, by their names; others are none of ours.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = match rt::fs::read_dir(dir) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    paths.retain(|path| layout::parse_file_name(path).is_some());
    paths.sort();
    Ok(paths)
}
