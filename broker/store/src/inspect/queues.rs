//! Whether queues and log say the same: each record has its entry, and each entry a record.
use super::batches::BatchCheck;
use super::extension::UnitFiles;
use super::log::LogWalk;
use super::{InspectError, Inspection, failed, numbered};
use crate::consume_queues::queue_id_of;
use crate::layout::{self, ENTRY_SIZE, Entry, Unit};
use crate::light_queues::is_light;
use crate::open_files::{OpenFiles, PooledFile};
use crate::scan::{DELAY_TOPIC, Facts, Seat};
use crate::tombstones::Tombstones;
use protocol::message::RecordView;
use protocol::message::record::{PEEK_BYTES, Peeked, peek};
use protocol::{PhysicalOffset, QueueOffset};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries read at once when a whole file is read, and when the next ones of one of many queues are.
const CHUNK: u64 = 3_276;
const NEXT: u64 = 204;
/// Files that are open at a time: a store may have thousands of queues.
const OPEN_MAX: usize = 200;

struct QueueFile {
    /// Byte position in the queue.
    start: u64,
    length: u64,
    file: PooledFile,
}

#[derive(Default)]
struct QueueFiles {
    files: Vec<QueueFile>,
    /// Entries that a record stands for.
    found: u64,
    /// A run of entries in memory: position in the queue, bytes.
    chunk: (u64, Vec<u8>),
    units: UnitFiles,
}

/// The queues of a store, by topic and number.
pub(super) struct QueueCheck {
    dir: PathBuf,
    queues: BTreeMap<(String, i32), QueueFiles>,
    /// Queues of the other kind, and their topics.
    batches: BatchCheck,
    batch_topics: BTreeSet<String>,
    /// Which records are of topics that were removed.
    tombstones: Tombstones,
    /// Whether there are light queues at all: they are kept or not, as is configured.
    has_light: bool,
    /// Queues that records name and that are not there: offset of the first such record, and how many.
    missing: BTreeMap<(String, i32), (QueueOffset, u64)>,
}

