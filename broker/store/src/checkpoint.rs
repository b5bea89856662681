//! The checkpoint page: what was synced when it was written, so that recovery need not start at the beginning of the log.
//!
//! ```text
//! 0       8         16        24                    32               40      44     48          56          64 … 4096
//! | log ms | queue ms| index ms| masterFlushedOffset | confirmPhyOffset | magic | crc32 | synced end | queue end | zero |
//! ```
//! The first 40 bytes are RocketMQ's. The rest is ours: Apache's broker keeps it and does not look at it. Its checksum covers
//! RocketMQ's fields too, so a page that Apache's broker has changed since is known, and then only its own fields count.
use crate::layout;
use protocol::PhysicalOffset;
use rt::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

const PAGE: usize = layout::PAGE as usize;
const LOG_TIMESTAMP: usize = 0;
const QUEUE_TIMESTAMP: usize = 8;
const INDEX_TIMESTAMP: usize = 16;
const MASTER_FLUSHED: usize = 24;
const CONFIRM: usize = 32;
const MAGIC_AT: usize = 40;
const CRC_AT: usize = 44;
const SYNCED_END: usize = 48;
const QUEUES_END: usize = 56;
const USED: usize = 64;
const MAGIC: u32 = 0x4846_4301;
/// All of it lies in one sector, so a power loss leaves the old or the new claims.
const _: () = assert!(USED <= 512);

/// What a checkpoint says. Nothing in it may be more than what was synced before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// `physicMsgTimestamp`: store time of the last synced record.
    pub(crate) log_timestamp: i64,
    /// `logicsMsgTimestamp`: store time of the last record whose queue entry is synced.
    pub(crate) queue_timestamp: i64,
    /// `indexMsgTimestamp`.
    pub(crate) index_timestamp: i64,
    /// `masterFlushedOffset`.
    pub(crate) master_flushed: i64,
    /// `confirmPhyOffset`: in classic mode the start of the last record at the last recovery.
    pub(crate) confirm: i64,
    /// Hotfire's part, if it is there and fits the rest.
    pub(crate) ends: Option<Ends>,
}

/// Exact log offsets where RocketMQ's fields have times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Every record below is synced; a record boundary.
    pub(crate) synced: PhysicalOffset,
    /// Every queue entry of the records below is synced; a record boundary.
    pub(crate) queues: PhysicalOffset,
}

impl Claims {
    /// `getMinTimestamp`: records not younger need no second look.
    pub(crate) fn min_timestamp(&self) -> i64 {
        self.log_timestamp.min(self.queue_timestamp).saturating_sub(3000).max(0)
    }

    fn encode(&self) -> [u8; USED] {
        let mut page = [0; USED];
        for (at, value) in [
            (LOG_TIMESTAMP, self.log_timestamp),
            (QUEUE_TIMESTAMP, self.queue_timestamp),
            (INDEX_TIMESTAMP, self.index_timestamp),
            (MASTER_FLUSHED, self.master_flushed),
            (CONFIRM, self.confirm),
        ] {
            page[at..at + 8].copy_from_slice(&value.to_be_bytes());
        }
        if let Some(ends) = self.ends {
            page[MAGIC_AT..CRC_AT].copy_from_slice(&MAGIC.to_be_bytes());
            page[SYNCED_END..QUEUES_END].copy_from_slice(&ends.synced.0.to_be_bytes());
            page[QUEUES_END..USED].copy_from_slice(&ends.queues.0.to_be_bytes());
            let crc = checksum(&page);
            page[CRC_AT..SYNCED_END].copy_from_slice(&crc.to_be_bytes());
        }
        page
    }

    fn decode(page: &[u8; USED]) -> Claims {
        let is_ours = layout::be_u32(page, MAGIC_AT) == MAGIC && layout::be_u32(page, CRC_AT) == checksum(page);
        let ends = is_ours.then(|| Ends {
            synced: PhysicalOffset(layout::be_i64(page, SYNCED_END)),
            queues: PhysicalOffset(layout::be_i64(page, QUEUES_END)),
        });
        Claims {
            log_timestamp: layout::be_i64(page, LOG_TIMESTAMP),
            queue_timestamp: layout::be_i64(page, QUEUE_TIMESTAMP),
            index_timestamp: layout::be_i64(page, INDEX_TIMESTAMP),
            master_flushed: layout::be_i64(page, MASTER_FLUSHED),
            confirm: layout::be_i64(page, CONFIRM),
            ends,
        }
    }
}

fn checksum(page: &[u8; USED]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&page[..CRC_AT]);
    hasher.update(&page[SYNCED_END..]);
    hasher.finalize()
}

/// The open checkpoint file and what it says.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    file: File,
    path: PathBuf,
    claims: Claims,
}

impl Checkpoint {
    /// Opens or creates the file. A file that is too short claims nothing.
    pub(crate) async fn open(root: &Path) -> io::Result<Checkpoint> {
        let path = root.join(layout::CHECKPOINT_FILE);
        let file = OpenOptions::new().write(true).create(true).open(&path)?;
        let mut page = [0; USED];
        file.read_at(&mut page, 0).await?;
        if file.len()? < PAGE as u64 {
            file.set_len(PAGE as u64)?;
        }
        Ok(Checkpoint { claims: Claims::decode(&page), file, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says, or was last asked to say.
    pub(crate) fn claims(&self) -> Claims {
        self.claims
    }

    /// Replaces the claims and syncs them, unless they are the present ones.
    pub(crate) async fn write(&mut self, claims: Claims) -> io::Result<()> {
        if claims == self.claims {
            return Ok(());
        }
        self.file.write_at(&claims.encode(), 0)?;
        self.file.sync_data().await?;
        self.claims = claims;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CONFIRM, Claims, Ends};
    use protocol::PhysicalOffset;

    const CLAIMS: Claims = Claims {
        log_timestamp: 10_000,
        queue_timestamp: 9_000,
        index_timestamp: 8_000,
        master_flushed: 7,
        confirm: 6,
        ends: Some(Ends { synced: PhysicalOffset(5), queues: PhysicalOffset(4) }),
    };

    #[test]
    fn round_trip() {
        assert_eq!(Claims::decode(&CLAIMS.encode()), CLAIMS);
        let plain = Claims { ends: None, ..CLAIMS };
        assert_eq!(Claims::decode(&plain.encode()), plain);
        assert_eq!(CLAIMS.min_timestamp(), 6_000);
    }

    #[test]
    fn a_page_changed_by_another_program_keeps_only_its_fields() {
        let mut page = CLAIMS.encode();
        page[CONFIRM + 7] = 99;
        assert_eq!(Claims::decode(&page), Claims { confirm: 99, ends: None, ..CLAIMS });
    }
}
