use crate::support::{GROUP, Raw, SECOND, TOPIC, TestBroker, cluster, config, lone_master, pull_header, reaching, run};
use protocol::header::{
    GetMaxOffsetRequest, OffsetResponse, PullMessageRequest, ResetOffsetRequest, SearchOffsetRequest,
};
use protocol::{QueueOffset, RequestCode, ResponseCode};
use rt::time::{sleep, unix_ms};
use rt::world;

async fn three_sent(raw: &Raw) {
    for body in ["a", "b", "c"] {
        raw.sent(0, body).await;
    }
    sleep(SECOND).await;
    // The group exists once it has pulled.
    assert_eq!(raw.pull(pull_header(0)).await.code, ResponseCode::Success);
}

#[test]
fn a_commit_is_kept_across_a_stop_and_after_five_seconds_across_a_crash() {
    run(|| async {
        let mut master = lone_master().await;
        let raw = Raw::to(&master.address());
        three_sent(&raw).await;
        assert_eq!(raw.commit(0, 2).await, Some(ResponseCode::Success));
        let (node, cluster, config) = master.stop().await;
        master = TestBroker::start(node, cluster, config).await;
        assert_eq!(raw.committed(0).await, Some(2));
        assert_eq!(raw.commit(0, 3).await, Some(ResponseCode::Success));
        sleep(6 * SECOND).await;
        world::crash(master.node);
        let _master = master.again().await;
        assert_eq!(raw.committed(0).await, Some(3));
        assert_eq!(raw.pull(pull_header(0)).await.bodies(), ["a", "b", "c"]);
    });
}

#[test]
fn the_commit_flag_of_a_pull_counts_and_never_lowers() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        three_sent(&raw).await;
        let with_commit =
            |offset: i64| PullMessageRequest { sys_flag: 4 | 1, commit_offset: QueueOffset(offset), ..pull_header(2) };
        raw.pull(with_commit(2)).await;
        assert_eq!(raw.committed(0).await, Some(2));
        raw.pull(with_commit(1)).await;
        assert_eq!(raw.committed(0).await, Some(2));
        raw.pull(PullMessageRequest { sys_flag: 4, ..with_commit(3) }).await;
        assert_eq!(raw.committed(0).await, Some(2));
    });
}

#[test]
fn a_commit_beyond_the_queue_is_lowered_to_its_end_and_strangers_are_refused() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "a").await;
        assert_eq!(raw.commit(0, 1).await, Some(ResponseCode::SubscriptionGroupNotExist));
        three_sent(&raw).await;
        assert_eq!(raw.committed(0).await, None);
        raw.commit(0, 99).await;
        assert_eq!(raw.committed(0).await, Some(4));
        assert_eq!(raw.commit(-1, 1).await, Some(ResponseCode::InvalidParameter));
        assert_eq!(raw.commit(0, -1).await, Some(ResponseCode::InvalidParameter));
    });
}

#[test]
fn a_reset_wins_over_commits_until_the_consumer_has_seen_it() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        three_sent(&raw).await;
        raw.commit(0, 3).await;
        let reset = ResetOffsetRequest {
            group: GROUP.to_owned(),
            topic: TOPIC.to_owned(),
            queue_id: 0,
            offset: Some(QueueOffset(1)),
            timestamp: 0,
            force: true,
        };
        assert_eq!(
            raw.call(RequestCode::InvokeBrokerToResetOffset, &reset).await.response_code(),
            Some(ResponseCode::Success)
        );
        raw.commit(0, 3).await;
        assert_eq!(raw.committed(0).await, Some(1));
        world::crash(master.node);
        let _master = master.again().await;
        assert_eq!(raw.committed(0).await, Some(1));
        let pulled =
            raw.pull(PullMessageRequest { sys_flag: 4 | 1, commit_offset: QueueOffset(3), ..pull_header(3) }).await;
        assert_eq!((pulled.code, pulled.header.unwrap().next_begin_offset.get()), (ResponseCode::PullOffsetMoved, 1));
        assert_eq!(raw.committed(0).await, Some(1), "the pull that brings the reset does not commit");
        raw.commit(0, 2).await;
        assert_eq!(raw.committed(0).await, Some(2));
    });
}

#[test]
fn ends_and_times_of_a_queue() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        raw.sent(0, "a").await;
        sleep(2 * SECOND).await;
        let between = unix_ms();
        raw.sent(0, "b").await;
        sleep(SECOND).await;
        let max = raw
            .call(
                RequestCode::GetMaxOffset,
                &GetMaxOffsetRequest { topic: TOPIC.to_owned(), queue_id: 0, committed: true },
            )
            .await;
        assert_eq!(max.header::<OffsetResponse>().unwrap().offset.get(), 2);
        let search = SearchOffsetRequest {
            topic: TOPIC.to_owned(),
            queue_id: 0,
            timestamp: between,
            boundary_type: Default::default(),
        };
        let found = raw.call(RequestCode::SearchOffsetByTimestamp, &search).await;
        assert_eq!(found.header::<OffsetResponse>().unwrap().offset.get(), 1);
    });
}

#[test]
fn offsets_above_a_lost_suffix_are_lowered_at_the_start() {
    reaching("server.offsets.lowered_to_end", || async {
        let node = world::add_node("master");
        let mut config = config(world::ip(node), 0, &[]);
        config.store.flush_interval = 3600 * SECOND;
        config.store.flush_thorough_interval = 3600 * SECOND;
        let master = TestBroker::start(node, cluster(), config).await;
        let raw = Raw::to(&master.address());
        three_sent(&raw).await;
        raw.commit(0, 3).await;
        sleep(6 * SECOND).await;
        world::power_loss(node);
        world::power_on(node);
        let _master = master.again().await;
        // The old connection is half open: only the peer's answer to a packet would tell.
        let raw = Raw::to(&master.address());
        let end = raw
            .call(
                RequestCode::GetMaxOffset,
                &GetMaxOffsetRequest { topic: TOPIC.to_owned(), queue_id: 0, committed: true },
            )
            .await;
        let end = end.header::<OffsetResponse>().unwrap().offset.get();
        assert!(end < 3, "nothing was lost");
        assert_eq!(raw.committed(0).await, Some(end));
    });
}
