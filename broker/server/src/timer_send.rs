//! What a send with a moment of its own becomes: a message of the timer topic, if the moment is to come.
use crate::broker::Broker;
use crate::refusal::Refusal;
use protocol::message::{Properties, property};
use rt::time::unix_ms;
use store::{NewMessage, TIMER_TOPIC, TimerConfig};

/// By which properties a moment is asked for.
const ASKING: [&str; 3] = [property::TIMER_DELAY_SEC, property::TIMER_DELAY_MS, property::TIMER_DELIVER_MS];

/// Whether a message asks for a moment. One that has had its moment asks no more, whatever its properties still say.
pub(crate) fn asks(properties: &Properties) -> bool {
    !properties.contains(property::TIMER_OUT_MS) && ASKING.iter().any(|name| properties.contains(name))
}

/// Sends a message whose moment is to come to the timer topic instead of its own; tells its slot (Unix milliseconds). One whose moment has
/// passed goes where it wants to at once.
pub(crate) fn divert(
    broker: &Broker,
    message: &mut NewMessage,
    mut properties: Properties,
) -> Result<Option<i64>, Refusal> {
    if message.topic == TIMER_TOPIC || !asks(&properties) {
        return Ok(None);
    }
    let config = broker.config.store.timer.ok_or(Refusal::NoTimer)?;
    let Some(slot_ms) = slot_ms(&properties, &config, unix_ms())? else { return Ok(None) };
    properties.insert(property::TIMER_OUT_MS, slot_ms.to_string());
    properties.insert(property::REAL_TOPIC, std::mem::replace(&mut message.topic, TIMER_TOPIC.to_owned()));
    properties.insert(property::REAL_QUEUE_ID, message.queue_id.to_string());
    message.queue_id = 0;
    message.properties = properties.to_text();
    Ok(Some(slot_ms))
}

/// The slot of the moment that a message asks for; none if it has passed. A slot's messages are delivered when it is over, so a moment on its
/// edge belongs to the one before.
fn slot_ms(properties: &Properties, config: &TimerConfig, now_ms: i64) -> Result<Option<i64>, Refusal> {
    let illegal = || Refusal::TimerIllegal { max_ms: config.delay_max.as_millis() };
    let number = |name: &str| properties.get(name).map(|text| text.parse::<i64>().map_err(|_| illegal())).transpose();
    let deliver_ms = match (number(ASKING[0])?, number(ASKING[1])?, number(ASKING[2])?) {
        (Some(seconds), ..) => now_ms.saturating_add(seconds.saturating_mul(1000)),
        (None, Some(ms), _) => now_ms.saturating_add(ms),
        (None, None, ms) => ms.ok_or_else(illegal)?,
    };
    if deliver_ms <= now_ms {
        // Nothing is left that could be deleted.
        let deletes = properties.contains(property::TIMER_DEL_UNIQKEY);
        return if deletes { Err(illegal()) } else { Ok(None) };
    }
    if u128::from(deliver_ms.abs_diff(now_ms)) > config.delay_max.as_millis() {
        return Err(illegal());
    }
    Ok(Some(config.floor_ms(deliver_ms - 1)))
}

#[cfg(test)]
mod tests {
    use super::{asks, slot_ms};
    use protocol::message::Properties;
    use store::TimerConfig;

    const NOW: i64 = 1_000_000_500;

    fn check(properties: &[(&str, &str)], expected: Result<Option<i64>, ()>) {
        let properties: Properties = properties.iter().copied().collect();
        let found = slot_ms(&properties, &TimerConfig::default(), NOW).map_err(|_| ());
        assert_eq!(found, expected, "{properties:?}");
    }

    #[test]
    fn a_moment_becomes_the_slot_that_is_over_then_and_not_before() {
        check(&[("TIMER_DELIVER_MS", "1000003000")], Ok(Some(1_000_002_000)));
        check(&[("TIMER_DELIVER_MS", "1000003001")], Ok(Some(1_000_003_000)));
        check(&[("TIMER_DELAY_MS", "1500")], Ok(Some(1_000_001_000)));
        check(&[("TIMER_DELAY_MS", "1")], Ok(Some(1_000_000_000)));
        check(&[("TIMER_DELAY_SEC", "5"), ("TIMER_DELAY_MS", "1")], Ok(Some(1_000_005_000)));
    }

    #[test]
    fn a_moment_that_has_passed_is_none_and_one_too_far_is_refused() {
        check(&[("TIMER_DELIVER_MS", "1000000500")], Ok(None));
        check(&[("TIMER_DELAY_MS", "0")], Ok(None));
        check(&[("TIMER_DELAY_MS", "-9")], Ok(None));
        check(&[("TIMER_DELAY_MS", "0"), ("TIMER_DEL_UNIQKEY", "T+K")], Err(()));
        check(&[("TIMER_DELAY_SEC", "259200")], Ok(Some(1_259_200_000)));
        check(&[("TIMER_DELAY_MS", "259200001")], Err(()));
        check(&[("TIMER_DELAY_SEC", "9223372036854775807")], Err(()));
        check(&[("TIMER_DELAY_SEC", "x")], Err(()));
    }

    #[test]
    fn a_message_that_has_had_its_moment_asks_no_more() {
        let of = |properties: &[(&str, &str)]| asks(&properties.iter().copied().collect());
        assert!(of(&[("TIMER_DELAY_SEC", "5")]));
        assert!(!of(&[("TIMER_DELAY_SEC", "5"), ("TIMER_OUT_MS", "1")]));
        assert!(!of(&[("KEYS", "5")]));
    }
}
