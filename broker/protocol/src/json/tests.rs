use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{from_str, to_vec, to_vec_pretty, to_vec_strict};
use crate::error::JsonError;
use crate::message::MessageQueue;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sample {
    flag: bool,
    kind: Kind,
    name: Option<String>,
    number: i32,
    queues: BTreeMap<MessageQueue, i64>,
    table: BTreeMap<i32, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Kind {
    #[default]
    First,
    Second,
}

fn sample() -> Sample {
    Sample {
        flag: true,
        kind: Kind::Second,
        name: Some("a\u{1}\"é".to_owned()),
        number: -5,
        queues: [(MessageQueue::new("T", "b", 0), 7)].into(),
        table: [(0, "x".to_owned()), (1, "y".to_owned())].into(),
    }
}

fn check(text: &str, expected: &Sample) {
    assert_eq!(from_str::<Sample>(text).as_ref(), Ok(expected), "{text}");
}

#[test]
fn dialect_and_strict_text() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let dialect = text(to_vec(&sample()).unwrap());
    insta::assert_snapshot!(dialect, @r#"{"flag":true,"kind":"SECOND","name":"a\u0001\"é","number":-5,"queues":{{"brokerName":"b","queueId":0,"topic":"T"}:7},"table":{0:"x",1:"y"}}"#);
    check(&dialect, &sample());
    let strict = text(to_vec_strict(&sample()).unwrap());
    insta::assert_snapshot!(strict, @r#"{"flag":true,"kind":"SECOND","name":"a\u0001\"\u00e9","number":-5,"queues":{"{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}":7},"table":{"0":"x","1":"y"}}"#);
    check(&strict, &sample());
    check(&text(to_vec_pretty(&sample()).unwrap()), &sample());
}

#[test]
fn null_members_are_omitted() {
    let text = String::from_utf8(to_vec(&Sample::default()).unwrap()).unwrap();
    assert_eq!(text, r#"{"flag":false,"kind":"FIRST","number":0,"queues":{},"table":{}}"#);
}

#[test]
fn reads_what_fastjson_reads() {
    let expected = |number| Sample { number, ..Sample::default() };
    for text in [
        "{'number':5}",
        "{number:5}",
        "{\"number\":\"5\"}",
        "{,\"number\":5,,}",
        "{\"NUMBER\":5}",
        " {\"number\" : 5 } \n",
        "{\"number\":5.0}",
        "{\"number\":5L}",
        "{\"number\":1,\"number\":5}",
        "{\"number\":5,\"unknown\":[{},null,{\"a\":1}]}",
        "{\"number\":5,\"name\":null,\"flag\":null,\"table\":null}",
    ] {
        check(text, &expected(5));
    }
    check("null", &Sample::default());
    check("{\"kind\":\"second\"}", &Sample { kind: Kind::Second, ..Sample::default() });
    check("{\"kind\":1}", &Sample { kind: Kind::Second, ..Sample::default() });
    check("{\"flag\":\"TRUE\"}", &Sample { flag: true, ..Sample::default() });
    check("{\"flag\":1}", &Sample { flag: true, ..Sample::default() });
    check("{\"name\":12}", &Sample { name: Some("12".to_owned()), ..Sample::default() });
    check("{\"name\":\"\\ud83c\\udf0d\\x41\\/\"}", &Sample { name: Some("🌍A/".to_owned()), ..Sample::default() });
    check("{\"name\":\"\\ud83c!\"}", &Sample { name: Some("\u{fffd}!".to_owned()), ..Sample::default() });
}

#[test]
fn references_are_followed() {
    let text = r#"{"a":{"brokerName":"b","queueId":1,"topic":"T"},"list":[{"$ref":"$.a"},{"$ref":"$.list[5]"},{"$ref":".."}]}"#;
    #[derive(Debug, PartialEq, Deserialize)]
    struct Shared {
        a: MessageQueue,
        list: Vec<Option<MessageQueue>>,
    }
    let queue = MessageQueue::new("T", "b", 1);
    assert_eq!(from_str::<Shared>(text), Ok(Shared { a: queue.clone(), list: vec![Some(queue), None, None] }));
}

#[test]
fn errors_name_the_place() {
    let error = |text: &str| from_str::<Sample>(text).unwrap_err();
    assert_eq!(error(""), JsonError::UnexpectedEnd { at: 0 });
    assert_eq!(error("{\"a\":1"), JsonError::UnexpectedEnd { at: 6 });
    assert_eq!(error("{\"a\" 1}"), JsonError::Unexpected { at: 5 });
    assert_eq!(error("{} x"), JsonError::Unexpected { at: 3 });
    assert_eq!(error(&"[".repeat(100)), JsonError::TooDeep { limit: 64 });
    insta::assert_snapshot!(error("{\"number\":\"x\"}"), @r#"json value has the wrong shape: expected a number, found "x""#);
    insta::assert_snapshot!(error("{\"kind\":\"THIRD\"}"), @r#"json value has the wrong shape: unknown variant `THIRD`, expected `FIRST` or `SECOND`"#);
    insta::assert_snapshot!(error("{\"number\":99999999999}"), @r#"json value has the wrong shape: expected a 32-bit number, found "99999999999""#);
}
