use std::io::Write;

use super::{DataVersion, RegisterBrokerBody, SubscriptionData, TopicConfig};
use crate::error::RegisterBodyError;
use crate::header::TopicFilterType;

#[test]
fn subscriptions_by_tags() {
    let all = SubscriptionData::by_tags("T", " * ", 1);
    assert_eq!((all.sub_string.as_str(), all.code_set.len()), ("*", 0));
    assert!(all.may_match(17) && all.matches(None));
    let some = SubscriptionData::by_tags("T", "a || TagA ||", 1);
    assert_eq!(some.code_set.iter().copied().collect::<Vec<_>>(), [97, 2_598_919]);
    assert!(some.may_match(97) && !some.may_match(98) && !some.may_match(i64::MAX));
    assert!(some.matches(Some("a")) && !some.matches(Some("b")) && !some.matches(None));
}

#[test]
fn versions_are_ordered_by_state_then_counter_then_time() {
    let version = |state_version, counter, timestamp| DataVersion { counter, state_version, timestamp };
    assert!(version(1, 0, 0) > version(0, 9, 9));
    assert!(version(0, 2, 0) > version(0, 1, 9));
    assert!(version(0, 1, 2) > version(0, 1, 1));
    let mut table = DataVersion::new(5);
    table.advance(0, 3);
    assert_eq!(table, version(0, 1, 3));
}

/// The compressed form, as a broker writes it.
fn compressed(topics: &[&str], mappings: &[&str]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut part = |text: &str| {
        plain.extend_from_slice(&i32::try_from(text.len()).unwrap().to_be_bytes());
        plain.extend_from_slice(text.as_bytes());
    };
    part(r#"{"counter":3,"stateVersion":0,"timestamp":9}"#);
    let mut with_parts = |parts: &[&str]| {
        plain.extend_from_slice(&i32::try_from(parts.len()).unwrap().to_be_bytes());
        for text in parts {
            plain.extend_from_slice(&i32::try_from(text.len()).unwrap().to_be_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
    };
    with_parts(topics);
    plain.extend_from_slice(&[0, 0, 0, 2, b'[', b']']);
    plain.extend_from_slice(&i32::try_from(mappings.len()).unwrap().to_be_bytes());
    for text in mappings {
        plain.extend_from_slice(&i32::try_from(text.len()).unwrap().to_be_bytes());
        plain.extend_from_slice(text.as_bytes());
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&plain).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_registration() {
    let bytes =
        compressed(&["T 4 8 6 SINGLE_TAG {\"queue.type\":\"BatchCQ\"}", "U 1 1 7 MULTI_TAG"], &["{\"topic\":\"T\"}"]);
    let body = RegisterBrokerBody::decode(&bytes, true, 479).unwrap();
    let wrapper = &body.topic_config_serialize_wrapper;
    assert_eq!(wrapper.data_version.counter, 3);
    let expected = TopicConfig {
        write_queue_nums: 8,
        attributes: [("queue.type".to_owned(), "BatchCQ".to_owned())].into(),
        ..TopicConfig::new("T", 4)
    };
    assert_eq!(wrapper.topic_config_table["T"], expected);
    assert_eq!(wrapper.topic_config_table["U"].perm, 7);
    assert_eq!(wrapper.topic_config_table["U"].topic_filter_type, TopicFilterType::MultiTag);
    assert_eq!(wrapper.topic_queue_mapping_info_map.as_ref().unwrap().len(), 1);
    // Before 5.0.0 nothing follows the filter servers.
    let old = RegisterBrokerBody::decode(&bytes, true, 409).unwrap();
    assert_eq!(old.topic_config_serialize_wrapper.topic_queue_mapping_info_map, None);
    let malformed = RegisterBrokerBody::decode(&compressed(&["T four"], &[]), true, 479);
    assert_eq!(malformed, Err(RegisterBodyError::Topic { line: "T four".to_owned() }));
}
