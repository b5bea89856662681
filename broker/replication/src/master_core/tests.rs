use super::{Action, LogView, MasterCore};
use crate::error::StreamFault;
use protocol::PhysicalOffset;
use std::time::Duration;

const HEARTBEAT: Duration = Duration::from_secs(5);
const HOUSEKEEPING: Duration = Duration::from_secs(20);

fn at(offset: i64) -> PhysicalOffset {
    PhysicalOffset(offset)
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn log(min: i64, readable_end: i64) -> LogView {
    let segment = 1000;
    LogView {
        min: at(min),
        readable_end: at(readable_end),
        last_segment_start: at(readable_end - readable_end % segment),
    }
}

fn core() -> MasterCore {
    MasterCore::new(HEARTBEAT, HOUSEKEEPING)
}

fn report(core: &mut MasterCore, offset: i64, log: LogView) -> Result<Option<PhysicalOffset>, StreamFault> {
    let result = core.received(Duration::ZERO, &offset.to_be_bytes(), log);
    if result.is_ok() {
        core.check_invariants();
    }
    result
}

#[test]
fn an_empty_slave_starts_at_the_last_segment_and_any_other_where_it_says() {
    for (min, end, reported, first) in
        [(0, 0, 0, 0), (0, 2500, 0, 2000), (0, 2500, 2500, 2500), (1000, 2500, 1001, 1001)]
    {
        let mut core = core();
        report(&mut core, reported, log(min, end)).unwrap();
        let action = core.action(Duration::ZERO, at(end));
        let expected =
            if first < end { Action::Transfer { from: at(first) } } else { Action::Wait { until: HEARTBEAT } };
        assert_eq!(action, expected, "{min} {end} {reported}");
    }
}

#[test]
fn reports_that_cannot_be_true_close_the_connection() {
    assert!(matches!(report(&mut core(), -1, log(0, 10)), Err(StreamFault::Negative { reported: -1 })));
    assert!(matches!(report(&mut core(), 11, log(0, 10)), Err(StreamFault::BeyondLog { .. })));
    assert!(matches!(report(&mut core(), 999, log(1000, 2000)), Err(StreamFault::BehindLog { .. })));

    let mut sent = core();
    report(&mut sent, 5, log(0, 10)).unwrap();
    sent.sending(Duration::ZERO, 3);
    // The master's log may be longer by now: only what was sent can be acknowledged.
    assert!(matches!(report(&mut sent, 9, log(0, 100)), Err(StreamFault::BeyondSent { .. })));

    let mut back = core();
    report(&mut back, 5, log(0, 10)).unwrap();
    assert!(matches!(report(&mut back, 4, log(0, 10)), Err(StreamFault::WentBack { .. })));
}

#[test]
fn reports_may_come_in_pieces_and_several_at_once() {
    let mut core = core();
    let mut bytes = 5_i64.to_be_bytes().to_vec();
    bytes.extend(5_i64.to_be_bytes());
    assert_eq!(core.received(Duration::ZERO, &bytes[..7], log(0, 10)).unwrap(), None);
    assert_eq!(core.action(Duration::ZERO, at(10)), Action::AwaitReport);
    assert_eq!(core.received(Duration::ZERO, &bytes[7..], log(0, 10)).unwrap(), Some(at(5)));
    core.check_invariants();
}

#[test]
fn heartbeats_fill_silence_and_a_silent_slave_is_dropped() {
    let mut core = core();
    report(&mut core, 10, log(0, 10)).unwrap();
    assert_eq!(core.action(seconds(4), at(10)), Action::Wait { until: seconds(5) });
    assert_eq!(core.action(seconds(5), at(10)), Action::Heartbeat { at: at(10) });
    core.sending(seconds(5), 0);
    assert_eq!(core.action(seconds(6), at(10)), Action::Wait { until: seconds(10) });
    assert_eq!(core.action(seconds(6), at(12)), Action::Transfer { from: at(10) });
    core.sending(seconds(6), 2);
    assert_eq!((core.start(), core.acked(), core.transferred()), (Some(at(10)), Some(at(10)), 2));
    assert!(core.check_silence(seconds(19)).is_ok());
    assert!(matches!(core.check_silence(seconds(20)), Err(StreamFault::Silent { .. })));
}
