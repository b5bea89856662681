//! Files that are opened when they are used; of too many, those are closed that were not used of late.
//!
//! Bytes of a closed file that are not synced stay with the system: a sync through the next handle covers them, and an error that came
//! meanwhile is told to that handle (Linux since 4.17; a file that the system has forgotten altogether is the exception, and what is kept
//! in such files is checked against the log at each read).
use rt::fs::{File, OpenOptions};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

/// How many files may be open, and which are, the one that is looked at next for closing in front.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    max: usize,
    is_written: bool,
    open: Mutex<VecDeque<Weak<Shared>>>,
}

/// A file by its name, and the handle if there is one.
#[derive(Clone, Debug)]
pub(crate) struct PooledFile(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    pool: Arc<OpenFiles>,
    handle: Mutex<Handle>,
}

#[derive(Debug)]
struct Handle {
    file: Option<File>,
    /// Since it was last looked at.
    is_used: bool,
}

impl OpenFiles {
    pub(crate) fn new(max: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles { max: max.max(1), is_written: true, open: Mutex::default() })
    }

    /// Of files that are only read, and perhaps may only be read.
    pub(crate) fn read_only(max: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles { max: max.max(1), is_written: false, open: Mutex::default() })
    }

    /// One more is open. Whoever was used since the last look is passed over once (the clock algorithm).
    fn admit(&self, file: &Arc<Shared>) {
        let max = if rt::buggify!("store.few_open_files") { 1 } else { self.max };
        let mut open = self.open.lock().expect("no code that can panic runs under this lock");
        open.push_back(Arc::downgrade(file));
        while open.len() > max {
            let Some(oldest) = open.pop_front() else { return };
            let Some(shared) = oldest.upgrade() else { continue };
            let mut handle = shared.lock();
            if handle.is_used && !Arc::ptr_eq(&shared, file) {
                handle.is_used = false;
                open.push_back(oldest);
            } else {
                handle.file = None;
            }
        }
    }
}

impl PooledFile {
    /// A file that was just opened or created under this name.
    pub(crate) fn new(pool: &Arc<OpenFiles>, path: PathBuf, file: File) -> PooledFile {
        let handle = Mutex::new(Handle { file: Some(file), is_used: false });
        let shared = Arc::new(Shared { path, pool: Arc::clone(pool), handle });
        pool.admit(&shared);
        PooledFile(shared)
    }

    /// A file that is opened when it is needed.
    pub(crate) fn closed(pool: &Arc<OpenFiles>, path: PathBuf) -> PooledFile {
        let handle = Mutex::new(Handle { file: None, is_used: false });
        PooledFile(Arc::new(Shared { path, pool: Arc::clone(pool), handle }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// A handle, which stays open as long as it is held.
    ///
    /// # Errors
    /// The file could not be opened again; `NotFound`: it was removed.
    pub(crate) fn get(&self) -> io::Result<File> {
        let file = {
            let mut handle = self.0.lock();
            handle.is_used = true;
            if let Some(file) = &handle.file {
                return Ok(file.clone());
            }
            let file = OpenOptions::new().write(self.0.pool.is_written).open(&self.0.path)?;
            handle.file = Some(file.clone());
            file
        };
        rt::probe!("store.queue_file.opened_again");
        self.0.pool.admit(&self.0);
        Ok(file)
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Handle> {
        self.handle.lock().expect("no code that can panic runs under this lock")
    }
}
