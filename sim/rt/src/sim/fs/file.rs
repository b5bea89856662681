//! What a program holds of a file and calls on paths: the API of the real half.
use super::directory::InodeId;
use super::disk::{Action, Disk, word};
use super::faults::{DiskError, DiskOperation};
use super::image::PAGE;
use super::tree::errno;
use crate::open_options::OpenOptions;
use crate::sim::node::NodeId;
use crate::sim::trace::Event;
use crate::sim::world::{World, try_world, world};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use xxhash_rust::xxh3::xxh3_64;

/// Kinds of operations in the trace.
mod kind {
    pub(super) const OPEN: u64 = 1;
    pub(super) const WRITE: u64 = 2;
    pub(super) const READ: u64 = 3;
    pub(super) const SYNC: u64 = 4;
    pub(super) const SET_LEN: u64 = 5;
    pub(super) const NAME: u64 = 6;
    pub(super) const SYNC_DIR: u64 = 7;
}

/// The error of a process that is ending or has ended: it has no effect any more, and nobody to tell.
fn void() -> io::Error {
    errno(libc::EBADF)
}

/// Begins an operation of the current node: counts it as a crash point and feeds the trace.
fn enter(what: u64) -> io::Result<&'static World> {
    let world = world();
    if !world.count_disk_operation() {
        world.here().disk.borrow_mut().effects.void += 1;
        return Err(void());
    }
    world.record(Event::Disk, what);
    Ok(world)
}

/// Runs `work` on the current node's disk.
fn with_disk<T>(what: u64, work: impl FnOnce(&World, &mut Disk) -> io::Result<T>) -> io::Result<T> {
    let world = enter(what)?;
    let mut disk = world.here().disk.borrow_mut();
    work(world, &mut disk)
}

/// As [`with_disk`], for a change of names.
fn with_names<T>(path: &Path, work: impl FnOnce(&mut Disk) -> io::Result<T>) -> io::Result<T> {
    with_disk(word(kind::NAME, 0, name_word(path)), |_, disk| {
        disk.strike(DiskOperation::Name, &path.to_string_lossy())?;
        work(disk)
    })
}

fn name_word(path: &Path) -> u64 {
    xxh3_64(path.as_os_str().as_encoded_bytes()) & 0xFFFF_FFFF
}

