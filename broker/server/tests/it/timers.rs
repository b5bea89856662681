//! Messages that wait for a moment of their own: never early, never lost, and taken back by a recall.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
use crate::support::{
    Raw, SECOND, TOPIC, TestBroker, cluster, config, eventually, lone_master, name_server, pull_header, reaching, run,
};
use protocol::header::{Empty, RecallMessageRequest, RecallMessageResponse, SendMessageResponse};
use protocol::{Command, RequestCode, ResponseCode, StoredMessage};
use rt::time::{Duration, sleep};
use rt::world::{self, NodeId, disk};
use server::ServerConfig;
use std::collections::BTreeMap;
use store::{TimerCheckpoint, TimerConfig};

fn clock_ms(node: NodeId) -> i64 {
    world::unix_nanos_of(node) / 1_000_000
}

/// A master of these settings on a node of its own.
async fn master(set: impl FnOnce(&mut ServerConfig)) -> (TestBroker, Raw) {
    let node = world::add_node("master");
    let mut settings = config(world::ip(node), 0, &[]);
    set(&mut settings);
    let master = TestBroker::start(node, cluster(), settings).await;
    let raw = Raw::to(&master.address());
    (master, raw)
}

/// Sends a message that waits so many milliseconds; its answer.
async fn timed(raw: &Raw, body: &str, delay_ms: i64) -> SendMessageResponse {
    let reply = raw.send(0, body, &[("TIMER_DELAY_MS", &delay_ms.to_string())]).await;
    assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
    reply.header().unwrap()
}

