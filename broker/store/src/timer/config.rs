//! How a timer divides time and its files.
use super::{BLANK_SLOTS, log};
use crate::error::ConfigError;
use crate::layout::{self, WHEEL_REACH};
use std::time::Duration;

/// How a timer divides time and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerConfig {
    /// `timerPrecisionMs`: length of a slot, 100, 200, 500 or 1000 milliseconds.
    pub precision_ms: u32,
    /// `timerRollWindowSlot`: how many slots ahead a message is planned at most; one due later is put on the wheel again then. 2 to 604 740.
    pub roll_window_slots: u32,
    /// `mappedFileSizeTimerLog`, bytes: 100 MiB.
    pub log_file_bytes: u64,
    /// `timerMaxDelaySec`: how far ahead a message may be due. The store itself does not read it.
    pub delay_max: Duration,
    /// `timerFlushIntervalMs`: how often what changed is flushed. The store itself does not read it.
    pub flush_interval: Duration,
}

impl Default for TimerConfig {
    fn default() -> TimerConfig {
        TimerConfig {
            precision_ms: 1000,
            roll_window_slots: 172_800,
            log_file_bytes: 100 << 20,
            delay_max: Duration::from_secs(259_200),
            flush_interval: Duration::from_secs(1),
        }
    }
}

impl TimerConfig {
    /// Whether a timer can work with these values.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let TimerConfig { precision_ms, roll_window_slots: slots, log_file_bytes: bytes, .. } = *self;
        if ![100, 200, 500, 1000].contains(&precision_ms) {
            return Err(ConfigError::TimerPrecision { precision_ms });
        }
        if slots < 2 || i64::from(slots) > WHEEL_REACH - BLANK_SLOTS {
            return Err(ConfigError::TimerRollWindow { slots });
        }
        if !(log::ROOM..=layout::SEGMENT_SIZE_MAX).contains(&bytes) {
            return Err(ConfigError::TimerLogSize { bytes });
        }
        if self.flush_interval.is_zero() {
            return Err(ConfigError::ZeroInterval { name: "timerFlushIntervalMs" });
        }
        Ok(())
    }

    /// The moment of a slot, whose messages are due a precision later: the largest multiple of the precision that is not later.
    #[must_use]
    pub fn floor_ms(&self, time_ms: i64) -> i64 {
        time_ms - time_ms.rem_euclid(i64::from(self.precision_ms))
    }

    pub(super) fn number(&self, time_ms: i64) -> i64 {
        time_ms.div_euclid(i64::from(self.precision_ms))
    }

    pub(super) fn slots_ms(&self, slots: i64) -> i64 {
        slots * i64::from(self.precision_ms)
    }
}