/// A process that ends in the present poll gets no answer any more.
async fn never_if_ending() {
    std::future::poll_fn(|_| if world().here().doomed.get().is_some() { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Waits for the device.
#[derive(Debug)]
struct Wait {
    node: NodeId,
    incarnation: u32,
    ticket: u32,
}

impl Wait {
    /// For a ticket of that disk; `None`: it is done already.
    fn new(world: &World, disk: &Disk, ticket: Option<u32>) -> Option<Wait> {
        let node = disk.node();
        let incarnation = world.at(node).incarnation.get();
        ticket.map(|ticket| Wait { node, incarnation, ticket })
    }

    async fn done(self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let node = world().at(self.node);
            if !node.serves(self.incarnation) {
                return if node.doomed.get().is_some() { Poll::Pending } else { Poll::Ready(Err(void())) };
            }
            node.disk.borrow_mut().poll_done(self.ticket, cx)
        })
        .await
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        let node = world.at(self.node);
        if node.serves(self.incarnation) {
            node.disk.borrow_mut().abandon(self.ticket);
        }
    }
}

impl OpenOptions {
    /// Opens `path`.
    pub fn open(self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        if !self.write && (self.create || self.create_new || self.truncate) {
            return Err(errno(libc::EINVAL));
        }
        with_disk(word(kind::OPEN, 0, name_word(path)), |world, disk| {
            disk.strike(DiskOperation::Open, &path.to_string_lossy())?;
            disk.may_open()?;
            let inode = self.find(disk, path)?;
            if self.write && disk.tree.is_directory(inode) {
                return Err(errno(libc::EISDIR));
            }
            if self.truncate && !self.create_new {
                let freed = disk.tree.file(inode)?.image.set_len(0);
                disk.pages_freed(freed);
            }
            disk.tree.opened(inode);
            let here = world.here();
            Ok(File(Arc::new(Handle {
                node: here.id,
                incarnation: here.incarnation.get(),
                inode,
                id: disk.take_handle(),
                write: self.write,
                path: path.to_string_lossy().into(),
            })))
        })
    }

    fn find(self, disk: &mut Disk, path: &Path) -> io::Result<InodeId> {
        match disk.tree.resolve(path) {
            Ok(_) if self.create_new => Err(errno(libc::EEXIST)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && (self.create || self.create_new) => {
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err(errno(libc::EISDIR));
                }
                disk.tree.create(path)
            }
            found => found,
        }
    }
}

/// An open file without a cursor. Clones share the open file.
#[derive(Clone, Debug)]
pub struct File(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    node: NodeId,
    incarnation: u32,
    inode: InodeId,
    id: u64,
    write: bool,
    path: Box<str>,
}

impl Handle {
    /// Begins an operation on the file and runs `work` on its disk, unless the handle is void.
    fn with<T>(&self, what: u64, work: impl FnOnce(&World, &mut Disk) -> io::Result<T>) -> io::Result<T> {
        let world = world();
        let node = world.at(self.node);
        if !node.serves(self.incarnation) {
            node.disk.borrow_mut().effects.void += 1;
            return Err(void());
        }
        let world = enter(what)?;
        work(world, &mut node.disk.borrow_mut())
    }

    async fn never_if_ending(&self) {
        std::future::poll_fn(|_| {
            let node = world().at(self.node);
            let ending = node.doomed.get().is_some() && node.incarnation.get() == self.incarnation;
            if ending { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        let node = world.at(self.node);
        if node.serves(self.incarnation) {
            let mut disk = node.disk.borrow_mut();
            let freed = disk.tree.closed(self.inode, self.id);
            disk.pages_freed(freed);
        }
    }
}

impl File {
    /// Opens for reading.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().open(path)
    }

    /// Writes all of `bytes` at `offset`, growing the file and filling a gap with zeros. Volatile until [`sync_data`](Self::sync_data).
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let handle = &*self.0;
        if !handle.write {
            return Err(errno(libc::EBADF));
        }
        check_range(offset, bytes.len())?;
        handle.with(word(kind::WRITE, u64::from(handle.inode.0), offset ^ (bytes.len() as u64) << 20), |world, disk| {
            if world.config.hash_payload {
                world.record(Event::Disk, xxh3_64(bytes));
            }
            disk.strike(DiskOperation::Write, &handle.path)?;
            disk.write_at(handle.inode, &handle.path, offset, bytes)
        })
    }

    /// Reads up to `out.len()` bytes at `offset`; fewer only at the end of the file, 0 beyond it.
    pub async fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let handle = &*self.0;
        check_range(offset, 0)?;
        let wait = match self.begin_read(offset, out.len()) {
            Ok(wait) => wait,
            Err(error) => {
                handle.never_if_ending().await;
                return Err(error);
            }
        };
        if let Some(wait) = wait {
            wait.done().await?;
        }
        let node = world().at(handle.node);
        if !node.serves(handle.incarnation) {
            return Err(void());
        }
        node.disk.borrow_mut().read_at(handle.inode, &handle.path, offset, out)
    }

    fn begin_read(&self, offset: u64, length: usize) -> io::Result<Option<Wait>> {
        let handle = &*self.0;
        handle.with(word(kind::READ, u64::from(handle.inode.0), offset ^ (length as u64) << 20), |world, disk| {
            disk.strike(DiskOperation::Read, &handle.path)?;
            disk.may_read(handle.inode, offset, length)?;
            let cold = disk.tree.file(handle.inode)?.image.warm(offset, length);
            let Some(latency) = disk.read_latency(cold) else { return Ok(None) };
            let ticket = disk.begin(world, Action::Read, latency);
            Ok(Wait::new(world, disk, ticket))
        })
    }

    /// Fills `out` from `offset`, or fails with `UnexpectedEof`.
    pub async fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(out, offset).await? == out.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Makes every byte written so far, and the length, survive a power loss. After an error the written bytes may be gone for
    /// good: never retry, stop.
    pub async fn sync_data(&self) -> io::Result<()> {
        match self.begin_sync() {
            Ok(Some(wait)) => wait.done().await,
            Ok(None) => Ok(()),
            Err(error) => {
                self.0.never_if_ending().await;
                Err(error)
            }
        }
    }

    fn begin_sync(&self) -> io::Result<Option<Wait>> {
        let handle = &*self.0;
        handle.with(word(kind::SYNC, u64::from(handle.inode.0), 0), |world, disk| {
            if disk.tree.is_directory(handle.inode) {
                return begin_sync_directory(world, disk, handle.inode, &handle.path);
            }
            begin_sync_file(world, disk, handle.inode, &handle.path)
        })
    }

    /// Cuts or zero-extends the file. Volatile until [`sync_data`](Self::sync_data).
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        let handle = &*self.0;
        if !handle.write {
            return Err(errno(libc::EINVAL));
        }
        check_range(len, 0)?;
        handle.with(word(kind::SET_LEN, u64::from(handle.inode.0), len), |_, disk| {
            disk.strike(DiskOperation::Write, &handle.path)?;
            disk.may_cut(handle.inode, len)?;
            let freed = disk.tree.file(handle.inode)?.image.set_len(len);
            disk.pages_freed(freed);
            Ok(())
        })
    }

    /// Present length in bytes.
    pub fn len(&self) -> io::Result<u64> {
        let handle = &*self.0;
        let node = world().at(handle.node);
        if !node.serves(handle.incarnation) {
            return Err(void());
        }
        let mut disk = node.disk.borrow_mut();
        if disk.tree.is_directory(handle.inode) {
            return Ok(PAGE as u64);
        }
        Ok(disk.tree.file(handle.inode)?.image.len())
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Takes the exclusive lock of this file, which ends with the process or the last clone; `WouldBlock` if another holds it.
    pub fn try_lock(&self) -> io::Result<()> {
        let handle = &*self.0;
        handle.with(word(kind::OPEN, 1, u64::from(handle.inode.0)), |_, disk| {
            let file = disk.tree.file(handle.inode)?;
            match file.locked_by {
                Some(other) if other != handle.id => Err(io::ErrorKind::WouldBlock.into()),
                _ => {
                    file.locked_by = Some(handle.id);
                    Ok(())
                }
            }
        })
    }
}

/// Offsets are signed in Linux.
fn check_range(offset: u64, length: usize) -> io::Result<()> {
    match i64::try_from(offset).ok().and_then(|offset| offset.checked_add(i64::try_from(length).ok()?)) {
        Some(_) => Ok(()),
        None => Err(errno(libc::EINVAL)),
    }
}

fn begin_sync_file(world: &World, disk: &mut Disk, inode: InodeId, path: &str) -> io::Result<Option<Wait>> {
    let sync = disk.take_sync();
    let struck = disk.struck(DiskOperation::Sync, path);
    disk.tree.file(inode)?.image.begin_sync(sync);
    disk.effects.syncs_failed += u64::from(struck.is_some());
    let action = match struck {
        Some(error) => Action::Fail { inode, sync: Some(sync), pages_stay: error == DiskError::IoPagesStay },
        None => Action::SyncFile { inode, sync },
    };
    let latency = disk.sync_latency();
    let ticket = disk.begin(world, action, latency);
    disk.show_sync(world, ticket, path);
    Ok(Wait::new(world, disk, ticket))
}

fn begin_sync_directory(world: &World, disk: &mut Disk, inode: InodeId, path: &str) -> io::Result<Option<Wait>> {
    let struck = disk.strike(DiskOperation::Sync, path).is_err();
    disk.effects.syncs_failed += u64::from(struck);
    let through = disk.tree.directory(inode)?.last_change();
    let failed = Action::Fail { inode, sync: None, pages_stay: false };
    let action = if struck { failed } else { Action::SyncDirectory { inode, through } };
    let latency = disk.sync_latency();
    let ticket = disk.begin(world, action, latency);
    disk.show_sync(world, ticket, path);
    Ok(Wait::new(world, disk, ticket))
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
    let path = path.as_ref();
    with_disk(word(kind::OPEN, 2, name_word(path)), |_, disk| {
        let inode = disk.tree.resolve(path)?;
        if disk.tree.is_directory(inode) {
            return Ok(Metadata { len: PAGE as u64, is_dir: true });
        }
        Ok(Metadata { len: disk.tree.file(inode)?.image.len(), is_dir: false })
    })
}

/// The whole file.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let file = match File::open(path.as_ref()) {
        Ok(file) => file,
        Err(error) => {
            never_if_ending().await;
            return Err(error);
        }
    };
    let mut out = vec![0; file.len()? as usize];
    let length = file.read_at(&mut out, 0).await?;
    out.truncate(length);
    Ok(out)
}

