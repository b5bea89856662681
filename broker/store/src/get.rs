//! Reading by queue offset.
use crate::consume_queue::ConsumeQueue;
use crate::error::ReadError;
use crate::extension::Units;
use crate::layout::{self, Entry, QueueEntry};
use crate::light_queues::is_light;
use crate::scan::{Seat, Step, examine};
use crate::segment::Segment;
use crate::store::Store;
use bytes::Bytes;
use protocol::{PhysicalOffset, QueueOffset};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Which messages a reader wants, by the hash in the queue entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TagFilter {
    /// All (`*`).
    #[default]
    All,
    /// Those whose tag hash ([`protocol::tags_code`]) is in the set; an empty set matches all. Hashes collide: the client
    /// compares the tags themselves.
    Codes(BTreeSet<i64>),
}

/// A reader's filter by what the queue says of a message, before its record is read.
pub trait EntryFilter: Sync {
    /// Whether the reader wants the message. `physical`: start of its record. `tags_code`: the hash of its tag; none if the queue does not
    /// say (any more). `bit_map`: what [`BitMaps`](crate::BitMaps) said of it; empty if nobody did.
    fn wants(&self, physical: PhysicalOffset, tags_code: Option<i64>, bit_map: &[u8]) -> bool;
}

impl EntryFilter for TagFilter {
    fn wants(&self, _: PhysicalOffset, tags_code: Option<i64>, _: &[u8]) -> bool {
        match (self, tags_code) {
            (TagFilter::All, _) | (_, None) => true,
            (TagFilter::Codes(codes), Some(code)) => codes.is_empty() || codes.contains(&code),
        }
    }
}

/// A read of one queue.
#[derive(Clone, Debug)]
pub struct GetRequest {
    /// Topic.
    pub topic: String,
    /// Queue.
    pub queue_id: i32,
    /// First entry to look at.
    pub from: QueueOffset,
    /// At most so many messages; a record that holds several is returned whole.
    pub max_messages: u32,
    /// At most about so many bytes; the first message is returned whatever its size.
    pub max_bytes: u32,
    /// Which messages.
    pub tags: TagFilter,
}

/// What a read found (`GetMessageStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GetStatus {
    /// At least one message.
    Found,
    /// Entries, but none that the filter wants.
    NoMatchedMessage,
    /// Entries whose records are gone from the log.
    MessageWasRemoving,
    /// No such queue.
    NoMatchedLogicQueue,
    /// The queue never had a message.
    NoMessageInQueue,
    /// The offset lies before the queue's minimum.
    OffsetTooSmall,
    /// The offset is the queue's maximum: the next message will have it.
    OffsetOverflowOne,
    /// The offset lies beyond the queue's maximum.
    OffsetOverflowBadly,
    /// A hole: the file that would hold the entry does not exist.
    OffsetFoundNull,
}

/// Answer to a [`GetRequest`].
#[derive(Clone, Debug)]
pub struct GetOutcome {
    /// What was found.
    pub status: GetStatus,
    /// Where the reader should go on. (Apache's slaves return the requested offset instead unless `offsetCheckInSlave`: the
    /// server's affair.)
    pub next: QueueOffset,
    /// Smallest offset of the queue.
    pub min: QueueOffset,
    /// One past the largest offset of the queue.
    pub max: QueueOffset,
    /// Stored records, each as it lies in the log. Slices of `body`.
    pub records: Vec<Bytes>,
    /// All of `records`, one after the other.
    pub body: Bytes,
    /// Queue offsets of `records`; of one that holds several messages that of the first.
    pub offsets: Vec<QueueOffset>,
    /// Whether the reader is so far behind that a slave should serve it.
    pub suggest_slave: bool,
}

/// A read never takes more memory than this, whatever the request says.
const BYTES_MAX: u64 = 128 << 20;
const BYTES_MIN: u64 = 100;

impl GetOutcome {
    fn nothing(status: GetStatus, next: QueueOffset, (min, max): (QueueOffset, QueueOffset)) -> GetOutcome {
        GetOutcome {
            status,
            next,
            min,
            max,
            records: Vec::new(),
            body: Bytes::new(),
            offsets: Vec::new(),
            suggest_slave: false,
        }
    }
}

impl Store {
    /// Reads messages of one queue, as many as the request, the configured transfer limits and one consume-queue file allow, and
    /// at least one if there is one. Each record is checked before it is handed out.
    ///
    /// # Errors
    /// The disk failed, or a record is damaged: never another message instead.
    pub async fn get(&self, request: GetRequest) -> Result<GetOutcome, ReadError> {
        self.get_where(request, &TagFilter::All).await
    }

