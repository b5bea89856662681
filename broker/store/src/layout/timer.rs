//! Bytes of the timer wheel, the timer log and the timer's checkpoint.
//!
//! ```text
//! root/timerwheel             2 x 604 800 slots; the slot of a time is its number modulo the count of slots
//! root/timerlog/<20 digits>   files of `mappedFileSizeTimerLog`, named by the position of byte 0
//! root/config/timercheck      one page of 4096 bytes, of which 56 are used
//!
//! slot        0        8       16      24    28      32
//!             | number | first | last  | num | magic |     number: the time divided by the precision; positions in the timer log
//!
//! unit        0    4          12      16         24      28       36     40     44         52
//!             | 52 | previous | magic | write ms | delay | offset | size | hash | reserved |
//!                                                          offset, size: of the record in the commit log; hash: of its real topic
//!
//! blank       0      4   12      16
//!             | rest | 0 | magic |                         closes a file that has no room for a unit and a blank
//!
//! checkpoint  0         8           16     24             32              40   48        56
//!             | read ms | log bytes | next | master's next | state version | ms | counter |
//! ```
use super::{be_i32, be_i64};
use protocol::PhysicalOffset;
use protocol::body::DataVersion;

pub(crate) const TIMER_WHEEL_FILE: &str = "timerwheel";
pub(crate) const TIMER_LOG_DIR: &str = "timerlog";
pub(crate) const CONFIG_DIR: &str = "config";
pub(crate) const TIMER_CHECKPOINT_FILE: &str = "timercheck";

/// Slots of half a wheel: what a broker may be behind, and how far ahead it may plan.
pub(crate) const WHEEL_REACH: i64 = 604_800;
/// Slots of the file.
pub(crate) const WHEEL_SLOTS: i64 = 2 * WHEEL_REACH;
pub(crate) const WHEEL_BYTES: u64 = 38_707_200;
const _: () = assert!(WHEEL_BYTES == WHEEL_SLOTS as u64 * Slot::BYTES as u64);

/// What waits for one moment: a chain of units in the timer log, from the last one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The moment: Unix milliseconds divided by the precision.
    pub(crate) number: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Units, each that deletes counted as minus one.
    pub(crate) num: i32,
    pub(crate) magic: i32,
}

impl Slot {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Slot::BYTES] {
        let mut out = [0; Slot::BYTES];
        out[..8].copy_from_slice(&self.number.to_be_bytes());
        out[8..16].copy_from_slice(&self.first.to_be_bytes());
        out[16..24].copy_from_slice(&self.last.to_be_bytes());
        out[24..28].copy_from_slice(&self.num.to_be_bytes());
        out[28..].copy_from_slice(&self.magic.to_be_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; Slot::BYTES]) -> Slot {
        Slot {
            number: be_i64(bytes, 0),
            first: be_i64(bytes, 8),
            last: be_i64(bytes, 16),
            num: be_i32(bytes, 24),
            magic: be_i32(bytes, 28),
        }
    }
}

/// One waiting message, as the timer log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerUnit {
    /// Position of the unit before it in the same slot; negative: none.
    pub(crate) previous: i64,
    pub(crate) magic: i32,
    /// When it was put on the wheel, Unix milliseconds, a multiple of the precision.
    pub(crate) write_ms: i64,
    /// From then to its slot's moment, milliseconds.
    pub(crate) delay_ms: i32,
    /// Where its record lies in the commit log.
    pub(crate) physical: PhysicalOffset,
    /// Bytes of the record.
    pub(crate) size: i32,
    /// Hash of the topic that it is meant for.
    pub(crate) topic_hash: i32,
}

impl TimerUnit {
    pub(crate) const BYTES: usize = 52;
    /// Bit of every unit.
    pub(crate) const DEFAULT: i32 = 1;
    /// Bit: it comes onto the wheel again when its slot is due.
    pub(crate) const ROLL: i32 = 1 << 1;
    /// Bit: it deletes another one of its slot.
    pub(crate) const DELETE: i32 = 1 << 2;

    /// Whether it is due later than any slot of the wheel, and is put there again when this one is.
    #[must_use]
    pub fn rolls(&self) -> bool {
        self.magic & TimerUnit::ROLL != 0
    }

    /// Whether it deletes another message of its slot. One that rolls deletes nothing yet.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.magic & TimerUnit::DELETE != 0 && !self.rolls()
    }

    /// When it was put on the wheel, Unix milliseconds, a multiple of the precision.
    #[must_use]
    pub fn enqueued_ms(&self) -> i64 {
        self.write_ms
    }

    pub(crate) fn slot_ms(&self) -> i64 {
        self.write_ms.saturating_add(i64::from(self.delay_ms))
    }

    /// What it adds to its slot's number of units.
    pub(crate) fn count(&self) -> i32 {
        if self.magic & TimerUnit::DELETE != 0 { -1 } else { 1 }
    }

    pub(crate) fn encode(self) -> [u8; TimerUnit::BYTES] {
        let mut out = [0; TimerUnit::BYTES];
        out[..4].copy_from_slice(&52_i32.to_be_bytes());
        out[4..12].copy_from_slice(&self.previous.to_be_bytes());
        out[12..16].copy_from_slice(&self.magic.to_be_bytes());
        out[16..24].copy_from_slice(&self.write_ms.to_be_bytes());
        out[24..28].copy_from_slice(&self.delay_ms.to_be_bytes());
        out[28..36].copy_from_slice(&self.physical.0.to_be_bytes());
        out[36..40].copy_from_slice(&self.size.to_be_bytes());
        out[40..44].copy_from_slice(&self.topic_hash.to_be_bytes());
        out
    }

    /// `None`: these bytes are no unit.
    pub(crate) fn decode(bytes: &[u8; TimerUnit::BYTES]) -> Option<TimerUnit> {
        let unit = TimerUnit {
            previous: be_i64(bytes, 4),
            magic: be_i32(bytes, 12),
            write_ms: be_i64(bytes, 16),
            delay_ms: be_i32(bytes, 24),
            physical: PhysicalOffset(be_i64(bytes, 28)),
            size: be_i32(bytes, 36),
            topic_hash: be_i32(bytes, 40),
        };
        let is_one = be_i32(bytes, 0) == 52 && unit.magic & TimerUnit::DEFAULT != 0 && unit.magic | 0xF == 0xF;
        (is_one && unit.physical.0 >= 0 && unit.size > 0).then_some(unit)
    }
}

