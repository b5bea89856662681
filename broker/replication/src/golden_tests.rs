//! Both cores against two connections recorded between a 5.3.3 master and its 5.3.3 slave.
use crate::master_core::{Action, LogView, MasterCore};
use crate::slave_core::SlaveCore;
use crate::wire::{HEADER_BYTES, peek_header, put_frame};
use bytes::BytesMut;
use flate2::read::GzDecoder;
use protocol::PhysicalOffset;
use std::io::Read;
use std::time::Duration;

const SEGMENT: i64 = 262_144;
const HEARTBEAT: Duration = Duration::from_secs(5);
const HOUSEKEEPING: Duration = Duration::from_secs(20);

macro_rules! golden {
    ($name:literal) => {
        &include_bytes!(concat!("../../../fixtures/golden/ha/default/", $name))[..]
    };
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

struct Recording {
    /// Both segments; the master's and the slave's are equal.
    log: Vec<u8>,
    reports: Vec<PhysicalOffset>,
    stream: Vec<u8>,
}

fn recordings() -> [Recording; 2] {
    let mut log = unpack(golden!("commitlog-m/00000000000000000000.gz"));
    assert_eq!(log.len() as i64, SEGMENT);
    log.extend(unpack(golden!("commitlog-m/00000000000000262144.gz")));
    let recording = |reports: &[u8], stream: &[u8]| Recording {
        log: log.clone(),
        reports: reports.as_chunks::<8>().0.iter().map(|report| PhysicalOffset(i64::from_be_bytes(*report))).collect(),
        stream: unpack(stream),
    };
    [
        recording(golden!("connection1.slave-to-master.bin"), golden!("connection1.master-to-slave.bin.gz")),
        recording(golden!("connection2.slave-to-master.bin"), golden!("connection2.master-to-slave.bin.gz")),
    ]
}

/// Offset, body and whole frame of each frame of a stream.
fn frames(mut stream: &[u8]) -> Vec<(PhysicalOffset, &[u8], &[u8])> {
    let mut frames = Vec::new();
    while let Some((at, size)) = peek_header(stream) {
        let (frame, rest) = stream.split_at(HEADER_BYTES + size as usize);
        frames.push((at, &frame[HEADER_BYTES..], frame));
        stream = rest;
    }
    assert!(stream.is_empty());
    frames
}

fn slice(log: &[u8], from: PhysicalOffset, to: i64) -> &[u8] {
    &log[from.get() as usize..to as usize]
}

#[test]
fn our_slave_takes_the_recorded_stream_and_ends_with_the_same_log() {
    for (recording, piece) in recordings().iter().zip([7, 65_536]) {
        let start = recording.reports[0];
        let mut slave = SlaveCore::new(HEARTBEAT, HOUSEKEEPING, 4 << 20, start, Duration::ZERO);
        let mut log = slice(&recording.log, PhysicalOffset::ZERO, start.get()).to_vec();
        let mut reports = Vec::new();
        for part in recording.stream.chunks(piece) {
            slave.buffer().extend_from_slice(part);
            slave.received(Duration::ZERO);
            while let Some(append) = slave.next_append().unwrap() {
                assert_eq!(append.at.get(), log.len() as i64);
                log.extend_from_slice(&append.body);
                slave.appended(&append, PhysicalOffset(log.len() as i64));
                let due = slave.report_due(Duration::ZERO).unwrap();
                slave.reporting(Duration::ZERO, due);
                reports.push(due);
            }
        }
        assert_eq!(log, slice(&recording.log, PhysicalOffset::ZERO, log.len() as i64));
        assert_eq!(Some(&PhysicalOffset(log.len() as i64)), recording.reports.last());
        // A report after each frame, as the recorded slave does; its heartbeats repeat the last one.
        let mut recorded = recording.reports[1..].to_vec();
        recorded.dedup();
        assert_eq!(reports, recorded);
    }
}

#[test]
fn our_master_answers_the_recorded_reports_with_the_same_frames() {
    for recording in recordings() {
        let mut master = MasterCore::new(HEARTBEAT, HOUSEKEEPING);
        let mut reports = recording.reports.iter().peekable();
        let mut now = Duration::ZERO;
        let mut end = recording.reports[0];
        let report = |master: &mut MasterCore, now, end: PhysicalOffset, reported: PhysicalOffset| {
            let view =
                LogView { min: PhysicalOffset::ZERO, readable_end: end, last_segment_start: end - end.get() % SEGMENT };
            assert_eq!(master.received(now, &reported.get().to_be_bytes(), view).unwrap(), Some(reported));
            master.check_invariants();
        };
        report(&mut master, now, end, *reports.next().unwrap());
        for (at, body, frame) in frames(&recording.stream) {
            let mut ours = BytesMut::new();
            if body.is_empty() {
                now += HEARTBEAT;
                assert_eq!(master.action(now, end), Action::Heartbeat { at });
            } else {
                end = end.max(at + body.len() as i64);
                assert_eq!(master.action(now, end), Action::Transfer { from: at });
            }
            put_frame(&mut ours, at, slice(&recording.log, at, (at + body.len() as i64).get()));
            assert_eq!(ours, frame);
            master.sending(now, body.len());
            while let Some(reported) = reports.next_if(|reported| **reported <= at + body.len() as i64) {
                report(&mut master, now, end, *reported);
            }
        }
        assert_eq!(reports.next(), None);
        assert_eq!(master.acked(), recording.reports.last().copied());
    }
}
