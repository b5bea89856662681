use crate::support::{GROUP, Raw, SECOND, TOPIC, eventually, lone_master, pull_header, run};
use protocol::body::{ConsumerData, ConsumerListBody, HeartbeatData, SubscriptionData};
use protocol::header::{Empty, GetConsumerListByGroupRequest, PullMessageRequest};
use protocol::{Command, RequestCode, ResponseCode};
use remoting::{BoxFuture, Connection, Handler};
use rt::time::sleep;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts change notices.
#[derive(Default)]
struct Notices(AtomicUsize);

impl Handler for Notices {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        if request.request_code() == Some(RequestCode::NotifyConsumerIdsChanged) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Box::pin(async { None })
    }
}

async fn heartbeat(raw: &Raw, client_id: &str, expression: &str) {
    let consumer = ConsumerData {
        group_name: GROUP.to_owned(),
        subscription_data_set: vec![SubscriptionData::by_tags(TOPIC, expression, 5)],
        ..ConsumerData::default()
    };
    let data = HeartbeatData {
        client_id: client_id.to_owned(),
        consumer_data_set: vec![consumer],
        ..HeartbeatData::default()
    };
    let reply = raw
        .ask(
            Command::request(RequestCode::HeartBeat, &Empty {})
                .with_body(protocol::json::to_vec(&data).expect("plain values")),
        )
        .await;
    assert_eq!(reply.response_code(), Some(ResponseCode::Success));
}

async fn members(raw: &Raw) -> Vec<String> {
    let reply = raw
        .call(RequestCode::GetConsumerListByGroup, &GetConsumerListByGroupRequest { consumer_group: GROUP.to_owned() })
        .await;
    if reply.response_code() != Some(ResponseCode::Success) {
        return Vec::new();
    }
    protocol::json::from_slice::<ConsumerListBody>(&reply.body).expect("a list").consumer_id_list
}

#[test]
fn members_of_a_group_are_told_who_comes_and_goes() {
    run(|| async {
        let master = lone_master().await;
        let notices = Arc::new(Notices::default());
        let first = Raw::with(&master.address(), Some(Arc::clone(&notices) as Arc<dyn Handler>));
        heartbeat(&first, "a", "*").await;
        eventually("told of itself", async || notices.0.load(Ordering::SeqCst) == 1).await;
        let second = Raw::to(&master.address());
        heartbeat(&second, "b", "*").await;
        eventually("told of the second", async || notices.0.load(Ordering::SeqCst) == 2).await;
        heartbeat(&second, "b", "*").await;
        assert_eq!(members(&first).await, ["a", "b"]);
        second.client.shutdown().await;
        eventually("told of its leaving", async || notices.0.load(Ordering::SeqCst) == 3).await;
        assert_eq!(members(&first).await, ["a"]);
    });
}

#[test]
fn a_client_without_heartbeats_is_forgotten() {
    run(|| async {
        let master = lone_master().await;
        let silent = Raw::to(&master.address());
        heartbeat(&silent, "a", "*").await;
        for _ in 0..10 {
            sleep(10 * SECOND).await;
            assert_eq!(members(&silent).await, ["a"]);
        }
        sleep(40 * SECOND).await;
        let other = Raw::to(&master.address());
        assert_eq!(members(&other).await, Vec::<String>::new());
    });
}

#[test]
fn a_pull_without_expression_is_filtered_by_the_heartbeats() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        heartbeat(&raw, "a", "x || y").await;
        for (body, tag) in [("1", "x"), ("2", "z"), ("3", "y")] {
            raw.send(0, body, &[("TAGS", tag)]).await;
        }
        sleep(SECOND).await;
        let by_heartbeat = PullMessageRequest { sys_flag: 0, sub_version: 5, ..pull_header(0) };
        assert_eq!(raw.pull(by_heartbeat.clone()).await.bodies(), ["1", "3"]);
        assert_eq!(
            raw.pull(PullMessageRequest { sub_version: 6, ..by_heartbeat }).await.code,
            ResponseCode::SubscriptionNotLatest
        );
    });
}