/// Full paths of the entries of a directory, sorted by name.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let path = path.as_ref();
    with_disk(word(kind::OPEN, 3, name_word(path)), |_, disk| {
        disk.may_open()?;
        let inode = disk.tree.resolve(path)?;
        Ok(disk.tree.directory(inode)?.names().map(|(name, _)| path.join(name)).collect())
    })
}

/// Creates one directory; `AlreadyExists` if the name is taken.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_names(path.as_ref(), |disk| disk.tree.create_dir(path.as_ref()))
}

/// Creates a directory and its missing parents.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match create_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = path.parent() else { return Err(error) };
            create_dir_all(parent)?;
            create_dir(path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match metadata(path) {
            Ok(Metadata { is_dir: true, .. }) => Ok(()),
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Removes a file's name; open handles go on. Volatile until [`sync_dir`].
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    with_names(path.as_ref(), |disk| disk.tree.remove_file(path.as_ref()))
}

/// Removes an empty directory.
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_names(path.as_ref(), |disk| disk.tree.remove_dir(path.as_ref()))
}

/// Gives a file another name, replacing what had it, in one step. Volatile until [`sync_dir`] of the directory.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    with_names(from.as_ref(), |disk| disk.tree.rename(from.as_ref(), to.as_ref()))
}

/// Makes the names of a directory survive a power loss.
pub async fn sync_dir(path: impl AsRef<Path>) -> io::Result<()> {
    match begin_sync_path(path.as_ref()) {
        Ok(Some(wait)) => wait.done().await,
        Ok(None) => Ok(()),
        Err(error) => {
            never_if_ending().await;
            Err(error)
        }
    }
}

fn begin_sync_path(path: &Path) -> io::Result<Option<Wait>> {
    with_disk(word(kind::SYNC_DIR, 0, name_word(path)), |world, disk| {
        disk.may_open()?;
        let inode = disk.tree.resolve(path)?;
        let path = path.to_string_lossy();
        if disk.tree.is_directory(inode) {
            begin_sync_directory(world, disk, inode, &path)
        } else {
            begin_sync_file(world, disk, inode, &path)
        }
    })
}

/// Bytes that may still be written on the file system that holds `path`, and its size in bytes.
pub fn free_bytes(path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
    with_disk(word(kind::OPEN, 4, name_word(path.as_ref())), |_, disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.space(inode))
    })
}