/// Bytes that close a file of the timer log.
pub(crate) const TIMER_BLANK_BYTES: usize = 16;
const TIMER_BLANK_MAGIC: i32 = -875_286_124;

pub(crate) fn timer_blank(rest: u64) -> [u8; TIMER_BLANK_BYTES] {
    let mut out = [0; TIMER_BLANK_BYTES];
    let rest = i32::try_from(rest).expect("less than a unit and a blank");
    out[..4].copy_from_slice(&rest.to_be_bytes());
    out[12..].copy_from_slice(&TIMER_BLANK_MAGIC.to_be_bytes());
    out
}

/// How far the timer has come: `config/timercheck`, and the body of GET_TIMER_CHECK_POINT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerCheckpoint {
    /// Of the messages before `master_next`, those that were due before this moment (Unix milliseconds) were delivered.
    pub read_ms: i64,
    /// Bytes of the timer log that are on the disk, with all slots that name them.
    pub log_bytes: i64,
    /// Queue offset of the next message that this broker puts on its wheel.
    pub next: i64,
    /// The same of the master that delivers.
    pub master_next: i64,
    /// Counts the changes.
    pub version: DataVersion,
}

impl TimerCheckpoint {
    /// Bytes on the wire.
    pub const BYTES: usize = 56;
    /// Older peers send no version.
    const WITHOUT_VERSION: usize = 32;

    /// As it is sent.
    #[must_use]
    pub fn encode(&self) -> [u8; TimerCheckpoint::BYTES] {
        let mut out = [0; TimerCheckpoint::BYTES];
        let DataVersion { counter, state_version, timestamp } = self.version;
        let fields = [self.read_ms, self.log_bytes, self.next, self.master_next, state_version, timestamp, counter];
        for (place, field) in out.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        out
    }

    /// Reads what a peer sent, with a version or without; `None` if it is shorter than that.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<TimerCheckpoint> {
        if bytes.len() < TimerCheckpoint::WITHOUT_VERSION {
            return None;
        }
        let mut whole = [0; TimerCheckpoint::BYTES];
        if bytes.len() >= whole.len() {
            whole.copy_from_slice(&bytes[..TimerCheckpoint::BYTES]);
        } else {
            whole[..32].copy_from_slice(&bytes[..32]);
        }
        let version = DataVersion {
            state_version: be_i64(&whole, 32),
            timestamp: be_i64(&whole, 40),
            counter: be_i64(&whole, 48),
        };
        Some(TimerCheckpoint {
            read_ms: be_i64(&whole, 0),
            log_bytes: be_i64(&whole, 8),
            next: be_i64(&whole, 16),
            master_next: be_i64(&whole, 24),
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, TimerCheckpoint, TimerUnit, timer_blank};
    use protocol::PhysicalOffset;
    use protocol::body::DataVersion;

    const UNIT: TimerUnit = TimerUnit {
        previous: -1,
        magic: TimerUnit::DEFAULT | TimerUnit::DELETE,
        write_ms: 1_795_973_516_000,
        delay_ms: 6000,
        physical: PhysicalOffset(28_934),
        size: 417,
        topic_hash: -143_292_516,
    };

    #[test]
    fn round_trips() {
        let slot = Slot { number: 1_795_973_522, first: 1612, last: 1664, num: 0, magic: 0 };
        assert_eq!(Slot::decode(&slot.encode()), slot);
        assert_eq!(TimerUnit::decode(&UNIT.encode()), Some(UNIT));
        let version = DataVersion { counter: 73, state_version: 0, timestamp: 1 };
        let checkpoint = TimerCheckpoint { read_ms: 1, log_bytes: 2, next: 3, master_next: 4, version };
        assert_eq!(TimerCheckpoint::decode(&checkpoint.encode()), Some(checkpoint));
        let old = TimerCheckpoint { version: DataVersion::default(), ..checkpoint };
        assert_eq!(TimerCheckpoint::decode(&checkpoint.encode()[..32]), Some(old));
        assert_eq!(TimerCheckpoint::decode(&checkpoint.encode()[..31]), None);
    }

    #[test]
    fn what_is_no_unit_is_told_apart() {
        let bytes = UNIT.encode();
        for (at, value) in [(3, 51), (15, 0x10), (15, 0), (28, 0xFF), (36, 0xFF)] {
            let mut bad = bytes;
            bad[at] = value;
            assert_eq!(TimerUnit::decode(&bad), None, "byte {at}");
        }
        // The blank of a file with room for exactly one unit looks like one in its first bytes.
        let mut blank = [0; TimerUnit::BYTES];
        blank[..16].copy_from_slice(&timer_blank(52));
        assert_eq!(TimerUnit::decode(&blank), None);
    }
}
