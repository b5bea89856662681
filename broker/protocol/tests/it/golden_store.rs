//! Commit logs of a real broker: each record is what Apache's own decoder found, and encodes to the same bytes.

use std::io::Read;

use bytes::{Bytes, BytesMut};
use protocol::message::record::{Peeked, peek, seal, with_room_for_seal};
use protocol::message::{MessageId, RecordView};
use protocol::{Properties, Record, StoredMessage};
use serde_json::Value;

use crate::golden::root;

/// Segments of one store as one log, from offset 0.
fn log(store: &str) -> Bytes {
    let folder = root().join("store").join(store).join("commitlog");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut log = Vec::new();
    for file in files {
        let start: usize = file.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(start, log.len(), "segments are complete");
        flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()).read_to_end(&mut log).unwrap();
    }
    log.into()
}

fn manifest(store: &str) -> Value {
    let text = std::fs::read_to_string(root().join("store").join(format!("{store}.manifest.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn check_record(log: &Bytes, expected: &Value) {
    let number = |key: &str| expected[key].as_i64().unwrap_or_else(|| panic!("{key} of {expected}"));
    let text = |key: &str| expected[key].as_str().unwrap_or_else(|| panic!("{key} of {expected}"));
    let at = usize::try_from(number("phy")).unwrap();
    let input = log.slice(at..);
    let view = RecordView::parse(&input).unwrap();
    view.check_body().unwrap();
    assert_eq!(view.size() as i64, number("size"));
    assert_eq!(i64::from(view.body_crc()), number("bodyCrc"));
    let record = Record::decode(&input).unwrap();
    assert_eq!(format!("{:?}", record.version), text("magic"));
    assert_eq!(record.topic, text("topic"));
    assert_eq!(record.physical_offset.0, number("physicalOffsetField"));
    assert_eq!(record.queue_offset.0, number("queueOffset"));
    assert_eq!(record.born_host, text("bornHost").parse().unwrap());
    assert_eq!(record.store_host, text("storeHost").parse().unwrap());
    assert_eq!(record.body.len() as i64, number("bodyLength"));
    assert_eq!(record.properties, text("propertiesString"));
    for (key, value) in [
        ("queueId", i64::from(record.queue_id)),
        ("flag", i64::from(record.flag)),
        ("sysFlag", i64::from(record.sys_flag.0)),
        ("bornTimestamp", record.born_timestamp),
        ("storeTimestamp", record.store_timestamp),
        ("reconsumeTimes", i64::from(record.reconsume_times)),
        ("preparedTransactionOffset", record.prepared_transaction_offset),
    ] {
        assert_eq!(value, number(key), "{key} at {at}");
    }
    let mut again = BytesMut::new();
    record.encode(&mut again).unwrap();
    assert_eq!(again, input[..view.size()], "record at {at}");
    check_message(record, expected);
}

fn check_message(record: Record, expected: &Value) {
    let mut message = StoredMessage::from(record);
    message.decompress(4 << 20).unwrap();
    let id = message.offset_message_id();
    assert_eq!(id.to_string(), expected["offsetMsgId"].as_str().unwrap());
    assert_eq!(id.to_string().parse::<MessageId>().unwrap(), id);
    let expected_properties: Properties =
        expected["properties"].as_object().unwrap().iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap())).collect();
    assert_eq!(message.properties.len(), expected_properties.len());
    for (name, value) in expected_properties.iter() {
        assert_eq!(message.properties.get(name), Some(value), "{name}");
    }
    assert_eq!(message.properties.tags(), expected["tags"].as_str());
    assert_eq!(message.properties.unique_key(), expected["uniqKey"].as_str());
    if let Some(body) = expected["body"].as_str() {
        assert_eq!(message.body, body);
    }
}

/// A store whose records end with a checksum of all of them: it is right, and made again it is the same.
fn check_seal(log: &Bytes, at: usize) {
    let view = RecordView::parse(&log[at..]).unwrap();
    view.check_seal().expect("each record has one").unwrap();
    let record = Record::decode(&log.slice(at..)).unwrap();
    let properties = with_room_for_seal(std::str::from_utf8(&record.properties).unwrap());
    let mut again = BytesMut::new();
    Record { properties: properties.into(), ..record }.encode(&mut again).unwrap();
    seal(&mut again);
    assert_eq!(again, view.bytes(), "record at {at}");
    // Any other byte is noticed.
    for place in 0..again.len() {
        again[place] ^= 1;
        let passes = RecordView::parse(&again).is_ok_and(|view| view.check_seal() == Some(Ok(())));
        assert!(!passes, "byte {place} of the record at {at}");
        again[place] ^= 1;
    }
}

fn check_store(store: &str) {
    let (log, manifest) = (log(store), manifest(store));
    let records = manifest["commitLog"]["records"].as_array().unwrap();
    assert!(!records.is_empty());
    for record in records {
        check_record(&log, record);
        let at = usize::try_from(record["phy"].as_u64().unwrap()).unwrap();
        if store == "features" {
            check_seal(&log, at);
        } else {
            assert!(RecordView::parse(&log[at..]).unwrap().check_seal().is_none());
        }
    }
    for blank in manifest["commitLog"]["blanks"].as_array().unwrap() {
        let at = usize::try_from(blank["phy"].as_u64().unwrap()).unwrap();
        let size = usize::try_from(blank["size"].as_u64().unwrap()).unwrap();
        assert_eq!(peek(&log[at..]), Ok(Peeked::Blank { size }));
        assert_eq!(protocol::message::record::blank_header(size), log[at..at + 8]);
    }
}

#[test]
fn clean_store() {
    check_store("clean");
}

#[test]
fn store_with_record_checksums() {
    check_store("features");
}

#[test]
fn store_with_ipv6_hosts() {
    check_store("ipv6");
}
