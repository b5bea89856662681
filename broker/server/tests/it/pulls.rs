use crate::support::{Raw, SECOND, TestBroker, cluster, config, lone_master, pull_header, reaching, run, waiting};
use protocol::ResponseCode;
use protocol::header::PullMessageRequest;
use rt::task::spawn;
use rt::time::{Duration, Instant, sleep};
use rt::world;
use std::sync::Arc;

#[test]
fn a_held_pull_is_answered_by_the_message_it_waits_for() {
    run(|| async {
        let master = lone_master().await;
        let raw = Arc::new(Raw::to(&master.address()));
        raw.sent(0, "first").await;
        let waiter = Arc::clone(&raw);
        let held = spawn(async move {
            let start = Instant::now();
            (waiter.pull(waiting(1, 15)).await, start.elapsed())
        });
        sleep(3 * SECOND).await;
        raw.sent(1, "another queue").await;
        sleep(SECOND).await;
        raw.sent(0, "second").await;
        let (pulled, took) = held.await.unwrap();
        assert_eq!(pulled.bodies(), ["second"]);
        assert!(took >= 4 * SECOND && took < 4 * SECOND + Duration::from_millis(500), "{took:?}");
    });
}

#[test]
fn a_held_pull_ends_at_its_deadline_and_sleeps_through_other_tags() {
    run(|| async {
        let master = lone_master().await;
        let raw = Arc::new(Raw::to(&master.address()));
        raw.sent(0, "first").await;
        let waiter = Arc::clone(&raw);
        let held = spawn(async move {
            let start = Instant::now();
            let wanted = PullMessageRequest { subscription: Some("wanted".to_owned()), ..waiting(1, 10) };
            (waiter.pull(wanted).await, start.elapsed())
        });
        sleep(2 * SECOND).await;
        raw.send(0, "second", &[("TAGS", "other")]).await;
        let (pulled, took) = held.await.unwrap();
        assert_eq!(pulled.code, ResponseCode::PullRetryImmediately, "the offset moves past what was filtered");
        assert_eq!(pulled.header.unwrap().next_begin_offset.get(), 2);
        assert!(took >= 10 * SECOND && took < 11 * SECOND, "{took:?}");
    });
}

#[test]
fn what_a_pull_finds() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        assert_eq!(raw.pull(pull_header(0)).await.code, ResponseCode::TopicNotExist);
        raw.sent(0, "a").await;
        sleep(SECOND).await;
        let check = async |offset: i64, code: ResponseCode, next: i64| {
            let pulled = raw.pull(pull_header(offset)).await;
            assert_eq!((pulled.code, pulled.header.unwrap().next_begin_offset.get()), (code, next), "{offset}");
        };
        check(0, ResponseCode::Success, 1).await;
        check(1, ResponseCode::PullNotFound, 1).await;
        check(2, ResponseCode::PullOffsetMoved, 1).await;
        let queue = async |queue_id| raw.pull(PullMessageRequest { queue_id, ..pull_header(0) }).await.code;
        assert_eq!(queue(4).await, ResponseCode::InvalidParameter);
        assert_eq!(queue(-1).await, ResponseCode::InvalidParameter);
        assert_eq!(queue(3).await, ResponseCode::PullNotFound);
        let heartbeat_needed = PullMessageRequest { sys_flag: 0, ..pull_header(0) };
        assert_eq!(raw.pull(heartbeat_needed).await.code, ResponseCode::SubscriptionNotExist);
    });
}

#[test]
fn a_pull_that_finds_no_room_to_wait_is_answered_at_once() {
    reaching("server.hold.full", || async {
        let node = world::add_node("master");
        let mut config = config(world::ip(node), 0, &[]);
        config.held_pulls_max = 0;
        let master = TestBroker::start(node, cluster(), config).await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "first").await;
        sleep(SECOND).await;
        let start = Instant::now();
        assert_eq!(raw.pull(waiting(1, 15)).await.code, ResponseCode::PullNotFound);
        assert!(start.elapsed() < SECOND);
    });
}