async fn messages(raw: &Raw) -> Vec<StoredMessage> {
    let mut all: Vec<StoredMessage> = Vec::new();
    loop {
        let more = raw.pull(pull_header(i64::try_from(all.len()).unwrap())).await.messages;
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

async fn delivered(raw: &Raw, bodies: &[&str]) {
    let mut found = Vec::new();
    for _ in 0..1200 {
        found = raw.pull(pull_header(0)).await.bodies();
        if found.len() >= bodies.len() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(found, bodies);
}

/// How long after its moment a message was stored by the broker's clock, milliseconds.
fn late_ms(message: &StoredMessage) -> i64 {
    let number = |name: &str| message.properties.get(name).unwrap().parse::<i64>().unwrap();
    // The slot of a moment is over at most one precision after it.
    let out_ms = number("TIMER_OUT_MS");
    message.store_timestamp - out_ms - 1000
}

async fn recall(raw: &Raw, handle: &str) -> Command {
    let header = RecallMessageRequest {
        producer_group: Some("P".to_owned()),
        topic: TOPIC.to_owned(),
        recall_handle: handle.to_owned(),
        broker_name: None,
    };
    raw.call(RequestCode::RecallMessage, &header).await
}

fn files(node: NodeId) -> Vec<String> {
    let paths = disk::list(node, "/store").unwrap();
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn messages_come_when_their_moment_has_come_and_not_before() {
    run(|| async {
        let (master, raw) = master(|_| {}).await;
        raw.sent(0, "at once").await;
        sleep(5 * SECOND).await;
        assert!(!files(master.node).iter().any(|name| name.starts_with("timer")), "{:?}", files(master.node));
        let mut due_ms = BTreeMap::new();
        for (body, delay_ms) in [("second", 4_700), ("first", 2_300), ("passed", -5), ("third", 4_900)] {
            due_ms.insert(body.as_bytes().to_vec(), clock_ms(master.node) + delay_ms);
            let answer = timed(&raw, body, delay_ms).await;
            assert_eq!(answer.queue_id, 0);
            assert_eq!(answer.recall_handle.is_some(), delay_ms > 0);
        }
        delivered(&raw, &["at once", "passed", "first", "second", "third"]).await;
        for message in messages(&raw).await.iter().skip(2) {
            let late_ms = late_ms(message);
            assert!((0..200).contains(&late_ms), "{late_ms}");
            assert!(message.store_timestamp >= due_ms[&message.body[..]]);
            assert!(message.properties.get("TIMER_ENQUEUE_MS").is_some());
            assert!(message.properties.get("TIMER_DEQUEUE_MS").is_some());
            assert_eq!(message.properties.get("REAL_TOPIC"), Some(TOPIC));
        }
        master.stop().await;
    });
}

#[test]
fn what_is_too_far_or_not_understood_is_refused_and_so_is_all_without_a_wheel() {
    run(|| async {
        let (_master, raw) = master(|_| {}).await;
        let code = async |raw: &Raw, name: &str, value: &str| {
            raw.send(0, "x", &[(name, value)]).await.response_code().unwrap()
        };
        assert_eq!(code(&raw, "TIMER_DELAY_SEC", "259201").await, ResponseCode::MessageIllegal);
        assert_eq!(code(&raw, "TIMER_DELAY_SEC", "soon").await, ResponseCode::MessageIllegal);
        assert_eq!(code(&raw, "TIMER_DELAY_SEC", "259200").await, ResponseCode::Success);
        let node = world::add_node("plain");
        let mut settings = config(world::ip(node), 0, &[]);
        settings.store.timer = None;
        settings.recall = false;
        let plain = TestBroker::start(node, cluster(), settings).await;
        let raw = Raw::to(&plain.address());
        assert_eq!(code(&raw, "TIMER_DELAY_MS", "5").await, ResponseCode::SystemError);
        assert_eq!(recall(&raw, "x").await.response_code(), Some(ResponseCode::NoPermission));
        let check = raw.call(RequestCode::GetTimerCheckPoint, &Empty {}).await;
        assert_eq!(check.response_code(), Some(ResponseCode::SystemError));
    });
}

#[test]
fn a_recalled_message_does_not_come() {
    reaching("server.timer.recalled", || async {
        let (_master, raw) = master(|_| {}).await;
        let kept = timed(&raw, "kept", 3_000).await;
        let victim = timed(&raw, "victim", 3_000).await;
        let handle = victim.recall_handle.unwrap();
        let reply = recall(&raw, &handle).await;
        assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
        assert_eq!(Some(reply.header::<RecallMessageResponse>().unwrap().msg_id), victim.transaction_id);
        delivered(&raw, &["kept"]).await;
        sleep(5 * SECOND).await;
        delivered(&raw, &["kept"]).await;
        let code = async |handle: &str| recall(&raw, handle).await.response_code();
        assert_eq!(code(&kept.recall_handle.unwrap()).await, Some(ResponseCode::IllegalOperation), "it has come");
        assert_eq!(code("no handle").await, Some(ResponseCode::IllegalOperation));
        let other = protocol::message::RecallHandle {
            topic: TOPIC.to_owned(),
            broker_name: "other".to_owned(),
            deliver_ms: i64::MAX,
            unique_key: "K".to_owned(),
        };
        assert_eq!(code(&other.encode()).await, Some(ResponseCode::IllegalOperation));
    });
}

#[test]
fn a_message_beyond_the_wheels_window_rolls_until_its_moment() {
    reaching("server.timer.rolled", || async {
        let small = TimerConfig { roll_window_slots: 3, log_file_bytes: 1040, ..TimerConfig::default() };
        let (_master, raw) = master(|settings| settings.store.timer = Some(small)).await;
        let handle = timed(&raw, "victim", 10_500).await.recall_handle.unwrap();
        timed(&raw, "far", 11_000).await;
        sleep(2 * SECOND).await;
        assert_eq!(recall(&raw, &handle).await.response_code(), Some(ResponseCode::Success));
        delivered(&raw, &["far"]).await;
        let message = messages(&raw).await.remove(0);
        assert!((0..200).contains(&late_ms(&message)), "{}", late_ms(&message));
        assert!(message.properties.get("TIMER_ROLL_TIMES").unwrap().parse::<i32>().unwrap() >= 2);
        sleep(3 * SECOND).await;
        delivered(&raw, &["far"]).await;
    });
}

#[test]
fn what_waits_survives_any_end_and_what_came_does_not_come_again_after_an_orderly_one() {
    run(|| async {
        let (master, raw) = master(|settings| {
            settings.flush_sync = true;
            settings.store.flush_mode = store::FlushMode::Sync;
        })
        .await;
        timed(&raw, "early", 1_500).await;
        timed(&raw, "late", 20_000).await;
        delivered(&raw, &["early"]).await;
        let (node, cluster, settings) = master.stop().await;
        let master = TestBroker::start(node, cluster, settings).await;
        timed(&raw, "middle", 6_000).await;
        sleep(2 * SECOND).await;
        world::power_loss(node);
        world::power_on(node);
        sleep(2 * SECOND).await;
        let master = master.again().await;
        let raw = Raw::to(&master.address());
        delivered(&raw, &["early", "middle", "late"]).await;
        sleep(30 * SECOND).await;
        delivered(&raw, &["early", "middle", "late"]).await;
    });
}

#[test]
fn a_clock_that_is_set_makes_messages_due_or_late_but_never_early() {
    run(|| async {
        let (master, raw) = master(|_| {}).await;
        timed(&raw, "ahead", 600_000).await;
        sleep(SECOND).await;
        world::step_wall_clock(master.node, 700_000);
        delivered(&raw, &["ahead"]).await;
        timed(&raw, "back", 3_000).await;
        world::step_wall_clock(master.node, -30_000);
        timed(&raw, "after", 3_000).await;
        delivered(&raw, &["ahead", "after", "back"]).await;
        for message in messages(&raw).await {
            assert!(late_ms(&message) >= 0, "{} ms", late_ms(&message));
        }
    });
}

#[test]
fn a_delivery_that_fails_is_tried_until_it_succeeds() {
    reaching("server.timer.delivery_tried_again", || async {
        let (master, raw) = master(|_| {}).await;
        let body = "x".repeat(100_000);
        timed(&raw, &body, 2_000).await;
        sleep(SECOND).await;
        disk::set_capacity(master.node, 4096);
        sleep(10 * SECOND).await;
        assert_eq!(messages(&raw).await.len(), 0);
        disk::set_capacity(master.node, 1 << 40);
        delivered(&raw, &[&body]).await;
    });
}

/// What the wheel adds to the properties is left out if there is no room for it.
#[test]
fn a_message_with_no_room_for_more_properties_comes_without_its_times() {
    reaching("server.timer.too_long_for_its_times", || async {
        let (_master, raw) = master(|_| {}).await;
        let (mut low, mut high) = (30_000_usize, 32_767);
        while low + 1 < high {
            let middle = low.midpoint(high);
            let filler = "f".repeat(middle);
            let reply = raw.send(0, "long", &[("TIMER_DELAY_MS", "1500"), ("FILLER", &filler)]).await;
            match reply.response_code() {
                Some(ResponseCode::Success) => low = middle,
                _ => high = middle,
            }
        }
        sleep(4 * SECOND).await;
        let longest = messages(&raw).await.iter().map(|message| message.properties.get("FILLER").unwrap().len()).max();
        assert_eq!(longest, Some(low));
    });
}

/// A pair of which the slave has copied all, its master's checkpoint too.
async fn pair() -> (TestBroker, TestBroker, Raw) {
    let (_, address) = name_server("names").await;
    let (m, s) = (world::add_node("master"), world::add_node("slave"));
    let master = TestBroker::start(m, cluster(), config(world::ip(m), 0, std::slice::from_ref(&address))).await;
    let slave = TestBroker::start(s, cluster(), config(world::ip(s), 1, &[address])).await;
    let raw = Raw::to(&master.address());
    (master, slave, raw)
}

async fn checkpoint(address: &str) -> TimerCheckpoint {
    let reply = Raw::to(address).call(RequestCode::GetTimerCheckPoint, &Empty {}).await;
    TimerCheckpoint::decode(&reply.body).unwrap()
}

#[test]
fn a_slave_delivers_nothing_until_it_is_a_master_and_then_goes_on_where_that_was() {
    run(|| async {
        let (master, slave, raw) = pair().await;
        timed(&raw, "first", 1_500).await;
        timed(&raw, "second", 60_000).await;
        timed(&raw, "third", 90_000).await;
        delivered(&raw, &["first"]).await;
        eventually("the slave has the master's checkpoint", async || {
            let (of_master, of_slave) = (checkpoint(&master.address()).await, checkpoint(&slave.address()).await);
            of_master.master_next == 3 && of_slave == of_master
        })
        .await;
        master.stop().await;
        let (node, cluster, mut settings) = slave.stop().await;
        sleep(70 * SECOND).await;
        (settings.broker_id, settings.role) = (0, server::BrokerRole::AsyncMaster);
        settings.name_servers.clear();
        let promoted = TestBroker::start(node, cluster, settings).await;
        let raw = Raw::to(&promoted.address());
        delivered(&raw, &["first", "second", "third"]).await;
        sleep(10 * SECOND).await;
        delivered(&raw, &["first", "second", "third"]).await;
    });
}

#[test]
fn a_slave_that_lags_behind_does_not_take_for_delivered_what_it_lacks() {
    reaching("server.slave.waits_for_the_log", || async {
        let (master, slave, raw) = pair().await;
        timed(&raw, "first", 1_500).await;
        timed(&raw, "second", 40_000).await;
        delivered(&raw, &["first"]).await;
        eventually("the slave has the master's checkpoint", async || {
            let (of_master, of_slave) = (checkpoint(&master.address()).await, checkpoint(&slave.address()).await);
            of_master.master_next == 2 && of_slave == of_master
        })
        .await;
        // The slave's disk is full: replication stops, requests go on.
        disk::set_capacity(slave.node, 4096);
        let big = "x".repeat(60_000);
        raw.sent(1, &big).await;
        delivered(&raw, &["first", "second"]).await;
        sleep(15 * SECOND).await;
        let (of_master, of_slave) = (checkpoint(&master.address()).await, checkpoint(&slave.address()).await);
        assert!(of_slave.read_ms < of_master.read_ms, "{of_slave:?} {of_master:?}");
    });
}

#[test]
fn slaves_and_operators_are_told_how_far_the_timer_is_and_what_waits() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        let told = checkpoint(&master.address()).await;
        assert_eq!((told.log_bytes, told.master_next), (0, 0));
        timed(&raw, "a", 30_000).await;
        timed(&raw, "b", 31_000).await;
        sleep(3 * SECOND).await;
        let told = checkpoint(&master.address()).await;
        assert_eq!((told.log_bytes, told.next, told.master_next), (104, 2, 2));
        let metrics = raw.call(RequestCode::GetTimerMetrics, &Empty {}).await;
        let text = String::from_utf8(metrics.body.to_vec()).unwrap();
        assert!(text.contains("\"timingCount\":{\"T\":{\"count\":2,"), "{text}");
        master.stop().await;
    });
}
