//! From the commit log to the consume queues and to those who wait for messages (`ReputMessageService`).
//!
//! The dispatcher follows the readable end: with synchronous flush nothing enters a queue that is not on disk, so a consumer
//! never commits an offset that a power loss gives to another message.
use crate::commit_log::is_full;
use crate::consume_queue::{ConsumeQueue, Push};
use crate::consume_queues::{ConsumeQueues, is_directory_name};
use crate::flush::FlushMark;
use crate::index::Index;
use crate::layout::{Entry, QueueEntry, Unit};
use crate::poison::PoisonCause;
use crate::scan::{Check, Facts, Seat, Step, examine};
use crate::store::Store;
use protocol::message::RecordView;
use protocol::{PhysicalOffset, QueueOffset, RecordError};
use rt::sync::CancellationToken;
use std::io;
use std::sync::Arc;

/// Bytes of log read at once.
const CHUNK: usize = 256 << 10;
/// Less than most records, in simulation.
const SMALL_CHUNK: usize = 200;

/// A message that has become readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Topic.
    pub topic: Arc<str>,
    /// Queue.
    pub queue_id: i32,
    /// Its offset: readers can now ask for it.
    pub queue_offset: QueueOffset,
    /// How many messages are in its record, from that offset on.
    pub messages: i64,
    /// Hash of its tag, 0 without one; none of a batch, whose messages have tags of their own.
    pub tags_code: Option<i64>,
    /// Store time, Unix milliseconds.
    pub store_timestamp: i64,
    /// Start of its record.
    pub physical: PhysicalOffset,
    /// Bytes of its record.
    pub size: u32,
}

/// Who wants to know of arrivals (held pull requests). Called from the dispatch task, in log order, after the entry is readable;
/// it must not block.
pub trait Arrivals: Send + Sync {
    /// A message has become readable.
    fn arrived(&self, arrival: &Arrival);
}

/// Who knows which filters a message passes (`CommitLogDispatcherCalcBitMap`). Asked by recovery and from the dispatch task for each message
/// of a queue that has an extension; it must not block.
pub trait BitMaps: Send + Sync {
    /// The bit map that goes into the queue's extension and comes to [`EntryFilter`](crate::EntryFilter); one that is longer than 32 747 bytes
    /// is not kept.
    fn bit_map(&self, record: &RecordView<'_>) -> Vec<u8>;
}

/// Between the keys of a message.
const KEY_SEPARATOR: char = ' ';

/// What is between the log and the queues: entries that are taken but perhaps not written, after a full disk.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher {
    /// The next record to look at.
    pub(crate) position: PhysicalOffset,
    store_timestamp: i64,
    arrivals: Vec<Arrival>,
    touched: Vec<Arc<ConsumeQueue>>,
}

/// Why the dispatcher stopped.
#[derive(Debug)]
pub(crate) enum DispatchError {
    /// The disk is full: to be tried again.
    NoSpace(io::Error),
    /// What the master has sent is no record from there on. Nothing is wrong with this store; the log has to be cut there.
    SentDamage {
        at: PhysicalOffset,
    },
    Poisoned(PoisonCause),
}

/// What became of one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It has a new entry.
    Added(Unit),
    /// It has none, or had it before.
    Nothing,
    /// Its queue has begun anew, for instance because the topic was removed and made again since the queue's last entry. The entries have to
    /// go first.
    Anew,
    /// Entries before it are missing in its queue, which has `expected` so far.
    Gap { expected: i64 },
}

/// What entries are made with.
#[derive(Clone, Copy)]
pub(crate) struct Placer<'a> {
    pub(crate) queues: &'a ConsumeQueues,
    pub(crate) delay_levels_ms: &'a [i64],
    pub(crate) bit_maps: Option<&'a dyn BitMaps>,
}

