//! Damage that a program is not told of, and limits on what it may use.
use super::super::directory::InodeId;
use super::super::faults::{DiskAnomaly, DiskFaultId};
use super::super::tree::components;
use super::{look, with};
use crate::sim::node::NodeId;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Sectors of one file that [`fail_sectors`] made unreadable, to end that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSectors {
    inode: InodeId,
    range: Range<u64>,
    count: u64,
}

impl BadSectors {
    /// How many sectors became unreadable by it.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Full paths of all files of the node, sorted.
pub fn files(node: NodeId) -> Vec<PathBuf> {
    look(node, |disk| disk.tree.files())
}

/// Bytes of the file that are on the platter, where bits may rot and sectors fail.
pub fn durable_len(node: NodeId, path: impl AsRef<Path>) -> io::Result<u64> {
    look(node, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.tree.file(inode)?.image.durable_len())
    })
}

/// Lets the sectors of the platter that hold those bytes of a file be unreadable (`EIO`), each until it is written again as a whole.
pub fn fail_sectors(node: NodeId, path: impl AsRef<Path>, range: Range<u64>) -> io::Result<BadSectors> {
    with(node, 11, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        let count = disk.tree.file(inode)?.image.fail_sectors(&range);
        Ok(BadSectors { inode, range, count })
    })
}

/// Lets them be read again, with what was in them; says how many still could not.
pub fn restore_sectors(node: NodeId, bad: &BadSectors) -> u64 {
    with(node, 12, |disk| disk.tree.file(bad.inode).map_or(0, |file| file.image.restore_sectors(&bad.range)))
}

/// Flips one bit of a file at rest: in the cache and on the platter. False: nothing is at rest there, because it was not written
/// or is about to be.
pub fn flip_bit(node: NodeId, path: impl AsRef<Path>, offset: u64, bit: u8) -> io::Result<bool> {
    with(node, 13, |disk| {
        let inode = disk.tree.resolve(path.as_ref())?;
        Ok(disk.tree.file(inode)?.image.flip_bit(offset, bit))
    })
}

/// Lets the next operation that can show it do so, once, at files whose path contains the text.
pub fn add_anomaly(node: NodeId, anomaly: DiskAnomaly, path_contains: Option<String>) -> DiskFaultId {
    with(node, 14, |disk| disk.faults.add_anomaly(anomaly, path_contains))
}

/// Takes an anomaly back; false if it has struck already.
pub fn remove_anomaly(node: NodeId, anomaly: DiskFaultId) -> bool {
    with(node, 17, |disk| disk.faults.remove_anomaly(anomaly))
}

/// Lets the node's process have that many open files and no more (`EMFILE`); `None`: as many as it likes.
pub fn limit_open_files(node: NodeId, max: Option<u64>) {
    with(node, 15, |disk| disk.open_files_max = max);
}

/// Lets the files below a directory take that many bytes and no more (`EDQUOT`); [`remove`](super::remove) ends it. Of several the
/// smallest counts.
pub fn add_quota(node: NodeId, directory: impl AsRef<Path>, bytes: u64) -> io::Result<DiskFaultId> {
    let parts = components(directory.as_ref())?;
    Ok(with(node, 16, |disk| disk.faults.add_quota(parts, bytes)))
}
