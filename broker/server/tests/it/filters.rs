use crate::support::{
    GROUP, Pulled, Raw, SECOND, TOPIC, TestBroker, cluster, config, eventually, lone_master, pull_header, reaching,
    run, waiting,
};
use protocol::body::{CheckClientRequestBody, ConsumerData, HeartbeatData, SubscriptionData};
use protocol::header::{Empty, PullMessageRequest, UnregisterClientRequest};
use protocol::message::retry_topic;
use protocol::{Command, RequestCode, ResponseCode};
use rt::task::spawn;
use rt::time::{Instant, sleep};
use rt::world;
use std::sync::Arc;

const SAVED: &str = "/store/config/consumerFilter.json";

async fn heartbeat(raw: &Raw, subscriptions: Vec<SubscriptionData>) {
    let consumer =
        ConsumerData { group_name: GROUP.to_owned(), subscription_data_set: subscriptions, ..ConsumerData::default() };
    let data =
        HeartbeatData { client_id: "c".to_owned(), consumer_data_set: vec![consumer], ..HeartbeatData::default() };
    let body = protocol::json::to_vec(&data).expect("plain values");
    let reply = raw.ask(Command::request(RequestCode::HeartBeat, &Empty {}).with_body(body)).await;
    assert_eq!(reply.response_code(), Some(ResponseCode::Success));
}

/// A pull that brings an expression.
fn by_sql(expression: &str, header: PullMessageRequest) -> PullMessageRequest {
    PullMessageRequest {
        subscription: Some(expression.to_owned()),
        expression_type: Some("SQL92".to_owned()),
        ..header
    }
}

/// A pull that leaves its expression to the heartbeat.
fn told(version: i64) -> PullMessageRequest {
    PullMessageRequest { sys_flag: 0, subscription: None, sub_version: version, ..pull_header(0) }
}

fn next(pulled: &Pulled) -> i64 {
    pulled.header.as_ref().expect("a whole header").next_begin_offset.get()
}

async fn saved_text(master: &TestBroker) -> String {
    let read = world::spawn_on(master.node, async { rt::fs::read(SAVED).await.unwrap_or_default() });
    String::from_utf8(read.await.expect("the node lives")).expect("text")
}

async fn check_config(raw: &Raw, subscription: SubscriptionData) -> Command {
    let body = CheckClientRequestBody { subscription_data: subscription, ..CheckClientRequestBody::default() };
    let body = protocol::json::to_vec(&body).expect("plain values");
    raw.ask(Command::request(RequestCode::CheckClientConfig, &Empty {}).with_body(body)).await
}

#[test]
fn a_pull_gets_the_messages_for_which_its_expression_is_true() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        for number in 0..100 {
            let (even, number) = (if number % 2 == 0 { "yes" } else { "no" }, number.to_string());
            raw.send(0, &number, &[("n", &number), ("even", even)]).await;
        }
        sleep(SECOND).await;
        let pulled = raw.pull(by_sql("n > 90 AND even = 'yes'", pull_header(0))).await;
        assert_eq!((pulled.bodies(), next(&pulled)), (vec!["92".into(), "94".into(), "96".into(), "98".into()], 100));
        let some = PullMessageRequest { max_msg_nums: 3, ..pull_header(0) };
        let pulled = raw.pull(by_sql("even = 'yes' AND n > 3", some)).await;
        assert_eq!((pulled.bodies(), next(&pulled)), (vec!["4".into(), "6".into(), "8".into()], 9));
        let pulled = raw.pull(by_sql("n > 1000", pull_header(5))).await;
        assert_eq!((pulled.code, next(&pulled)), (ResponseCode::PullRetryImmediately, 100));
        let pulled = raw.pull(by_sql("n > 'x'", pull_header(0))).await;
        assert_eq!(pulled.code, ResponseCode::SubscriptionParseFailed);
        // Its evaluation fails for every message but one: those do not match.
        let pulled = raw.pull(by_sql("n = 7 OR even > 1", pull_header(0))).await;
        assert_eq!(pulled.bodies(), ["7"]);
    });
}

