use bytes::BytesMut;

use super::{Command, FrameLimits, Serialization};
use crate::code::{RequestCode, ResponseCode};
use crate::header::{GetMinOffsetRequest, GetRouteInfoRequest, OffsetResponse};

fn route(serialization: Serialization) -> Command {
    let header = GetRouteInfoRequest { topic: "T1".to_owned(), accept_standard_json_only: None };
    let mut command = Command::request(RequestCode::GetRouteinfoByTopic, &header);
    command.opaque = 7;
    command.language = super::Language::Java;
    command.serialization = serialization;
    command
}

fn decode(bytes: &[u8]) -> Command {
    Command::decode(&mut BytesMut::from(bytes), FrameLimits::ROCKETMQ).unwrap().unwrap()
}

#[test]
fn json_matches_java() {
    let mut expected = vec![0, 0, 0, 0x80, 0, 0, 0, 0x7C];
    expected.extend_from_slice(
        br#"{"code":105,"extFields":{"topic":"T1"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#,
    );
    assert_eq!(route(Serialization::Json).to_bytes(), expected);
}

#[test]
fn binary_matches_java() {
    let text: String =
        route(Serialization::RocketMq).with_body("hi").to_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        text,
        "0000002801000022006900 01df0000000700000000 00000000 0000000d0005746f706963000000025431 6869".replace(' ', "")
    );
}

#[test]
fn binary_cuts_codes_to_sixteen_bits_and_drops_empty_texts() {
    let mut command = route(Serialization::RocketMq).with_ext("e", "").with_remark("");
    command.code = RequestCode::PopMessage.as_i32();
    let read = decode(&command.to_bytes());
    assert_eq!(read.code, 3442);
    assert_eq!(read.remark, None);
    assert!(!read.ext_fields.contains("e"));
}

#[test]
fn json_is_read_leniently() {
    let check = |header: &str| {
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&u32::try_from(header.len() + 4).unwrap().to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(header.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(header.as_bytes());
        decode(&bytes).to_string()
    };
    insta::assert_snapshot!(check("{'CODE':'105',language:1,\"opaque\":3,,\"version\":333,\"extFields\":{\"queueId\":4,\"b\":true,\"n\":null,\"o\":{\"x\":1}}}\n"), @r#"request GET_ROUTEINFO_BY_TOPIC(105) #3 CPP/4.6.0 queueId="4" b="true" o="{\"x\":1}""#);
    insta::assert_snapshot!(check("{\"code\":34,\"language\":\"KLINGON\",\"extFields\":null,\"remark\":\"\",\"future\":[1,2]}"), @r#"request HEART_BEAT(34) #0 OTHER/v0 remark="""#);
}

#[test]
fn one_line_for_logs() {
    let mut request = route(Serialization::Json);
    insta::assert_snapshot!(request, @r#"request GET_ROUTEINFO_BY_TOPIC(105) #7 JAVA/5.3.3 topic="T1""#);
    request.mark_oneway();
    let request =
        request.with_ext("properties", format!("TAGS\u{1}a\u{2}{}", "x".repeat(200))).with_body(vec![0; 1000]);
    insta::assert_snapshot!(format!("{request:?}"), @r#"request GET_ROUTEINFO_BY_TOPIC(105) #7 oneway JAVA/5.3.3 topic="T1" properties="TAGS\u{1}a\u{2}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…(207 bytes) +1000 bytes"#);
    let found = Command::reply(&request, ResponseCode::Success).with_header(&OffsetResponse { offset: 12.into() });
    insta::assert_snapshot!(found, @r#"response SUCCESS(0) #7 RUST/5.3.3 offset="12""#);
    let mut missing = Command::reply(&request, ResponseCode::TopicNotExist).with_remark("no topic\nhere");
    missing.serialization = Serialization::RocketMq;
    missing.version = 5;
    insta::assert_snapshot!(missing, @r#"response TOPIC_NOT_EXIST(17) #7 RUST/v5 binary remark="no topic\nhere""#);
    let mut unknown =
        Command::request(RequestCode::GetMinOffset, &GetMinOffsetRequest { topic: "T".to_owned(), queue_id: 0 });
    unknown.code = 9999;
    insta::assert_snapshot!(unknown, @r#"request UNKNOWN(9999) #0 RUST/5.3.3 topic="T" queueId="0""#);
}

#[test]
fn a_reply_pairs_with_its_request() {
    let request = route(Serialization::RocketMq);
    let reply = Command::reply(&request, ResponseCode::SystemBusy);
    assert!(reply.is_response() && !reply.is_oneway());
    assert_eq!((reply.opaque, reply.serialization), (7, Serialization::RocketMq));
    assert_eq!(reply.response_code(), Some(ResponseCode::SystemBusy));
    assert!(
        !String::from_utf8_lossy(&Command::reply(&route(Serialization::Json), ResponseCode::Success).to_bytes())
            .contains("extFields")
    );
}
