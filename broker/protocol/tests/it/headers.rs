//! Headers: every captured one is read and written again without loss, and so is every one that can be.

use std::collections::BTreeMap;

use bytes::BytesMut;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use protocol::header::{self, FieldKind, Header};
use protocol::{Command, ExtFields, FrameLimits, HeaderError};

use crate::golden::exchanges;

/// Fields that hooks or the base classes of Java's headers add.
const FOREIGN: &[&str] = &["bname", "lo", "ns", "nsd", "oway", "ReqT", "AccessKey", "Signature"];

fn sorted(fields: &ExtFields) -> BTreeMap<String, String> {
    fields.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn encode(header: &impl Header) -> ExtFields {
    let mut fields = ExtFields::new();
    header.encode(&mut fields);
    fields
}

/// Reads the captured fields as `H`, writes them again and compares: every field must be ours or a hook's.
fn check_captured<H: Header>(name: &str, captured: &ExtFields) {
    let header = H::decode(captured).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut expected = sorted(captured);
    expected.retain(|key, _| !FOREIGN.contains(&key.as_str()) || H::FIELDS.iter().any(|field| field.key == key));
    let mut found = sorted(&encode(&header));
    // What was absent and has a default is written out.
    let defaults: Vec<_> = H::FIELDS.iter().filter(|field| !captured.contains(field.key)).map(|f| f.key).collect();
    found.retain(|key, _| !defaults.contains(&key.as_str()));
    assert_eq!(found, expected, "{name}");
}

macro_rules! families {
    ($($code:pat => $request:ident, $response:ident;)*) => {
        fn check_request(code: i32, name: &str, fields: &ExtFields) -> bool {
            match code {
                $($code => check_captured::<header::$request>(name, fields),)*
                _ => return false,
            }
            true
        }

        fn check_response(code: i32, name: &str, fields: &ExtFields) {
            match code {
                $($code => check_captured::<header::$response>(name, fields),)*
                _ => {}
            }
        }
    };
}

families! {
    10 | 324 => SendMessageRequest, SendMessageResponse;
    310 | 320 | 325 => SendMessageRequestV2, SendMessageResponse;
    11 | 361 => PullMessageRequest, PullMessageResponse;
    12 => QueryMessageRequest, QueryMessageResponse;
    14 => QueryConsumerOffsetRequest, OffsetResponse;
    15 => UpdateConsumerOffsetRequest, Empty;
    17 => CreateTopicRequest, Empty;
    21 => GetAllTopicConfigRequest, GetAllTopicConfigResponse;
    28 | 43 | 45 | 61 | 106 | 206 | 402 => Empty, Empty;
    29 => SearchOffsetRequest, OffsetResponse;
    30 => GetMaxOffsetRequest, OffsetResponse;
    31 => GetMinOffsetRequest, OffsetResponse;
    32 => GetEarliestStoreTimeRequest, GetEarliestStoreTimeResponse;
    33 => ViewMessageRequest, Empty;
    34 => HeartbeatRequest, HeartbeatResponse;
    35 => UnregisterClientRequest, Empty;
    36 => ConsumerSendMsgBackRequest, Empty;
    37 => EndTransactionRequest, Empty;
    38 => GetConsumerListByGroupRequest, Empty;
    39 => CheckTransactionStateRequest, Empty;
    40 => NotifyConsumerIdsChangedRequest, Empty;
    41 => LockBatchRequest, Empty;
    42 => UnlockBatchRequest, Empty;
    100 => PutKvConfigRequest, Empty;
    101 => GetKvConfigRequest, GetKvConfigResponse;
    102 => DeleteKvConfigRequest, Empty;
    103 => RegisterBrokerRequest, RegisterBrokerResponse;
    104 => UnregisterBrokerRequest, Empty;
    105 => GetRouteInfoRequest, Empty;
    201 => GetAllSubscriptionGroupRequest, GetAllSubscriptionGroupResponse;
    202 => TopicStatsRequest, Empty;
    203 => ConsumerConnectionRequest, Empty;
    204 => ProducerConnectionRequest, Empty;
    205 => WipeWritePermissionRequest, WipeWritePermissionResponse;
    207 => DeleteSubscriptionGroupRequest, Empty;
    208 => ConsumeStatsRequest, Empty;
    215 => DeleteTopicRequest, Empty;
    216 => DeleteTopicInNamesrvRequest, Empty;
    219 => GetKvListByNamespaceRequest, Empty;
    220 | 222 => ResetOffsetRequest, Empty;
    224 => GetTopicsByClusterRequest, Empty;
    300 => QueryTopicConsumeByWhoRequest, Empty;
    303 => QueryConsumeTimeSpanRequest, Empty;
    307 => ConsumerRunningInfoRequest, Empty;
    315 => ViewBrokerStatsDataRequest, Empty;
    322 => QueryDataVersionRequest, QueryDataVersionResponse;
    327 => AddWritePermissionRequest, AddWritePermissionResponse;
    343 => QueryTopicsByConsumerRequest, Empty;
    345 => QuerySubscriptionByConsumerRequest, Empty;
    351 => GetTopicConfigRequest, Empty;
    352 => GetSubscriptionGroupConfigRequest, Empty;
    353 => UpdateGroupForbiddenRequest, Empty;
    370 => RecallMessageRequest, RecallMessageResponse;
    901 => GetBrokerMemberGroupRequest, Empty;
    904 => BrokerHeartbeatRequest, Empty;
    906 => ExchangeHaInfo, ExchangeHaInfo;
    908 => ResetMasterFlushOffsetRequest, Empty;
}

#[test]
fn captured_headers_are_read_without_loss() {
    let decode = |bytes: &[u8]| Command::decode(&mut BytesMut::from(bytes), FrameLimits::ROCKETMQ).unwrap().unwrap();
    let mut checked = 0;
    for exchange in exchanges() {
        let request = decode(&exchange.request.bytes);
        checked += usize::from(check_request(exchange.code, &exchange.name, &request.ext_fields));
        if let Some(response) = exchange.response {
            let response = decode(&response.bytes);
            if response.code == 0 {
                check_response(exchange.code, &format!("{} response", exchange.name), &response.ext_fields);
            }
        }
    }
    assert!(checked > 300, "only {checked} headers");
}

/// A text that the field reads and writes back unchanged.
fn field_text(kind: FieldKind) -> impl Strategy<Value = String> {
    match kind {
        FieldKind::Text => "[ -~\u{1}\u{2}\u{e9}-\u{17f}\u{4e00}-\u{4e2f}]{0,20}".boxed(),
        FieldKind::Int => any::<i32>().prop_map(|number| number.to_string()).boxed(),
        FieldKind::Long => any::<i64>().prop_map(|number| number.to_string()).boxed(),
        FieldKind::Bool => prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed(),
        FieldKind::Boundary => prop_oneof![Just("LOWER".to_owned()), Just("UPPER".to_owned())].boxed(),
        FieldKind::TopicFilter => prop_oneof![Just("SINGLE_TAG".to_owned()), Just("MULTI_TAG".to_owned())].boxed(),
    }
}

/// All mandatory fields and some of the others.
fn fields_of<H: Header>() -> impl Strategy<Value = ExtFields> {
    let fields: Vec<_> = H::FIELDS
        .iter()
        .map(|field| (field_text(field.kind), any::<bool>()).prop_map(|(text, keep)| (*field, text, keep)))
        .collect();
    fields.prop_map(|fields| {
        fields
            .into_iter()
            .filter(|(field, _, keep)| field.required || *keep)
            .map(|(field, text, _)| (field.key, text))
            .collect()
    })
}

macro_rules! round_trips {
    ($($test:ident $header:ident,)*) => {
        proptest! {
            $(#[test]
            fn $test(fields in fields_of::<header::$header>()) {
                let header = header::$header::decode(&fields).unwrap();
                let written = encode(&header);
                for (key, text) in fields.iter() {
                    proptest::prop_assert_eq!(written.get(key), Some(text));
                }
                proptest::prop_assert_eq!(header::$header::decode(&written).unwrap(), header);
            })*
        }
    };
}

round_trips! {
    send SendMessageRequest, send_v2 SendMessageRequestV2, send_response SendMessageResponse, pull PullMessageRequest,
    pull_response PullMessageResponse, query_offset QueryConsumerOffsetRequest, update_offset UpdateConsumerOffsetRequest,
    search_offset SearchOffsetRequest, max_offset GetMaxOffsetRequest, min_offset GetMinOffsetRequest, offset OffsetResponse,
    heartbeat HeartbeatResponse, unregister UnregisterClientRequest, send_back ConsumerSendMsgBackRequest,
    end_transaction EndTransactionRequest, create_topic CreateTopicRequest, route GetRouteInfoRequest,
    register_broker RegisterBrokerRequest, register_broker_response RegisterBrokerResponse,
    unregister_broker UnregisterBrokerRequest, data_version QueryDataVersionRequest, broker_heartbeat BrokerHeartbeatRequest,
    all_topics GetAllTopicConfigRequest, all_groups GetAllSubscriptionGroupRequest, reset_offset ResetOffsetRequest,
    log_digest LogDigestRequest, log_digest_response LogDigestResponse, rpc RpcFields, ha_info ExchangeHaInfo,
    read_log ReadLogRequest, read_log_response ReadLogResponse,
}

#[test]
fn missing_and_malformed_fields_are_named() {
    let fields: ExtFields = [("topic", "T"), ("queueId", "x")].into_iter().collect();
    assert_eq!(
        header::GetMinOffsetRequest::decode(&fields),
        Err(HeaderError::Malformed { field: "queueId", value: "x".to_owned() })
    );
    let fields: ExtFields = [("queueId", "1")].into_iter().collect();
    assert_eq!(header::GetMinOffsetRequest::decode(&fields), Err(HeaderError::Missing { field: "topic" }));
}

#[test]
fn both_forms_of_the_send_header_say_the_same() {
    use protocol::RequestCode::{SendBatchMessage, SendMessage};
    let fields: ExtFields = "abcdefghijklmn".chars().map(|key| (key.to_string(), "1")).collect();
    let long = header::SendMessageRequest::decode_any(SendBatchMessage, &fields).unwrap();
    assert_eq!(header::SendMessageRequest::decode_any(SendMessage, &encode(&long)), Ok(long.clone()));
    assert_eq!(encode(&header::SendMessageRequestV2::from(long)).get("n"), Some("1"));
}
