use crate::support::{
    Raw, SECOND, TestBroker, cluster, config, eventually, name_server, pull_header, reaching, run, waiting,
};
use protocol::header::{Empty, PullMessageRequest};
use protocol::{QueueOffset, RequestCode, ResponseCode};
use rt::time::{Instant, sleep};
use rt::world::{self, disk};

async fn pair() -> (TestBroker, TestBroker, Raw, Raw) {
    let (_, address) = name_server("names").await;
    let (m, s) = (world::add_node("master"), world::add_node("slave"));
    let master = TestBroker::start(m, cluster(), config(world::ip(m), 0, std::slice::from_ref(&address))).await;
    let slave = TestBroker::start(s, cluster(), config(world::ip(s), 1, &[address])).await;
    let (at_master, at_slave) = (Raw::to(&master.address()), Raw::to(&slave.address()));
    for body in ["a", "b", "c"] {
        at_master.sent(0, body).await;
    }
    sleep(SECOND).await;
    at_master.pull(pull_header(0)).await;
    at_master.commit(0, 1).await;
    eventually("the slave has copied tables and log", async || {
        at_slave.committed(0).await == Some(1) && at_slave.pull(pull_header(0)).await.bodies() == ["a", "b", "c"]
    })
    .await;
    (master, slave, at_master, at_slave)
}

#[test]
fn a_slave_stores_nothing_of_its_own_and_takes_no_commit_from_pulls() {
    run(|| async {
        let (_master, _slave, _, at_slave) = pair().await;
        assert_eq!(at_slave.send(0, "x", &[]).await.response_code(), Some(ResponseCode::SystemBusy));
        at_slave.pull(PullMessageRequest { sys_flag: 4 | 1, commit_offset: QueueOffset(3), ..pull_header(0) }).await;
        assert_eq!(at_slave.committed(0).await, Some(1));
    });
}

#[test]
fn a_slave_filters_by_properties_as_its_master_does() {
    run(|| async {
        let (_master, _slave, at_master, at_slave) = pair().await;
        at_master.send(0, "d", &[("a", "x")]).await;
        let wanted = || PullMessageRequest {
            subscription: Some("a = 'x'".to_owned()),
            expression_type: Some("SQL92".to_owned()),
            ..pull_header(0)
        };
        eventually("the slave has the message", async || at_slave.pull(wanted()).await.bodies() == ["d"]).await;
        assert_eq!(at_master.pull(wanted()).await.bodies(), ["d"]);
    });
}

#[test]
fn a_slave_sends_readers_back_and_never_corrects_their_offset() {
    reaching("server.pull.slave_keeps_offset", || async {
        let (_master, _slave, _, at_slave) = pair().await;
        let check = async |offset: i64| {
            let pulled = at_slave.pull(waiting(offset, 15)).await;
            let header = pulled.header.unwrap();
            assert_eq!(
                (pulled.code, header.suggest_which_broker_id, header.next_begin_offset.get()),
                (ResponseCode::PullRetryImmediately, 0, offset)
            );
        };
        check(3).await;
        check(50).await;
    });
}

#[test]
fn while_the_master_is_away_readers_wait_at_the_slave() {
    run(|| async {
        let (master, _slave, _, at_slave) = pair().await;
        world::crash(master.node);
        sleep(2 * SECOND).await;
        let start = Instant::now();
        let pulled = at_slave.pull(waiting(3, 10)).await;
        assert_eq!(pulled.code, ResponseCode::PullRetryImmediately);
        assert!(start.elapsed() >= 10 * SECOND, "{:?}", start.elapsed());
        assert_eq!(at_slave.pull(pull_header(0)).await.bodies(), ["a", "b", "c"]);
    });
}

#[test]
fn a_returning_master_has_the_progress_made_at_its_slave() {
    reaching("server.regain.merged", || async {
        let (master, _slave, at_master, at_slave) = pair().await;
        sleep(6 * SECOND).await;
        world::crash(master.node);
        assert_eq!(at_slave.commit(0, 3).await, Some(ResponseCode::Success));
        let _master = master.again().await;
        assert_eq!(at_master.committed(0).await, Some(3));
        sleep(30 * SECOND).await;
        assert_eq!(at_slave.committed(0).await, Some(3));
    });
}

#[test]
fn a_reset_at_the_master_is_not_undone_by_its_slaves_older_progress() {
    run(|| async {
        let (master, _slave, at_master, at_slave) = pair().await;
        at_master.commit(0, 3).await;
        eventually("copied", async || at_slave.committed(0).await == Some(3)).await;
        at_master.commit(0, 1).await;
        sleep(6 * SECOND).await;
        world::crash(master.node);
        let _master = master.again().await;
        assert_eq!(at_master.committed(0).await, Some(1));
        eventually("copied", async || at_slave.committed(0).await == Some(1)).await;
    });
}

#[test]
fn an_acknowledged_message_of_a_sync_pair_is_on_the_slave() {
    run(|| async {
        let (_, address) = name_server("names").await;
        let (m, s) = (world::add_node("master"), world::add_node("slave"));
        let mut cluster = cluster();
        cluster.in_sync_replicas = 2;
        let mut settings = config(world::ip(m), 0, std::slice::from_ref(&address));
        settings.role = server::BrokerRole::SyncMaster;
        let master = TestBroker::start(m, cluster.clone(), settings).await;
        let _slave = TestBroker::start(s, cluster, config(world::ip(s), 1, &[address])).await;
        let (at_master, at_slave) = (Raw::to(&master.address()), Raw::to(&format!("{}:10911", world::ip(s))));
        eventually("a send is acknowledged", async || {
            at_master.send(0, "x", &[]).await.response_code() == Some(ResponseCode::Success)
        })
        .await;
        world::crash(master.node);
        eventually("readable at the slave", async || !at_slave.pull(pull_header(0)).await.bodies().is_empty()).await;
    });
}

async fn delays(raw: &Raw) -> String {
    String::from_utf8(raw.call(RequestCode::GetAllDelayOffset, &Empty {}).await.body.to_vec()).expect("JSON is UTF-8")
}

#[test]
fn a_slave_that_lags_behind_does_not_take_delayed_messages_for_delivered_that_it_lacks() {
    reaching("server.slave.waits_for_the_log", || async {
        let (_master, slave, at_master, at_slave) = pair().await;
        at_master.send(0, "first", &[("DELAY", "1")]).await;
        eventually("the slave has the master's table", async || {
            let table = delays(&at_master).await;
            table.contains("1:1") && delays(&at_slave).await == table
        })
        .await;
        let before = delays(&at_slave).await;
        // The slave's disk is full: replication stops, requests go on.
        at_master.send(0, "second", &[("DELAY", "3")]).await;
        sleep(SECOND).await;
        disk::set_capacity(slave.node, 4096);
        at_master.sent(1, &"x".repeat(60_000)).await;
        sleep(40 * SECOND).await;
        assert!(delays(&at_master).await.contains("3:1"));
        assert_eq!(delays(&at_slave).await, before);
        disk::heal(slave.node);
        eventually("the slave has log and table", async || delays(&at_slave).await == delays(&at_master).await).await;
    });
}