impl Placer<'_> {
    /// Gives a record the entry of one of its seats (in memory; [`ConsumeQueue::write_pending`] follows). A seat that no queue can have is
    /// passed over: a damaged or hostile topic must not become a path.
    pub(crate) fn place(&self, facts: &Facts<'_>, seat: &Seat<'_>) -> (Placed, Option<Arc<ConsumeQueue>>) {
        let queues = self.queues;
        if queues.tombstones().cover(seat.topic, facts.physical()) {
            return (Placed::Nothing, None);
        }
        if !is_directory_name(seat.topic) || seat.queue_id < 0 || seat.offset.0 < 0 {
            tracing::warn!(physical = %facts.physical(), "record names no possible queue");
            return (Placed::Nothing, None);
        }
        let queue = queues.get_or_create(seat.topic, seat.queue_id, facts.is_inner_batch() && !seat.is_light);
        let bit_maps = self.bit_maps.filter(|_| queue.is_extended());
        let unit = Unit {
            tags_code: facts.tags_code(self.delay_levels_ms),
            store_timestamp: facts.store_timestamp(),
            bit_map: bit_maps.map(|bit_maps| bit_maps.bit_map(facts.record())).unwrap_or_default(),
        };
        let entry = Entry { physical: facts.physical(), size: facts.size(), tags_code: unit.tags_code };
        let placed = match queue.push(&QueueEntry { entry, offset: seat.offset, count: seat.count }, &unit) {
            Push::Added => Placed::Added(unit),
            Push::Known if queue.is_of_former_topic(seat.offset, &entry) => Placed::Anew,
            Push::Known => Placed::Nothing,
            // A log of Apache's broker may say so: it gives offsets while it keeps no light queues.
            Push::Gap { expected } if seat.is_light && expected > 0 && queue.is_too_wide(expected, seat.offset) => {
                Placed::Anew
            }
            Push::Gap { expected } => Placed::Gap { expected },
        };
        (placed, Some(queue))
    }
}

/// Closes a gap that nothing can fill: an empty queue begins there, a queue with entries gets holes.
///
/// # Errors
/// The gap is too wide to be true.
pub(crate) fn close_gap(queue: &ConsumeQueue, expected: i64, seat: &Seat<'_>) -> Result<(), RecordError> {
    let offset = seat.offset;
    if expected == 0 {
        queue.begin_at(offset);
        return Ok(());
    }
    if queue.is_too_wide(expected, offset) {
        return Err(RecordError::BadLength { field: "queue offset", length: offset.0 });
    }
    tracing::warn!(topic = %queue.topic, queue_id = queue.queue_id, expected, %offset, "queue entries are lost");
    queue.fill_gap(offset.0 - expected);
    Ok(())
}

/// Indexes a record under its keys (in memory; [`Index::write_pending`] follows). A rollback is found by none.
pub(crate) fn put_keys(index: &Index, facts: &Facts<'_>) -> io::Result<()> {
    if facts.is_rollback() {
        return Ok(());
    }
    let [unique, others] = facts.keys();
    let others = others.as_deref().unwrap_or_default().split(KEY_SEPARATOR).filter(|key| !key.is_empty());
    let keys = unique.as_deref().into_iter().chain(others);
    index.put(facts.topic, keys, facts.physical(), facts.store_timestamp(), rt::time::unix_ms())
}

impl Store {
    /// Task: dispatches whatever becomes readable.
    pub(crate) async fn dispatch_loop(self: Arc<Self>, shutdown: CancellationToken) {
        let mut readable = self.readable.subscribe();
        loop {
            readable.borrow_and_update();
            rt::dawdle!("store.dispatch_late", rt::time::Duration::from_millis(20));
            match self.dispatch_all().await {
                Ok(()) => rt::select! {
                    () = shutdown.cancelled() => return,
                    changed = readable.changed() => if changed.is_err() { return },
                },
                Err(DispatchError::NoSpace(error)) => {
                    tracing::warn!(%error, "no space for consume queues");
                    rt::select! {
                        () = shutdown.cancelled() => return,
                        () = rt::time::sleep(self.config.queue_flush_interval) => {}
                    }
                }
                Err(DispatchError::SentDamage { at }) => {
                    rt::probe!("store.replica.sent_damage");
                    self.sent_damage.send_replace(Some(at));
                    rt::select! {
                        () = shutdown.cancelled() => return,
                        changed = readable.changed() => if changed.is_err() { return },
                    }
                }
                Err(DispatchError::Poisoned(_)) => return,
            }
        }
    }

