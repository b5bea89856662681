//! Old messages go, and what someone still needs does not.
use crate::support::{
    Raw, SECOND, TOPIC, TestBroker, cluster, config, eventually, lone_master, name_server, pull_header, run,
};
use protocol::header::{DeleteTopicRequest, GetAllTopicConfigRequest};
use protocol::{RequestCode, ResponseCode};
use rt::time::sleep;
use rt::world::{self, NodeId, disk};
use server::ServerConfig;
use std::net::IpAddr;

/// A request that says nothing besides its code.
const WITHOUT_FIELDS: GetAllTopicConfigRequest =
    GetAllTopicConfigRequest { topic_seq: None, data_version: None, max_topic_num: None };

/// Segments of 4 KiB that go as soon as the next is begun.
fn short_lived(ip: IpAddr, broker_id: i64, name_servers: &[String]) -> ServerConfig {
    let mut settings = config(ip, broker_id, name_servers);
    settings.store.segment_size = 4096;
    settings.store.retention.reserved = std::time::Duration::ZERO;
    settings.store.retention.delete_hours = (0..24).collect();
    settings
}

async fn lone(change: impl FnOnce(&mut ServerConfig)) -> (TestBroker, Raw) {
    let node = world::add_node("master");
    let mut settings = short_lived(world::ip(node), 0, &[]);
    change(&mut settings);
    let master = TestBroker::start(node, cluster(), settings).await;
    let raw = Raw::to(&master.address());
    (master, raw)
}

/// Names of the log's segments.
fn segments(node: NodeId) -> usize {
    disk::list(node, "/store/commitlog").expect("it is there").len()
}

async fn send_many(raw: &Raw, count: usize) {
    for n in 0..count {
        raw.sent(1, &format!("{n} {}", "x".repeat(300))).await;
    }
}

async fn ok(raw: &Raw, code: RequestCode) {
    let answer = raw.call(code, &WITHOUT_FIELDS).await;
    assert_eq!(answer.response_code(), Some(ResponseCode::Success), "{:?}", answer.remark);
}

#[test]
fn expired_messages_go_after_a_minute_and_a_reader_is_told_where_to_go_on() {
    run(|| async {
        let (master, raw) = lone(|_| {}).await;
        raw.sent(0, "old").await;
        send_many(&raw, 40).await;
        raw.sent(0, "new").await;
        assert!(segments(master.node) > 3);
        sleep(75 * SECOND).await;
        assert_eq!(segments(master.node), 1);
        let pulled = raw.pull(pull_header(0)).await;
        assert_eq!(pulled.code, ResponseCode::PullOffsetMoved);
        let next = pulled.header.expect("a whole header").next_begin_offset.get();
        assert_eq!((next, raw.pull(pull_header(1)).await.bodies()), (1, vec!["new".to_owned()]));
    });
}

/// Nothing goes past the message `late`, which waits for 150 s, until it is there; how many segments that are.
async fn segments_until_late(master: &TestBroker, raw: &Raw) -> usize {
    send_many(raw, 40).await;
    sleep(100 * SECOND).await;
    let before = segments(master.node);
    assert!(before > 3, "nothing goes past it");
    sleep(70 * SECOND).await;
    assert_eq!(raw.pull(pull_header(0)).await.bodies(), ["late"]);
    before
}

#[test]
fn a_timer_message_keeps_its_segment_until_it_is_delivered() {
    run(|| async {
        let (master, raw) = lone(|_| {}).await;
        raw.send(0, "late", &[("TIMER_DELAY_SEC", "150")]).await;
        let before = segments_until_late(&master, &raw).await;
        sleep(30 * SECOND).await;
        assert!(segments(master.node) < before, "it is delivered, and nobody holds its segment");
    });
}

#[test]
fn a_delayed_message_keeps_its_segment_until_it_is_delivered() {
    run(|| async {
        let (master, raw) = lone(|settings| settings.store.delay_levels_ms = vec![150_000]).await;
        let (node, mut cluster, config) = master.stop().await;
        cluster.delay_levels = vec![150 * SECOND];
        let master = TestBroker::start(node, cluster, config).await;
        raw.send(0, "late", &[("DELAY", "1")]).await;
        segments_until_late(&master, &raw).await;
        assert_eq!(segments(master.node), 1, "and afterwards all goes");
    });
}

#[test]
fn what_a_slave_needs_that_is_away_stays_until_it_has_it() {
    run(|| async {
        let (_, address) = name_server("names").await;
        let (m, s) = (world::add_node("master"), world::add_node("slave"));
        let names = std::slice::from_ref(&address);
        let master = TestBroker::start(m, cluster(), short_lived(world::ip(m), 0, names)).await;
        let slave = TestBroker::start(s, cluster(), short_lived(world::ip(s), 1, names)).await;
        let raw = Raw::to(&master.address());
        let slave_raw = Raw::to(&slave.address());
        raw.sent(0, "first").await;
        eventually("the slave has it", async || slave_raw.pull(pull_header(0)).await.bodies() == ["first"]).await;
        // So that the master hears of it.
        sleep(10 * SECOND).await;
        let (node, cluster, settings) = slave.stop().await;
        send_many(&raw, 40).await;
        sleep(100 * SECOND).await;
        assert!(segments(m) > 3, "the slave was there a moment ago");
        let slave = TestBroker::start(node, cluster, settings).await;
        eventually("the slave has caught up", async || {
            let at_slave = Raw::to(&slave.address());
            let last = at_slave.pull(protocol::header::PullMessageRequest { queue_id: 1, ..pull_header(39) }).await;
            last.bodies().len() == 1
        })
        .await;
        sleep(30 * SECOND).await;
        assert_eq!(segments(m), 1);
        sleep(60 * SECOND).await;
        assert_eq!(segments(s), 1, "a slave removes by itself");
    });
}

