//! When segments of the log are removed, and why. Pure.
use crate::error::ConfigError;
use std::collections::BTreeSet;
use std::time::Duration;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// When old segments go. [`RetentionConfig::default`] gives RocketMQ's defaults (`MessageStoreConfig`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// `deleteWhen`: hours of the day, 0 to 23, in which expired segments go: 4.
    pub delete_hours: BTreeSet<u8>,
    /// What `delete_hours` are counted in, as minutes east of UTC (`hotfireDeleteWhenUtcOffset`): 0.
    pub utc_offset_minutes: i16,
    /// `fileReservedTime`, or `hotfireFileReservedTime`: a segment whose newest message is older has expired: 72 h.
    pub reserved: Duration,
    /// `cleanResourceInterval`: from the end of one look to the next: 10 s. The store itself does not read it: it is for who calls
    /// [`Store::remove_expired`](crate::Store::remove_expired).
    pub interval: Duration,
    /// `deleteFileBatchMax`: segments removed in one run, at most: 10.
    pub batch_max: u32,
    /// `deleteCommitLogFilesInterval`: between two removals of a run: 100 ms.
    pub log_pause: Duration,
    /// `deleteConsumeQueueFilesInterval`: after a queue of which files were removed: 100 ms.
    pub queue_pause: Duration,
    /// `diskMaxUsedSpaceRatio`, percent: on a fuller disk expired segments go at any hour: 75.
    pub used_max_percent: u32,
    /// `diskSpaceWarningLevelRatio`, percent: on a fuller disk no message is taken: 90.
    pub warning_percent: u32,
    /// `diskSpaceCleanForciblyRatio`, percent: on a fuller disk segments go that have not expired: 85.
    pub forcible_percent: u32,
    /// `cleanFileForciblyEnable`; off: nothing goes that has not expired, however full the disk is.
    pub is_forcible: bool,
}

impl Default for RetentionConfig {
    fn default() -> RetentionConfig {
        RetentionConfig {
            delete_hours: BTreeSet::from([4]),
            utc_offset_minutes: 0,
            reserved: Duration::from_secs(72 * 3600),
            interval: Duration::from_secs(10),
            batch_max: 10,
            log_pause: Duration::from_millis(100),
            queue_pause: Duration::from_millis(100),
            used_max_percent: 75,
            warning_percent: 90,
            forcible_percent: 85,
            is_forcible: true,
        }
    }
}

impl RetentionConfig {
    /// Whether a store can work with these values: RocketMQ's ranges.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if let Some(&hour) = self.delete_hours.iter().find(|hour| **hour > 23) {
            return Err(ConfigError::DeleteHour { hour });
        }
        for (name, percent, min, max) in [
            ("diskMaxUsedSpaceRatio", self.used_max_percent, 10, 95),
            ("diskSpaceWarningLevelRatio", self.warning_percent, 35, 90),
            ("diskSpaceCleanForciblyRatio", self.forcible_percent, 30, 85),
        ] {
            if !(min..=max).contains(&percent) {
                return Err(ConfigError::DiskLevel { name, percent, min, max });
            }
        }
        Ok(())
    }
}

/// Why segments are removed; each reason is stronger than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    /// They have expired.
    Expired,
    /// The disk is nearly full, so they need not have expired.
    ForSpace,
    /// The disk is so full that nothing is appended until they are gone.
    FullDisk,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// The wall clock, Unix milliseconds.
    pub(crate) now_ms: i64,
    /// How full the disk is, in percent, rounded up; none if that is not known.
    pub(crate) used_percent: Option<u32>,
    /// An operator has asked for a removal now.
    pub(crate) is_asked: bool,
    /// Messages are refused because the disk is full.
    pub(crate) was_full: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) removal: Option<Removal>,
    /// Messages are to be refused.
    pub(crate) is_full: bool,
}

/// What is to be done. A full disk is one above the warning level, until it is no more above the forcible one: between the two nothing
/// changes, so that it does not flap.
pub(crate) fn decide(config: &RetentionConfig, situation: Situation) -> Decision {
    let is_above = |level: u32| situation.used_percent.is_some_and(|used| used > level);
    let is_above_warning = is_above(config.warning_percent);
    let is_above_forcible = is_above_warning || is_above(config.forcible_percent);
    let is_full = match situation.used_percent {
        None => situation.was_full,
        Some(_) => is_above_warning || (situation.was_full && is_above_forcible),
    };
    let is_hour = config.delete_hours.contains(&hour(situation.now_ms, config.utc_offset_minutes));
    let removal = if config.is_forcible && is_above_forcible {
        Some(if is_full { Removal::FullDisk } else { Removal::ForSpace })
    } else if is_hour || situation.is_asked || is_above_forcible || is_above(config.used_max_percent) {
        Some(Removal::Expired)
    } else {
        None
    };
    Decision { removal, is_full }
}

