//! Files by system calls: a write or a page-cache read is one call inline; a cold read and every sync leave the async threads.
use crate::open_options::OpenOptions;
use std::fs::{self, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl OpenOptions {
    /// Opens `path`.
    pub fn open(self, path: impl AsRef<Path>) -> io::Result<File> {
        fs::OpenOptions::new()
            .read(true)
            .write(self.write)
            .create(self.create)
            .create_new(self.create_new)
            .truncate(self.truncate)
            .open(path)
            .map(|file| File(Arc::new(file)))
    }
}

/// An open file without a cursor. Clones share the open file.
#[derive(Clone, Debug)]
pub struct File(Arc<fs::File>);

impl File {
    /// Opens for reading.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().open(path)
    }

    /// Writes all of `bytes` at `offset`, growing the file and filling a gap with zeros. Volatile until [`sync_data`](Self::sync_data).
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    /// Reads up to `out.len()` bytes at `offset`; fewer only at the end of the file, 0 beyond it.
    pub async fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let done = self.read_cached(out, offset)?;
        if done == out.len() {
            return Ok(done);
        }
        let (file, len, from) = (Arc::clone(&self.0), out.len() - done, offset + done as u64);
        let rest = blocking(move || read_up_to(&file, len, from)).await?;
        out[done..done + rest.len()].copy_from_slice(&rest);
        Ok(done + rest.len())
    }

    /// Fills `out` from `offset`, or fails with `UnexpectedEof`.
    pub async fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(out, offset).await? == out.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Makes every byte written so far, and the length, survive a power loss. After an error the written bytes may be gone for
    /// good: never retry, stop.
    pub async fn sync_data(&self) -> io::Result<()> {
        let file = Arc::clone(&self.0);
        blocking(move || file.sync_data()).await
    }

    /// Cuts or zero-extends the file. Volatile until [`sync_data`](Self::sync_data).
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// Present length in bytes.
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Takes the exclusive lock of this file, which ends with the process or the last clone; `WouldBlock` if another holds it.
    pub fn try_lock(&self) -> io::Result<()> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    }

    /// Reads what the page cache holds, without waiting for the device.
    fn read_cached(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let Ok(position) = libc::off_t::try_from(offset) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let part = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        // SAFETY: `part` points to `out`, which outlives the call; the descriptor is open as long as `self`.
        let read = unsafe { libc::preadv2(self.0.as_raw_fd(), &raw const part, 1, position, libc::RWF_NOWAIT) };
        // EAGAIN (cold), EOPNOTSUPP and EINTR alike send the caller to the blocking pool, which reports a real error.
        Ok(usize::try_from(read).unwrap_or(0))
    }
}

fn read_up_to(file: &fs::File, len: usize, from: u64) -> io::Result<Vec<u8>> {
    let (mut out, mut done) = (vec![0; len], 0);
    while done < len {
        match file.read_at(&mut out[done..], from + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.truncate(done);
    Ok(out)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// What a directory knows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes (of a directory: unspecified).
    pub len: u64,
    /// Whether the name is a directory.
    pub is_dir: bool,
}

/// What `path` is; `NotFound` if there is no such name.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    fs::metadata(path).map(|m| Metadata { len: m.len(), is_dir: m.is_dir() })
}

/// The whole file.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    blocking(move || fs::read(path)).await
}

/// Full paths of the entries of a directory, sorted by name.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(path)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// Creates one directory; `AlreadyExists` if the name is taken.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    fs::create_dir(path)
}

/// Creates a directory and its missing parents.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Removes a file's name; open handles go on. Volatile until [`sync_dir`].
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes an empty directory.
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Gives a file another name, replacing what had it, in one step. Volatile until [`sync_dir`] of the directory.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    fs::rename(from, to)
}

/// Makes the names of a directory survive a power loss.
pub async fn sync_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking(move || fs::File::open(path)?.sync_all()).await
}

/// Bytes that may still be written on the file system that holds `path`, and its size in bytes.
pub fn free_bytes(path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_ref().as_os_str().as_bytes())?;
    let mut out = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` is a C string, and `out` has room for the answer, read only after success.
    let out = unsafe {
        if libc::statvfs(path.as_ptr(), out.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        out.assume_init()
    };
    Ok((out.f_bavail * out.f_frsize, out.f_blocks * out.f_frsize))
}
