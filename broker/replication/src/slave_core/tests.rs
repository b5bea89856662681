use super::{Append, SlaveCore};
use crate::error::SlaveFault;
use crate::wire::put_frame;
use bytes::{Bytes, BytesMut};
use proptest::prelude::{any, prop_assert, proptest};
use protocol::PhysicalOffset;
use std::time::Duration;

const BODY_MAX: u32 = 64;

fn at(offset: i64) -> PhysicalOffset {
    PhysicalOffset(offset)
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn core(end: i64) -> SlaveCore {
    SlaveCore::new(seconds(5), seconds(20), BODY_MAX, at(end), Duration::ZERO)
}

fn frames(list: &[(i64, &[u8])]) -> BytesMut {
    let mut out = BytesMut::new();
    for (offset, body) in list {
        put_frame(&mut out, at(*offset), body);
    }
    out
}

/// Feeds the bytes in pieces of `piece` and appends what comes out.
fn feed(core: &mut SlaveCore, bytes: &[u8], piece: usize) -> Result<Vec<Append>, SlaveFault> {
    let mut appends = Vec::new();
    for part in bytes.chunks(piece) {
        core.buffer().extend_from_slice(part);
        core.received(Duration::ZERO);
        while let Some(append) = core.next_append()? {
            core.appended(&append, append.at + append.body.len() as i64);
            core.check_invariants();
            appends.push(append);
        }
    }
    Ok(appends)
}

#[test]
fn frames_in_any_pieces_become_appends() {
    let stream = frames(&[(5, b""), (5, b"abc"), (8, b"d"), (9, b"")]);
    for piece in 1..=stream.len() {
        let appends = feed(&mut core(5), &stream, piece).unwrap();
        let expected =
            [(5, "abc"), (8, "d")].map(|(o, b)| Append { at: at(o), body: Bytes::from_static(b.as_bytes()) });
        assert_eq!(appends, expected);
    }
}

#[test]
fn an_empty_log_begins_where_the_first_frame_says_and_goes_on_without_gaps() {
    let mut slave = core(0);
    assert_eq!(feed(&mut slave, &frames(&[(2000, b""), (2000, b"ab"), (2002, b"c")]), 100).unwrap().len(), 2);
    assert_eq!(slave.report_due(Duration::ZERO), Some(at(2003)));
}

#[test]
fn gap_overlap_and_bad_sizes_append_nothing() {
    for (offset, body) in [(6, &b"x"[..]), (4, b"xyz"), (6, b""), (-1, b"")] {
        let error = feed(&mut core(5), &frames(&[(offset, body)]), 100).unwrap_err();
        assert!(matches!(error, SlaveFault::NotContiguous { .. }), "{offset}: {error}");
    }
    assert!(matches!(feed(&mut core(0), &frames(&[(-8, b"x")]), 100), Err(SlaveFault::NotContiguous { .. })));
    for size in [-1_i32, BODY_MAX as i32 + 1, i32::MIN, i32::MAX] {
        let mut header = 5_i64.to_be_bytes().to_vec();
        header.extend(size.to_be_bytes());
        assert!(matches!(feed(&mut core(5), &header, 100), Err(SlaveFault::BadSize { .. })), "{size}");
    }
}

#[test]
fn reports_follow_growth_and_silence() {
    let mut slave = core(5);
    assert_eq!(slave.report_due(Duration::ZERO), Some(at(5)), "the first report goes out at once");
    slave.reporting(Duration::ZERO, at(5));
    assert_eq!(slave.report_due(seconds(4)), None);
    assert_eq!(slave.deadline(), seconds(5));
    assert_eq!(slave.report_due(seconds(5)), Some(at(5)));
    slave.reporting(seconds(5), at(5));
    feed(&mut slave, &frames(&[(5, b"abc")]), 100).unwrap();
    assert_eq!(slave.report_due(seconds(6)), Some(at(8)));
    assert!(slave.check_silence(seconds(19)).is_ok());
    assert!(matches!(slave.check_silence(seconds(20)), Err(SlaveFault::Silent { .. })));
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_contiguous_appends(bytes: Vec<u8>, end in 0_i64..10, piece in 1_usize..40, seed in any::<bool>()) {
        let mut stream = if seed { frames(&[(end, b"good")]) } else { BytesMut::new() };
        stream.extend_from_slice(&bytes);
        let mut slave = core(end);
        if let Ok(appends) = feed(&mut slave, &stream, piece) {
            for pair in appends.windows(2) {
                prop_assert!(pair[0].at + pair[0].body.len() as i64 == pair[1].at);
            }
            prop_assert!(slave.buffer().len() <= 12 + BODY_MAX as usize);
        }
    }
}
