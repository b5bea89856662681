//! Unique keys: which producer process, when, and a counter.

use crate::hex::upper;
use std::net::IpAddr;

/// Makes a producer's unique keys. Pure: time and counter are arguments, so a run in the simulator repeats.
///
/// Upper-case hexadecimal of IP (4 or 16 bytes), process id (low 16 bits), a salt in place of Java's class loader hash (32 bits),
/// milliseconds since the month began (32 bits), counter (16 bits).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKeyMaker {
    prefix: String,
}

impl UniqueKeyMaker {
    /// The maker for one producer process. The salt tells producers of one process apart.
    #[must_use]
    pub fn new(ip: IpAddr, process_id: u32, salt: u32) -> Self {
        let mut prefix = String::with_capacity(44);
        let mut put = |bytes: &[u8]| prefix.push_str(upper(bytes, &mut [0; 32]));
        match ip {
            IpAddr::V4(ip) => put(&ip.octets()),
            IpAddr::V6(ip) => put(&ip.octets()),
        }
        put(&process_id.to_be_bytes()[2..]);
        put(&salt.to_be_bytes());
        Self { prefix }
    }

    /// The key for this time and counter: 32 characters (IPv4) or 56 (IPv6). Two calls with one pair give one key.
    #[must_use]
    pub fn make(&self, now_ms: i64, counter: u16) -> String {
        let since_month = now_ms.saturating_sub(month_start_ms(now_ms));
        // A month has fewer milliseconds than 32 bits hold.
        let since_month = u32::try_from(since_month).unwrap_or(0);
        let mut key = String::with_capacity(self.prefix.len() + 12);
        key.push_str(&self.prefix);
        let mut room = [0; 8];
        key.push_str(upper(&since_month.to_be_bytes(), &mut room));
        key.push_str(upper(&counter.to_be_bytes(), &mut room));
        key
    }
}

/// When a key was made, Unix milliseconds, if it is a key of this form. A key cannot be older than a month.
#[must_use]
pub fn unique_key_time_ms(key: &str, now_ms: i64) -> Option<i64> {
    if key.len() != 32 && key.len() != 56 {
        return None;
    }
    let digits = key.get(key.len() - 12..key.len() - 4)?;
    let since_month = i64::from(u32::from_str_radix(digits, 16).ok()?);
    let month = month_start_ms(now_ms);
    let this_month = month.checked_add(since_month)?;
    if this_month <= now_ms {
        return Some(this_month);
    }
    month_start_ms(month.checked_sub(1)?).checked_add(since_month)
}

const DAY_MS: i64 = 86_400_000;

/// Start of the month (UTC) that holds this time. Java takes the local month; readers only assume some month's start.
fn month_start_ms(now_ms: i64) -> i64 {
    let days = now_ms.div_euclid(DAY_MS);
    (days - day_of_month(days)).saturating_mul(DAY_MS)
}

/// Day within its month, from 0, of a day counted from 1970 (proleptic Gregorian calendar, years beginning in March).
fn day_of_month(days: i64) -> i64 {
    let shifted = days + 719_468;
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    day_of_year - (153 * month + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, UniqueKeyMaker, day_of_month, month_start_ms, unique_key_time_ms};

    #[test]
    fn days_of_the_calendar() {
        for (days, expected) in
            [(0, 0), (30, 30), (31, 0), (58, 27), (59, 0), (789, 28), (790, 0), (-1, 30), (19_675, 13)]
        {
            assert_eq!(day_of_month(days), expected, "day {days}");
        }
        assert_eq!(month_start_ms(1_700_000_000_000), 19_662 * DAY_MS);
        month_start_ms(i64::MIN);
        month_start_ms(i64::MAX);
    }

    #[test]
    fn key_tells_its_time() {
        let maker = UniqueKeyMaker::new("127.0.0.1".parse().unwrap(), 0x1_13FB, 0xE5FF_D2B2);
        let now = 1_700_000_000_123;
        let key = maker.make(now, 7);
        assert_eq!(key, "7F00000113FBE5FFD2B247B7607B0007");
        assert_eq!(unique_key_time_ms(&key, now + 5), Some(now));
        // Next month it still names the month before.
        assert_eq!(unique_key_time_ms(&key, month_start_ms(now + 20 * DAY_MS)), Some(now));
        assert_eq!(unique_key_time_ms("short", now), None);
        assert_eq!(UniqueKeyMaker::new("::1".parse().unwrap(), 1, 2).make(now, 0).len(), 56);
    }
}
