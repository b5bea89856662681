//! The slave's side of the stream, without IO: bytes of frames in, appends and reports out.
use crate::error::SlaveFault;
use crate::wire::{HEADER_BYTES, peek_header};
use bytes::{Buf, Bytes, BytesMut};
use protocol::PhysicalOffset;
use std::time::Duration;

/// Log bytes that continue the slave's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Append {
    pub(crate) at: PhysicalOffset,
    pub(crate) body: Bytes,
}

/// All times are counted from the connection's begin.
#[derive(Debug)]
pub(crate) struct SlaveCore {
    report_interval: Duration,
    housekeeping: Duration,
    body_bytes_max: u32,
    buffer: BytesMut,
    /// End of the slave's log.
    end: PhysicalOffset,
    reported: Option<PhysicalOffset>,
    last_reported: Duration,
    last_received: Duration,
}

impl SlaveCore {
    /// The state right after the logs were compared, with the slave's log ending at `end`.
    pub(crate) fn new(
        report_interval: Duration,
        housekeeping: Duration,
        body_bytes_max: u32,
        end: PhysicalOffset,
        now: Duration,
    ) -> SlaveCore {
        SlaveCore {
            report_interval,
            housekeeping,
            body_bytes_max,
            buffer: BytesMut::new(),
            end,
            reported: None,
            last_reported: now,
            last_received: now,
        }
    }

    /// Where the shell reads into. It never holds more than one frame and one read.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes were read into the buffer.
    pub(crate) fn received(&mut self, now: Duration) {
        assert!(now >= self.last_received);
        self.last_received = now;
    }

    /// The next bytes to append, if a whole frame is there. Heartbeats are checked and consumed.
    pub(crate) fn next_append(&mut self) -> Result<Option<Append>, SlaveFault> {
        loop {
            let Some((at, size)) = peek_header(&self.buffer) else { return Ok(None) };
            let limit = self.body_bytes_max;
            let body_bytes = match u32::try_from(size) {
                Ok(bytes) if bytes <= limit => bytes as usize,
                _ => return Err(SlaveFault::BadSize { at, size, limit }),
            };
            // Judged by its header alone: a frame that does not fit is not waited for. An empty log may begin anywhere.
            if at != self.end && self.end != PhysicalOffset::ZERO || at < PhysicalOffset::ZERO {
                return Err(SlaveFault::NotContiguous { at, end: self.end });
            }
            if self.buffer.len() < HEADER_BYTES + body_bytes {
                return Ok(None);
            }
            self.buffer.advance(HEADER_BYTES);
            if body_bytes > 0 {
                let body = self.buffer.split_to(body_bytes).freeze();
                return Ok(Some(Append { at, body }));
            }
        }
    }

    /// The store holds the bytes of an append; its log ends at `end` now.
    pub(crate) fn appended(&mut self, append: &Append, end: PhysicalOffset) {
        assert_eq!(end - append.at, i64::try_from(append.body.len()).expect("checked against the limit"));
        self.end = end;
    }

    /// The report to send now: the first one at once, then whenever the log has grown, and after silence.
    pub(crate) fn report_due(&self, now: Duration) -> Option<PhysicalOffset> {
        let due = self.reported != Some(self.end) || now >= self.last_reported + self.report_interval;
        due.then_some(self.end)
    }

    /// That report is about to be written.
    pub(crate) fn reporting(&mut self, now: Duration, end: PhysicalOffset) {
        assert_eq!(end, self.end);
        self.reported = Some(end);
        self.last_reported = now;
    }

    /// When a report or the verdict of silence is due, if nothing comes before.
    pub(crate) fn deadline(&self) -> Duration {
        (self.last_reported + self.report_interval).min(self.last_received + self.housekeeping)
    }

    /// Fails if the master has been silent for too long.
    pub(crate) fn check_silence(&self, now: Duration) -> Result<(), SlaveFault> {
        if now >= self.last_received + self.housekeeping {
            return Err(SlaveFault::Silent { after: self.housekeeping });
        }
        Ok(())
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.reported <= Some(self.end));
        assert!(self.end >= PhysicalOffset::ZERO);
    }
}

#[cfg(test)]
mod tests;
