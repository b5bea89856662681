//! The two offsets of a message, as types that cannot be confused.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

macro_rules! offset {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// The first offset there is.
            pub const ZERO: Self = Self(0);

            /// The bare number.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        // Saturating: peers may send any 64-bit number, and arithmetic on it must not bring a broker down.
        impl Add<i64> for $name {
            type Output = Self;
            fn add(self, distance: i64) -> Self {
                Self(self.0.saturating_add(distance))
            }
        }

        impl Sub<i64> for $name {
            type Output = Self;
            fn sub(self, distance: i64) -> Self {
                Self(self.0.saturating_sub(distance))
            }
        }

        impl Sub for $name {
            type Output = i64;
            fn sub(self, other: Self) -> i64 {
                self.0.saturating_sub(other.0)
            }
        }

        impl From<i64> for $name {
            fn from(value: i64) -> Self {
                Self(value)
            }
        }

        impl From<$name> for i64 {
            fn from(value: $name) -> i64 {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

offset! {
    /// Position of a message in its queue: 0, 1, 2, … Dense and never used twice.
    QueueOffset
}

offset! {
    /// Position of a byte in the commit log, counted from the log's very beginning.
    PhysicalOffset
}

#[cfg(test)]
mod tests {
    use super::QueueOffset;

    #[test]
    fn arithmetic_saturates_at_the_ends() {
        assert_eq!(QueueOffset(i64::MAX) + 1, QueueOffset(i64::MAX));
        assert_eq!(QueueOffset(i64::MIN) - 1, QueueOffset(i64::MIN));
        assert_eq!(QueueOffset(7) - QueueOffset(3), 4);
    }
}