#[test]
fn one_pull_looks_at_a_bounded_number_of_entries() {
    run(|| async {
        let node = world::add_node("master");
        let mut config = config(world::ip(node), 0, &[]);
        config.store.max_filter_bytes = 20 * 40;
        let master = TestBroker::start(node, cluster(), config).await;
        let raw = Raw::to(&master.address());
        for _ in 0..100 {
            raw.sent(0, "x").await;
        }
        sleep(SECOND).await;
        let mut at = 0;
        while at < 100 {
            let pulled = raw.pull(by_sql("a IS NOT NULL", pull_header(at))).await;
            assert_eq!(pulled.code, ResponseCode::PullRetryImmediately);
            let end = next(&pulled);
            assert!(end > at && end <= at + 40 + 32, "{at} {end}");
            at = end;
        }
    });
}

#[test]
fn a_held_pull_sleeps_through_messages_that_it_does_not_want() {
    run(|| async {
        let master = lone_master().await;
        let raw = Arc::new(Raw::to(&master.address()));
        raw.sent(0, "first").await;
        let held = |seconds| {
            let raw = Arc::clone(&raw);
            spawn(async move {
                let start = Instant::now();
                (raw.pull(by_sql("a = 'x'", waiting(1, seconds))).await, start.elapsed())
            })
        };
        let (short, long) = (held(5), held(15));
        for _ in 0..7 {
            sleep(SECOND).await;
            raw.send(0, "unwanted", &[("a", "y")]).await;
        }
        let (pulled, took) = short.await.unwrap();
        assert_eq!(pulled.code, ResponseCode::PullRetryImmediately);
        assert!(took >= 5 * SECOND && took < 6 * SECOND && (4..=7).contains(&next(&pulled)), "{took:?} {pulled:?}");
        raw.send(0, "wanted", &[("a", "x")]).await;
        let (pulled, took) = long.await.unwrap();
        assert_eq!((pulled.bodies(), next(&pulled)), (vec!["wanted".into()], 9));
        assert!(took >= 7 * SECOND && took < 8 * SECOND, "{took:?}");
    });
}

#[test]
fn a_group_is_filtered_as_its_heartbeat_says() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        raw.send(0, "a", &[("a", "1")]).await;
        raw.send(0, "b", &[("b", "1")]).await;
        sleep(SECOND).await;
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "a IS NOT NULL", 5)]).await;
        assert_eq!(raw.pull(told(5)).await.bodies(), ["a"]);
        assert_eq!(raw.pull(told(6)).await.code, ResponseCode::SubscriptionNotLatest);
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "b IS NOT NULL", 6)]).await;
        assert_eq!(raw.pull(told(6)).await.bodies(), ["b"]);
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "b IS", 7)]).await;
        assert_eq!(raw.pull(told(7)).await.code, ResponseCode::FilterDataNotExist);
        let class =
            SubscriptionData { class_filter_mode: true, ..SubscriptionData::by_tags(TOPIC, "org.example.Filter", 8) };
        heartbeat(&raw, vec![class]).await;
        assert_eq!(raw.pull(told(8)).await.code, ResponseCode::SystemError);
    });
}

#[test]
fn a_message_that_comes_again_is_filtered_by_the_expression_for_its_topic() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        let retry = retry_topic(GROUP);
        heartbeat(
            &raw,
            vec![SubscriptionData::by_sql(TOPIC, "a = 'x'", 5), SubscriptionData::by_sql(&retry, "a = 'never'", 5)],
        )
        .await;
        for (body, properties) in [
            ("wanted", [("RETRY_TOPIC", TOPIC), ("a", "x")]),
            ("unwanted", [("RETRY_TOPIC", TOPIC), ("a", "y")]),
            ("of another topic", [("RETRY_TOPIC", "U"), ("a", "y")]),
        ] {
            let header = protocol::header::SendMessageRequest {
                topic: retry.clone(),
                ..crate::support::send_header(0, &properties)
            };
            let header: protocol::header::SendMessageRequestV2 = header.into();
            let sent = raw.ask(Command::request(RequestCode::SendMessageV2, &header).with_body(body)).await;
            assert_eq!(sent.response_code(), Some(ResponseCode::Success), "{:?}", sent.remark);
        }
        sleep(SECOND).await;
        let pulled = raw.pull(PullMessageRequest { topic: retry, ..told(5) }).await;
        assert_eq!(pulled.bodies(), ["wanted", "of another topic"]);
    });
}

