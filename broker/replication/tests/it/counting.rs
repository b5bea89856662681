//! What counts as a copy.
use crate::support::{HA_PORT, Machine, SECOND, pair, reaching, store_config, wait_end};
use protocol::PhysicalOffset;
use replication::{HaSlaveConfig, ReplicationWaitError};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use rt::time::{sleep, timeout};
use rt::world::{NodeId, WorldConfig, ip, power_loss, run_test, run_test_with, spawn_on};
use std::net::SocketAddr;
use store::FlushMode;

/// An Apache slave reduced to its stream: takes every frame and reports its end, on two connections at once.
fn raw_slave(node: NodeId, master: NodeId) {
    spawn_on(node, async move {
        let mut stream = TcpStream::connect(SocketAddr::new(ip(master), HA_PORT)).await.unwrap();
        stream.write_all(&0_i64.to_be_bytes()).await.unwrap();
        let mut header = [0; 12];
        while stream.read_exact(&mut header).await.is_ok() {
            let at = i64::from_be_bytes(header[..8].try_into().unwrap());
            let size = i32::from_be_bytes(header[8..].try_into().unwrap());
            let mut body = vec![0; size as usize];
            stream.read_exact(&mut body).await.unwrap();
            stream.write_all(&(at + i64::from(size)).to_be_bytes()).await.unwrap();
        }
    });
}

async fn replicated(master: &Machine, end: PhysicalOffset, copies: usize) -> Result<(), ReplicationWaitError> {
    let ha = master.master();
    master.run(async move { ha.wait_replicated(end, copies, 3 * SECOND).await }).await
}

#[test]
fn two_connections_of_one_slave_are_one_copy() {
    run_test(|| async {
        let (master, slave, other) = (Machine::new("master"), Machine::new("slave"), Machine::new("other"));
        master.boot_master(store_config(FlushMode::Async), true).await;
        raw_slave(slave.node, master.node);
        raw_slave(slave.node, master.node);
        let end = master.append(3, 1000).await.end;
        replicated(&master, end, 1).await.unwrap();
        let error = replicated(&master, end, 2).await.unwrap_err();
        assert!(matches!(error, ReplicationWaitError::Timeout { copies: 2, holding: 1, .. }), "{error}");
        assert_eq!((master.master().slaves().len(), master.master().in_sync_slaves()), (2, 1));
        raw_slave(other.node, master.node);
        let end = master.append(1, 1000).await.end;
        replicated(&master, end, 2).await.unwrap();
        assert_eq!(master.master().in_sync_slaves(), 2);
        master.master().check_invariants();
    });
}

#[test]
fn a_slave_that_lost_power_and_returned_counts_once_and_its_dead_connection_is_closed() {
    reaching("replication.slave_connected_twice", 0..1, |_| async {
        let (master, slave) = pair(FlushMode::Async).await;
        let end = master.append(3, 1000).await.end;
        replicated(&master, end, 1).await.unwrap();
        power_loss(slave.node);
        slave.boot_slave(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), &master).await;
        let end = master.append(3, 1000).await.end;
        wait_end(&slave, end, 10 * SECOND).await;
        assert!(replicated(&master, end, 2).await.is_err());
        assert_eq!(master.master().slaves().len(), 1, "the name tells that the older connection is dead");
    });
}

#[test]
fn two_named_slaves_on_one_machine_are_two_copies() {
    run_test(|| async {
        let (master, slave) = pair(FlushMode::Async).await;
        let addr = crate::support::master_addr(&master);
        slave
            .run(async move {
                let root = rt::sync::CancellationToken::new();
                let mut config = store_config(FlushMode::Async);
                config.root = "/second".into();
                let store = crate::support::open_store(config, &root).await;
                let client = remoting::Client::new(remoting::ClientConfig::standard(), None, &root);
                let second = replication::HaSlave::start(HaSlaveConfig::standard("b:2"), store, client, &root);
                second.set_master(Some(addr));
                // Lives on until the test ends.
                std::mem::forget((root, second));
            })
            .await;
        sleep(SECOND).await;
        let end = master.append(3, 1000).await.end;
        replicated(&master, end, 2).await.unwrap();
    });
}

#[test]
fn an_acknowledged_put_is_on_the_slave_at_that_moment() {
    for seed in 0..10 {
        run_test_with(WorldConfig { seed, ..WorldConfig::default() }, || async {
            let (master, slave) = pair(FlushMode::Async).await;
            for i in 0..30 {
                let (ha, store, copy) = (master.master(), master.store(), slave.store());
                master
                    .run(async move {
                        let end = store.append(crate::support::message(i, 10 * i)).unwrap().end;
                        ha.wait_replicated(end, 1, 10 * SECOND).await.unwrap();
                        assert!(copy.log_end() >= end);
                    })
                    .await;
            }
        });
    }
}

#[test]
fn a_caller_that_goes_away_leaves_no_wait_behind() {
    run_test(|| async {
        let master = Machine::new("master");
        master.boot_master(store_config(FlushMode::Async), true).await;
        let end = master.append(1, 10).await.end;
        let ha = master.master();
        master
            .run(async move {
                for _ in 0..10 {
                    assert!(timeout(SECOND, ha.wait_replicated(end, 1, 100 * SECOND)).await.is_err());
                }
                ha.check_invariants();
            })
            .await;
    });
}
