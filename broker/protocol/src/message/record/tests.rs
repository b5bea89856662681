use bytes::{Bytes, BytesMut};

use super::{Peeked, Record, RecordVersion, RecordView, blank_header, peek};
use crate::error::RecordError;
use crate::message::{MessageId, Properties, SysFlag};

fn sample() -> Record {
    let properties: Properties =
        [("TAGS", "TagA"), ("UNIQ_KEY", "0A000001000018B4AAC2000000000000")].into_iter().collect();
    Record {
        version: RecordVersion::V1,
        queue_id: 3,
        flag: 9,
        queue_offset: 5.into(),
        physical_offset: 0x1234.into(),
        sys_flag: SysFlag(0),
        born_timestamp: 1_700_000_000_000,
        born_host: "10.0.0.1:51234".parse().unwrap(),
        store_timestamp: 1_700_000_000_001,
        store_host: "10.0.0.2:10911".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: Bytes::from_static(b"hello"),
        topic: "T1".to_owned(),
        properties: properties.to_text().into(),
    }
}

fn encode(record: &Record) -> Bytes {
    let mut out = BytesMut::new();
    record.encode(&mut out).unwrap();
    out.freeze()
}

/// The vector that Java's classes make of the sample.
const VECTOR: &str = "00000096daa320a73610a6860000000300000009000000000000000500000000000012340000000000\
    00018bcfe568000a0000010000c8220000018bcfe568010a00000200002a9f0000000000000000000000000000000568656c6c6f02543100\
    34544147530154616741\
    02554e49515f4b45590130413030303030313030303031384234414143323030303030303030303030300\
    2";

#[test]
fn matches_java() {
    let text: String = encode(&sample()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, VECTOR);
    let view_bytes = encode(&sample());
    let view = RecordView::parse(&view_bytes).unwrap();
    assert_eq!(view.tags_code(), 2_598_919);
    assert_eq!(view.size(), 150);
    let id = MessageId::new(view.store_host().unwrap(), view.physical_offset());
    assert_eq!(id.to_string(), "0A00000200002A9F0000000000001234");
}

#[test]
fn long_topics_need_the_second_version() {
    let topic = "t".repeat(128);
    let record = Record { topic: topic.clone(), ..sample() };
    let refused = RecordError::TooLong { field: "topic", length: 128, limit: 127 };
    assert_eq!(record.encode(&mut BytesMut::new()), Err(refused));
    let record = Record { version: RecordVersion::for_topic(&topic), ..record };
    assert_eq!(record.version, RecordVersion::V2);
    assert_eq!(Record::decode(&encode(&record)), Ok(record));
}

#[test]
fn damage_is_named() {
    let good = encode(&sample());
    let damaged = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        Bytes::from(bytes)
    };
    let parse = |bytes: &Bytes| RecordView::parse(bytes).map(|view| view.check_body());
    assert_eq!(parse(&damaged(7, 0)), Err(RecordError::Magic { magic: 0xDAA3_2000 }));
    assert_eq!(parse(&damaged(3, 0x97)), Err(RecordError::Truncated { needed: 151, available: 150 }));
    assert_eq!(parse(&damaged(3, 90)), Err(RecordError::BadLength { field: "totalSize", length: 90 }));
    assert_eq!(parse(&damaged(0, 0x80)), Err(RecordError::BadLength { field: "totalSize", length: -2_147_483_498 }));
    assert_eq!(parse(&damaged(84, 0xFF)), Err(RecordError::BadLength { field: "body", length: -16_777_211 }));
    assert_eq!(parse(&damaged(93, 0x80)), Err(RecordError::BadLength { field: "topic", length: -128 }));
    assert_eq!(parse(&damaged(97, 0x33)), Err(RecordError::SizeMismatch { claimed: 150, counted: 149 }));
    let flipped = parse(&damaged(88, b'j')).unwrap();
    assert!(matches!(flipped, Err(RecordError::BodyChecksum { stored: 0x3610_a686, .. })));
    assert_eq!(Record::decode(&damaged(52, 1)).unwrap_err(), RecordError::Port { port: 0x0100_C822 });
}

#[test]
fn blanks_are_told_apart() {
    assert_eq!(peek(&blank_header(100)), Ok(Peeked::Blank { size: 100 }));
    assert_eq!(RecordView::parse(&blank_header(8)).unwrap_err(), RecordError::Blank { size: 8 });
    assert_eq!(peek(&[0; 8]), Err(RecordError::Magic { magic: 0 }));
    assert_eq!(peek(&[0; 7]), Err(RecordError::Truncated { needed: 8, available: 7 }));
}