#[test]
fn a_broker_says_whether_it_can_filter_so() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        let check = async |subscription: SubscriptionData, code: ResponseCode, remark: Option<&str>| {
            let reply = check_config(&raw, subscription).await;
            assert_eq!((reply.response_code(), reply.remark.as_deref()), (Some(code), remark));
        };
        check(SubscriptionData::by_tags(TOPIC, "a", 1), ResponseCode::Success, None).await;
        check(SubscriptionData::by_sql(TOPIC, "a > 1", 1), ResponseCode::Success, None).await;
        let why = "filter expression has the end instead of a property, a literal or ( at byte 3";
        check(SubscriptionData::by_sql(TOPIC, "a >", 1), ResponseCode::SubscriptionParseFailed, Some(why)).await;
    });
}

#[test]
fn a_broker_that_may_not_filter_by_properties_says_so() {
    run(|| async {
        let node = world::add_node("master");
        let mut config = config(world::ip(node), 0, &[]);
        config.filter.by_properties = false;
        let master = TestBroker::start(node, cluster(), config).await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "x").await;
        let why = "The broker does not support consumer to filter message by SQL92";
        let reply = check_config(&raw, SubscriptionData::by_sql(TOPIC, "a > 1", 1)).await;
        assert_eq!((reply.response_code(), reply.remark.as_deref()), (Some(ResponseCode::SystemError), Some(why)));
        assert_eq!(raw.pull(by_sql("a > 1", pull_header(0))).await.code, ResponseCode::SystemError);
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "a > 1", 5)]).await;
        assert_eq!(raw.pull(told(5)).await.code, ResponseCode::SystemError);
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "a >", 6)]).await;
        assert_eq!(raw.pull(told(6)).await.code, ResponseCode::FilterDataNotExist);
    });
}

#[test]
fn filters_are_saved_and_a_group_that_left_has_a_dead_one() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        sleep(6 * SECOND).await;
        assert_eq!(saved_text(&master).await, "", "there is nothing to save");
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "a > 1", 5)]).await;
        let saved = async |part: &str| saved_text(&master).await.contains(part);
        eventually("saved", async || saved("\"dead\":false").await).await;
        assert!(saved("\"expression\":\"a > 1\"").await);
        let leave = UnregisterClientRequest {
            client_id: "c".to_owned(),
            producer_group: None,
            consumer_group: Some(GROUP.to_owned()),
        };
        raw.call(RequestCode::UnregisterClient, &leave).await;
        eventually("dead", async || saved("\"dead\":true").await).await;
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "a > 1", 5)]).await;
        eventually("revived", async || saved("\"dead\":false").await).await;
    });
}

#[test]
fn bit_maps_spare_reads_and_hide_nothing() {
    reaching("server.filter.passed_over_by_bits", || async {
        let node = world::add_node("master");
        let mut settings = config(world::ip(node), 0, &[]);
        settings.filter.in_bits = true;
        settings.store.extend_queues = true;
        let master = TestBroker::start(node, cluster(), settings).await;
        let raw = Raw::to(&master.address());
        let send = async |raw: &Raw, numbers: std::ops::Range<u32>| {
            for number in numbers.map(|number| number.to_string()) {
                raw.send(0, &number, &[("n", &number)]).await;
            }
            sleep(SECOND).await;
        };
        let pulled = async |raw: &Raw, version: i64| raw.pull(told(version)).await.bodies();
        // Stored before the group was known: no bit map tells of it.
        send(&raw, 0..20).await;
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "n > 17", 5)]).await;
        send(&raw, 20..22).await;
        assert_eq!(pulled(&raw, 5).await, ["18", "19", "20", "21"]);
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "n IN ('3', '30')", 6)]).await;
        send(&raw, 22..32).await;
        assert_eq!(pulled(&raw, 6).await, ["3", "30"]);
        // The clock is set back: what is stored from now on is older, by its time, than the filter.
        world::step_wall_clock(node, -3_600_000);
        let (node, cluster, settings) = master.stop().await;
        let master = TestBroker::start(node, cluster, settings).await;
        let raw = Raw::to(&master.address());
        heartbeat(&raw, vec![SubscriptionData::by_sql(TOPIC, "n IN ('3', '30')", 6)]).await;
        send(&raw, 28..31).await;
        assert_eq!(pulled(&raw, 6).await, ["3", "30", "30"]);
        master.stop().await;
    });
}
