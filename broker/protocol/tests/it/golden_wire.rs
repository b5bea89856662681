//! Frames between real peers: each is read, found to be what an independent decoder found, and survives being written again.

use std::collections::BTreeMap;

use bytes::BytesMut;
use protocol::{Command, FrameLimits, Serialization};
use serde_json::Value;

use crate::golden::{Captured, exchanges};

fn decode(name: &str, bytes: &[u8]) -> Command {
    let mut input = BytesMut::from(bytes);
    let command =
        Command::decode(&mut input, FrameLimits::ROCKETMQ).unwrap().unwrap_or_else(|| panic!("{name}: incomplete"));
    assert!(input.is_empty(), "{name}: bytes are left over");
    command
}

/// The members of a JSON object as text, without null ones.
fn texts(object: &Value) -> BTreeMap<String, String> {
    let Some(object) = object.as_object() else { return BTreeMap::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    object.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), text(value))).collect()
}

fn check_frame(name: &str, captured: &Captured) {
    let command = decode(name, &captured.bytes);
    let header = &captured.decoded["header"];
    assert_eq!(i64::from(command.code), header["code"].as_i64().unwrap(), "{name}: code");
    assert_eq!(i64::from(command.opaque), header["opaque"].as_i64().unwrap(), "{name}: opaque");
    assert_eq!(i64::from(command.flag.0), header["flag"].as_i64().unwrap(), "{name}: flag");
    assert_eq!(i64::from(command.version), header["version"].as_i64().unwrap(), "{name}: version");
    assert_eq!(command.language.name(), header["language"].as_str().unwrap(), "{name}: language");
    assert_eq!(command.remark.as_deref(), header["remark"].as_str(), "{name}: remark");
    assert_eq!(command.body.len() as u64, captured.decoded["bodyLength"].as_u64().unwrap(), "{name}: body");
    let fields: BTreeMap<String, String> = command.ext_fields.iter().map(|(k, v)| (k.into(), v.into())).collect();
    let is_json = captured.decoded["serialize"].as_str().unwrap() == "JSON";
    let mut expected = texts(&header["extFields"]);
    // Java reads an empty text in the binary header as null.
    expected.retain(|_, value| is_json || !value.is_empty());
    assert_eq!(fields, expected, "{name}: ext fields");
    assert_eq!(command.serialization == Serialization::Json, is_json, "{name}: serialization");
    if let Some(text) = captured.decoded["bodyText"].as_str() {
        assert_eq!(String::from_utf8_lossy(&command.body), text, "{name}: body text");
    }
    check_again(name, &command);
    // Java sorts the header's members and we keep the order of the ext fields, so its text comes back byte for byte.
    let is_java_text = is_json && header.get("serializeTypeCurrentRPC").is_some();
    if is_java_text && !command.ext_fields.is_empty() {
        assert_eq!(command.to_bytes(), captured.bytes, "{name}: text");
    }
    // Entries that the fast encoder wrote twice are written once by us.
    let header_bytes = captured.decoded["headerLength"].as_u64().unwrap();
    let again = decode(name, &command.to_bytes());
    if !is_json && encoded_header_bytes(&again) == header_bytes {
        assert_eq!(command.to_bytes(), captured.bytes, "{name}: bytes");
    }
}

fn encoded_header_bytes(command: &Command) -> u64 {
    (command.to_bytes().len() - 8 - command.body.len()) as u64
}

/// Written and read again in both serialisations, the command is the same.
fn check_again(name: &str, command: &Command) {
    for serialization in [Serialization::Json, Serialization::RocketMq] {
        let fits = i16::try_from(command.code).is_ok() && command.remark.as_deref() != Some("");
        let has_empty = command.ext_fields.iter().any(|(_, value)| value.is_empty());
        if serialization == Serialization::RocketMq && (!fits || has_empty) {
            continue;
        }
        let mut other = command.clone();
        other.serialization = serialization;
        assert_eq!(decode(name, &other.to_bytes()), other, "{name}: {serialization:?}");
    }
}

#[test]
fn every_captured_frame_is_read_and_written_again() {
    let mut frames = 0;
    for exchange in exchanges() {
        check_frame(&exchange.name, &exchange.request);
        frames += 1;
        if let Some(response) = &exchange.response {
            check_frame(&format!("{} response", exchange.name), response);
            frames += 1;
        }
    }
    assert!(frames > 1000, "only {frames} frames");
}

#[test]
fn every_captured_code_is_known() {
    for exchange in exchanges() {
        // Codes above 50,000 are DLedger's own protocol, 9999 was made up by the capture.
        let is_ours = exchange.code < 50_000 || exchange.code > 200_000;
        if is_ours && exchange.code != 9999 {
            assert!(protocol::RequestCode::from_i32(exchange.code).is_some(), "{}", exchange.name);
        }
        if let Some(response) = &exchange.response
            && is_ours
        {
            let command = decode(&exchange.name, &response.bytes);
            assert!(command.is_response(), "{}", exchange.name);
            assert!(command.response_code().is_some(), "{}: response code {}", exchange.name, command.code);
        }
    }
}

#[test]
fn records_of_captured_pulls_come_back_byte_for_byte() {
    let mut records = 0;
    for exchange in exchanges() {
        let Some(response) = exchange.response.filter(|_| matches!(exchange.code, 11 | 361 | 12 | 33)) else {
            continue;
        };
        let command = decode(&exchange.name, &response.bytes);
        if command.code != 0 {
            continue;
        }
        let mut rest = command.body.clone();
        let mut again = BytesMut::new();
        while !rest.is_empty() {
            let record = protocol::Record::decode(&rest).unwrap();
            protocol::message::RecordView::parse(&rest).unwrap().check_body().unwrap();
            record.encode(&mut again).unwrap();
            rest = rest.slice(record.encoded_bytes()..);
            records += 1;
        }
        assert_eq!(again, command.body, "{}", exchange.name);
        assert!(!protocol::message::decode_all(command.body).unwrap().is_empty());
    }
    assert!(records > 20, "only {records} records");
}

#[test]
fn batches_of_captured_sends_come_back_byte_for_byte() {
    let mut batches = 0;
    for exchange in exchanges() {
        if exchange.code != 320 {
            continue;
        }
        let command = decode(&exchange.name, &exchange.request.bytes);
        let entries = protocol::message::batch::decode(&command.body, 1000).unwrap();
        assert!(!entries.is_empty());
        assert_eq!(protocol::message::batch::encode(&entries).unwrap(), command.body, "{}", exchange.name);
        batches += 1;
    }
    assert!(batches > 3, "only {batches} batches");
}