    /// As [`get`](Self::get), of the messages that the filter wants besides.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_where(&self, request: GetRequest, filter: &dyn EntryFilter) -> Result<GetOutcome, ReadError> {
        let Some(queue) = self.queues.get(&request.topic, request.queue_id) else {
            let none = (QueueOffset::ZERO, QueueOffset::ZERO);
            return Ok(GetOutcome::nothing(GetStatus::NoMatchedLogicQueue, QueueOffset::ZERO, none));
        };
        let bounds = queue.bounds();
        let (min, max) = bounds;
        let from = request.from;
        let (status, next) = match from {
            _ if max == QueueOffset::ZERO => (GetStatus::NoMessageInQueue, QueueOffset::ZERO),
            _ if from < min => (GetStatus::OffsetTooSmall, min),
            _ if from == max => (GetStatus::OffsetOverflowOne, max),
            _ if from > max => (GetStatus::OffsetOverflowBadly, max),
            _ => return self.get_inside(&queue, &request, filter, bounds).await,
        };
        Ok(GetOutcome::nothing(status, next, bounds))
    }

    async fn get_inside(
        &self,
        queue: &ConsumeQueue,
        request: &GetRequest,
        filter: &dyn EntryFilter,
        bounds: (QueueOffset, QueueOffset),
    ) -> Result<GetOutcome, ReadError> {
        let entry_bytes = layout::ENTRY_SIZE as u64;
        let scan =
            u64::from(self.config.max_filter_bytes).max(u64::from(request.max_messages) * entry_bytes) / entry_bytes;
        let run = queue.run(request.from, usize::try_from(scan.max(1)).expect("32 bits fit")).await;
        let not_opened = |source| ReadError::Io { path: queue.dir().to_owned(), position: 0, source };
        let Some(run) = run.map_err(not_opened)? else {
            // Its file was removed in this moment.
            let bounds = queue.bounds();
            if request.from < bounds.0 {
                return Ok(GetOutcome::nothing(GetStatus::OffsetTooSmall, bounds.0, bounds));
            }
            let next = queue.next_file(request.from).min(bounds.1);
            return Ok(GetOutcome::nothing(GetStatus::OffsetFoundNull, next, bounds));
        };
        let entries = run.read().await.map_err(|source| run.failed(source))?;
        let mut batch = Batch::new(self, request);
        let mut out = GetOutcome::nothing(GetStatus::NoMatchedMessage, request.from, bounds);
        let mut wanted = Vec::new();
        let mut units = queue.units();
        let mut visited = PhysicalOffset::ZERO;
        // Entries of a segment that is gone are passed over without a look at each record.
        let mut resume = self.log_min();
        for queued in entries {
            let QueueEntry { entry, offset, .. } = queued;
            visited = entry.physical;
            let is_gone = entry.is_hole() || entry.physical < resume;
            if !is_gone && batch.is_full(&queued) {
                break;
            }
            out.next = queued.next();
            if !is_gone {
                let (tags_code, bit_map) = said_of(&queued, &mut units).await.map_err(|source| run.failed(source))?;
                let wants = |filter: &dyn EntryFilter| filter.wants(entry.physical, tags_code, &bit_map);
                if !wants(&request.tags) || !wants(filter) {
                    continue;
                }
            }
            match if is_gone { None } else { self.log.segment_of_record(&entry) } {
                Some(segment) => {
                    batch.add(&queued);
                    wanted.push(Wanted { entry, offset, segment });
                    out.status = GetStatus::Found;
                }
                None => {
                    resume = if is_gone { resume } else { self.segment_after(entry.physical) };
                    if wanted.is_empty() {
                        out.status = GetStatus::MessageWasRemoving;
                    }
                }
            }
        }
        self.read_wanted(queue, &wanted, &mut out).await?;
        out.suggest_slave = self.log_end() - visited > batch.memory;
        Ok(out)
    }

    /// Reads all records into one buffer, and those that lie next to each other in the log at once.
    async fn read_wanted(
        &self,
        queue: &ConsumeQueue,
        wanted: &[Wanted],
        out: &mut GetOutcome,
    ) -> Result<(), ReadError> {
        let mut bytes = vec![0; wanted.iter().map(Wanted::bytes).sum()];
        let mut rest = &mut bytes[..];
        for run in wanted.chunk_by(Wanted::is_followed_by) {
            let (now, later) = rest.split_at_mut(run.iter().map(Wanted::bytes).sum());
            run[0].segment.read_into(run[0].entry.physical, now).await?;
            rest = later;
        }
        let mut at = 0;
        for record in wanted {
            let end = at + record.bytes();
            if !self.is_record_of(queue, record.offset, &record.entry, &bytes[at..end])? {
                out.next = record.offset;
                break;
            }
            out.offsets.push(record.offset);
            at = end;
        }
        bytes.truncate(at);
        out.body = bytes.into();
        let mut at = 0;
        for record in &wanted[..out.offsets.len()] {
            out.records.push(out.body.slice(at..at + record.bytes()));
            at += record.bytes();
        }
        if out.records.is_empty() && !wanted.is_empty() {
            out.status = GetStatus::MessageWasRemoving;
        }
        Ok(())
    }

    /// The record of an entry; `None` if the log does not reach there (any more).
    pub(crate) async fn entry_record(
        &self,
        queue: &ConsumeQueue,
        offset: QueueOffset,
        entry: &Entry,
    ) -> Result<Option<Bytes>, ReadError> {
        let Some(segment) = self.log.segment_of_record(entry) else { return Ok(None) };
        let bytes = segment.read(entry.physical, entry_bytes(entry)).await?;
        Ok(self.is_record_of(queue, offset, entry, &bytes)?.then_some(bytes))
    }

    /// Whether the bytes that lie where the entry says are its record; `false` if the log has been cut below it meanwhile.
    fn is_record_of(
        &self,
        queue: &ConsumeQueue,
        offset: QueueOffset,
        entry: &Entry,
        bytes: &[u8],
    ) -> Result<bool, ReadError> {
        let wrong = || ReadError::WrongRecord {
            topic: queue.topic.to_string(),
            queue_id: queue.queue_id,
            queue_offset: offset,
            offset: entry.physical,
        };
        match examine(bytes, entry.physical, entry.end(), self.config.check()) {
            Ok(Step::Record(facts)) => {
                let is_it = |seat: Seat<'_>| {
                    seat.topic == &*queue.topic && seat.queue_id == queue.queue_id && seat.offset == offset
                };
                let is_right = facts.end() == entry.end() && facts.seats(is_light(&queue.topic)).any(is_it);
                if is_right { Ok(true) } else { Err(wrong()) }
            }
            _ if self.log_end() < entry.end() => Ok(false),
            Ok(Step::Blank | Step::Incomplete { .. }) => Err(wrong()),
            Err(source) => Err(ReadError::Damaged { offset: entry.physical, source }),
        }
    }

    fn segment_after(&self, at: PhysicalOffset) -> PhysicalOffset {
        let size = i64::try_from(self.log.segment_size()).expect("checked by the configuration");
        PhysicalOffset(at.0 - at.0.rem_euclid(size)) + size
    }
}

