//! Whether batch queues and log say the same. Entries lie in log order, so each queue is read once, beside the log.
use super::log::LogWalk;
use super::queues::{directories, is_record_of, words};
use super::{InspectError, Inspection, failed, numbered};
use crate::consume_queues::queue_id_of;
use crate::layout::{self, BATCH_ENTRY_SIZE, QueueEntry, QueueKind};
use crate::scan::{Facts, Seat};
use protocol::PhysicalOffset;
use rt::fs::File;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Entries read at once.
const CHUNK: usize = 1_000;

/// One batch queue, and how far it is read.
struct BatchQueue {
    files: Vec<(PathBuf, File, u64)>,
    /// The file that is read, and the next byte of it.
    at: (usize, u64),
    chunk: Vec<u8>,
    /// Bytes of the chunk that are read.
    read: usize,
    /// The entry that was read last and belongs to no record so far.
    pending: Option<(QueueEntry, PathBuf, u64)>,
}

/// The batch queues of a store, by topic and number.
pub(super) struct BatchCheck {
    queues: BTreeMap<(String, i32), BatchQueue>,
    log_start: PhysicalOffset,
}

impl BatchCheck {
    pub(super) fn open(root: &Path, found: &mut Inspection) -> Result<BatchCheck, InspectError> {
        let mut queues = BTreeMap::new();
        for topic_dir in directories(&root.join(layout::BATCH_QUEUE_DIR))? {
            for queue_dir in directories(&topic_dir)? {
                let name = topic_dir.file_name().and_then(|name| name.to_str());
                if let (Some(topic), Some(id)) = (name, queue_id_of(&queue_dir)) {
                    queues.insert((topic.to_owned(), id), BatchQueue::open(&queue_dir)?);
                } else {
                    found.report(&queue_dir, 0, "its name is no name of a queue");
                }
            }
        }
        found.queues += queues.len() as u64;
        Ok(BatchCheck { queues, log_start: PhysicalOffset::ZERO })
    }

    /// Looks for the entry of a record of a topic of batch queues; whether there is its queue.
    pub(super) async fn take(
        &mut self,
        facts: &Facts<'_>,
        seat: &Seat<'_>,
        found: &mut Inspection,
    ) -> Result<bool, InspectError> {
        self.log_start = found.start;
        let Some(queue) = self.queues.get_mut(&(seat.topic.to_owned(), seat.queue_id)) else { return Ok(false) };
        let name = format!("{} queue {} offset {}", seat.topic, seat.queue_id, seat.offset);
        while let Some((queued, path, position)) = queue.next().await? {
            if queued.entry.physical < facts.physical() {
                report_stray(&name, &queued, (&path, position), self.log_start, found);
                continue;
            }
            let is_it = queued.entry.physical == facts.physical()
                && queued.entry.size == facts.size()
                && queued.entry.tags_code == facts.tags_code(&[])
                && (queued.offset, queued.count) == (seat.offset, seat.count);
            if is_it {
                found.entries += 1;
            } else if queued.entry.physical > facts.physical() {
                queue.pending = Some((queued, path.clone(), position));
                found.report(
                    &path,
                    position,
                    format!("{name}: no entry for the record at log offset {}", facts.physical()),
                );
            } else {
                let (entry, size) = (batch_words(&queued), facts.size());
                let (offset, count) = (seat.offset, seat.count);
                let what = format!(
                    "{name}: its entry names {entry}, its record has {size} bytes and {count} messages from offset {offset} on"
                );
                found.report(&path, position, what);
            }
            return Ok(true);
        }
        let path = queue.files.last().map_or_else(PathBuf::new, |(path, ..)| path.clone());
        found.report(&path, 0, format!("{name}: no entry for the record at log offset {}", facts.physical()));
        Ok(true)
    }

    /// Names the entries that no record stands for.
    pub(super) async fn finish(&mut self, log: &LogWalk, found: &mut Inspection) -> Result<(), InspectError> {
        for ((topic, id), queue) in &mut self.queues {
            while let Some((queued, path, position)) = queue.next().await? {
                if !is_record_of(log, queued.entry, Some(queued.offset)).await? {
                    let name = format!("{topic} queue {id} offset {}", queued.offset);
                    report_stray(&name, &queued, (&path, position), found.start, found);
                }
            }
        }
        Ok(())
    }
}

/// Entries of records that were deleted with old segments name places before the log.
fn report_stray(
    name: &str,
    queued: &QueueEntry,
    (path, position): (&Path, u64),
    log_start: PhysicalOffset,
    found: &mut Inspection,
) {
    if queued.entry.physical >= log_start {
        let what = format!("{name}: an entry names {}, and there is no such record", batch_words(queued));
        found.report(path, position, what);
    }
}

fn batch_words(queued: &QueueEntry) -> String {
    format!("{} messages from offset {} on, {}", queued.count, queued.offset, words(queued.entry))
}

impl BatchQueue {
    fn open(dir: &Path) -> Result<BatchQueue, InspectError> {
        let mut files = Vec::new();
        for (_, path) in numbered(dir, layout::parse_file_name)? {
            let file = File::open(&path).map_err(failed(&path))?;
            let length = file.len().map_err(failed(&path))?;
            files.push((path, file, length));
        }
        Ok(BatchQueue { files, at: (0, 0), chunk: Vec::new(), read: 0, pending: None })
    }

    /// The next entry that is used, and where it is.
    async fn next(&mut self) -> Result<Option<(QueueEntry, PathBuf, u64)>, InspectError> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        while let Some((path, file, length)) = self.files.get(self.at.0) {
            if self.read == self.chunk.len() {
                let rest = usize::try_from((length - self.at.1) / BATCH_ENTRY_SIZE as u64).unwrap_or(CHUNK);
                self.chunk = vec![0; rest.min(CHUNK) * BATCH_ENTRY_SIZE];
                self.read = 0;
                file.read_exact_at(&mut self.chunk, self.at.1).await.map_err(failed(path))?;
            }
            let queued = self.chunk.get(self.read..self.read + BATCH_ENTRY_SIZE);
            let queued = queued.map(|bytes| QueueKind::Batch.decode(bytes, 0)).filter(|queued| queued.entry.is_used());
            let Some(queued) = queued.filter(|queued| queued.count > 0) else {
                // The rest of the file is empty, or there is none.
                self.at = (self.at.0 + 1, 0);
                (self.chunk, self.read) = (Vec::new(), 0);
                continue;
            };
            let found = (queued, path.clone(), self.at.1);
            self.read += BATCH_ENTRY_SIZE;
            self.at.1 += BATCH_ENTRY_SIZE as u64;
            return Ok(Some(found));
        }
        Ok(None)
    }
}
