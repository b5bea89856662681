//! A node's clocks as a line through world time: `local = base_local + (world - base_world) * rate`, `wall = local + offset`.
//!
//! Changing a rate starts a new line at the present point, so local time never runs back, and the node's timers, which are
//! keyed by local time, stay where they are.
use super::world::NEVER;
use std::time::Duration;

/// A million: the rate of a clock that runs with the world.
const UNITY_PPM: u64 = 1_000_000;

/// Local time at the start of the world. Not 0, because a program may subtract from its first `Instant` on a machine that has
/// been up for a while.
const UPTIME_NS: u64 = 1_000_000_000_000_000;

/// The clocks of a machine when it is added to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConfig {
    /// How far the wall clock is ahead of the world's, in milliseconds; negative: behind.
    pub wall_ahead_ms: i64,
    /// Millionths by which both clocks run fast; negative: slow. At least -1,000,000.
    pub drift_ppm: i64,
    /// How long the machine has been up: what its monotonic clock shows. At most 500 years.
    pub uptime: Duration,
}

impl Default for ClockConfig {
    fn default() -> ClockConfig {
        ClockConfig { wall_ahead_ms: 0, drift_ppm: 0, uptime: Duration::from_nanos(UPTIME_NS) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base_world: u64,
    base_local: u64,
    /// Local nanoseconds in a million of the world's.
    rate_ppm: u64,
    frozen: bool,
    wall_offset: i64,
}

impl Clock {
    pub(super) fn starting_at(unix_ms: i64) -> Clock {
        Clock {
            base_world: 0,
            base_local: UPTIME_NS,
            rate_ppm: UNITY_PPM,
            frozen: false,
            wall_offset: unix_ms * 1_000_000 - UPTIME_NS as i64,
        }
    }

    /// The clock of a machine that is added at `world`, when the world's wall clock shows `unix_ns`.
    pub(super) fn added(config: ClockConfig, unix_ns: i64, world: u64) -> Clock {
        let uptime = u64::try_from(config.uptime.as_nanos()).ok().filter(|uptime| *uptime <= i64::MAX as u64);
        let base_local = uptime.expect("a machine is up for less than 500 years");
        let wall = unix_ns.saturating_add(config.wall_ahead_ms.saturating_mul(1_000_000));
        let wall_offset = wall.saturating_sub(base_local as i64);
        let clock = Clock { base_world: world, base_local, rate_ppm: UNITY_PPM, frozen: false, wall_offset };
        clock.with_drift(world, config.drift_ppm)
    }

    fn rate(&self) -> u64 {
        if self.frozen { 0 } else { self.rate_ppm }
    }

    /// Monotonic local time in nanoseconds.
    #[inline]
    pub(crate) fn local(&self, world: u64) -> u64 {
        let elapsed = world - self.base_world;
        let rate = self.rate();
        if rate == UNITY_PPM {
            return self.base_local + elapsed;
        }
        self.base_local + (u128::from(elapsed) * u128::from(rate) / u128::from(UNITY_PPM)) as u64
    }

    /// The first world instant at which [`local`](Self::local) reaches `deadline`; [`NEVER`] if the clock is frozen or the sum overflows.
    #[inline]
    pub(crate) fn world(&self, deadline: u64) -> u64 {
        let Some(ahead) = deadline.checked_sub(self.base_local) else { return self.base_world };
        let rate = self.rate();
        if ahead == 0 {
            return self.base_world;
        }
        if rate == UNITY_PPM {
            return self.base_world.saturating_add(ahead);
        }
        if rate == 0 {
            return NEVER;
        }
        let world = (u128::from(ahead) * u128::from(UNITY_PPM)).div_ceil(u128::from(rate));
        u64::try_from(world).map_or(NEVER, |world| self.base_world.saturating_add(world))
    }

    /// The wall clock in nanoseconds since 1970.
    #[inline]
    pub(crate) fn unix_nanos(&self, world: u64) -> i64 {
        self.local(world) as i64 + self.wall_offset
    }

    fn rebased(self, world: u64) -> Clock {
        Clock { base_world: world, base_local: self.local(world), ..self }
    }

    /// This clock, from `world` on running `ppm` millionths faster (slower if negative).
    pub(super) fn with_drift(self, world: u64, ppm: i64) -> Clock {
        let rate = i64::try_from(UNITY_PPM)
            .ok()
            .and_then(|unity| unity.checked_add(ppm))
            .and_then(|rate| u64::try_from(rate).ok());
        let rate_ppm = rate.expect("a clock does not run backwards: the drift is -1,000,000 ppm or more");
        Clock { rate_ppm, ..self.rebased(world) }
    }

    /// This clock, standing still from `world` on, or going on at its own rate.
    pub(super) fn with_frozen(self, world: u64, frozen: bool) -> Clock {
        Clock { frozen, ..self.rebased(world) }
    }

    /// This clock with its wall time moved; local time is untouched.
    pub(super) fn with_wall_step(self, nanos: i64) -> Clock {
        Clock { wall_offset: self.wall_offset + nanos, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, NEVER, UPTIME_NS};
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn drift_step_and_freeze_keep_local_time_monotonic() {
        let clock = Clock::starting_at(1_000);
        assert_eq!(clock.unix_nanos(0), 1_000_000_000);
        let fast = clock.with_drift(1_000_000, 1_000_000);
        assert_eq!(fast.local(2_000_000) - UPTIME_NS, 3_000_000, "twice as fast after the first millisecond");
        let frozen = fast.with_frozen(2_000_000, true);
        assert_eq!(frozen.local(9_000_000), fast.local(2_000_000));
        assert_eq!(frozen.world(frozen.local(9_000_000) + 1), NEVER);
        let thawed = frozen.with_frozen(9_000_000, false);
        assert_eq!(thawed.local(9_000_001), fast.local(2_000_001));
        let stepped = thawed.with_wall_step(-5);
        assert_eq!(stepped.unix_nanos(10_000_000), thawed.unix_nanos(10_000_000) - 5);
        assert_eq!(stepped.local(10_000_000), thawed.local(10_000_000));
    }

    proptest! {
        #[test]
        fn world_is_the_first_instant_that_reaches_the_deadline(
            start in 0u64..1 << 50, ppm in -999_999i64..10_000_000, ahead in 0u64..1 << 50, now in any::<u32>(),
        ) {
            let clock = Clock::starting_at(0).with_drift(start, ppm);
            let deadline = clock.local(start) + ahead;
            let world = clock.world(deadline);
            prop_assert!(clock.local(world) >= deadline);
            prop_assert!(world == start || clock.local(world - 1) < deadline);
            prop_assert!(clock.local(start + u64::from(now)) >= clock.local(start));
        }
    }
}