    /// Dispatches up to the readable end of the moment.
    pub(crate) async fn dispatch_all(&self) -> Result<(), DispatchError> {
        let mut dispatcher = self.dispatcher.lock().await;
        // Rests of a round that a full disk ended.
        self.finish_round(&mut dispatcher)?;
        while self.dispatch_chunk(&mut dispatcher).await? {
            self.finish_round(&mut dispatcher)?;
        }
        Ok(())
    }

    /// Takes one chunk of records; `false` at the readable end, or before a record that is not complete yet.
    async fn dispatch_chunk(&self, dispatcher: &mut Dispatcher) -> Result<bool, DispatchError> {
        // An empty replica's log begins late.
        let (from, limit) = (dispatcher.position.max(self.log.min()), self.confirm_end());
        dispatcher.position = from;
        let Some(segment) = self.log.segment_at(from).filter(|_| from < limit) else { return Ok(false) };
        let room = usize::try_from(segment.end().min(limit) - from).expect("checked above");
        let failed = |error: crate::ReadError| match error {
            crate::ReadError::Io { path, source, .. } => {
                DispatchError::Poisoned(self.poison.set("read", &path, source))
            }
            other => DispatchError::Poisoned(self.poison.set("read", segment.path(), io::Error::other(other))),
        };
        let chunk = if rt::buggify!("store.dispatch_small_chunk") { SMALL_CHUNK } else { CHUNK };
        let mut bytes = segment.read(from, room.min(chunk)).await.map_err(failed)?;
        let mut at = from;
        let mut stopped_by = None;
        loop {
            let rest = &bytes[usize::try_from(at - from).expect("not before the chunk")..];
            match examine(rest, at, segment.end(), Check::Structure) {
                Ok(Step::Record(facts)) => match self.dispatch_record(dispatcher, &facts) {
                    Ok(()) => at = facts.end(),
                    Err(error) => stopped_by = Some(error),
                },
                Ok(Step::Blank) => {
                    // The rest of a replica's blank record may not have arrived yet.
                    if segment.end() <= limit {
                        at = segment.end();
                    }
                    break;
                }
                // The first record of the chunk is longer than the chunk; or it is the unfinished tail of a replica.
                Ok(Step::Incomplete { needed }) if at == from && bytes.len() < room && needed <= room => {
                    bytes = segment.read(from, needed).await.map_err(failed)?;
                }
                Ok(Step::Incomplete { .. }) => break,
                Err(error) => stopped_by = Some(self.unreadable(at, error)),
            }
            if stopped_by.is_some()
                || at == limit
                || at == segment.end()
                || at - from == i64::try_from(bytes.len()).unwrap_or(i64::MAX)
            {
                break;
            }
        }
        match stopped_by {
            // First what is good before it; then it is found again.
            Some(DispatchError::SentDamage { .. }) if at > from => {}
            Some(error) => return Err(error),
            None => {}
        }
        dispatcher.position = at;
        Ok(at > from)
    }

    fn dispatch_record(&self, dispatcher: &mut Dispatcher, facts: &Facts<'_>) -> Result<(), DispatchError> {
        put_keys(&self.index, facts).map_err(|source| self.not_written(source))?;
        dispatcher.store_timestamp = facts.store_timestamp();
        for seat in facts.seats(self.config.multi_dispatch) {
            self.dispatch_seat(dispatcher, facts, &seat)?;
        }
        Ok(())
    }

