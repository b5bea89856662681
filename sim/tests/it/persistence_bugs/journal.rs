//! A small journal: records with length and checksum, snapshots, recovery; right, or with one planted bug.
//!
//! ```text
//! /journal/log.G       512 bytes (the end, in the variant that keeps one), then records: length u32, checksum u32, body
//! /journal/snapshot    checksum u32, generation G u32, entries of 8 bytes
//! ```
//! A record's body is its value (u32) and padding. What is read back of it is an [`Entry`].

use rt::fs::{File, OpenOptions, create_dir, read, remove_file, rename, sync_dir};
use std::io::{self, ErrorKind};

/// A record as it is read back: its value, and a checksum of its whole body.
pub type Entry = (u32, u32);

const DIRECTORY: &str = "/journal";
const SNAPSHOT: &str = "/journal/snapshot";
const LOG_START: u64 = 512;
const HEADER: usize = 8;

/// What the programmer got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Records are acknowledged without a sync.
    NoSync,
    /// The log is synced, its name is not.
    NoDirectorySync,
    /// The snapshot takes its name before its bytes are synced.
    RenameBeforeSync,
    /// The checksum covers the body only: a hole of zeros is an empty record.
    ChecksumWithoutLength,
    /// The end of the log is written in place, with the same sync as the records, and trusted.
    EndInPlace,
    /// A record that fits into the file is believed.
    NoChecksum,
    /// Recovery leaves what is behind the first damaged record.
    NoTruncation,
    /// Recovery cuts that off, but appends before the cut is synced.
    TruncationNotSynced,
    /// A new log is an old one under a new name, and nothing tells old records from new ones.
    ReusedLog,
    /// The old log is removed before the snapshot that replaces it is there.
    LogRemovedFirst,
    /// Recovery tells what is in the page cache of a dead process as if it were safe.
    RecoveryNotSynced,
    /// A failed sync is tried again.
    SyncRetried,
}

/// An open journal.
pub struct Journal {
    bug: Option<Bug>,
    generation: u32,
    entries: Vec<Entry>,
    log: File,
    end: u64,
}

/// CRC-32 of IEEE 802.3, which is 0 for no bytes.
pub fn checksum(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let step = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    };
    !bytes.into_iter().fold(!0, step)
}

/// The body of a record of that many bytes in the log.
pub fn body(value: u32, size: usize) -> Vec<u8> {
    let mut body = vec![value as u8 | 1; size - HEADER];
    body[..4].copy_from_slice(&value.to_be_bytes());
    body
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn log_path(generation: u32) -> String {
    format!("{DIRECTORY}/log.{generation}")
}

fn open_log(generation: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).open(log_path(generation))
}