/// Whether a segment whose newest message was stored no later than `newest_ms` has expired.
pub(crate) fn is_expired(config: &RetentionConfig, newest_ms: i64, now_ms: i64) -> bool {
    let reserved_ms = i64::try_from(config.reserved.as_millis()).unwrap_or(i64::MAX);
    newest_ms.saturating_add(reserved_ms) <= now_ms
}

/// The hour of the day, 0 to 23.
fn hour(now_ms: i64, utc_offset_minutes: i16) -> u8 {
    let local_ms = now_ms + i64::from(utc_offset_minutes) * MINUTE_MS;
    u8::try_from(local_ms.div_euclid(HOUR_MS).rem_euclid(24)).expect("a day has 24 hours")
}

#[cfg(test)]
mod tests {
    use super::{Decision, HOUR_MS, Removal, RetentionConfig, Situation, decide, hour, is_expired};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::time::Duration;

    /// 1970-01-02, at an hour when nothing is removed.
    const NOON: Situation =
        Situation { now_ms: 36 * HOUR_MS, used_percent: Some(20), is_asked: false, was_full: false };

    fn check(situation: Situation, removal: Option<Removal>, is_full: bool) {
        let decision = decide(&RetentionConfig::default(), situation);
        assert_eq!(decision, Decision { removal, is_full }, "{situation:?}");
    }

    #[test]
    fn expired_segments_go_at_the_hour_or_when_the_disk_fills_or_when_asked() {
        check(NOON, None, false);
        check(Situation { now_ms: 28 * HOUR_MS - 1, ..NOON }, None, false);
        check(Situation { now_ms: 28 * HOUR_MS, ..NOON }, Some(Removal::Expired), false);
        check(Situation { now_ms: 29 * HOUR_MS - 1, ..NOON }, Some(Removal::Expired), false);
        check(Situation { now_ms: 29 * HOUR_MS, ..NOON }, None, false);
        check(Situation { is_asked: true, ..NOON }, Some(Removal::Expired), false);
        check(Situation { used_percent: Some(75), ..NOON }, None, false);
        check(Situation { used_percent: Some(76), ..NOON }, Some(Removal::Expired), false);
        check(Situation { used_percent: None, ..NOON }, None, false);
    }

    #[test]
    fn a_disk_is_full_above_the_warning_level_and_until_it_is_below_the_forcible_one() {
        let at = |used, was_full| Situation { used_percent: used, was_full, ..NOON };
        check(at(Some(85), false), Some(Removal::Expired), false);
        check(at(Some(86), false), Some(Removal::ForSpace), false);
        check(at(Some(90), false), Some(Removal::ForSpace), false);
        check(at(Some(91), false), Some(Removal::FullDisk), true);
        check(at(Some(90), true), Some(Removal::FullDisk), true);
        check(at(Some(86), true), Some(Removal::FullDisk), true);
        check(at(Some(85), true), Some(Removal::Expired), false);
        check(at(None, true), None, true);
    }

    #[test]
    fn without_force_nothing_goes_before_its_time() {
        let config = RetentionConfig { is_forcible: false, ..RetentionConfig::default() };
        let decision = decide(&config, Situation { used_percent: Some(99), ..NOON });
        assert_eq!(decision, Decision { removal: Some(Removal::Expired), is_full: true });
    }

    #[test]
    fn the_hour_is_that_of_the_zone() {
        assert_eq!(hour(0, 0), 0);
        assert_eq!(hour(0, 480), 8);
        assert_eq!(hour(0, -30), 23);
        assert_eq!(hour(-1, 0), 23);
        assert_eq!(hour(23 * HOUR_MS, 90), 0);
    }

    #[test]
    fn a_segment_expires_when_the_reserved_time_has_passed() {
        let config = RetentionConfig { reserved: Duration::from_secs(5), ..RetentionConfig::default() };
        assert_eq!([0, 5_999, 6_000, 9_000].map(|now| is_expired(&config, 1_000, now)), [false, false, true, true]);
        // A clock that was set back, and a time that no clock reaches.
        assert!(!is_expired(&config, 1_000, -5));
        let forever = RetentionConfig { reserved: Duration::MAX, ..config };
        assert!(!is_expired(&forever, 1_000, i64::MAX - 1));
    }

    proptest! {
        #[test]
        fn a_fuller_disk_never_removes_less(a in 0_u32..=100, b in 0_u32..=100, was_full: bool, is_asked: bool, now_ms in 0..90 * HOUR_MS, is_forcible: bool) {
            let config = RetentionConfig { is_forcible, ..RetentionConfig::default() };
            let at = |used: u32| decide(&config, Situation { now_ms, used_percent: Some(used), is_asked, was_full });
            let (less, more) = (at(a.min(b)), at(a.max(b)));
            prop_assert!(less.removal <= more.removal);
            prop_assert!(less.is_full <= more.is_full);
            prop_assert_eq!(more.removal == Some(Removal::FullDisk), more.is_full && is_forcible);
        }
    }
}