    fn dispatch_seat(
        &self,
        dispatcher: &mut Dispatcher,
        facts: &Facts<'_>,
        seat: &Seat<'_>,
    ) -> Result<(), DispatchError> {
        let placer = self.placer();
        let (mut placed, queue) = placer.place(facts, seat);
        let Some(queue) = queue else { return Ok(()) };
        if placed == Placed::Anew {
            self.begin_anew(&queue)?;
            placed = placer.place(facts, seat).0;
        }
        if let Placed::Gap { expected } = placed {
            close_gap(&queue, expected, seat).map_err(|error| self.unreadable(facts.physical(), error))?;
            placed = placer.place(facts, seat).0;
        }
        let Placed::Added(unit) = placed else { return Ok(()) };
        dispatcher.arrivals.push(Arrival {
            topic: Arc::clone(&queue.topic),
            queue_id: queue.queue_id,
            queue_offset: seat.offset,
            messages: seat.count,
            tags_code: (!facts.is_inner_batch() || seat.is_light).then_some(unit.tags_code),
            store_timestamp: unit.store_timestamp,
            physical: facts.physical(),
            size: u32::try_from(facts.size()).expect("sizes are positive"),
        });
        if !dispatcher.touched.iter().any(|touched| Arc::ptr_eq(touched, &queue)) {
            dispatcher.touched.push(queue);
        }
        Ok(())
    }

    /// The master has removed the topic and made it again.
    fn begin_anew(&self, queue: &ConsumeQueue) -> Result<(), DispatchError> {
        rt::probe!("store.dispatch.queue_anew");
        tracing::info!(topic = %queue.topic, queue_id = queue.queue_id, "queue begins anew");
        queue.reset().map_err(|source| self.not_written(source))?;
        self.log.lock().remove_queue(&queue.topic, queue.queue_id);
        Ok(())
    }

    /// Writes the entries, moves the dispatched end, tells who waits. Repeated from the start after a full disk.
    fn finish_round(&self, dispatcher: &mut Dispatcher) -> Result<(), DispatchError> {
        for queue in &dispatcher.touched {
            queue.write_pending().map_err(|source| self.not_written(source))?;
        }
        self.index.write_pending().map_err(|source| self.not_written(source))?;
        dispatcher.touched.clear();
        // Messages from a master use queue offsets too. A master's own append does not wait for this.
        if self.log.is_replica() {
            let mut appender = self.log.lock();
            for arrival in &dispatcher.arrivals {
                appender.raise_next(&arrival.topic, arrival.queue_id, arrival.queue_offset + arrival.messages);
            }
        }
        self.set_dispatched(FlushMark { end: dispatcher.position, store_timestamp: dispatcher.store_timestamp });
        let listener = self.arrivals();
        for arrival in dispatcher.arrivals.drain(..) {
            if let Some(listener) = &listener {
                listener.arrived(&arrival);
            }
        }
        Ok(())
    }

    fn not_written(&self, source: io::Error) -> DispatchError {
        match is_full(&source) {
            true => DispatchError::NoSpace(source),
            false => DispatchError::Poisoned(self.poison.set("write queues and index in", &self.config.root, source)),
        }
    }

    /// A record that cannot be parsed. In what a master has sent it is the master's: its disk has failed, perhaps. In our own log memory or
    /// disk have failed, and going on would hide it.
    fn unreadable(&self, at: PhysicalOffset, error: RecordError) -> DispatchError {
        if self.log.lock().came_from_master(at) {
            tracing::warn!(%at, %error, "the master has sent what is no record");
            return DispatchError::SentDamage { at };
        }
        tracing::error!(%at, %error, "commit log cannot be dispatched");
        let path = self.log.segment_at(at).map_or_else(|| self.log.dir.clone(), |segment| segment.path().to_owned());
        DispatchError::Poisoned(self.poison.set("dispatch", &path, io::Error::new(io::ErrorKind::InvalidData, error)))
    }
}

impl Dispatcher {
    /// The topic is removed: nothing more is written for it, and nobody told.
    pub(crate) fn forget_topic(&mut self, topic: &str) {
        self.arrivals.retain(|arrival| &*arrival.topic != topic);
        self.touched.retain(|queue| &*queue.topic != topic);
    }

    pub(crate) fn at(mark: FlushMark) -> Dispatcher {
        Dispatcher { position: mark.end, store_timestamp: mark.store_timestamp, ..Dispatcher::default() }
    }
}