/// Segments at the master of what its slave lacks, which is away while the master is started again.
#[test]
fn what_a_slave_needs_that_is_away_stays_across_a_restart_of_its_master() {
    run(|| async {
        let (_, address) = name_server("names").await;
        let (m, s) = (world::add_node("master"), world::add_node("slave"));
        let names = std::slice::from_ref(&address);
        let master = TestBroker::start(m, cluster(), short_lived(world::ip(m), 0, names)).await;
        let slave = TestBroker::start(s, cluster(), short_lived(world::ip(s), 1, names)).await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "first").await;
        // So that the slave has it, and the master has looked for what to remove.
        sleep(75 * SECOND).await;
        let (slave_node, slave_cluster, slave_settings) = slave.stop().await;
        send_many(&raw, 40).await;
        let (node, cluster, settings) = master.stop().await;
        let master = TestBroker::start(node, cluster, settings).await;
        sleep(75 * SECOND).await;
        assert!(segments(m) > 3, "the slave was there before the restart");
        let slave = TestBroker::start(slave_node, slave_cluster, slave_settings).await;
        eventually("the slave has caught up", async || {
            let at_slave = Raw::to(&slave.address());
            let last = at_slave.pull(protocol::header::PullMessageRequest { queue_id: 1, ..pull_header(39) }).await;
            last.bodies().len() == 1
        })
        .await;
        sleep(30 * SECOND).await;
        assert_eq!(segments(m), 1);
        drop(master);
    });
}

#[test]
fn a_full_disk_refuses_messages_and_serves_reads() {
    run(|| async {
        let (master, raw) = lone(|settings| settings.store.retention.is_forcible = false).await;
        raw.sent(0, "there").await;
        // Of most of the disk, so that a page more or less is nothing.
        disk::write_file(master.node, "/others", &[7; 4 << 20]).expect("there is room");
        let (free, all) = world::spawn_on(master.node, async { rt::fs::free_bytes("/store").expect("it is known") })
            .await
            .expect("nothing ends it");
        disk::set_capacity(master.node, (all - free) * 100 / 95);
        sleep(61 * SECOND).await;
        let refused = raw.send(0, "more", &[]).await;
        assert_eq!(refused.response_code(), Some(ResponseCode::ServiceNotAvailable));
        assert!(refused.remark.is_some_and(|remark| remark.contains("the broker's disk is full")));
        assert_eq!(raw.pull(pull_header(0)).await.bodies(), ["there"]);
        let info = raw.call(RequestCode::GetBrokerRuntimeInfo, &WITHOUT_FIELDS).await;
        let text = String::from_utf8(info.body.to_vec()).expect("text");
        assert!(text.contains("\"commitLogDiskRatio\":\"0.9"), "{text}");
        assert!(text.contains("\"commitLogDiskRatio_/store/commitlog\":\"0.9"), "{text}");
        disk::heal(master.node);
        sleep(11 * SECOND).await;
        raw.sent(0, "again").await;
    });
}

#[test]
fn an_operator_has_expired_messages_removed_at_once() {
    run(|| async {
        let (master, raw) = lone(|settings| settings.store.retention.delete_hours.clear()).await;
        send_many(&raw, 40).await;
        sleep(75 * SECOND).await;
        assert!(segments(master.node) > 3, "it is not the hour");
        ok(&raw, RequestCode::DeleteExpiredCommitlog).await;
        sleep(12 * SECOND).await;
        assert_eq!(segments(master.node), 1);
    });
}

#[test]
fn a_topic_that_is_removed_and_made_again_begins_at_zero() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        for (offset, body) in (0..).zip(["a", "b", "c"]) {
            assert_eq!(raw.sent(0, body).await, offset);
        }
        sleep(SECOND).await;
        let deletion = DeleteTopicRequest { topic: TOPIC.to_owned() };
        let answer = raw.call(RequestCode::DeleteTopicInBroker, &deletion).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::Success), "{:?}", answer.remark);
        assert!(disk::list(master.node, format!("/store/consumequeue/{TOPIC}")).is_err());
        assert_eq!(raw.sent(0, "d").await, 0);
        let (node, cluster, config) = master.stop().await;
        let master = TestBroker::start(node, cluster, config).await;
        let raw = Raw::to(&master.address());
        assert_eq!(raw.pull(pull_header(0)).await.bodies(), ["d"]);
    });
}

#[test]
fn queues_of_topics_that_are_no_more_go_when_an_operator_asks() {
    run(|| async {
        let (master, raw) = lone(|_| {}).await;
        let queues = || disk::list(master.node, "/store/consumequeue").expect("it is there").len();
        send_many(&raw, 3).await;
        sleep(SECOND).await;
        for code in [RequestCode::CleanExpiredConsumequeue, RequestCode::CleanUnusedTopic] {
            ok(&raw, code).await;
            assert_eq!(queues(), 1, "the topic is there");
        }
        let (node, cluster, config) = master.stop().await;
        for name in ["topics.json", "topics.json.bak"] {
            let path = format!("/store/config/{name}");
            world::spawn_on(node, async move { rt::fs::remove_file(path).ok() }).await.expect("nothing ends it");
        }
        let master = TestBroker::start(node, cluster, config).await;
        let raw = Raw::to(&master.address());
        ok(&raw, RequestCode::CleanExpiredConsumequeue).await;
        let queues = || disk::list(node, "/store/consumequeue").expect("it is there").len();
        assert_eq!(queues(), 1, "its messages have not expired");
        ok(&raw, RequestCode::CleanUnusedTopic).await;
        assert_eq!(queues(), 0);
    });
}
