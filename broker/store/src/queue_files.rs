//! The files of one queue: of one length, without a hole, each named by the place of its first byte in the queue.
use crate::layout;
use crate::open_files::{OpenFiles, PooledFile};
use rt::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct QueueFiles {
    dir: PathBuf,
    file_bytes: u64,
    pool: Arc<OpenFiles>,
    /// Sorted by start, contiguous.
    files: Vec<QueueFile>,
    /// Counts changes of the files' names, and up to which count they survive a power loss.
    names: u64,
    names_synced: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct QueueFile {
    /// Place in the queue of the file's first byte.
    pub(crate) start: u64,
    pub(crate) file: PooledFile,
    dirty_bytes: u64,
}

/// What was written and is not known to survive a power loss.
pub(crate) struct Unsynced {
    dir: PathBuf,
    files: Vec<QueueFile>,
    names: u64,
    is_named: bool,
}

/// A part of a file that may be read without a lock.
pub(crate) struct Readable {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// In the file.
    pub(crate) position: u64,
    /// From there to the file's end.
    pub(crate) length: u64,
}

impl QueueFiles {
    /// No files. Nothing is created on disk before something is written.
    pub(crate) fn new(dir: PathBuf, file_bytes: u64, pool: Arc<OpenFiles>) -> QueueFiles {
        assert!(file_bytes > 0, "a file holds something");
        QueueFiles { dir, file_bytes, pool, files: Vec::new(), names: 0, names_synced: 0 }
    }

    /// Opens files that are there. `Err` with the path if one is too long.
    pub(crate) fn adopt(&mut self, paths: &[(u64, PathBuf)], is_named: bool) -> io::Result<Result<(), (PathBuf, u64)>> {
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
            let file = PooledFile::new(&self.pool, path.clone(), file);
            files.push(QueueFile { start: *start, file, dirty_bytes: 0 });
        }
        self.files = files;
        self.names += u64::from(!is_named);
        Ok(Ok(()))
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Where the first file begins; none without files.
    pub(crate) fn start(&self) -> Option<u64> {
        self.files.first().map(|file| file.start)
    }

    /// Where the last file ends.
    pub(crate) fn end(&self) -> u64 {
        self.files.last().map_or(0, |file| file.start + self.file_bytes)
    }

    pub(crate) fn all(&self) -> &[QueueFile] {
        &self.files
    }

    /// The file that holds the byte at `position`, from there on; none if there is none (any more).
    pub(crate) fn at(&self, position: u64) -> io::Result<Option<Readable>> {
        let Some(index) = self.files.partition_point(|file| file.start <= position).checked_sub(1) else {
            return Ok(None);
        };
        let Some(file) = self.files.get(index).filter(|file| position < file.start + self.file_bytes) else {
            return Ok(None);
        };
        let handle = match file.file.get() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let in_file = position - file.start;
        let (path, length) = (file.file.path().to_owned(), self.file_bytes - in_file);
        Ok(Some(Readable { file: handle, path, position: in_file, length }))
    }

    /// Writes bytes from `position` on, over as many files as they take. After an error the call may be repeated.
    pub(crate) fn write(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let position = position + done as u64;
            let index = self.file_for(position)?;
            let at = position - self.files[index].start;
            let rest = bytes.len() - done;
            let length = usize::try_from(self.file_bytes - at).map_or(rest, |room| room.min(rest));
            self.files[index].file.get()?.write_at(&bytes[done..done + length], at)?;
            self.files[index].dirty_bytes += length as u64;
            done += length;
        }
        Ok(())
    }

    fn file_for(&mut self, position: u64) -> io::Result<usize> {
        let holds = |file: &QueueFile| file.start <= position && position < file.start + self.file_bytes;
        if let Some(index) = self.files.iter().rposition(holds) {
            return Ok(index);
        }
        let start = position - position % self.file_bytes;
        assert!(self.files.last().is_none_or(|last| last.start < start), "files are created in order");
        if self.files.is_empty() {
            rt::fs::create_dir_all(&self.dir)?;
        }
        let path = self.dir.join(layout::file_name(start));
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.set_len(self.file_bytes)?;
        let file = PooledFile::new(&self.pool, path, file);
        self.files.push(QueueFile { start, file, dirty_bytes: 0 });
        self.names += 1;
        Ok(self.files.len() - 1)
    }

    /// Removes the files behind `position` and clears the rest of the file that holds it, or that is the first left of a queue whose
    /// older files were removed.
    pub(crate) fn clear_from(&mut self, position: u64) -> io::Result<()> {
        while let Some(file) = self.files.last() {
            let says_next = file.start == position && position > 0 && self.files.len() == 1;
            if file.start >= position && !says_next {
                rt::fs::remove_file(file.file.path())?;
                self.files.pop();
                self.names += 1;
                continue;
            }
            let at = position - file.start;
            if at < self.file_bytes {
                let handle = file.file.get()?;
                handle.set_len(at)?;
                handle.set_len(self.file_bytes)?;
                self.files.last_mut().expect("looked at above").dirty_bytes += layout::PAGE;
            }
            break;
        }
        Ok(())
    }

    /// Removes the oldest file if it ends at or below `position` and is not the last one; its directory, which has to be synced before the
    /// next one goes.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) fn remove_oldest_below(&mut self, position: u64) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
        let is_below = |file: &&QueueFile| self.files.len() > 1 && file.start + self.file_bytes <= position;
        let Some(oldest) = self.files.first().filter(is_below) else { return Ok(None) };
        match rt::fs::remove_file(oldest.file.path()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err((oldest.file.path().to_owned(), source));
            }
            _ => {}
        }
        self.files.remove(0);
        Ok(Some(self.dir.clone()))
    }

    /// Bytes written since the last sync.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.dirty_bytes).sum()
    }

    /// Whether there is anything to sync: bytes, or names.
    pub(crate) fn is_dirty(&self) -> bool {
        self.names != self.names_synced || self.files.iter().any(|file| file.dirty_bytes > 0)
    }

    pub(crate) fn unsynced(&self) -> Unsynced {
        Unsynced {
            dir: self.dir.clone(),
            files: self.files.iter().filter(|file| file.dirty_bytes > 0).cloned().collect(),
            names: self.names,
            is_named: self.names == self.names_synced,
        }
    }

    /// What [`unsynced`](Self::unsynced) gave survives a power loss now.
    pub(crate) fn synced(&mut self, synced: &Unsynced) {
        for synced in &synced.files {
            if let Some(file) = self.files.iter_mut().find(|file| file.start == synced.start) {
                file.dirty_bytes = file.dirty_bytes.saturating_sub(synced.dirty_bytes);
            }
        }
        self.names_synced = synced.names;
    }

    pub(crate) fn check_invariants(&self) {
        for pair in self.files.windows(2) {
            assert_eq!(pair[0].start + self.file_bytes, pair[1].start, "files are contiguous");
        }
    }
}

impl Unsynced {
    /// Makes it survive a power loss, the names up to the directory `root`.
    pub(crate) async fn sync(&self, root: &Path) -> Result<(), (PathBuf, io::Error)> {
        for file in &self.files {
            let failed = |error| (file.file.path().to_owned(), error);
            file.file.get().map_err(failed)?.sync_data().await.map_err(failed)?;
        }
        if !self.is_named {
            let topic_dir = self.dir.parent().unwrap_or(root);
            for dir in [self.dir.as_path(), topic_dir, root] {
                rt::fs::sync_dir(dir).await.map_err(|error| (dir.to_owned(), error))?;
            }
        }
        Ok(())
    }
}

/// The files of a queue's directory by where they begin, in order. `Err` with the path of a file that is none.
pub(crate) fn files_of(dir: &Path, file_bytes: u64) -> io::Result<Result<Vec<(u64, PathBuf)>, PathBuf>> {
    let mut files = Vec::new();
    for path in rt::fs::read_dir(dir)? {
        match layout::parse_file_name(&path).filter(|start| start.is_multiple_of(file_bytes)) {
            Some(start) => files.push((start, path)),
            None => return Ok(Err(path)),
        }
    }
    files.sort();
    Ok(Ok(files))
}
