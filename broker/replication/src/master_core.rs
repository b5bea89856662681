//! One slave's connection at the master, without IO: bytes of reports in, transfers and heartbeats out.
use crate::error::StreamFault;
use crate::wire::REPORT_BYTES;
use protocol::PhysicalOffset;
use std::time::Duration;

/// The master's log as one step sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogView {
    pub(crate) min: PhysicalOffset,
    /// Nothing beyond it may be sent.
    pub(crate) readable_end: PhysicalOffset,
    /// Where an empty slave starts.
    pub(crate) last_segment_start: PhysicalOffset,
}

/// What the connection is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Wait for the slave's first report.
    AwaitReport,
    /// Read the log from there and send it.
    Transfer { from: PhysicalOffset },
    /// Send an empty frame.
    Heartbeat { at: PhysicalOffset },
    /// Nothing before then, unless the log grows.
    Wait { until: Duration },
}

/// All times are counted from the connection's begin.
#[derive(Debug)]
pub(crate) struct MasterCore {
    heartbeat_interval: Duration,
    housekeeping: Duration,
    /// Bytes of a report that is not complete yet.
    partial: Vec<u8>,
    /// The next byte to send; `None` before the first report.
    next: Option<PhysicalOffset>,
    start: Option<PhysicalOffset>,
    acked: Option<PhysicalOffset>,
    last_sent: Duration,
    last_received: Duration,
    transferred: u64,
}

impl MasterCore {
    pub(crate) fn new(heartbeat_interval: Duration, housekeeping: Duration) -> MasterCore {
        MasterCore {
            heartbeat_interval,
            housekeeping,
            partial: Vec::with_capacity(REPORT_BYTES),
            next: None,
            start: None,
            acked: None,
            last_sent: Duration::ZERO,
            last_received: Duration::ZERO,
            transferred: 0,
        }
    }

    /// Bytes came from the slave. Returns the newest acknowledged end, if they complete a report.
    pub(crate) fn received(
        &mut self,
        now: Duration,
        bytes: &[u8],
        log: LogView,
    ) -> Result<Option<PhysicalOffset>, StreamFault> {
        assert!(now >= self.last_received);
        self.last_received = now;
        let mut newest = None;
        for byte in bytes {
            self.partial.push(*byte);
            if let Some(report) = self.partial.first_chunk::<REPORT_BYTES>() {
                let reported = PhysicalOffset(i64::from_be_bytes(*report));
                self.partial.clear();
                self.reported(reported, log)?;
                newest = Some(reported);
            }
        }
        Ok(newest)
    }

    fn reported(&mut self, reported: PhysicalOffset, log: LogView) -> Result<(), StreamFault> {
        if reported < PhysicalOffset::ZERO {
            return Err(StreamFault::Negative { reported: reported.get() });
        }
        match (self.next, self.acked) {
            (Some(sent), _) if reported > sent => return Err(StreamFault::BeyondSent { reported, sent }),
            (_, Some(before)) if reported < before => return Err(StreamFault::WentBack { reported, before }),
            (Some(_), _) => {}
            (None, _) => {
                let start = start(reported, log)?;
                self.next = Some(start);
                self.start = Some(start);
            }
        }
        self.acked = Some(reported);
        Ok(())
    }

    /// What to do at `now`.
    pub(crate) fn action(&self, now: Duration, readable_end: PhysicalOffset) -> Action {
        let Some(next) = self.next else { return Action::AwaitReport };
        if next < readable_end {
            return Action::Transfer { from: next };
        }
        let heartbeat = self.last_sent + self.heartbeat_interval;
        if now >= heartbeat { Action::Heartbeat { at: next } } else { Action::Wait { until: heartbeat } }
    }

    /// A frame with so many body bytes is about to be written: from now on the slave may acknowledge them.
    pub(crate) fn sending(&mut self, now: Duration, body_bytes: usize) {
        let next = self.next.expect("nothing is sent before the first report");
        let bytes = i64::try_from(body_bytes).expect("batches are far below 2^63 bytes");
        self.next = Some(next + bytes);
        self.transferred += body_bytes as u64;
        self.last_sent = now;
    }

    /// When the slave will have been silent for too long.
    pub(crate) fn silent_at(&self) -> Duration {
        self.last_received + self.housekeeping
    }

    /// Fails if the slave has been silent for too long.
    pub(crate) fn check_silence(&self, now: Duration) -> Result<(), StreamFault> {
        if now >= self.silent_at() { Err(StreamFault::Silent { after: self.housekeeping }) } else { Ok(()) }
    }

    pub(crate) fn acked(&self) -> Option<PhysicalOffset> {
        self.acked
    }

    /// First byte sent on this connection.
    pub(crate) fn start(&self) -> Option<PhysicalOffset> {
        self.start
    }

    /// Body bytes sent on this connection.
    pub(crate) fn transferred(&self) -> u64 {
        self.transferred
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.partial.len() < REPORT_BYTES);
        assert_eq!(self.next.is_some(), self.acked.is_some());
        assert_eq!(self.next.is_some(), self.start.is_some());
        assert!(self.acked <= self.next);
    }
}

/// Where the transfer to a slave that reports `reported` starts.
fn start(reported: PhysicalOffset, log: LogView) -> Result<PhysicalOffset, StreamFault> {
    if reported == PhysicalOffset::ZERO {
        // Apache's rule: an empty slave joins at the last segment and never gets what is older.
        return Ok(log.last_segment_start);
    }
    if reported > log.readable_end {
        return Err(StreamFault::BeyondLog { reported, readable_end: log.readable_end });
    }
    if reported < log.min {
        return Err(StreamFault::BehindLog { reported, log_min: log.min });
    }
    Ok(reported)
}

#[cfg(test)]
mod tests;
