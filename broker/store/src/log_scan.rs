//! Recovery's walk over the log: every record checked, every record dispatched, up to the first that is not good.
use crate::config::StoreConfig;
use crate::consume_queues::ConsumeQueues;
use crate::dispatch::{Placed, Placer, close_gap, put_keys};
use crate::error::{ReadError, StoreError};
use crate::index::Index;
use crate::scan::{Check, Facts, Seat, Step, examine};
use crate::segment::Segment;
use bytes::Bytes;
use protocol::message::record::PEEK_BYTES;
use protocol::{PhysicalOffset, RecordError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of log read at once.
const WINDOW: usize = 1 << 20;
/// How far behind the end of the log records are looked for that are dropped with the damaged one.
const BEHIND_MAX: i64 = 64 << 20;

/// What a walk found.
#[derive(Debug)]
pub(crate) struct LogScan {
    pub(crate) from: PhysicalOffset,
    /// End of the last good record, blank records included.
    pub(crate) end: PhysicalOffset,
    pub(crate) records: u64,
    pub(crate) last_record: Option<PhysicalOffset>,
    pub(crate) store_timestamp: Option<i64>,
    /// Why the walk ended before the end of the last segment, and in which file.
    pub(crate) problem: Option<(PathBuf, RecordError)>,
}

/// What one record did to the walk.
enum Taken {
    Yes,
    Gap,
    Bad(RecordError),
}

impl LogScan {
    pub(crate) fn empty() -> LogScan {
        LogScan::at(PhysicalOffset::ZERO)
    }

    fn at(from: PhysicalOffset) -> LogScan {
        LogScan { from, end: from, records: 0, last_record: None, store_timestamp: None, problem: None }
    }

    /// Walks all records of `segments`, gives each its queue entry and indexes its keys. `None` if entries before a record are missing and the walk
    /// must begin earlier; with `may_close_gaps` there is no earlier, and queues begin there or get holes.
    pub(crate) async fn walk(
        segments: &[Arc<Segment>],
        (placer, index): (Placer<'_>, &Index),
        config: &StoreConfig,
        may_close_gaps: bool,
    ) -> Result<Option<LogScan>, StoreError> {
        let queues = placer.queues;
        let mut scan = LogScan::at(segments.first().map_or(PhysicalOffset::ZERO, |segment| segment.start()));
        for segment in segments {
            let mut window = Window::at(segment.start());
            while scan.problem.is_none() && scan.end < segment.end() {
                let taken = match examine(window.rest(scan.end), scan.end, segment.end(), config.check()) {
                    Ok(Step::Blank) => {
                        scan.end = segment.end();
                        Taken::Yes
                    }
                    Ok(Step::Incomplete { needed }) => {
                        write_pending(queues, index)?;
                        window = Window::read(segment, scan.end, needed).await?;
                        Taken::Yes
                    }
                    Ok(Step::Record(facts)) => {
                        put_keys(index, &facts).map_err(not_written(queues))?;
                        scan.take(&facts, placer, config, may_close_gaps)?
                    }
                    Err(error) => Taken::Bad(error),
                };
                match taken {
                    Taken::Yes => {}
                    Taken::Gap => return Ok(None),
                    Taken::Bad(error) => scan.problem = Some((segment.path().to_owned(), error)),
                }
            }
            if scan.problem.is_some() {
                break;
            }
            // A whole store takes long: whoever waits sees it go on.
            if segments.len() > 1 {
                let (records, of) = (scan.records, segments.len());
                tracing::info!(path = %segment.path().display(), of, records, "segment looked through");
            }
        }
        write_pending(queues, index)?;
        Ok(Some(scan))
    }

    fn take(
        &mut self,
        facts: &Facts<'_>,
        placer: Placer<'_>,
        config: &StoreConfig,
        may_close_gaps: bool,
    ) -> Result<Taken, StoreError> {
        for seat in facts.seats(config.multi_dispatch) {
            match take_seat(facts, &seat, placer, may_close_gaps)? {
                Taken::Yes => {}
                refused => return Ok(refused),
            }
        }
        self.end = facts.end();
        self.records += 1;
        self.last_record = Some(facts.physical());
        self.store_timestamp = Some(facts.store_timestamp());
        Ok(Taken::Yes)
    }
}

/// Gives the record the entry of one seat.
fn take_seat(
    facts: &Facts<'_>,
    seat: &Seat<'_>,
    placer: Placer<'_>,
    may_close_gaps: bool,
) -> Result<Taken, StoreError> {
    let (mut placed, queue) = placer.place(facts, seat);
    if let (Placed::Anew, Some(queue)) = (&placed, &queue) {
        queue.reset().map_err(not_written(placer.queues))?;
        placed = placer.place(facts, seat).0;
    }
    if let (Placed::Gap { expected }, Some(queue)) = (placed, queue) {
        if !may_close_gaps {
            return Ok(Taken::Gap);
        }
        if let Err(error) = close_gap(&queue, expected, seat) {
            return Ok(Taken::Bad(error));
        }
        let (placed, _) = placer.place(facts, seat);
        assert!(matches!(placed, Placed::Added(_)), "the gap is closed");
    }
    Ok(Taken::Yes)
}

fn write_pending(queues: &ConsumeQueues, index: &Index) -> Result<(), StoreError> {
    for queue in queues.all() {
        queue.write_pending().map_err(not_written(queues))?;
    }
    index.write_pending().map_err(not_written(queues))
}

fn not_written(queues: &ConsumeQueues) -> impl FnOnce(io::Error) -> StoreError + use<'_> {
    |source| StoreError::Io { action: "write queues and index beside", path: queues.root().to_owned(), source }
}

/// A part of a segment in memory.
struct Window {
    at: PhysicalOffset,
    bytes: Bytes,
}

impl Window {
    fn at(at: PhysicalOffset) -> Window {
        Window { at, bytes: Bytes::new() }
    }

    async fn read(segment: &Segment, at: PhysicalOffset, needed: usize) -> Result<Window, StoreError> {
        let room = usize::try_from(segment.end() - at).expect("inside the segment");
        Ok(Window { at, bytes: segment.read(at, needed.max(WINDOW).min(room)).await? })
    }

    fn rest(&self, at: PhysicalOffset) -> &[u8] {
        let skip = usize::try_from(at - self.at).expect("the walk goes forward");
        self.bytes.get(skip..).unwrap_or(&[])
    }
}

/// Place and store time of a segment's first record, if it is a good one.
pub(crate) async fn first_record(segment: &Segment) -> Result<Option<(PhysicalOffset, i64)>, StoreError> {
    let mut window = Window::at(segment.start());
    for needed in [PEEK_BYTES, 0] {
        match examine(window.rest(segment.start()), segment.start(), segment.end(), Check::Content) {
            Ok(Step::Record(facts)) => return Ok(Some((facts.physical(), facts.store_timestamp()))),
            Ok(Step::Incomplete { needed: more }) => {
                window = Window::read(segment, segment.start(), more.max(needed)).await?;
            }
            Ok(Step::Blank) | Err(_) => return Ok(None),
        }
    }
    match examine(window.rest(segment.start()), segment.start(), segment.end(), Check::Content) {
        Ok(Step::Record(facts)) => Ok(Some((facts.physical(), facts.store_timestamp()))),
        _ => Ok(None),
    }
}

/// Whether anything was written behind `end`, and how many whole records lie there: those that are dropped with the one at `end`.
pub(crate) async fn look_behind(segments: &[Arc<Segment>], end: PhysicalOffset) -> Result<(bool, u64), StoreError> {
    let (mut is_written, mut records) = (false, 0);
    for segment in segments.iter().filter(|segment| segment.end() > end) {
        let mut at = segment.start().max(end);
        let stop = segment.end().min(end + BEHIND_MAX);
        while at < stop {
            let window = Window::read(segment, at, 0).await?;
            let (found, next) = records_in(&window, segment, at);
            is_written |= window.bytes.iter().any(|byte| *byte != 0);
            records += found;
            at = next;
        }
    }
    Ok((is_written, records))
}

/// Looks at every byte of the window for a whole record; returns how many there are, and where to go on.
fn records_in(window: &Window, segment: &Segment, from: PhysicalOffset) -> (u64, PhysicalOffset) {
    let window_end = from + i64::try_from(window.bytes.len()).expect("a window");
    let (mut at, mut records) = (from, 0);
    while at < window_end {
        let rest = window.rest(at);
        // Every magic code of a record begins so, and zeros are skipped fast.
        if rest.len() >= PEEK_BYTES && rest[4] != 0xDA {
            at = at + 1;
            continue;
        }
        match examine(rest, at, segment.end(), Check::Content) {
            Ok(Step::Record(facts)) => {
                records += 1;
                at = facts.end();
            }
            // The rest of the record is in the next window, if this is not already one that begins here.
            Ok(Step::Incomplete { .. }) if at > from => return (records, at),
            _ => at = at + 1,
        }
    }
    (records, at)
}

impl From<ReadError> for StoreError {
    fn from(error: ReadError) -> StoreError {
        match error {
            ReadError::Io { path, source, .. } => StoreError::Io { action: "read", path, source },
            other => unreachable!("reading a segment's bytes fails in no other way: {other}"),
        }
    }
}
