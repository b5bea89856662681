//! A master that lost the end of its log, and slaves that still have it.
use crate::support::{Raw, SECOND, TestBroker, cluster, config, eventually, name_server, pull_header, reaching, run};
use protocol::header::{PullMessageRequest, ReadLogRequest, ReadLogResponse};
use protocol::{PhysicalOffset, RequestCode, ResponseCode};
use rt::sync::CancellationToken;
use rt::time::{Instant, sleep};
use rt::world::{self, CrashKind, CrashPoint, WorldConfig, network};
use server::{BrokerRole, BrokerServer, ServerConfig};
use std::collections::BTreeSet;

/// A master that never syncs by itself, and its slaves.
struct Pack {
    master: TestBroker,
    slaves: Vec<TestBroker>,
    names: String,
}

impl Pack {
    async fn start(role: BrokerRole, slaves: usize) -> Pack {
        let (_, names) = name_server("names").await;
        let mut cluster = cluster();
        cluster.in_sync_replicas = 2;
        let never = |mut config: ServerConfig| {
            config.store.flush_interval = 3600 * SECOND;
            config.store.flush_thorough_interval = 3600 * SECOND;
            config
        };
        let node = world::add_node("master");
        let mut settings = never(config(world::ip(node), 0, std::slice::from_ref(&names)));
        settings.role = role;
        let master = TestBroker::start(node, cluster.clone(), settings).await;
        let mut pack = Pack { master, slaves: Vec::new(), names };
        for id in 1..=slaves {
            let node = world::add_node(&format!("slave-{id}"));
            let settings = never(config(world::ip(node), id as i64, std::slice::from_ref(&pack.names)));
            pack.slaves.push(TestBroker::start(node, cluster.clone(), settings).await);
        }
        pack
    }

    fn slave(&self, index: usize) -> Raw {
        Raw::to(&self.slaves[index].address())
    }

    /// A connection of its own: after a power loss an older one is half open.
    fn to_master(&self) -> Raw {
        Raw::to(&self.master.address())
    }

    /// Sends messages that are acknowledged; each is told apart by its number.
    async fn acknowledged(&self, numbers: std::ops::Range<usize>, bytes: usize) {
        let raw = self.to_master();
        for number in numbers {
            let body = body(number, bytes);
            eventually("acknowledged", async || {
                let code = raw.send(0, &body, &[]).await.response_code();
                code == Some(ResponseCode::Success)
            })
            .await;
        }
    }

    async fn power_cycle(&mut self) {
        world::power_loss(self.master.node);
        world::power_on(self.master.node);
        self.master = self.master.again().await;
    }

    /// Waits until a send is acknowledged again, then both logs must be the same and hold what was acknowledged.
    async fn demand(&self, acknowledged: std::ops::Range<usize>, bytes: usize) {
        self.acknowledged(acknowledged.end..acknowledged.end + 1, bytes).await;
        let have: BTreeSet<String> = all_bodies(&self.to_master()).await.into_iter().collect();
        for number in acknowledged {
            assert!(have.contains(&body(number, bytes)), "message {number} is lost");
        }
        let log = read_log(&self.to_master()).await;
        for index in 0..self.slaves.len() {
            let slave = self.slave(index);
            eventually("logs are the same", async || read_log(&slave).await == log).await;
        }
    }
}

fn body(number: usize, bytes: usize) -> String {
    format!("{number}.{}", "x".repeat(bytes))
}

async fn all_bodies(raw: &Raw) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let header = PullMessageRequest { max_msg_nums: 8, ..pull_header(bodies.len() as i64) };
        let found = raw.pull(header).await.bodies();
        if found.is_empty() {
            return bodies;
        }
        bodies.extend(found);
    }
}

async fn read_log(raw: &Raw) -> Vec<u8> {
    let mut log = Vec::new();
    loop {
        let from = PhysicalOffset(log.len() as i64);
        let reply = raw.call(RequestCode::ReadLog, &ReadLogRequest { from, bytes_max: i32::MAX }).await;
        assert!(reply.header::<ReadLogResponse>().expect("a whole header").log_end >= from, "{:?}", reply.remark);
        if reply.body.is_empty() {
            return log;
        }
        log.extend_from_slice(&reply.body);
    }
}

