//! Disk faults and a look at any node's files, for the experimenter: `rt::world::disk`.
pub(super) mod damage;

pub use damage::{
    add_anomaly, add_quota, durable_len, fail_sectors, files, flip_bit, limit_open_files, remove_anomaly,
    restore_sectors,
};

use super::config::DiskLatency;
use super::disk::Disk;
use super::effects::DiskEffects;
use super::faults::{DiskFault, DiskFaultId};
use crate::sim::node::NodeId;
use crate::sim::trace::Event;
use crate::sim::world::world;
use std::io;
use std::path::{Path, PathBuf};

fn with<T>(node: NodeId, what: u64, work: impl FnOnce(&mut Disk) -> T) -> T {
    let world = world();
    world.record_as(Event::Fault, node.index() as u32, what << 40);
    work(&mut world.at(node).disk.borrow_mut())
}

fn look<T>(node: NodeId, work: impl FnOnce(&mut Disk) -> T) -> T {
    work(&mut world().at(node).disk.borrow_mut())
}

/// Lets matching operations of the node fail until [`remove`].
pub fn inject(node: NodeId, fault: DiskFault) -> DiskFaultId {
    with(node, 1, |disk| disk.faults.add(fault))
}

/// Ends one fault.
pub fn remove(node: NodeId, fault: DiskFaultId) {
    with(node, 2, |disk| disk.faults.remove(fault));
}

/// Sets the size of the node's disk: less than what is used means that it is full.
pub fn set_capacity(node: NodeId, bytes: u64) {
    with(node, 3, |disk| disk.config.capacity_bytes = bytes);
}

/// Lets syncs take that long; `None`: as usual.
pub fn slow_sync(node: NodeId, latency: Option<DiskLatency>) {
    with(node, 4, |disk| disk.slow_sync = latency);
}

/// Lets every read take that long, cached or not; `None`: as usual.
pub fn slow_read(node: NodeId, latency: Option<DiskLatency>) {
    with(node, 5, |disk| disk.slow_read = latency);
}

/// Lets no sync and no read end until [`unstall`]. Writes into the page cache go on. Counted, so overlapping faults heal one by one.
pub fn stall(node: NodeId) {
    with(node, 6, |disk| disk.stalls += 1);
}

/// Takes one [`stall`] back.
pub fn unstall(node: NodeId) {
    let world = world();
    with(node, 7, |disk| {
        disk.stalls = disk.stalls.saturating_sub(1);
        if disk.stalls == 0 {
            disk.release(world);
        }
    });
}

/// Ends every fault of the node's disk and gives it the size it had in the run's configuration. Bits that have flipped and writes
/// that went astray stay.
pub fn heal(node: NodeId) {
    let world = world();
    let capacity = world.config.disk.capacity_bytes;
    with(node, 8, |disk| {
        disk.faults.clear();
        disk.slow_sync = None;
        disk.slow_read = None;
        disk.stalls = 0;
        disk.open_files_max = None;
        disk.tree.restore_sectors();
        disk.config.capacity_bytes = capacity;
        disk.release(world);
    });
}

/// What the node's disk did so far.
pub fn effects(node: NodeId) -> DiskEffects {
    look(node, |disk| disk.effects)
}

/// A file as programs on the node read it. Costs no time and is no operation of the node.
pub fn read_file(node: NodeId, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    look(node, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.tree.file(inode)?.image.cached_bytes())
    })
}

/// The part of a file that is certain to survive a power loss; `NotFound` if its name is not.
pub fn read_durable(node: NodeId, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    look(node, |disk| {
        let inode = disk.tree.resolve_durable(path.as_ref())?;
        Ok(disk.tree.file(inode)?.image.durable_bytes())
    })
}

/// Full paths of a directory's entries on the node, sorted.
pub fn list(node: NodeId, path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    look(node, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.tree.directory(inode)?.names().map(|(name, _)| path.as_ref().join(name)).collect())
    })
}

/// Full paths of a directory's entries that are certain to survive a power loss, sorted.
pub fn list_durable(node: NodeId, path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    look(node, |disk| {
        let inode = disk.tree.resolve_durable(path.as_ref())?;
        Ok(disk.tree.directory(inode)?.durable_names().map(|(name, _)| path.as_ref().join(name)).collect())
    })
}

/// How many files the node's programs hold open: a leak shows here.
pub fn open_files(node: NodeId) -> u64 {
    look(node, |disk| disk.tree.open_files())
}

/// Whether the file has bytes or a length that a power loss may take.
pub fn is_dirty(node: NodeId, path: impl AsRef<Path>) -> io::Result<bool> {
    look(node, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.tree.file(inode)?.image.is_dirty())
    })
}

/// Replaces a file, in the cache and on the platter: to damage bytes, or to plant a file that was always there (its directories
/// with it). Open handles see it.
pub fn write_file(node: NodeId, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    with(node, 9, |disk| {
        let path = path.as_ref();
        disk.tree.plant(path, bytes)?;
        let pages = disk.tree.pages();
        disk.set_pages(pages);
        Ok(())
    })
}

/// A new, empty file system: the machine was replaced. End the node before.
///
/// # Panics
/// If the node still has tasks, which would hold files of the old one.
pub fn wipe(node: NodeId) {
    assert_eq!(world().executor.tasks_of(node), 0, "end the node before its disk is wiped");
    with(node, 10, Disk::wipe);
}

/// Checks the invariants of the node's file system.
pub fn check_invariants(node: NodeId) {
    look(node, |disk| disk.check_invariants());
}
