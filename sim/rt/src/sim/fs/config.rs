use super::faults::DiskFault;

/// A range of times in nanoseconds, drawn uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLatency {
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// The disk of each node of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// Size; writing beyond it is `StorageFull`.
    pub capacity_bytes: u64,
    /// What `sync_data` and `sync_dir` take (ours: a data-centre SSD).
    pub sync: DiskLatency,
    /// What a read takes that finds a page outside of the page cache, as after a power loss.
    pub cold_read: DiskLatency,
    /// Faults that every disk has from the start.
    pub faults: Vec<DiskFault>,
}

impl Default for DiskConfig {
    fn default() -> Self {
        DiskConfig {
            capacity_bytes: 1 << 40,
            sync: DiskLatency { min_ns: 50_000, max_ns: 500_000 },
            cold_read: DiskLatency { min_ns: 20_000, max_ns: 200_000 },
            faults: Vec::new(),
        }
    }
}
