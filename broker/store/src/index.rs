//! The index of keys: which places in the log a message key may name. A row of [`IndexFile`]s, the last of which grows.
//!
//! Invariants:
//! - Files follow each other in the order of the log; all but the last are full and synced.
//! - What is indexed is a prefix of the log's messages, up to [`Index::end`]; a message is indexed as a whole or, behind a crash, again.
mod file;

use crate::error::ReadError;
use crate::layout::{IndexHeader, IndexSizes, key_hash};
use chrono::DateTime;
use file::{IndexFile, Wanted};
use protocol::PhysicalOffset;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// All files of a store's index.
#[derive(Debug)]
pub(crate) struct Index {
    dir: PathBuf,
    /// None: there is no index, and nothing is found.
    sizes: Option<IndexSizes>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In the order of their names.
    files: Vec<Arc<IndexFile>>,
    /// Counts changes of the files' names, and up to which count they survive a power loss.
    names: u64,
    names_synced: u64,
}

impl Index {
    /// An index that takes nothing.
    pub(crate) fn disabled() -> Index {
        Index { dir: PathBuf::new(), sizes: None, state: Mutex::new(State::of(Vec::new())) }
    }

    /// Opens the files of a directory. After a crash (`is_clean` is false) what lies from `synced` on is given up; full files below are what
    /// they say, all others are looked through. `None`: it is not known what was synced.
    ///
    /// # Errors
    /// With the path that the disk failed at. A file of another name is passed over: it is none of ours.
    pub(crate) async fn open(
        dir: PathBuf,
        sizes: IndexSizes,
        is_clean: bool,
        synced: Option<PhysicalOffset>,
    ) -> Result<Index, (PathBuf, io::Error)> {
        let mut paths = rt::fs::read_dir(&dir).map_err(|source| (dir.clone(), source))?;
        paths.retain(|path| creation_time(path).is_some());
        paths.sort();
        let mut files: Vec<Arc<IndexFile>> = Vec::new();
        for path in paths {
            if let Some(empty) = files.pop_if(|before| before.header().count <= 1) {
                // It was made on a full disk, or just before a crash.
                rt::fs::remove_file(empty.path()).map_err(|source| (empty.path().to_owned(), source))?;
            }
            if files.last().is_some_and(|before| !before.header().is_full(sizes)) {
                // Nothing follows a file that is not full.
                rt::fs::remove_file(&path).map_err(|source| (path.clone(), source))?;
                continue;
            }
            let opened = IndexFile::open(path.clone(), sizes, |header| {
                is_clean || (header.is_full(sizes) && synced.is_none_or(|synced| header.end < synced))
            });
            let file = match opened.await {
                Ok(Some(file)) => Ok(file),
                Ok(None) => IndexFile::recover(path.clone(), sizes, synced).await,
                Err(error) => Err(error),
            };
            files.push(Arc::new(file.map_err(|source| (path, source))?));
        }
        let index = Index { dir, sizes: Some(sizes), state: Mutex::new(State::of(files)) };
        if let Some(synced) = synced.filter(|_| !is_clean) {
            index.keep_below(synced).await?;
        }
        Ok(index)
    }

    /// Store time of the newest message that is indexed, Unix milliseconds, and its place; zeros if there is none.
    pub(crate) fn newest(&self) -> (i64, PhysicalOffset) {
        let header = self.lock().files.last().map(|file| file.header());
        header.map_or((0, PhysicalOffset::ZERO), |header| (header.end_ms, header.end))
    }

    /// Messages before it are indexed; the one that begins there is, at least in part.
    pub(crate) fn end(&self) -> PhysicalOffset {
        self.newest().1
    }

