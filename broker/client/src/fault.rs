//! Which brokers to avoid after slow or failed sends (RocketMQ's `MQFaultStrategy`), without a clock of its own: `now` is the time
//! since any fixed origin.
use std::collections::BTreeMap;
use std::time::Duration;

/// (a send took at least this long, the broker is avoided for this long), in milliseconds, ascending.
const PENALTIES_MS: [(u64, u64); 7] =
    [(50, 0), (100, 0), (550, 2_000), (1_800, 5_000), (3_000, 6_000), (5_000, 10_000), (15_000, 30_000)];

/// What an isolated broker's send is counted as.
const ISOLATED: Duration = Duration::from_secs(10);

/// How long a broker is avoided after a send of that latency.
pub fn not_available_duration(latency: Duration) -> Duration {
    let reached = PENALTIES_MS.iter().rev().find(|(at_least, _)| latency >= Duration::from_millis(*at_least));
    reached.map_or(Duration::ZERO, |(_, avoided)| Duration::from_millis(*avoided))
}

/// How a send to a broker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Answered.
    Answered,
    /// The broker answered with an error: avoid it, and do not count on reaching it.
    Refused,
    /// No answer: avoid it; it may still be reachable.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    /// The broker is avoided before this time.
    available_from: Duration,
    reachable: bool,
}

/// What is known of each broker, by name.
#[derive(Clone, Debug, Default)]
pub struct FaultTable {
    items: BTreeMap<String, Item>,
}

impl FaultTable {
    /// Writes down how a send went.
    pub fn update(&mut self, broker: &str, latency: Duration, sent: Sent, now: Duration) {
        let counted = if sent == Sent::Answered { latency } else { ISOLATED };
        let avoided = not_available_duration(counted);
        let item =
            self.items.entry(broker.to_owned()).or_insert(Item { available_from: Duration::ZERO, reachable: true });
        item.reachable = sent != Sent::Refused;
        if avoided > Duration::ZERO {
            // Only ever later: a quick answer of an older attempt must not cut a penalty short.
            item.available_from = item.available_from.max(now + avoided);
        }
    }

    /// Whether the broker's penalty is over. Unknown brokers are available.
    pub fn is_available(&self, broker: &str, now: Duration) -> bool {
        self.items.get(broker).is_none_or(|item| now >= item.available_from)
    }

    /// Whether the last send reached the broker. Unknown brokers are reachable.
    pub fn is_reachable(&self, broker: &str) -> bool {
        self.items.get(broker).is_none_or(|item| item.reachable)
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultTable, Sent, not_available_duration};
    use std::time::Duration;

    const fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn penalty_grows_with_latency() {
        let cases = [
            (0, 0),
            (49, 0),
            (549, 0),
            (550, 2_000),
            (1_799, 2_000),
            (1_800, 5_000),
            (3_000, 6_000),
            (5_000, 10_000),
            (14_999, 10_000),
            (15_000, 30_000),
        ];
        for (latency, avoided) in cases {
            assert_eq!(not_available_duration(ms(latency)), ms(avoided), "latency {latency}");
        }
    }

    #[test]
    fn unknown_broker_is_fine() {
        let table = FaultTable::default();
        assert!(table.is_available("b", ms(0)));
        assert!(table.is_reachable("b"));
    }

    #[test]
    fn silent_broker_is_avoided_for_ten_seconds_and_stays_reachable() {
        let mut table = FaultTable::default();
        table.update("b", ms(1), Sent::Silent, ms(100));
        assert!(!table.is_available("b", ms(10_099)));
        assert!(table.is_available("b", ms(10_100)));
        assert!(table.is_reachable("b"));
    }

    #[test]
    fn late_quick_answer_does_not_shorten_a_penalty() {
        let mut table = FaultTable::default();
        table.update("b", ms(1), Sent::Refused, ms(0));
        table.update("b", ms(600), Sent::Answered, ms(1));
        assert!(!table.is_available("b", ms(9_999)));
        assert!(table.is_reachable("b"));
    }
}
