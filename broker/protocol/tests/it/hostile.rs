//! No bytes bring a decoder down: random ones, and golden ones with some changed.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, proptest};
use proptest::sample::select;
use protocol::message::CompressionType::{Lz4, Zlib, Zstd};
use protocol::message::{RecordView, batch, compression, decode_all};
use protocol::{Command, FrameLimits, MessageId, Properties, Record, body, json};

use crate::golden::exchanges;

/// Every decoder there is; whether it succeeds does not matter.
fn feed(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(command)) = Command::decode(&mut input, FrameLimits { frame_bytes_max: 1 << 20 }) {
        let _ = command.to_string();
        feed_body(&command.body);
    }
    feed_body(&Bytes::copy_from_slice(bytes));
}

fn feed_body(bytes: &Bytes) {
    let _ = RecordView::parse(bytes);
    let _ = Record::decode(bytes);
    let _ = decode_all(bytes.clone());
    let _ = batch::decode(bytes, 1000);
    let _ = Properties::parse_bytes(bytes);
    let _ = String::from_utf8_lossy(bytes).parse::<MessageId>();
    for kind in [Zlib, Lz4, Zstd] {
        let _ = compression::decompress(bytes, kind, 1 << 16);
    }
    let _ = json::from_slice::<body::HeartbeatData>(bytes);
    let _ = json::from_slice::<body::TopicRouteData>(bytes);
    let _ = json::from_slice::<body::RegisterBrokerBody>(bytes);
    let _ = json::from_slice::<body::ConsumeStats>(bytes);
    let _ = json::from_slice::<serde_json::Value>(bytes);
    let _ = body::RegisterBrokerBody::decode(bytes, true, 479);
    let _ = body::RegisterBrokerBody::decode(bytes, true, 409);
}

/// Golden frames in which single bytes are changed, removed or inserted.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let frames: Vec<Vec<u8>> = exchanges()
        .into_iter()
        .flat_map(|exchange| [Some(exchange.request), exchange.response])
        .flatten()
        .map(|frame| frame.bytes)
        .collect();
    (select(frames), vec((any::<proptest::sample::Index>(), any::<u8>(), 0..4), 1..6)).prop_map(
        |(mut bytes, changes)| {
            for (place, byte, change) in changes {
                let at = place.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
                match change {
                    _ if bytes.is_empty() => bytes.push(byte),
                    0 => bytes[at] = byte,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, byte),
                    _ => bytes.truncate(at),
                }
            }
            bytes
        },
    )
}

proptest! {
    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..300)) {
        feed(&bytes);
    }

    #[test]
    fn random_text(text in "[\\[\\]{}:,\"'$refnultsa0-9.eE\\\\ -]{0,200}") {
        feed(text.as_bytes());
    }

    #[test]
    fn random_bytes_behind_a_record_header(mut bytes in vec(any::<u8>(), 91..300), is_v2 in any::<bool>()) {
        let size = i32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&size.to_be_bytes());
        bytes[4..8].copy_from_slice(&(if is_v2 { 0xDAA3_20AB_u32 } else { 0xDAA3_20A7 }).to_be_bytes());
        feed(&bytes);
    }

    #[test]
    fn golden_frames_with_some_bytes_changed(bytes in mutated()) {
        feed(&bytes);
    }
}

#[test]
fn nesting_and_references_are_bounded() {
    feed("[".repeat(1 << 20).as_bytes());
    feed("{\"a\":".repeat(1 << 18).as_bytes());
    feed("{".repeat(1 << 20).as_bytes());
    let bomb = format!("{{\"a\":[{}1],\"b\":[{}1]}}", "1,".repeat(10_000), "{\"$ref\":\"$.a\"},".repeat(10_000));
    feed(bomb.as_bytes());
    feed(br#"{"$ref":"$"}"#);
    feed(br#"{"a":{"$ref":"$.a"}}"#);
}
