//! Queues and index of a store made anew from its log. What is replaced is kept beside it.
use crate::config::StoreConfig;
use crate::error::StoreError;
use crate::inspect::LogReader;
use crate::layout;
use crate::recovery::{RecoveryReport, UnrecoveredStore, create_dirs, failed, take_lock};
use rt::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;
const KEPT: &str = "before-repair";

/// What a repair did.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// Where the former files are: queues, index, checkpoint, and the segments of the log from the first damage on.
    pub kept_in: PathBuf,
    /// What was found on the way.
    pub report: RecoveryReport,
}

/// Makes consume queues and index anew from the log of a store that nobody has open. The former ones are moved, not removed. A log that
/// recovery would cut is copied first, from the segment with the first damage on; whether it may be cut is what
/// [`StoreConfig::damage`] says. A repair that was interrupted is done again, or finished by the next start of the store.
///
/// # Errors
/// As [`UnrecoveredStore::recover`]; the former files stay where they were moved.
pub async fn repair(config: StoreConfig) -> Result<Repaired, StoreError> {
    config.validate()?;
    let lock = take_lock(&config.root)?;
    let kept_in = new_directory(&config.root).await?;
    copy_damaged_log(&config, &kept_in).await?;
    let checkpoint = config.root.join(layout::CHECKPOINT_FILE);
    if rt::fs::metadata(&checkpoint).is_ok() {
        copy(&checkpoint, &kept_in.join(layout::CHECKPOINT_FILE)).await?;
    }
    let batch_topics = topics_in(&config.root.join(layout::BATCH_QUEUE_DIR))?;
    for name in [layout::CONSUME_QUEUE_DIR, layout::BATCH_QUEUE_DIR, layout::EXTENSION_DIR, layout::INDEX_DIR] {
        let from = config.root.join(name);
        match rt::fs::rename(&from, kept_in.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("move", &from)(error)),
            _ => {}
        }
    }
    for dir in [&kept_in, &config.root] {
        rt::fs::sync_dir(dir).await.map_err(failed("sync", dir))?;
    }
    create_dirs(&config).await?;
    // Their directories say of which kind the queues are.
    for topic in batch_topics {
        rt::fs::create_dir_durably(&topic).await.map_err(failed("create", &topic))?;
    }
    let store = UnrecoveredStore::open_locked(config, lock).await?.recover().await?;
    let report = store.recovery_report().clone();
    store.shutdown().await?;
    Ok(Repaired { kept_in, report })
}

/// Directories of topics in that of batch queues.
fn topics_in(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match rt::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(failed("list", dir)),
    }
}

async fn new_directory(root: &Path) -> Result<PathBuf, StoreError> {
    for number in 1.. {
        let dir = root.join(format!("{KEPT}-{number}"));
        match rt::fs::create_dir(&dir) {
            Ok(()) => {
                rt::fs::sync_dir(root).await.map_err(failed("sync", root))?;
                return Ok(dir);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("create", &dir)(error)),
        }
    }
    unreachable!("some number is free")
}

/// Copies the segments from the first damage on.
async fn copy_damaged_log(config: &StoreConfig, kept_in: &Path) -> Result<(), StoreError> {
    let log_dir = config.commit_log_dir();
    let unreadable = |error: crate::InspectError| failed("read", &error.path)(error.source);
    let mut log = LogReader::open(&config.root, Some(&log_dir)).map_err(unreadable)?;
    while log.damage().is_empty() && log.next().await.map_err(unreadable)?.is_some() {}
    let Some(first) = log.damage().first() else { return Ok(()) };
    let copies = kept_in.join(layout::COMMIT_LOG_DIR);
    rt::fs::create_dir(&copies).map_err(failed("create", &copies))?;
    for path in rt::fs::read_dir(&log_dir).map_err(failed("list", &log_dir))? {
        // Names of segments are ordered as the segments are.
        if let Some(name) = path.file_name()
            && path >= first.path
        {
            copy(&path, &copies.join(name)).await?;
        }
    }
    rt::fs::sync_dir(&copies).await.map_err(failed("sync", &copies))
}

async fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let source = File::open(from).map_err(failed("open", from))?;
    let target = OpenOptions::new().write(true).create(true).truncate(true).open(to).map_err(failed("create", to))?;
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let length = source.read_at(&mut chunk, at).await.map_err(failed("read", from))?;
        if length == 0 {
            break;
        }
        target.write_at(&chunk[..length], at).map_err(failed("write", to))?;
        at += length as u64;
    }
    target.sync_data().await.map_err(failed("sync", to))
}
