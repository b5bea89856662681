use crate::support::{Raw, TOPIC, TestBroker, eventually, lone_master, run};
use protocol::header::{QueryMessageRequest, QueryMessageResponse};
use protocol::message::decode_all;
use protocol::{RequestCode, ResponseCode};

fn query(key: &str, max_num: i32) -> QueryMessageRequest {
    let (topic, key) = (TOPIC.to_owned(), key.to_owned());
    QueryMessageRequest { topic, key, max_num, begin_timestamp: 0, end_timestamp: i64::MAX, unique_key: None }
}

/// Bodies that a query finds, newest first; none if it is refused as one that finds nothing.
async fn found(raw: &Raw, request: &QueryMessageRequest) -> Vec<String> {
    let answer = raw.call(RequestCode::QueryMessage, request).await;
    if answer.response_code() == Some(ResponseCode::QueryNotFound) {
        assert_eq!(answer.remark.as_deref(), Some("can not find message, maybe time range not correct"));
        return Vec::new();
    }
    assert_eq!(answer.response_code(), Some(ResponseCode::Success), "{:?}", answer.remark);
    let header: QueryMessageResponse = answer.header().expect("a whole header");
    assert!(header.index_last_update_timestamp > 0);
    assert!(header.index_last_update_phyoffset.get() >= 0);
    let messages = decode_all(answer.body).expect("records");
    messages.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect()
}

async fn send_orders(raw: &Raw) {
    for n in 0..70 {
        let (keys, unique) = (format!("order-{} all", n % 2), format!("unique-{n}"));
        raw.send(n % 4, &n.to_string(), &[("KEYS", &keys), ("UNIQ_KEY", &unique)]).await;
    }
    eventually("all are indexed", async || found(raw, &query("unique-69", 1)).await == ["69"]).await;
}

#[test]
fn messages_are_found_by_their_keys_also_after_a_restart() {
    run(|| async {
        let mut master: TestBroker = lone_master().await;
        for _ in 0..2 {
            let raw = Raw::to(&master.address());
            if found(&raw, &query("all", 1)).await.is_empty() {
                send_orders(&raw).await;
            }
            assert_eq!(found(&raw, &query("order-1", 3)).await, ["69", "67", "65"]);
            assert_eq!(found(&raw, &query("unique-7", 32)).await, ["7"]);
            // No query gives more than 64, one for a unique key not more than 32, and a negative number nothing.
            assert_eq!(found(&raw, &query("all", 1_000)).await.len(), 64);
            let unique = QueryMessageRequest { unique_key: Some(true), ..query("all", 1) };
            assert_eq!(found(&raw, &unique).await.len(), 32);
            for nothing in [query("all", -1), query("unknown", 32), query("", 32)] {
                assert_eq!(found(&raw, &nothing).await, [""; 0]);
            }
            let early = QueryMessageRequest { end_timestamp: 1, ..query("all", 32) };
            assert_eq!(found(&raw, &early).await, [""; 0]);
            let (node, cluster, config) = master.stop().await;
            master = TestBroker::start(node, cluster, config).await;
        }
    });
}