impl QueueCheck {
    pub(super) async fn open(root: &Path, found: &mut Inspection) -> Result<QueueCheck, InspectError> {
        let tombstones = Tombstones::load(root).await.unwrap_or_else(|error| {
            found.report(root, 0, error.to_string());
            Tombstones::none(root)
        });
        let dir = &root.join(layout::CONSUME_QUEUE_DIR);
        let batch_topics = directories(&root.join(layout::BATCH_QUEUE_DIR))?;
        let batch_topics = batch_topics.iter().filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned())).collect();
        let open_files = OpenFiles::read_only(OPEN_MAX);
        let mut queues = BTreeMap::new();
        for topic_dir in directories(dir)? {
            for queue_dir in directories(&topic_dir)? {
                let Some(topic) = topic_dir.file_name().and_then(|name| name.to_str()) else {
                    found.report(&topic_dir, 0, "its name is no name of a topic");
                    continue;
                };
                let Some(id) = queue_id_of(&queue_dir) else {
                    found.report(&queue_dir, 0, "its name is no number of a queue");
                    continue;
                };
                let units = UnitFiles::open(&root.join(layout::EXTENSION_DIR).join(topic).join(id.to_string()))?;
                let files = QueueFiles::open(&queue_dir, &open_files, found)?;
                queues.insert((topic.to_owned(), id), QueueFiles { units, ..files });
            }
        }
        found.queues = queues.len() as u64;
        let batches = BatchCheck::open(root, found)?;
        let has_light = queues.keys().any(|(topic, _): &(String, i32)| is_light(topic));
        Ok(QueueCheck {
            dir: dir.clone(),
            queues,
            batches,
            batch_topics,
            tombstones,
            has_light,
            missing: BTreeMap::new(),
        })
    }

    /// Looks for the entries of a record.
    pub(super) async fn take(&mut self, facts: &Facts<'_>, found: &mut Inspection) -> Result<(), InspectError> {
        for seat in facts.seats(self.has_light) {
            self.take_seat(facts, &seat, found).await?;
        }
        Ok(())
    }

    async fn take_seat(
        &mut self,
        facts: &Facts<'_>,
        seat: &Seat<'_>,
        found: &mut Inspection,
    ) -> Result<(), InspectError> {
        if self.tombstones.cover(seat.topic, facts.physical()) {
            return Ok(());
        }
        if seat.queue_id < 0 || seat.offset.0 < 0 {
            return Ok(());
        }
        if self.batch_topics.contains(seat.topic) {
            if !self.batches.take(facts, seat, found).await? {
                let key = (seat.topic.to_owned(), seat.queue_id);
                self.missing.entry(key).or_insert((seat.offset, 0)).1 += 1;
            }
            return Ok(());
        }
        let name = format!("{} queue {} offset {}", seat.topic, seat.queue_id, seat.offset);
        let key = (seat.topic.to_owned(), seat.queue_id);
        let Some(queue) = self.queues.get_mut(&key) else {
            self.missing.entry(key).or_insert((seat.offset, 0)).1 += 1;
            return Ok(());
        };
        let Some((entry, path, position)) = queue.entry(seat.offset).await? else {
            let path = queue.files.last().map_or_else(PathBuf::new, |file| file.file.path().to_owned());
            found.report(&path, 0, format!("{name}: no entry for the record at log offset {}", facts.physical()));
            return Ok(());
        };
        let is_it = entry.physical == facts.physical() && entry.size == facts.size();
        // Entries of delayed messages have the time of delivery where others have the hash of the tag.
        let is_right = |tags_code: i64| facts.topic == DELAY_TOPIC || tags_code == facts.tags_code(&[]);
        let has_tags = match layout::place_of(entry.tags_code) {
            None => is_right(entry.tags_code),
            Some(place) => {
                let (unit, path, position) = queue.units.at(place).await?;
                let is_its = |unit: &Unit| is_right(unit.tags_code) && unit.store_timestamp == facts.store_timestamp();
                if is_it && !unit.is_some_and(|unit| is_its(&unit)) {
                    found.report(&path, position, format!("{name}: its entry names a unit there, which is not its"));
                }
                true
            }
        };
        if is_it && has_tags {
            queue.found += 1;
            found.entries += 1;
        } else {
            let (entry, at, size) = (words(entry), facts.physical(), facts.size());
            let what = format!("{name}: its entry names {entry}, its record has {size} bytes at log offset {at}");
            found.report(&path, position, what);
        }
        Ok(())
    }

    /// Names the queues that are missing, and the entries that no record stands for.
    pub(super) async fn finish(&mut self, log: &LogWalk, found: &mut Inspection) -> Result<(), InspectError> {
        self.batches.finish(log, found).await?;
        for ((topic, id), (first, count)) in &self.missing {
            let what = format!("{topic} queue {id}: there is none, and {count} records from offset {first} on are its");
            found.report(&self.dir, 0, what);
        }
        for ((topic, id), queue) in &mut self.queues {
            // Most queues have as many entries as records: then no record needs to be read again.
            if queue.count_used(found.start).await? == queue.found {
                continue;
            }
            for number in 0..queue.files.len() {
                for offset in queue.offsets(number) {
                    let Some((entry, path, position)) = queue.entry(offset).await? else { break };
                    let place = (!is_light(topic)).then_some(offset);
                    if names_a_record(entry, found.start) && !is_record_of(log, entry, place).await? {
                        let names = words(entry);
                        let what = format!(
                            "{topic} queue {id} offset {offset}: its entry names {names}, and there is no such record"
                        );
                        found.report(&path, position, what);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Entries of records that were deleted with old segments name places before the log.
fn names_a_record(entry: Entry, log_start: PhysicalOffset) -> bool {
    entry.is_used() && !entry.is_hole() && entry.physical >= log_start
}

pub(super) fn words(entry: Entry) -> String {
    format!("{} bytes at log offset {} with tag hash {}", entry.size, entry.physical, entry.tags_code)
}

/// Whether the entry names a record, and if `offset` is given, one with that place in its queue.
pub(super) async fn is_record_of(
    log: &LogWalk,
    entry: Entry,
    offset: Option<QueueOffset>,
) -> Result<bool, InspectError> {
    let Some(head) = log.bytes_at(entry.physical, PEEK_BYTES).await? else { return Ok(false) };
    let Ok(Peeked::Record { size, .. }) = peek(&head) else { return Ok(false) };
    let Some(bytes) = log.bytes_at(entry.physical, size).await? else { return Ok(false) };
    Ok(RecordView::parse(&bytes).is_ok_and(|record| {
        offset.is_none_or(|offset| record.queue_offset() == offset)
            && record.physical_offset() == entry.physical
            && usize::try_from(entry.size).is_ok_and(|entry_size| entry_size == size)
    }))
}

impl QueueFile {
    async fn read(&self, out: &mut [u8], at: u64) -> Result<(), InspectError> {
        let file = self.file.get().map_err(failed(self.file.path()))?;
        file.read_exact_at(out, at).await.map_err(failed(self.file.path()))
    }
}

impl QueueFiles {
    fn open(dir: &Path, open_files: &Arc<OpenFiles>, found: &mut Inspection) -> Result<QueueFiles, InspectError> {
        let mut files: Vec<QueueFile> = Vec::new();
        for (start, path) in numbered(dir, layout::parse_file_name)? {
            let length = rt::fs::metadata(&path).map_err(failed(&path))?.len;
            if files.last().is_some_and(|before| before.start.checked_add(before.length) != Some(start)) {
                found.report(&path, 0, "it does not begin where the file before it ends");
            }
            files.push(QueueFile { start, length, file: PooledFile::closed(open_files, path) });
        }
        Ok(QueueFiles { files, ..QueueFiles::default() })
    }

    /// Numbers of the entries that a file has room for.
    fn offsets(&self, file: usize) -> impl Iterator<Item = QueueOffset> + use<> {
        let (start, length) = (self.files[file].start, self.files[file].length);
        let size = ENTRY_SIZE as u64;
        // Positions of bytes are signed 64-bit numbers.
        (start / size..start.saturating_add(length) / size)
            .filter_map(|number| i64::try_from(number).ok())
            .map(QueueOffset)
    }

    /// How many entries name a record of the log.
    async fn count_used(&self, log_start: PhysicalOffset) -> Result<u64, InspectError> {
        let mut used = 0;
        for file in &self.files {
            let mut at = 0;
            while at + ENTRY_SIZE as u64 <= file.length {
                let length = (CHUNK * ENTRY_SIZE as u64).min(file.length - at);
                let mut bytes = vec![0; usize::try_from(length).expect("a chunk")];
                file.read(&mut bytes, at).await?;
                let entries = bytes.as_chunks::<ENTRY_SIZE>().0.iter().map(Entry::decode);
                used += entries.filter(|entry| names_a_record(*entry, log_start)).count() as u64;
                at += length;
            }
        }
        Ok(used)
    }

    async fn entry(&mut self, offset: QueueOffset) -> Result<Option<(Entry, PathBuf, u64)>, InspectError> {
        let position = layout::entry_position(offset);
        let covering = self.files.iter().find(|file| {
            file.start <= position && position + ENTRY_SIZE as u64 <= file.start.saturating_add(file.length)
        });
        let Some(file) = covering else { return Ok(None) };
        let in_file = position - file.start;
        let (at, bytes) = &self.chunk;
        if position < *at || position + ENTRY_SIZE as u64 > at + bytes.len() as u64 {
            let length = (NEXT * ENTRY_SIZE as u64).min(file.length - in_file);
            let mut bytes = vec![0; usize::try_from(length).expect("a chunk")];
            file.read(&mut bytes, in_file).await?;
            self.chunk = (position, bytes);
        }
        let (at, bytes) = &self.chunk;
        let skip = usize::try_from(position - at).expect("in the chunk");
        let entry = bytes[skip..skip + ENTRY_SIZE].try_into().expect("twenty bytes");
        Ok(Some((Entry::decode(entry), file.file.path().to_owned(), in_file)))
    }
}

pub(super) fn directories(dir: &Path) -> Result<Vec<PathBuf>, InspectError> {
    let mut paths = match rt::fs::read_dir(dir) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(dir)(error)),
    };
    paths.retain(|path| rt::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir));
    paths.sort();
    Ok(paths)
}
