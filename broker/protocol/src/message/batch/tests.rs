use bytes::Bytes;

use super::{BatchEntry, decode, encode};
use crate::error::BatchError;
use crate::message::Message;

fn sample() -> Bytes {
    let mut message = Message::new("T", "hello").with_tags("TagA").with_property("WAIT", "true");
    message.flag = 1;
    encode(&[BatchEntry::of(&message)]).unwrap()
}

#[test]
fn matches_java() {
    let text: String = sample().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, "0000002f0000000000000000000000010000000568656c6c6f00145441475301546167410257414954017472756502");
    let entries = decode(&sample(), 10).unwrap();
    assert_eq!(entries[0].properties().tags(), Some("TagA"));
}

#[test]
fn damage_is_named() {
    let damaged = |at: usize, byte: u8| {
        let mut bytes = sample().to_vec();
        bytes[at] = byte;
        decode(&bytes.into(), 10).unwrap_err()
    };
    assert_eq!(damaged(3, 0x30), BatchError::Truncated { at: 0, needed: 48, available: 47 });
    assert_eq!(damaged(3, 21), BatchError::BadLength { at: 0, field: "size", length: 21 });
    assert_eq!(damaged(16, 0x80), BatchError::BadLength { at: 0, field: "body", length: -2_147_483_643 });
    assert_eq!(damaged(19, 26), BatchError::BadLength { at: 0, field: "body", length: 26 });
    assert_eq!(damaged(26, 0x13), BatchError::BadLength { at: 0, field: "properties", length: 19 });
    assert_eq!(decode(&sample().slice(..46), 10), Err(BatchError::Truncated { at: 0, needed: 47, available: 46 }));
    assert_eq!(decode(&sample().slice(..5), 10), Err(BatchError::Truncated { at: 0, needed: 22, available: 5 }));
}

#[test]
fn the_number_of_entries_is_bounded() {
    let two = [sample(), sample()].concat();
    assert_eq!(decode(&two.clone().into(), 2).unwrap().len(), 2);
    assert_eq!(decode(&two.into(), 1), Err(BatchError::TooMany { limit: 1 }));
}