impl Journal {
    /// Recovers what is there. Damage that no crash explains is an error.
    pub async fn open(bug: Option<Bug>) -> io::Result<Journal> {
        match create_dir(DIRECTORY) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => sync_dir("/").await?,
        }
        let (generation, entries) = read_snapshot().await?;
        let log = open_log(generation)?;
        if bug != Some(Bug::NoDirectorySync) {
            sync_dir(DIRECTORY).await?;
        }
        let mut journal = Journal { bug, generation, entries, log, end: LOG_START };
        journal.recover().await?;
        Ok(journal)
    }

    async fn recover(&mut self) -> io::Result<()> {
        let bytes = read(log_path(self.generation)).await?;
        while let Some((entry, size)) = self.record(&bytes) {
            self.entries.push(entry);
            self.end += size;
        }
        let behind = bytes.len() as u64 > self.end;
        match self.bug {
            Some(Bug::NoTruncation) => self.log.sync_data().await,
            Some(Bug::RecoveryNotSynced) if !behind => Ok(()),
            Some(Bug::TruncationNotSynced) if behind => {
                self.log.sync_data().await?;
                self.log.set_len(self.end)
            }
            _ => {
                if behind {
                    self.log.set_len(self.end)?;
                }
                self.log.sync_data().await
            }
        }
    }

    /// The record at the end of what was recovered so far, and its size.
    fn record(&self, bytes: &[u8]) -> Option<(Entry, u64)> {
        let rest = bytes.get(self.end as usize..)?;
        let (length, sum) = (word(rest, 0)?, word(rest, 4)?);
        let body = rest.get(HEADER..HEADER.checked_add(length as usize)?)?;
        let sound = match self.bug {
            Some(Bug::NoChecksum) => true,
            Some(Bug::EndInPlace) => self.end < u64::from(word(bytes, 0)?),
            bug => sum == record_checksum(bug, body),
        };
        let size = (HEADER + body.len()) as u64;
        sound.then(|| ((word(body, 0).unwrap_or(0), checksum(body.iter().copied())), size))
    }

    /// What the journal holds, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends records that are acknowledged together.
    pub async fn append(&mut self, bodies: &[Vec<u8>]) -> io::Result<()> {
        for body in bodies {
            let mut record = (body.len() as u32).to_be_bytes().to_vec();
            record.extend(record_checksum(self.bug, body).to_be_bytes());
            record.extend(body);
            self.log.write_at(&record, self.end)?;
            self.end += record.len() as u64;
            self.entries.push((word(body, 0).unwrap_or(0), checksum(body.iter().copied())));
        }
        match self.bug {
            Some(Bug::NoSync) => return Ok(()),
            Some(Bug::EndInPlace) => self.log.write_at(&(self.end as u32).to_be_bytes(), 0)?,
            _ => {}
        }
        match self.log.sync_data().await {
            Err(_) if self.bug == Some(Bug::SyncRetried) => self.log.sync_data().await,
            result => result,
        }
    }

    /// Replaces the log by a snapshot and a new log.
    pub async fn compact(&mut self) -> io::Result<()> {
        let old = log_path(self.generation);
        if self.bug == Some(Bug::LogRemovedFirst) {
            remove_file(&old)?;
            sync_dir(DIRECTORY).await?;
        }
        self.generation += 1;
        self.write_snapshot().await?;
        if self.bug == Some(Bug::ReusedLog) {
            rename(&old, log_path(self.generation))?;
        }
        self.log = open_log(self.generation)?;
        self.end = LOG_START;
        sync_dir(DIRECTORY).await?;
        match remove_file(&old) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    async fn write_snapshot(&self) -> io::Result<()> {
        let mut content = self.generation.to_be_bytes().to_vec();
        for (value, sum) in &self.entries {
            content.extend(value.to_be_bytes());
            content.extend(sum.to_be_bytes());
        }
        let sum = checksum(content.iter().copied());
        let temporary = format!("{SNAPSHOT}.tmp");
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        file.write_at(&[&sum.to_be_bytes()[..], &content].concat(), 0)?;
        let late = self.bug == Some(Bug::RenameBeforeSync);
        if !late {
            file.sync_data().await?;
        }
        rename(&temporary, SNAPSHOT)?;
        sync_dir(DIRECTORY).await?;
        if late { file.sync_data().await } else { Ok(()) }
    }
}

fn record_checksum(bug: Option<Bug>, body: &[u8]) -> u32 {
    let length = (body.len() as u32).to_be_bytes();
    let covered = if bug == Some(Bug::ChecksumWithoutLength) { &[][..] } else { &length };
    checksum(covered.iter().chain(body).copied())
}

/// Generation and entries of the snapshot; generation 0 and none if there is no snapshot yet.
async fn read_snapshot() -> io::Result<(u32, Vec<Entry>)> {
    let bytes = match read(SNAPSHOT).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, Vec::new())),
        bytes => bytes?,
    };
    let content = bytes.get(4..).unwrap_or(&[]);
    match (word(&bytes, 0), word(content, 0)) {
        (Some(sum), Some(generation)) if sum == checksum(content.iter().copied()) => {
            let entry = |at: usize| Some((word(content, at)?, word(content, at + 4)?));
            Ok((generation, (4..content.len()).step_by(8).filter_map(entry).collect()))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}
