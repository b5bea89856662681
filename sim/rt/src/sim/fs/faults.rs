//! Which operations of a disk fail, and when.
use crate::sim::rand::Rng;
use std::io;

/// A kind of disk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOperation {
    /// Opening or creating a file.
    Open,
    /// `read_at`, `read`.
    Read,
    /// `write_at`, `set_len`.
    Write,
    /// `sync_data`, `sync_dir`. A failed one drops the dirty pages of the file, unless they [stay](DiskError::IoPagesStay).
    Sync,
    /// Creating a directory, renaming, removing.
    Name,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskChance {
    /// Each time.
    Always,
    /// The n-th matching operation from now, once; 1 is the next.
    Nth(u64),
    /// So many of a million.
    Ppm(u32),
}

/// What the program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// `EIO`: the device failed.
    Io,
    /// `EIO`, and a sync that fails so leaves the pages readable and taken for written, as ext4 and XFS do: that they are not on the
    /// platter shows with the next power loss, unless they are written again. As [`Io`](Self::Io) for all else.
    IoPagesStay,
    /// `ENOSPC`, whatever the quota says.
    Full,
}

/// Lets matching operations fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFault {
    /// Which operations.
    pub operation: DiskOperation,
    /// Only of paths that contain this.
    pub path_contains: Option<String>,
    /// When.
    pub chance: DiskChance,
    /// How.
    pub error: DiskError,
}

impl DiskError {
    pub(super) fn to_io(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            DiskError::Io | DiskError::IoPagesStay => libc::EIO,
            DiskError::Full => libc::ENOSPC,
        })
    }
}

/// What a device does wrong once without telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskAnomaly {
    /// A write lands at another place of its file; the length becomes what it should.
    MisdirectedWrite,
    /// A read shows what the last write to the file replaced.
    StaleRead,
}

/// Names a fault, to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskFaultId(u64);

#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Vec<(DiskFaultId, DiskFault)>,
    /// Each strikes once, at a file whose path contains the text.
    anomalies: Vec<(DiskFaultId, DiskAnomaly, Option<String>)>,
    /// Bytes that the files below a directory may take, with the parts of its path.
    pub(super) quotas: Vec<(DiskFaultId, Vec<String>, u64)>,
    next: u64,
}

impl Faults {
    pub(super) fn add(&mut self, fault: DiskFault) -> DiskFaultId {
        let id = self.take_id();
        self.rules.push((id, fault));
        id
    }

    pub(super) fn add_anomaly(&mut self, anomaly: DiskAnomaly, path_contains: Option<String>) -> DiskFaultId {
        let id = self.take_id();
        self.anomalies.push((id, anomaly, path_contains));
        id
    }

    pub(super) fn add_quota(&mut self, directory: Vec<String>, bytes: u64) -> DiskFaultId {
        let id = self.take_id();
        self.quotas.push((id, directory, bytes));
        id
    }

    fn take_id(&mut self) -> DiskFaultId {
        self.next += 1;
        DiskFaultId(self.next - 1)
    }

    /// Ends an anomaly; false if it is over.
    pub(super) fn remove_anomaly(&mut self, id: DiskFaultId) -> bool {
        let before = self.anomalies.len();
        self.anomalies.retain(|(other, ..)| *other != id);
        self.anomalies.len() < before
    }

    /// The anomaly that would strike such an operation at that path now.
    pub(super) fn anomaly(&self, anomaly: DiskAnomaly, path: &str) -> Option<DiskFaultId> {
        let matches = |(_, other, part): &&(DiskFaultId, DiskAnomaly, Option<String>)| {
            *other == anomaly && part.as_deref().is_none_or(|part| path.contains(part))
        };
        self.anomalies.iter().find(matches).map(|(id, ..)| *id)
    }

    pub(super) fn remove(&mut self, id: DiskFaultId) {
        self.rules.retain(|(other, _)| *other != id);
        self.quotas.retain(|(other, ..)| *other != id);
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.anomalies.clear();
        self.quotas.clear();
    }

    pub(super) fn strikes(&mut self, operation: DiskOperation, path: &str, rng: &mut Rng) -> Option<DiskError> {
        let mut struck = None;
        for at in 0..self.rules.len() {
            let fault = &mut self.rules[at].1;
            let matches =
                fault.operation == operation && fault.path_contains.as_deref().is_none_or(|part| path.contains(part));
            if !matches || struck.is_some() {
                continue;
            }
            let now = match &mut fault.chance {
                DiskChance::Always => true,
                DiskChance::Ppm(ppm) => rng.below(1_000_000) < u64::from(*ppm),
                DiskChance::Nth(left) => {
                    *left = left.saturating_sub(1);
                    *left == 0
                }
            };
            if now {
                struck = Some((at, fault.error));
            }
        }
        let (at, error) = struck?;
        if matches!(self.rules[at].1.chance, DiskChance::Nth(_)) {
            self.rules.remove(at);
        }
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskChance, DiskError, DiskFault, DiskOperation, Faults, Rng};

    #[test]
    fn the_nth_matching_operation_fails_once() {
        let mut faults = Faults::default();
        let mut rng = Rng::new(1, "faults");
        faults.add(DiskFault {
            operation: DiskOperation::Write,
            path_contains: Some("commitlog".into()),
            chance: DiskChance::Nth(2),
            error: DiskError::Io,
        });
        let mut strikes = |operation, path| faults.strikes(operation, path, &mut rng).is_some();
        assert!(!strikes(DiskOperation::Write, "/store/commitlog/0"));
        assert!(!strikes(DiskOperation::Write, "/store/index/0"));
        assert!(!strikes(DiskOperation::Read, "/store/commitlog/0"));
        assert!(strikes(DiskOperation::Write, "/store/commitlog/0"));
        assert!(!strikes(DiskOperation::Write, "/store/commitlog/0"));
    }
}
