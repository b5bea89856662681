use crate::sim::world::world;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A point of the current node's monotonic clock. Those of two nodes have nothing to do with each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant {
    /// Local nanoseconds.
    local: u64,
}

impl Instant {
    /// The present.
    pub fn now() -> Instant {
        let world = world();
        Instant { local: world.here().clock.get().local(world.now.get()) }
    }

    pub(super) fn local(self) -> u64 {
        self.local
    }

    /// Time since then; zero if it lies ahead.
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// Time from `earlier` to this; zero if it was not earlier.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.local.saturating_sub(earlier.local))
    }

    /// As [`duration_since`](Self::duration_since).
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// Time from `earlier` to this; `None` if it was later.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.local.checked_sub(earlier.local).map(Duration::from_nanos)
    }

    /// This much later; `None` beyond what the clock can show.
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        Some(Instant { local: self.local.checked_add(nanos)? })
    }

    /// This much earlier; `None` before the clock's zero.
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        Some(Instant { local: self.local.checked_sub(nanos)? })
    }

    /// This much later, or the last instant: a deadline that never comes.
    pub(super) fn saturating_add(self, duration: Duration) -> Instant {
        self.checked_add(duration).unwrap_or(Instant { local: u64::MAX })
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    /// # Panics
    /// Beyond what the clock can show, as std's.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).expect("overflow when adding a duration to an instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    /// # Panics
    /// Before the clock's zero, as std's.
    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration).expect("overflow when subtracting a duration from an instant")
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}
