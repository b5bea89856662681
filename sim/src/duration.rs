//! Durations as people write them in plans: `"2.5s"`, `"150ms"`, `"0s"`. Lossless to the nanosecond.
//!
//! Use `#[serde(with = "sim::duration")]` on a [`Duration`] field.

use crate::error::DurationError;
use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::time::Duration;

/// Units in descending order: suffix, and nanoseconds in one. A suffix that ends in another one stands before it.
const UNITS: [(&str, u128); 6] = [
    ("min", 60_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The shortest exact text in seconds, milliseconds, microseconds or nanoseconds.
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (suffix, unit) = match nanos {
        0 | 1_000_000_000.. => ("s", 1_000_000_000),
        1_000_000.. => ("ms", 1_000_000),
        1_000.. => ("us", 1_000),
        _ => ("ns", 1),
    };
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return format!("{whole}{suffix}");
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{suffix}", fraction.trim_end_matches('0'))
}

/// Reads a number with a unit (`h`, `min`, `s`, `ms`, `us`, `ns`); at most nanosecond precision.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError { text: text.to_owned() };
    let trimmed = text.trim();
    let (number, unit) =
        UNITS.iter().find_map(|(suffix, unit)| Some((trimmed.strip_suffix(suffix)?, *unit))).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 18 || number.ends_with('.') {
        return Err(wrong());
    }
    let whole: u128 = whole.parse().map_err(|_| wrong())?;
    let mut nanos = whole.checked_mul(unit).ok_or_else(wrong)?;
    if !fraction.is_empty() {
        let scale = 10_u128.pow(u32::try_from(fraction.len()).map_err(|_| wrong())?);
        let part = fraction.parse::<u128>().map_err(|_| wrong())?.checked_mul(unit).ok_or_else(wrong)?;
        if part % scale != 0 {
            return Err(wrong());
        }
        nanos += part / scale;
    }
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| wrong())
}

/// Serde: a duration as text.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// Serde: a duration from text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::{format, parse};
    use std::time::Duration;

    #[test]
    fn reads_what_it_writes_and_what_people_write() {
        let check = |text: &str, nanos: u64| {
            assert_eq!(parse(text).map(|duration| duration.as_nanos()), Ok(u128::from(nanos)), "{text}");
        };
        check("0s", 0);
        check("2.5s", 2_500_000_000);
        check("150ms", 150_000_000);
        check("1.000001ms", 1_000_001);
        check("7us", 7_000);
        check("3ns", 3);
        check("1.5min", 90_000_000_000);
        check("2h", 7_200_000_000_000);
        for nanos in [0, 1, 999, 1_000, 1_001, 1_500_000, 999_999_999, 1_000_000_000, 1_000_000_001, 86_400_000_000_000]
        {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse(&format(duration)), Ok(duration), "{}", format(duration));
        }
        assert_eq!(format(Duration::from_millis(2500)), "2.5s");
        assert_eq!(format(Duration::from_micros(1500)), "1.5ms");
    }

    #[test]
    fn refuses_what_has_no_unit_or_no_sense() {
        for text in ["", "5", "s", "-1s", "1.s", ".5s", "1e3s", "0.1ns", "99999999999999999999h", "1 s 2", "1.5.5s"] {
            assert!(parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
