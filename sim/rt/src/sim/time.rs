//! Time as the node sees it. A [`Sleep`] registers one timer, at its first pending poll, and removes it when dropped.
mod instant;
mod interval;
mod sleep;
mod timeout;

pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};

use super::world::world;

/// The current node's wall clock in nanoseconds since 1970.
pub fn unix_nanos() -> i64 {
    let world = world();
    world.here().clock.get().unix_nanos(world.now.get())
}
