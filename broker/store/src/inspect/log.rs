//! The records of a log, one after the other.
use super::{InspectError, Inspection, failed, numbered};
use crate::layout;
use crate::scan::{Check, Facts, Step, examine};
use bytes::Bytes;
use protocol::PhysicalOffset;
use protocol::message::record::PEEK_BYTES;
use rt::fs::File;
use std::path::{Path, PathBuf};

/// Bytes read at once.
const WINDOW: usize = 1 << 20;

struct SegmentFile {
    start: PhysicalOffset,
    end: PhysicalOffset,
    path: PathBuf,
    file: File,
}

/// A walk over a log.
pub(super) struct LogWalk {
    segments: Vec<SegmentFile>,
    /// The segment that the walk is in.
    current: usize,
    at: PhysicalOffset,
    window: Bytes,
    window_at: PhysicalOffset,
}

/// A record that was read with all checks.
pub(super) struct FoundRecord {
    bytes: Bytes,
    at: PhysicalOffset,
}

impl FoundRecord {
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        let end = self.at + i64::try_from(self.bytes.len()).expect("a record is short");
        match examine(&self.bytes, self.at, end, Check::Structure) {
            Ok(Step::Record(facts)) => facts,
            other => unreachable!("it was read as a record: {other:?}"),
        }
    }
}

impl LogWalk {
    pub(super) fn open(dir: &Path, found: &mut Inspection) -> Result<LogWalk, InspectError> {
        let mut segments: Vec<SegmentFile> = Vec::new();
        for (start, path) in numbered(dir, layout::parse_file_name)? {
            let start = PhysicalOffset(i64::try_from(start).expect("checked with the name"));
            let file = File::open(&path).map_err(failed(&path))?;
            let length = file.len().map_err(failed(&path))?;
            let end = start + i64::try_from(length).unwrap_or(i64::MAX - start.0);
            if let Some(before) = segments.last().filter(|before| before.end != start) {
                found.report(&path, 0, format!("the file before it ends at log offset {}", before.end));
            }
            segments.push(SegmentFile { start, end, path, file });
        }
        let at = segments.first().map_or(PhysicalOffset::ZERO, |first| first.start);
        (found.start, found.end, found.segments) = (at, at, segments.len() as u64);
        Ok(LogWalk { segments, current: 0, at, window: Bytes::new(), window_at: at })
    }

    /// Bytes of its files.
    pub(super) fn length(&self) -> u64 {
        self.segments.iter().map(|segment| u64::try_from(segment.end - segment.start).unwrap_or(0)).sum()
    }

    /// Bytes behind it.
    pub(super) fn passed(&self) -> u64 {
        let passed = self.segments.iter().map(|segment| self.at.min(segment.end) - segment.start);
        passed.map(|bytes| u64::try_from(bytes).unwrap_or(0)).sum()
    }

    /// The next whole record; what lies between two that is none is damage.
    pub(super) async fn next(&mut self, found: &mut Inspection) -> Result<Option<FoundRecord>, InspectError> {
        // Where the bytes begin that are no record.
        let mut torn: Option<(PhysicalOffset, String)> = None;
        loop {
            let Some(segment) = self.segments.get(self.current) else { return Ok(None) };
            if self.at >= segment.end {
                self.tell(torn.take(), found);
                self.current += 1;
                self.at = self.segments.get(self.current).map_or(self.at, |next| next.start);
                continue;
            }
            match examine(self.rest(), self.at, segment.end, Check::Seal) {
                Ok(Step::Blank) => {
                    self.tell(torn.take(), found);
                    self.at = segment.end;
                    found.end = self.at;
                }
                Ok(Step::Incomplete { needed }) => self.read(needed).await?,
                Ok(Step::Record(facts)) => {
                    let (at, size) = (self.at, usize::try_from(facts.size()).expect("sizes are positive"));
                    let skip = usize::try_from(at - self.window_at).expect("the walk goes forward");
                    let bytes = self.window.slice(skip..skip + size);
                    self.tell(torn.take(), found);
                    self.at = at + i64::try_from(size).expect("a record is short");
                    found.end = self.at;
                    return Ok(Some(FoundRecord { bytes, at }));
                }
                Err(error) => {
                    torn.get_or_insert_with(|| (self.at, error.to_string()));
                    if !self.skip_to_a_magic_code().await? {
                        // Nothing but zeros up to the end of the file: nobody has written there.
                        if self.is_zero_from(torn.as_ref().map_or(self.at, |(from, _)| *from)).await? {
                            torn = None;
                        }
                        self.at = self.segments[self.current].end;
                    }
                }
            }
        }
    }

    fn rest(&self) -> &[u8] {
        let skip = usize::try_from(self.at - self.window_at).unwrap_or(usize::MAX);
        self.window.get(skip..).unwrap_or(&[])
    }

    async fn read(&mut self, needed: usize) -> Result<(), InspectError> {
        let segment = &self.segments[self.current];
        let room = usize::try_from(segment.end - self.at).unwrap_or(usize::MAX);
        let mut bytes = vec![0; needed.max(WINDOW).min(room)];
        let position = u64::try_from(self.at - segment.start).expect("inside the segment");
        segment.file.read_exact_at(&mut bytes, position).await.map_err(failed(&segment.path))?;
        (self.window, self.window_at) = (bytes.into(), self.at);
        Ok(())
    }

    /// Goes on to the next place where a record may begin; `false` if the segment has none.
    async fn skip_to_a_magic_code(&mut self) -> Result<bool, InspectError> {
        self.at = self.at + 1;
        let end = self.segments[self.current].end;
        while self.at + i64::try_from(PEEK_BYTES).expect("small") <= end {
            if self.rest().len() < PEEK_BYTES {
                self.read(PEEK_BYTES).await?;
            }
            // Every magic code begins so, 4 bytes behind the size.
            match self.rest().windows(PEEK_BYTES).position(|head| head[4] == 0xDA || head[4] == 0xCB) {
                Some(place) => {
                    self.at = self.at + i64::try_from(place).expect("a window");
                    return Ok(true);
                }
                None => self.at = self.at + i64::try_from(self.rest().len() - PEEK_BYTES + 1).expect("a window"),
            }
        }
        Ok(false)
    }

    async fn is_zero_from(&mut self, from: PhysicalOffset) -> Result<bool, InspectError> {
        self.at = from;
        let end = self.segments[self.current].end;
        while self.at < end {
            self.read(1).await?;
            if self.window.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            self.at = self.at + i64::try_from(self.window.len()).expect("a window");
        }
        Ok(true)
    }

    fn tell(&self, torn: Option<(PhysicalOffset, String)>, found: &mut Inspection) {
        let Some((from, error)) = torn else { return };
        let segment = &self.segments[self.current];
        let position = u64::try_from(from - segment.start).expect("inside the segment");
        let what = format!("no record at log offset {from}, for {} bytes: {error}", self.at.min(segment.end) - from);
        found.report(&segment.path, position, what);
    }

    /// The bytes at an offset, if the log has so many there.
    pub(super) async fn bytes_at(&self, at: PhysicalOffset, length: usize) -> Result<Option<Vec<u8>>, InspectError> {
        let end = at + i64::try_from(length).expect("short");
        let Some(segment) = self.segments.iter().find(|segment| segment.start <= at && end <= segment.end) else {
            return Ok(None);
        };
        let mut bytes = vec![0; length];
        let position = u64::try_from(at - segment.start).expect("inside the segment");
        segment.file.read_exact_at(&mut bytes, position).await.map_err(failed(&segment.path))?;
        Ok(Some(bytes))
    }
}
