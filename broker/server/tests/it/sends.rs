use crate::support::{
    GROUP, Raw, SECOND, TOPIC, TestBroker, cluster, config, eventually, lone_master, pull_header, reaching, run,
    send_header,
};
use protocol::header::{
    ConsumerSendMsgBackRequest, Empty, GetTopicConfigRequest, PullMessageRequest, SendMessageRequestV2,
    SendMessageResponse,
};
use protocol::message::{BatchEntry, batch};
use protocol::{Command, Message, QueueOffset, RequestCode, ResponseCode};
use rt::time::{Instant, sleep};
use rt::world;

#[test]
fn what_was_sent_is_pulled_with_its_topic_created() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        assert_eq!([raw.sent(0, "a").await, raw.sent(0, "b").await, raw.sent(1, "c").await], [0, 1, 0]);
        let pulled = eventually_found(&raw, 0, 2).await;
        assert_eq!(pulled, ["a", "b"]);
        let config = raw.call(RequestCode::GetTopicConfig, &GetTopicConfigRequest { topic: TOPIC.to_owned() }).await;
        let text = String::from_utf8(config.body.to_vec()).unwrap();
        assert!(text.contains("\"writeQueueNums\":4"), "{text}");
        master.stop().await;
    });
}

async fn eventually_found(raw: &Raw, from: i64, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    eventually("messages readable", async || {
        bodies = raw.pull(pull_header(from)).await.bodies();
        bodies.len() == count
    })
    .await;
    bodies
}

#[test]
fn a_batch_is_stored_message_by_message() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        let entries = ["a", "b", "c"].map(|body| BatchEntry::of(&Message::new(TOPIC, body)));
        let mut header: SendMessageRequestV2 = send_header(0, &[]).into();
        header.batch = Some(true);
        let reply = raw
            .ask(Command::request(RequestCode::SendBatchMessage, &header).with_body(batch::encode(&entries).unwrap()))
            .await;
        let answer: SendMessageResponse = reply.header().unwrap();
        assert_eq!((answer.queue_offset, answer.msg_id.split(',').count()), (QueueOffset(0), 3));
        assert_eq!(eventually_found(&raw, 0, 3).await, ["a", "b", "c"]);
        let damaged = raw.ask(Command::request(RequestCode::SendBatchMessage, &header).with_body(vec![0_u8; 7])).await;
        assert_eq!(damaged.response_code(), Some(ResponseCode::MessageIllegal));
    });
}

#[test]
fn what_is_not_built_is_refused_and_nothing_is_stored() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        let code = async |properties: &[(&str, &str)]| raw.send(0, "x", properties).await.response_code().unwrap();
        assert_eq!(code(&[("INNER_NUM", "2")]).await, ResponseCode::MessageIllegal);
        assert_eq!(
            raw.call(RequestCode::PopMessage, &Empty {}).await.response_code(),
            Some(ResponseCode::RequestCodeNotSupported)
        );
        assert_eq!(raw.sent(0, "first").await, 0);
        let mut system: SendMessageRequestV2 = send_header(0, &[]).into();
        system.topic = "SCHEDULE_TOPIC_XXXX".to_owned();
        let refused = raw.ask(Command::request(RequestCode::SendMessageV2, &system).with_body("x")).await;
        assert_eq!(refused.response_code(), Some(ResponseCode::NoPermission));
    });
}

#[test]
fn without_auto_creation_an_unknown_topic_is_refused() {
    run(|| async {
        let node = world::add_node("master");
        let mut cluster = cluster();
        cluster.auto_create_topic = false;
        let master = TestBroker::start(node, cluster, config(world::ip(node), 0, &[])).await;
        let raw = Raw::to(&master.address());
        assert_eq!(raw.send(0, "x", &[]).await.response_code(), Some(ResponseCode::TopicNotExist));
    });
}

#[test]
fn a_delayed_message_comes_when_its_level_is_over_and_not_before() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "at once").await;
        let start = Instant::now();
        assert_eq!(raw.send(0, "later", &[("DELAY", "2")]).await.response_code(), Some(ResponseCode::Success));
        assert_eq!(eventually_found(&raw, 1, 1).await, ["later"]);
        let took = start.elapsed();
        assert!(took >= 5 * SECOND, "early: {took:?}");
        assert!(took <= 6 * SECOND, "late: {took:?}");
    });
}

