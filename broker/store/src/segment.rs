//! One commit-log file: always of full length, zero where nothing was written.
use crate::error::{ReadError, StoreError};
use crate::layout;
use bytes::Bytes;
use protocol::PhysicalOffset;
use rt::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// An open segment. Shared by readers, the appender and the flusher; the bytes below the log's end never change, except by
/// truncation.
#[derive(Debug)]
pub(crate) struct Segment {
    start: PhysicalOffset,
    size: u64,
    path: PathBuf,
    file: File,
    /// Whether the directory entry survives a power loss. Until then nothing in the file may count as flushed.
    named: AtomicBool,
}

impl Segment {
    /// Creates the segment that starts at log offset `start`. A left-over of the same name is emptied first, so that old bytes
    /// are never read as records.
    pub(crate) fn create(dir: &Path, start: PhysicalOffset, size: u64) -> io::Result<Segment> {
        let path = segment_path(dir, start);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.set_len(size)?;
        Ok(Segment { start, size, path, file, named: AtomicBool::new(false) })
    }

    /// Opens an existing segment. One that a crash left short is extended with zeros.
    pub(crate) fn open(path: PathBuf, start: PhysicalOffset, size: u64) -> Result<Segment, StoreError> {
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Io { action, path, source }
        };
        let file = OpenOptions::new().write(true).open(&path).map_err(io("open", &path))?;
        let length = file.len().map_err(io("measure", &path))?;
        if length > size {
            return Err(StoreError::FileLength { path, length, expected: size });
        }
        if length < size {
            file.set_len(size).map_err(io("extend", &path))?;
        }
        Ok(Segment { start, size, path, file, named: AtomicBool::new(false) })
    }

    pub(crate) fn start(&self) -> PhysicalOffset {
        self.start
    }

    /// Log offset behind the last byte of the file.
    pub(crate) fn end(&self) -> PhysicalOffset {
        self.start + i64::try_from(self.size).expect("segment sizes are checked by the configuration")
    }

    pub(crate) fn contains(&self, at: PhysicalOffset) -> bool {
        self.start <= at && at < self.end()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `bytes` at log offset `at`, all of them inside this segment.
    pub(crate) fn write(&self, at: PhysicalOffset, bytes: &[u8]) -> io::Result<()> {
        let position = self.position(at);
        assert!(position + bytes.len() as u64 <= self.size, "a write crosses the segment's end");
        self.file.write_at(bytes, position)
    }

    /// Reads `length` bytes at log offset `at`, all of them inside this segment.
    pub(crate) async fn read(&self, at: PhysicalOffset, length: usize) -> Result<Bytes, ReadError> {
        let mut out = vec![0; length];
        self.read_into(at, &mut out).await?;
        Ok(out.into())
    }

    /// Fills `out` from log offset `at`.
    pub(crate) async fn read_into(&self, at: PhysicalOffset, out: &mut [u8]) -> Result<(), ReadError> {
        let position = self.position(at);
        assert!(position + out.len() as u64 <= self.size, "a read crosses the segment's end");
        let failed = |source| ReadError::Io { path: self.path.clone(), position, source };
        self.file.read_exact_at(out, position).await.map_err(failed)
    }

    /// Makes all bytes and the length survive a power loss.
    pub(crate) async fn sync(&self) -> io::Result<()> {
        self.file.sync_data().await
    }

    /// Replaces everything from log offset `at` by zeros. Volatile until [`sync`](Self::sync).
    pub(crate) fn clear_from(&self, at: PhysicalOffset) -> io::Result<()> {
        assert!(self.start <= at && at <= self.end(), "the cut lies in this segment");
        self.file.set_len(layout_position(self.start, at))?;
        self.file.set_len(self.size)
    }

    pub(crate) fn is_named(&self) -> bool {
        self.named.load(Ordering::Acquire)
    }

    /// The directory was synced after this file was created or opened.
    pub(crate) fn set_named(&self) {
        self.named.store(true, Ordering::Release);
    }

    fn position(&self, at: PhysicalOffset) -> u64 {
        assert!(self.start <= at && at <= self.end(), "log offset {at} is not in the segment at {}", self.start);
        layout_position(self.start, at)
    }
}

pub(crate) fn segment_path(dir: &Path, start: PhysicalOffset) -> PathBuf {
    dir.join(layout::file_name(u64::try_from(start.0).expect("log offsets are not negative")))
}

fn layout_position(start: PhysicalOffset, at: PhysicalOffset) -> u64 {
    u64::try_from(at - start).expect("not before the segment's start")
}