/// Under several worlds, of which at least one must reach the probe.
fn reaching_once<F: Future<Output = ()> + 'static>(probe: &str, body: impl Fn(u64) -> F + Copy + 'static) {
    reaching_each(&[probe], body);
}

/// Under several worlds; each of the probes must be reached in at least one.
fn reaching_each<F: Future<Output = ()> + 'static>(probes: &[&str], body: impl Fn(u64) -> F + Copy + 'static) {
    let mut missing = probes.to_vec();
    for seed in 0..8 {
        let outcome = world::run(WorldConfig { seed, ..WorldConfig::default() }, move || body(seed));
        assert!(outcome.finding.is_none(), "seed {seed}: {:?}", outcome.finding);
        missing.retain(|probe| !outcome.probes.hits.contains_key(*probe));
    }
    assert!(missing.is_empty(), "{missing:?} were not reached");
}

#[test]
fn what_only_the_slave_has_returns_with_its_master() {
    reaching_once("replication.regained", |_| async {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 1).await;
        pack.acknowledged(0..40, 100).await;
        let before = read_log(&pack.slave(0)).await;
        pack.power_cycle().await;
        let after = read_log(&pack.to_master()).await;
        assert!(after.starts_with(&before) || before.starts_with(&after), "the logs have parted");
        pack.demand(0..40, 100).await;
    });
}

#[test]
fn a_master_whose_slave_is_away_serves_reads_only_until_it_is_back_even_if_stopped_meanwhile() {
    reaching_each(&["server.regain.reads_only", "test.shorter"], |_| async {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 1).await;
        pack.acknowledged(0..40, 100).await;
        assert_eq!(pack.to_master().commit(0, 40).await, Some(ResponseCode::SubscriptionGroupNotExist));
        pack.to_master().pull(pull_header(0)).await;
        assert_eq!(pack.to_master().commit(0, 40).await, Some(ResponseCode::Success));
        sleep(6 * SECOND).await;
        world::crash(pack.slaves[0].node);
        let begun = Instant::now();
        pack.power_cycle().await;
        assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
        for _ in 0..2 {
            let master = pack.to_master();
            assert_eq!(master.send(0, "x", &[]).await.response_code(), Some(ResponseCode::ServiceNotAvailable));
            let have = all_bodies(&master).await.len() as i64;
            if have == 40 {
                // The power loss took nothing: another seed's does.
                return;
            }
            rt::probe!("test.shorter");
            // Neither a reader that is further, nor what it committed, is set back to an end that may not last.
            let beyond = master.pull(pull_header(40)).await;
            assert_eq!(
                (beyond.code, beyond.header.unwrap().next_begin_offset.get()),
                (ResponseCode::PullRetryImmediately, 40)
            );
            assert_eq!(master.committed(0).await, Some(40));
            sleep(60 * SECOND).await;
            let (node, cluster, config) = pack.master.stop().await;
            pack.master = TestBroker::start(node, cluster, config).await;
        }
        pack.slaves[0] = pack.slaves[0].again().await;
        pack.demand(0..40, 100).await;
        assert_eq!(pack.to_master().committed(0).await, Some(40));
    });
}

#[test]
fn a_master_waits_for_a_slave_that_no_name_server_lists_yet() {
    reaching("server.regain.waits", || async {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 1).await;
        pack.acknowledged(0..40, 100).await;
        let (_, other) = name_server("names that know nobody").await;
        world::crash(pack.slaves[0].node);
        pack.master.config.name_servers = vec![other.clone()];
        pack.power_cycle().await;
        assert_eq!(pack.to_master().send(0, "x", &[]).await.response_code(), Some(ResponseCode::ServiceNotAvailable));
        pack.slaves[0].config.name_servers = vec![other];
        pack.slaves[0] = pack.slaves[0].again().await;
        pack.demand(0..40, 100).await;
    });
}