#[test]
fn a_clock_that_is_set_back_delays_a_message_by_its_level_once_more() {
    reaching("server.delay.clock_set_back", || async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        world::step_wall_clock(master.node, 600_000);
        for body in ["first", "second"] {
            raw.send(0, body, &[("DELAY", "2")]).await;
        }
        world::step_wall_clock(master.node, -600_000);
        let start = Instant::now();
        assert_eq!(eventually_found(&raw, 0, 2).await, ["first", "second"]);
        let took = start.elapsed();
        assert!(took >= 5 * SECOND, "early: {took:?}");
        assert!(took <= 6 * SECOND, "late: {took:?}");
    });
}

/// Else a power loss takes the delivery, and the table passes over the message that waits.
#[test]
fn delay_progress_is_saved_when_what_it_speaks_of_is_on_the_disk() {
    run(|| async {
        let node = world::add_node("master");
        let mut config = config(world::ip(node), 0, &[]);
        // Nothing else syncs the log.
        config.store.flush_interval = 3600 * SECOND;
        let master = TestBroker::start(node, cluster(), config).await;
        let raw = Raw::to(&master.address());
        raw.send(0, "later", &[("DELAY", "1")]).await;
        assert_eq!(eventually_found(&raw, 0, 1).await, ["later"]);
        sleep(master.config.timing.delay_persist_period + SECOND).await;
        world::power_loss(node);
        world::power_on(node);
        let master = master.again().await;
        let raw = Raw::to(&master.address());
        assert_eq!(eventually_found(&raw, 0, 1).await, ["later"]);
    });
}

#[test]
fn a_failed_message_comes_again_and_at_last_into_the_dead_letter_topic() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "bad").await;
        eventually_found(&raw, 0, 1).await;
        let of = |topic: &str| PullMessageRequest { topic: topic.to_owned(), ..pull_header(0) };
        let failed = raw.pull(pull_header(0)).await.messages.remove(0);
        let back = |offset, max| ConsumerSendMsgBackRequest {
            offset,
            group: GROUP.to_owned(),
            delay_level: 1,
            origin_msg_id: None,
            origin_topic: None,
            unit_mode: false,
            max_reconsume_times: Some(max),
        };
        let ok = raw.call(RequestCode::ConsumerSendMsgBack, &back(failed.physical_offset, 1)).await;
        assert_eq!(ok.response_code(), Some(ResponseCode::Success), "{:?}", ok.remark);
        let mut again = Vec::new();
        eventually("the retry", async || {
            again = raw.pull(of("%RETRY%G")).await.messages;
            !again.is_empty()
        })
        .await;
        assert_eq!((again[0].reconsume_times, again[0].properties.get("RETRY_TOPIC")), (1, Some(TOPIC)));
        raw.call(RequestCode::ConsumerSendMsgBack, &back(again[0].physical_offset, 1)).await;
        eventually("the dead letter", async || raw.pull(of("%DLQ%G")).await.bodies() == ["bad"]).await;
    });
}

#[test]
fn a_sync_master_without_slaves_says_that_the_copy_is_missing() {
    reaching("server.put.weak_answer", || async {
        let node = world::add_node("master");
        let mut cluster = cluster();
        cluster.in_sync_replicas = 2;
        let mut config = config(world::ip(node), 0, &[]);
        config.role = server::BrokerRole::SyncMaster;
        let master = TestBroker::start(node, cluster, config).await;
        let raw = Raw::to(&master.address());
        let start = Instant::now();
        let reply = raw.send(0, "x", &[]).await;
        assert_eq!(reply.response_code(), Some(ResponseCode::FlushSlaveTimeout));
        assert_eq!(reply.header::<SendMessageResponse>().unwrap().queue_offset, QueueOffset(0));
        assert!(start.elapsed() >= 3 * SECOND);
        assert_eq!(raw.send(0, "y", &[("WAIT", "false")]).await.response_code(), Some(ResponseCode::Success));
        sleep(SECOND).await;
    });
}
