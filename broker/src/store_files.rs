//! `hotfire store`: a look into the files of a store that nobody has open, ours or Apache's, and their repair.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::StoredMessage;
use protocol::message::RecordView;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use store::{DamagePolicy, InspectError, Inspection, LogReader, Repaired, StoreConfig, StoreError};
use thiserror::Error;

/// A body that is longer when it is unpacked is given as it lies in the log.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Which messages [`dump`] gives.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Of this topic only.
    pub topic: Option<String>,
    /// Of this queue only.
    pub queue_id: Option<i32>,
    /// Those that begin at or behind this offset of the log.
    pub from: i64,
    /// At most so many; none: all.
    pub limit: Option<u64>,
}

/// Why nothing could be said of a store.
#[derive(Debug, Error)]
pub enum StoreFilesError {
    /// The directory is none of a store.
    #[error("{} has no commit log", path.display())]
    NoStore {
        /// Where the log was looked for.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The store could not be opened or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was found could not be told.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

/// Reads all files, and tells what is in them and what is damaged. `watch` is told how many bytes of the log are behind, and how many
/// it has. Returns whether the store is sound.
///
/// # Errors
/// A file could not be read: that is no damage, but nothing is known of it.
pub async fn check(
    config: &StoreConfig,
    watch: impl FnMut(u64, u64),
    out: &mut impl Write,
) -> Result<bool, StoreFilesError> {
    let found = look(config, watch).await?;
    tell(config, &found, out)?;
    Ok(found.is_sound())
}

/// Writes messages as JSON, one a line, in the order of the log. Returns what was met that is no record or no message.
///
/// # Errors
/// A file could not be read, or `out` takes no more.
pub async fn dump(
    config: &StoreConfig,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<Vec<String>, StoreFilesError> {
    must_have_a_log(config)?;
    let mut log = LogReader::open(&config.root, config.commit_log_dir.as_deref())?;
    let (mut count, mut unreadable) = (0, Vec::new());
    while selection.limit.is_none_or(|limit| count < limit)
        && let Some(record) = log.next().await?
    {
        let message = match StoredMessage::decode(&record) {
            Ok(message) => message,
            // A whole record may still have an address or a text that is none.
            Err(error) => {
                let at = RecordView::parse(&record).map_or(0, |view| view.physical_offset().0);
                unreadable.push(format!("record at log offset {at}: {error}"));
                continue;
            }
        };
        if selection.wants(&message) {
            serde_json::to_writer(&mut *out, &json_of(message)).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
            count += 1;
        }
    }
    Ok(log.damage().iter().map(ToString::to_string).chain(unreadable).collect())
}

/// Says what [`repair`] would do.
///
/// # Errors
/// A file could not be read.
pub async fn plan_repair(
    config: &StoreConfig,
    watch: impl FnMut(u64, u64),
    out: &mut impl Write,
) -> Result<(), StoreFilesError> {
    let found = look(config, watch).await?;
    tell(config, &found, out)?;
    writeln!(
        out,
        "\nNothing was written. With --write consumequeue and index move to a folder before-repair-N beside them, and are made anew \
         from the log\n(segments of {} bytes, queue files of {} bytes{}).",
        config.segment_size,
        config.consume_queue_file_bytes(),
        config.index.map_or(String::new(), |index| format!(
            ", index files of {} slots and {} entries",
            index.hash_slots, index.entries
        ))
    )?;
    let is_log_damaged = found.damage.iter().any(|damage| damage.path.starts_with(config.commit_log_dir()));
    if is_log_damaged && config.damage == DamagePolicy::Refuse {
        writeln!(
            out,
            "The log is damaged: its good part alone is kept if you give --drop-damaged as well; a copy of the rest is made."
        )?;
    }
    Ok(())
}

/// Makes queues and index anew from the log, keeping what it replaces.
///
/// # Errors
/// Somebody has the store open, its log is damaged and may not be cut, or the disk failed.
pub async fn repair(config: StoreConfig, out: &mut impl Write) -> Result<(), StoreFilesError> {
    must_have_a_log(&config)?;
    let Repaired { kept_in, report } = store::repair(config).await?;
    writeln!(out, "{} records were read, the log ends at {}", report.scanned_records, report.end)?;
    if let Some(dropped) = report.dropped {
        writeln!(
            out,
            "the log was cut there ({}): {} whole records behind it are gone from it",
            dropped.reason, dropped.records_behind
        )?;
    }
    writeln!(out, "what was there before is in {}", kept_in.display())?;
    Ok(())
}

fn must_have_a_log(config: &StoreConfig) -> Result<(), StoreFilesError> {
    let path = config.commit_log_dir();
    match rt::fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir => Ok(()),
        _ => Err(StoreFilesError::NoStore { path }),
    }
}

async fn look(config: &StoreConfig, watch: impl FnMut(u64, u64)) -> Result<Inspection, StoreFilesError> {
    must_have_a_log(config)?;
    Ok(store::inspect(&config.root, config.commit_log_dir.as_deref(), config.index, watch).await?)
}

fn tell(config: &StoreConfig, found: &Inspection, out: &mut impl Write) -> io::Result<()> {
    let stopped = if found.is_clean { "stopped in order" } else { "running, or not stopped in order" };
    writeln!(out, "{}: {stopped}", config.root.display())?;
    writeln!(
        out,
        "log      {} records from {} to {} in {} files",
        found.records, found.start, found.end, found.segments
    )?;
    writeln!(out, "queues   {} entries of {} queues", found.entries, found.queues)?;
    writeln!(out, "index    {} keys", found.keys)?;
    for what in &found.not_checked {
        writeln!(out, "not read {what}")?;
    }
    if found.is_sound() {
        return writeln!(out, "damage   none");
    }
    writeln!(out, "damage   {}", found.damage.len() as u64 + found.more_damage)?;
    for damage in &found.damage {
        writeln!(out, "  {damage}")?;
    }
    if found.more_damage > 0 {
        writeln!(out, "  … and {} more", found.more_damage)?;
    }
    Ok(())
}

impl Selection {
    fn wants(&self, message: &StoredMessage) -> bool {
        message.physical_offset.0 >= self.from
            && self.topic.as_ref().is_none_or(|topic| *topic == message.topic)
            && self.queue_id.is_none_or(|id| id == message.queue_id)
    }
}

/// A message as a line of JSON; names are those of RocketMQ's clients.
fn json_of(mut message: StoredMessage) -> Value {
    // What cannot be unpacked is given as it is: the flag says that it is packed.
    let _ = message.decompress(BODY_BYTES_MAX);
    let properties: Map<String, Value> =
        message.properties.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut line = json!({
        "commitLogOffset": message.physical_offset.0,
        "storeSize": message.store_size,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset.0,
        "msgId": message.message_id(),
        "sysFlag": message.sys_flag.0,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": message.born_host.to_string(),
        "storeTimestamp": message.store_timestamp,
        "storeHost": message.store_host.to_string(),
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": properties,
    });
    match std::str::from_utf8(&message.body) {
        Ok(text) => line["body"] = text.into(),
        Err(_) => line["bodyBase64"] = STANDARD.encode(&message.body).into(),
    }
    line
}