/// A record that will be read.
struct Wanted {
    entry: Entry,
    offset: QueueOffset,
    segment: Arc<Segment>,
}

impl Wanted {
    fn bytes(&self) -> usize {
        entry_bytes(&self.entry)
    }

    fn is_followed_by(&self, next: &Wanted) -> bool {
        self.entry.end() == next.entry.physical && Arc::ptr_eq(&self.segment, &next.segment)
    }
}

/// Length of the record of an entry that has a place in the log.
fn entry_bytes(entry: &Entry) -> usize {
    usize::try_from(entry.size).unwrap_or(0)
}

/// The hash of an entry's tag and its message's bit map, as far as the queue knows them.
async fn said_of(queued: &QueueEntry, units: &mut Option<Units<'_>>) -> io::Result<(Option<i64>, Vec<u8>)> {
    let tags_code = queued.entry.tags_code;
    // Messages of a batch have tags of their own.
    if queued.count > 1 {
        return Ok((None, Vec::new()));
    }
    let Some(place) = layout::place_of(tags_code) else { return Ok((Some(tags_code), Vec::new())) };
    let unit = match units {
        Some(units) => units.at(place).await?,
        None => None,
    };
    Ok(unit.map_or((None, Vec::new()), |unit| (Some(unit.tags_code), unit.bit_map)))
}

/// How much of an answer is used up (`isTheBatchFull`).
struct Batch<'a> {
    store: &'a Store,
    messages_max: u32,
    bytes_max: u64,
    messages: i64,
    bytes: u64,
    /// A message further behind the log's end is taken to be on disk.
    memory: i64,
}

impl<'a> Batch<'a> {
    fn new(store: &'a Store, request: &GetRequest) -> Batch<'a> {
        let memory = store.config.memory_bytes / 100 * u64::from(store.config.access_in_memory_max_ratio);
        Batch {
            store,
            messages_max: if rt::buggify!("store.get_one_message") { 1 } else { request.max_messages },
            bytes_max: u64::from(request.max_bytes).clamp(BYTES_MIN, BYTES_MAX),
            messages: 0,
            bytes: 0,
            memory: i64::try_from(memory).unwrap_or(i64::MAX),
        }
    }

    fn is_full(&self, queued: &QueueEntry) -> bool {
        let entry = &queued.entry;
        if self.messages == 0 {
            return false;
        }
        let config = &self.store.config;
        let is_in_memory = self.store.log_end() - entry.physical <= self.memory;
        let (bytes_max, messages_max) = match is_in_memory {
            true => (config.max_transfer_bytes_memory, config.max_transfer_count_memory),
            false => (config.max_transfer_bytes_disk, config.max_transfer_count_disk),
        };
        let bytes = self.bytes + u64::try_from(entry.size).unwrap_or(0);
        self.messages + queued.count > i64::from(self.messages_max.min(messages_max))
            || bytes > self.bytes_max.min(u64::from(bytes_max))
    }

    fn add(&mut self, queued: &QueueEntry) {
        self.messages += queued.count;
        self.bytes += entry_bytes(&queued.entry) as u64;
    }
}