#[test]
fn a_slave_with_another_tail_gives_nothing_and_follows() {
    reaching_once("replication.longer_slave_diverged", |_| async {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 1).await;
        pack.acknowledged(0..60, 100).await;
        network::isolate(pack.slaves[0].node);
        // By Apache's rule the master goes on without asking.
        pack.master.cluster.recover_from_slave = false;
        pack.power_cycle().await;
        let master = pack.to_master();
        for text in ["other history 1", "other history 2"] {
            assert_eq!(master.send(0, text, &[("WAIT", "false")]).await.response_code(), Some(ResponseCode::Success));
        }
        let kept = read_log(&master).await;
        world::crash(pack.master.node);
        pack.master.cluster.recover_from_slave = true;
        network::rejoin(pack.slaves[0].node);
        pack.master = pack.master.again().await;
        assert_eq!(read_log(&master).await, kept);
        pack.demand(100..100, 100).await;
    });
}

#[test]
fn of_several_slaves_the_longest_is_taken_and_the_one_that_may_be_it_is_waited_for() {
    reaching_once("replication.regained", |seed| async move {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 2).await;
        pack.acknowledged(0..10, 100).await;
        sleep(SECOND).await;
        network::isolate(pack.slaves[1].node);
        pack.acknowledged(10..40, 100).await;
        let long_one_away = seed % 2 == 0;
        if long_one_away {
            world::crash(pack.slaves[0].node);
        }
        network::rejoin(pack.slaves[1].node);
        pack.power_cycle().await;
        if long_one_away {
            sleep(60 * SECOND).await;
            let code = pack.to_master().send(0, "x", &[]).await.response_code();
            assert_eq!(code, Some(ResponseCode::ServiceNotAvailable));
            pack.slaves[0] = pack.slaves[0].again().await;
        }
        pack.demand(0..40, 100).await;
    });
}

#[test]
fn a_crash_in_the_middle_of_the_fetch_costs_nothing() {
    reaching_once("replication.regained", |seed| async move {
        let mut pack = Pack::start(BrokerRole::SyncMaster, 1).await;
        pack.acknowledged(0..120, 30_000).await;
        world::power_loss(pack.master.node);
        world::power_on(pack.master.node);
        let kind = if seed % 2 == 0 { CrashKind::Process } else { CrashKind::Power };
        for nth in 0..9 {
            // Somewhere in recovery, fetch or settling.
            world::crash_at(pack.master.node, CrashPoint::DiskOperation(50 + 5 * nth + seed), kind);
            let (cluster, config) = (pack.master.cluster.clone(), pack.master.config.clone());
            world::spawn_on(pack.master.node, async move {
                let token = CancellationToken::new();
                BrokerServer::start(cluster, config, &token).await?.run().await
            });
            sleep(10 * SECOND).await;
            world::forget_crash_points(pack.master.node);
            world::crash(pack.master.node);
            world::power_on(pack.master.node);
        }
        pack.master = pack.master.again().await;
        pack.demand(0..120, 30_000).await;
    });
}

#[test]
fn an_asynchronous_master_starts_without_its_slave_and_takes_what_a_live_one_has() {
    run(|| async {
        let mut pack = Pack::start(BrokerRole::AsyncMaster, 1).await;
        pack.acknowledged(0..40, 100).await;
        sleep(SECOND).await;
        pack.power_cycle().await;
        assert_eq!(all_bodies(&pack.to_master()).await.len(), 40);
        world::power_loss(pack.slaves[0].node);
        let begun = Instant::now();
        pack.power_cycle().await;
        assert!(begun.elapsed() < 7 * SECOND, "{:?}", begun.elapsed());
        pack.to_master().sent(0, "at once").await;
    });
}

#[test]
fn a_clean_or_first_start_waits_for_nobody() {
    run(|| async {
        let pack = Pack::start(BrokerRole::SyncMaster, 0).await;
        let code = pack.to_master().send(0, "x", &[]).await.response_code();
        assert_eq!(code, Some(ResponseCode::FlushSlaveTimeout));
        let (node, cluster, config) = pack.master.stop().await;
        let master = TestBroker::start(node, cluster, config).await;
        let code = Raw::to(&master.address()).send(0, "y", &[]).await.response_code();
        assert_eq!(code, Some(ResponseCode::FlushSlaveTimeout));
    });
}
