//! How bytes get into a file and out of it: past quotas, limits and what is wrong with the device.
use super::directory::InodeId;
use super::disk::Disk;
use super::faults::{DiskAnomaly, DiskFaultId};
use super::image::PAGE;
use super::tree::errno;
use std::io;

impl Disk {
    /// Writes at a place, or elsewhere if a fault misdirects it. What fits is written even if not all does.
    pub(super) fn write_at(&mut self, inode: InodeId, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.tree.file(inode)?.image.is_unwritable(offset, bytes.len()) {
            self.effects.unreadable += 1;
            return Err(errno(libc::EIO));
        }
        if self.faults.anomaly(DiskAnomaly::StaleRead, path).is_some() {
            self.tree.file(inode)?.image.remember(offset, bytes.len());
        }
        let place = self.misdirect(inode, path, offset, bytes.len())?;
        let (free, limit) = (self.pages_free(), self.quota_pages(inode));
        let room = limit.map_or(free, |limit| limit.min(free));
        let image = &mut self.tree.file(inode)?.image;
        let (done, taken) = image.write_at(place, bytes, room);
        image.overwritten(place, done);
        self.pages_taken(taken);
        self.effects.bytes_written += done as u64;
        match done == bytes.len() {
            true => Ok(()),
            false if limit.is_some_and(|limit| limit < free) => {
                self.effects.over_quota += 1;
                Err(errno(libc::EDQUOT))
            }
            false => {
                self.effects.full += 1;
                Err(errno(libc::ENOSPC))
            }
        }
    }

    /// Where a write lands.
    fn misdirect(&mut self, inode: InodeId, path: &str, offset: u64, length: usize) -> io::Result<u64> {
        let Some(fault) = self.faults.anomaly(DiskAnomaly::MisdirectedWrite, path) else { return Ok(offset) };
        let image = &mut self.tree.file(inode)?.image;
        let Some(place) = image.elsewhere(offset, length, |places| self.rng.below(places)) else { return Ok(offset) };
        image.extend(offset, length);
        self.faults.remove_anomaly(fault);
        self.effects.misdirected_writes += 1;
        Ok(place)
    }

    /// Reads what the cache shows, or once more what the last write replaced if a fault wants that.
    pub(super) fn read_at(&mut self, inode: InodeId, path: &str, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let image = &mut self.tree.file(inode)?.image;
        let length = image.read_at(offset, out);
        self.effects.rotten_reads += image.rotten(&(offset..offset + length as u64));
        if let Some(fault) = self.faults.anomaly(DiskAnomaly::StaleRead, path)
            && image.show_replaced(offset, &mut out[..length])
        {
            self.faults.remove_anomaly(fault);
            self.effects.stale_reads += 1;
        }
        Ok(length)
    }

    /// `EIO` if the read meets an unreadable sector.
    pub(super) fn may_read(&mut self, inode: InodeId, offset: u64, length: usize) -> io::Result<()> {
        let image = &self.tree.file(inode)?.image;
        let end = image.len().min(offset.saturating_add(length as u64));
        if !image.is_unreadable(&(offset..end)) {
            return Ok(());
        }
        self.effects.unreadable += 1;
        Err(errno(libc::EIO))
    }

    /// `EIO` if the file is to end within an unreadable sector: the rest of it must become zeros.
    pub(super) fn may_cut(&mut self, inode: InodeId, len: u64) -> io::Result<()> {
        let image = &self.tree.file(inode)?.image;
        if len < image.len() && image.is_unwritable(0, usize::try_from(len).unwrap_or(usize::MAX)) {
            self.effects.unreadable += 1;
            return Err(errno(libc::EIO));
        }
        Ok(())
    }

    /// `EMFILE` if the process has as many open files as it may.
    pub(super) fn may_open(&mut self) -> io::Result<()> {
        if self.open_files_max.is_some_and(|max| self.tree.open_files() >= max) {
            self.effects.opens_refused += 1;
            return Err(errno(libc::EMFILE));
        }
        Ok(())
    }

    /// Pages that the quotas of the directories above the file or directory leave; none if there is no such quota.
    fn quota_pages(&mut self, inode: InodeId) -> Option<u64> {
        self.quotas_of(inode).into_iter().map(|(quota, used)| (quota / PAGE as u64).saturating_sub(used)).min()
    }

    /// Bytes of each quota above a file or directory, and the pages used of it.
    fn quotas_of(&mut self, inode: InodeId) -> Vec<(u64, u64)> {
        let Disk { tree, faults, .. } = self;
        let used = |(_, parts, quota): &(DiskFaultId, Vec<String>, u64)| {
            let below = tree.below(parts);
            let pages = |id: &InodeId| tree.file(*id).map_or(0, |file| file.image.pages());
            below.contains(&inode).then(|| (*quota, below.iter().map(pages).sum()))
        };
        faults.quotas.iter().filter_map(used).collect()
    }

    /// Bytes that may still be written there, and how many it has in all.
    pub(super) fn space(&mut self, inode: InodeId) -> (u64, u64) {
        let (free, all) = (self.pages_free() * PAGE as u64, self.config.capacity_bytes);
        let quota = self.quotas_of(inode).into_iter().min();
        let left = self.quota_pages(inode).map_or(free, |pages| free.min(pages * PAGE as u64));
        (left, quota.map_or(all, |(quota, _)| all.min(quota)))
    }
}