    /// Indexes a message under its keys, in the order of the log; one that is indexed already is passed over. `now_ms`: names a file
    /// that has to be made.
    ///
    /// # Errors
    /// A new file could not be made.
    pub(crate) fn put<'a>(
        &self,
        topic: &str,
        keys: impl IntoIterator<Item = &'a str>,
        physical: PhysicalOffset,
        store_ms: i64,
        now_ms: i64,
    ) -> io::Result<()> {
        let Some(sizes) = self.sizes.filter(|_| physical >= self.end()) else { return Ok(()) };
        for key in keys {
            let hash = key_hash(topic, key);
            let last = self.lock().files.last().cloned();
            if last.as_ref().is_some_and(|file| file.put(hash, physical, store_ms)) {
                continue;
            }
            let next = self.roll(sizes, last.as_deref(), now_ms)?;
            assert!(next.put(hash, physical, store_ms), "a new file has room");
        }
        Ok(())
    }

    fn roll(&self, sizes: IndexSizes, full: Option<&IndexFile>, now_ms: i64) -> io::Result<Arc<IndexFile>> {
        let after = full.and_then(|file| creation_time(file.path())).unwrap_or(0);
        // Names rise, whatever the clock does, and two files of one millisecond have two names.
        let name = file_name(now_ms).max(after + 1);
        let path = self.dir.join(format!("{name:017}"));
        let file = Arc::new(IndexFile::create(path, sizes, full.map(IndexFile::header))?);
        let mut state = self.lock();
        state.files.push(Arc::clone(&file));
        state.names += 1;
        Ok(file)
    }

    /// Writes all entries to their files, so that they survive the end of the process.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        // Rolling is rare: all but the last two have nothing to write.
        let files = self.lock().files.clone();
        files.iter().rev().take(2).rev().try_for_each(|file| file.write_pending())
    }

    /// Makes all entries survive a power loss.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn sync(&self) -> Result<(), (PathBuf, io::Error)> {
        let (files, names) = {
            let state = self.lock();
            (state.files.clone(), state.names)
        };
        for file in &files {
            file.sync().await.map_err(|source| (file.path().to_owned(), source))?;
        }
        if self.sizes.is_some() && self.lock().names_synced < names {
            rt::fs::sync_dir(&self.dir).await.map_err(|source| (self.dir.clone(), source))?;
            self.lock().names_synced = names;
        }
        Ok(())
    }

    /// Gives up what names places from `limit` on.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn keep_below(&self, limit: PhysicalOffset) -> Result<(), (PathBuf, io::Error)> {
        loop {
            let Some(last) = self.lock().files.last().cloned() else { return Ok(()) };
            last.keep_below(limit).await.map_err(|source| (last.path().to_owned(), source))?;
            let IndexHeader { count, .. } = last.header();
            if count > 1 {
                return Ok(());
            }
            // An empty file has no begin of its own: the next one to be made has.
            rt::fs::remove_file(last.path()).map_err(|source| (last.path().to_owned(), source))?;
            let mut state = self.lock();
            state.files.pop();
            state.names += 1;
        }
    }

    /// Removes the files whose last message lies before `min`, but never the last file.
    ///
    /// # Errors
    /// With the path that could not be removed.
    pub(crate) fn remove_below(&self, min: PhysicalOffset) -> Result<(), (PathBuf, io::Error)> {
        loop {
            let oldest = {
                let state = self.lock();
                state.files.first().filter(|file| state.files.len() > 1 && file.header().end < min).cloned()
            };
            let Some(oldest) = oldest else { return Ok(()) };
            rt::fs::remove_file(oldest.path()).map_err(|source| (oldest.path().to_owned(), source))?;
            let mut state = self.lock();
            state.files.remove(0);
            state.names += 1;
        }
    }

    /// Places of at most `most` messages that may have the key and were stored between the times (Unix milliseconds, both included),
    /// newest first.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) async fn find(
        &self,
        topic: &str,
        key: &str,
        most: usize,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<PhysicalOffset>, ReadError> {
        let wanted = Wanted { hash: key_hash(topic, key), from_ms, until_ms };
        let files = self.lock().files.clone();
        let mut found = Vec::new();
        for file in files.iter().rev() {
            let header = file.header();
            if header.begin_ms <= until_ms && header.end_ms >= from_ms {
                let done = file.find(wanted, most, &mut found).await;
                done.map_err(|source| ReadError::Io { path: file.path().to_owned(), position: 0, source })?;
            }
            if found.len() >= most || header.begin_ms < from_ms {
                break;
            }
        }
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code that can panic runs under this lock")
    }
}

impl State {
    fn of(files: Vec<Arc<IndexFile>>) -> State {
        State { files, names: 1, names_synced: 0 }
    }
}

/// The number that a file's name is.
pub(crate) fn creation_time(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    (name.len() == 17 && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok())?
}

/// `yyyyMMddHHmmssSSS` in UTC. (Apache's broker names by local time; only the order counts.)
fn file_name(now_ms: i64) -> u64 {
    let time = DateTime::from_timestamp_millis(now_ms).unwrap_or_default();
    time.format("%Y%m%d%H%M%S%3f").to_string().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests;
