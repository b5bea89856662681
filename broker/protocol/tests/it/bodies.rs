//! Bodies: every captured one of a known code becomes its type and says the same when written again.

use bytes::BytesMut;
use protocol::body;
use protocol::json::{from_slice, to_vec, to_vec_strict};
use protocol::{Command, FrameLimits};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::golden::exchanges;

/// Arrays stand for sets in most places, so their order counts for nothing here; Java writes −0 and floats in its own way.
fn normal(value: Value) -> Value {
    match value {
        Value::Array(elements) => {
            let mut elements: Vec<_> = elements.into_iter().map(normal).collect();
            elements.sort_by_key(Value::to_string);
            Value::Array(elements)
        }
        Value::Object(members) => {
            // Times of a consume span as text: derived, written for people only.
            let mut members: Vec<_> = members
                .into_iter()
                .filter(|(key, _)| !key.ends_with("TimeStampStr"))
                .map(|(key, value)| (key, normal(value)))
                .collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(members.into_iter().collect())
        }
        // Go sends numbers of a set as texts.
        Value::String(text) if text.parse::<i64>().is_ok() => Value::from(text.parse::<i64>().unwrap()),
        other => other,
    }
}

/// What `ours` has beyond `theirs` because a peer of another version left it out.
fn without_defaults(ours: &mut Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.retain(|key, _| theirs.contains_key(key));
            for (key, value) in ours.iter_mut() {
                without_defaults(value, &theirs[key]);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                without_defaults(ours, theirs);
            }
        }
        _ => {}
    }
}

fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, text: &[u8]) {
    let typed: T = from_slice(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = to_vec(&typed).unwrap();
    assert_eq!(from_slice::<T>(&written).unwrap(), typed, "{name}: dialect");
    let strict = to_vec_strict(&typed).unwrap();
    assert!(serde_json::from_slice::<Value>(&strict).is_ok(), "{name}: strict json");
    assert_eq!(from_slice::<T>(&strict).unwrap(), typed, "{name}: strict");
    let theirs: Value = from_slice(text).unwrap();
    let mut ours: Value = from_slice(&written).unwrap();
    if name.starts_with("go/") || name.starts_with("java-4.9.8/") {
        without_defaults(&mut ours, &theirs);
    }
    assert_eq!(normal(ours), normal(theirs), "{name}: {}", String::from_utf8_lossy(text));
}

fn check_request(code: i32, name: &str, text: &[u8]) -> bool {
    match code {
        34 => check::<body::HeartbeatData>(name, text),
        41 => check::<body::LockBatchRequestBody>(name, text),
        42 => check::<body::UnlockBatchRequestBody>(name, text),
        46 => check::<body::CheckClientRequestBody>(name, text),
        103 => check::<body::RegisterBrokerBody>(name, text),
        200 => check::<body::SubscriptionGroupConfig>(name, text),
        220 => check::<body::ResetOffsetBody>(name, text),
        322 => check::<body::DataVersion>(name, text),
        401 => check::<body::SetMessageRequestModeRequestBody>(name, text),
        _ => return false,
    }
    true
}

fn check_response(code: i32, name: &str, text: &[u8]) -> bool {
    match code {
        21 => check::<body::TopicConfigSerializeWrapper>(name, text),
        28 | 103 | 219 => check::<body::KvTable>(name, text),
        38 => check::<body::ConsumerListBody>(name, text),
        41 => check::<body::LockBatchResponseBody>(name, text),
        43 => check::<body::ConsumerOffsetSerializeWrapper>(name, text),
        45 => check::<body::DelayOffsetSerializeWrapper>(name, text),
        61 => check::<body::TimerMetricsSerializeWrapper>(name, text),
        105 => check::<body::TopicRouteData>(name, text),
        106 => check::<body::ClusterInfo>(name, text),
        201 => check::<body::SubscriptionGroupWrapper>(name, text),
        202 => check::<body::TopicStatsTable>(name, text),
        203 => check::<body::ConsumerConnection>(name, text),
        204 => check::<body::ProducerConnection>(name, text),
        206 | 224 | 304 | 305 | 311 | 312 | 313 | 343 => check::<body::TopicList>(name, text),
        208 => check::<body::ConsumeStats>(name, text),
        222 => check::<body::ResetOffsetBody>(name, text),
        300 => check::<body::GroupList>(name, text),
        303 => check::<body::QueryConsumeTimeSpanBody>(name, text),
        322 => check::<body::DataVersion>(name, text),
        345 => check::<body::QuerySubscriptionResponseBody>(name, text),
        351 => check::<body::TopicConfig>(name, text),
        352 => check::<body::SubscriptionGroupConfig>(name, text),
        402 => check::<body::MessageRequestModeSerializeWrapper>(name, text),
        901 => check::<body::BrokerMemberGroupBody>(name, text),
        907 => check::<body::HaRuntimeInfo>(name, text),
        _ => return false,
    }
    true
}

#[test]
fn captured_bodies_say_the_same_when_written_again() {
    let decode = |bytes: &[u8]| Command::decode(&mut BytesMut::from(bytes), FrameLimits::ROCKETMQ).unwrap().unwrap();
    let mut checked = 0;
    for exchange in exchanges() {
        let request = decode(&exchange.request.bytes);
        if !request.body.is_empty() {
            checked += usize::from(check_request(exchange.code, &exchange.name, &request.body));
        }
        if let Some(response) = exchange.response {
            let response = decode(&response.bytes);
            if response.code == 0 && !response.body.is_empty() {
                checked += usize::from(check_response(exchange.code, &exchange.name, &response.body));
            }
        }
    }
    assert!(checked > 100, "only {checked} bodies");
}
