/// What a node's disk did so far, over all incarnations, counted so that a fault without effect shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskEffects {
    /// Bytes that programs wrote into the page cache.
    pub bytes_written: u64,
    /// Syncs of files and directories that ended well.
    pub syncs: u64,
    /// Operations that an injected fault failed.
    pub errors_injected: u64,
    /// Syncs among them: each dropped what was dirty.
    pub syncs_failed: u64,
    /// Sectors that failed syncs dropped.
    pub sectors_dropped: u64,
    /// Writes that the disk had no room for.
    pub full: u64,
    /// Writes that the quota of a directory had no room for.
    pub over_quota: u64,
    /// Files that were not opened because the process had too many.
    pub opens_refused: u64,
    /// Reads, and writes of parts of sectors, that met an unreadable sector.
    pub unreadable: u64,
    /// Sectors with a flipped bit that reads showed.
    pub rotten_reads: u64,
    /// Writes that landed elsewhere.
    pub misdirected_writes: u64,
    /// Reads that showed what the last write had replaced.
    pub stale_reads: u64,
    /// Power losses.
    pub power_losses: u64,
    /// Dirty sectors that a power loss took.
    pub sectors_lost: u64,
    /// Dirty sectors that survived a power loss.
    pub sectors_kept: u64,
    /// Files whose length a power loss changed.
    pub lengths_lost: u64,
    /// Changes of names that a power loss took.
    pub names_lost: u64,
    /// Operations that took longer because of a fault.
    pub slowed: u64,
    /// Operations that met a stalled disk.
    pub stalled: u64,
    /// Operations of ending or ended processes, without effect.
    pub void: u64,
}
