//! Light queues are pulled from without a topic or a group of theirs.
use crate::support::{Pulled, Raw, TestBroker, cluster, config, eventually, pull_header, run};
use protocol::header::{
    Empty, OffsetResponse, PullMessageRequest, QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest,
};
use protocol::{QueueOffset, RequestCode, ResponseCode};
use rt::world;

const LIGHT_TOPIC: &str = "%LMQ%device1";
const LIGHT_GROUP: &str = "%LMQ%reader";

async fn master(is_served: bool) -> TestBroker {
    let node = world::add_node("master");
    let mut settings = config(world::ip(node), 0, &[]);
    settings.light_queues = is_served;
    settings.store.multi_dispatch = is_served;
    let mut cluster = cluster();
    cluster.auto_create_group = false;
    TestBroker::start(node, cluster, settings).await
}

async fn pull(raw: &Raw, from: i64) -> Pulled {
    let header = PullMessageRequest {
        topic: LIGHT_TOPIC.to_owned(),
        consumer_group: LIGHT_GROUP.to_owned(),
        ..pull_header(from)
    };
    raw.pull(header).await
}

async fn committed(raw: &Raw) -> Option<i64> {
    let header = QueryConsumerOffsetRequest {
        consumer_group: LIGHT_GROUP.to_owned(),
        topic: LIGHT_TOPIC.to_owned(),
        queue_id: 0,
        set_zero_if_not_found: Some(false),
    };
    let reply = raw.call(RequestCode::QueryConsumerOffset, &header).await;
    (reply.response_code() == Some(ResponseCode::Success))
        .then(|| reply.header::<OffsetResponse>().expect("a whole header").offset.get())
}

async fn send(raw: &Raw, body: &str) {
    let names = [("INNER_MULTI_DISPATCH", "%LMQ%device1,%LMQ%device2")];
    assert_eq!(raw.send(0, body, &names).await.response_code(), Some(ResponseCode::Success));
}

#[test]
fn a_light_queue_is_read_and_its_progress_kept_without_a_topic_or_a_group() {
    run(|| async {
        let master = master(true).await;
        let raw = Raw::to(&master.address());
        send(&raw, "a").await;
        assert_eq!(raw.sent(0, "not there").await, 1);
        send(&raw, "b").await;
        eventually("both are there", async || pull(&raw, 0).await.bodies() == ["a", "b"]).await;
        let header = UpdateConsumerOffsetRequest {
            consumer_group: LIGHT_GROUP.to_owned(),
            topic: LIGHT_TOPIC.to_owned(),
            queue_id: 0,
            commit_offset: QueueOffset(1),
        };
        let updated = raw.call(RequestCode::UpdateConsumerOffset, &header).await;
        assert_eq!(updated.response_code(), Some(ResponseCode::Success));
        // Topics without an entry in the table are removed, light queues are not.
        raw.call(RequestCode::CleanUnusedTopic, &Empty {}).await;
        raw.call(RequestCode::CleanExpiredConsumequeue, &Empty {}).await;
        let file = master.config.root.join("config/lmqConsumerOffset.json");
        let (node, cluster, settings) = master.stop().await;
        let text = String::from_utf8(world::disk::read_file(node, file).expect("it is there")).expect("text");
        let text: String = text.split_whitespace().collect();
        assert!(text.contains(r#""lmqOffsetTable":{"%LMQ%device1@%LMQ%reader":1}"#), "{text}");
        let master = TestBroker::start(node, cluster, settings).await;
        let raw = Raw::to(&master.address());
        assert_eq!(committed(&raw).await, Some(1));
        assert_eq!(pull(&raw, 1).await.bodies(), ["b"]);
        send(&raw, "c").await;
        eventually("it goes on", async || pull(&raw, 2).await.bodies() == ["c"]).await;
    });
}

#[test]
fn a_broker_without_them_knows_no_such_topic() {
    run(|| async {
        let master = master(false).await;
        let raw = Raw::to(&master.address());
        send(&raw, "a").await;
        assert_eq!(pull(&raw, 0).await.code, ResponseCode::SubscriptionGroupNotExist);
        let header = PullMessageRequest {
            topic: LIGHT_TOPIC.to_owned(),
            consumer_group: "TOOLS_CONSUMER".to_owned(),
            ..pull_header(0)
        };
        assert_eq!(raw.pull(header).await.code, ResponseCode::TopicNotExist);
    });
}

/// The file of a broker that had no light queues yet.
#[test]
fn progress_made_before_light_queues_were_served_is_not_lost() {
    run(|| async {
        let before = master(false).await;
        let raw = Raw::to(&before.address());
        raw.sent(0, "x").await;
        let header = UpdateConsumerOffsetRequest {
            consumer_group: "TOOLS_CONSUMER".to_owned(),
            topic: crate::support::TOPIC.to_owned(),
            queue_id: 0,
            commit_offset: QueueOffset(1),
        };
        eventually("readable", async || {
            !raw.pull(PullMessageRequest { consumer_group: "TOOLS_CONSUMER".to_owned(), ..pull_header(0) })
                .await
                .messages
                .is_empty()
        })
        .await;
        raw.call(RequestCode::UpdateConsumerOffset, &header).await;
        let (node, cluster, mut settings) = before.stop().await;
        (settings.light_queues, settings.store.multi_dispatch) = (true, true);
        let master = TestBroker::start(node, cluster, settings).await;
        let raw = Raw::to(&master.address());
        let header = QueryConsumerOffsetRequest {
            consumer_group: "TOOLS_CONSUMER".to_owned(),
            topic: crate::support::TOPIC.to_owned(),
            queue_id: 0,
            set_zero_if_not_found: Some(false),
        };
        let reply = raw.call(RequestCode::QueryConsumerOffset, &header).await;
        assert_eq!(reply.header::<OffsetResponse>().expect("found").offset, QueueOffset(1));
    });
}
