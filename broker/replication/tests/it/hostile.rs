//! Peers that break the protocol.
use crate::support::{HA_PORT, Machine, SECOND, check_equal, pair, store_config, wait_end};
use proptest::prelude::{ProptestConfig, any, proptest};
use protocol::PhysicalOffset;
use replication::{HaSlaveConfig, MasterAddr, SlaveFault};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{Duration, sleep, timeout};
use rt::world::{add_node, ip, run_test, spawn_on};
use std::net::SocketAddr;
use store::FlushMode;

/// A master that sends these frames (offset, size field, body) to whoever connects, and keeps the connection.
fn raw_master(frames: Vec<(i64, i32, Vec<u8>)>) -> MasterAddr {
    let node = add_node(&format!("raw master {}", rt::world::nodes().len()));
    let ha = SocketAddr::new(ip(node), HA_PORT);
    spawn_on(node, async move {
        let listener = TcpListener::bind(ha).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        for (at, size, body) in frames {
            stream.write_all(&at.to_be_bytes()).await.unwrap();
            stream.write_all(&size.to_be_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    MasterAddr { ha, remoting: None }
}

/// Runs a slave under a raw master; returns where its log ends and why the connection ended.
async fn under(frames: Vec<(i64, i32, Vec<u8>)>) -> (PhysicalOffset, std::sync::Arc<SlaveFault>) {
    let master = raw_master(frames);
    let slave = Machine::new(&format!("slave {}", rt::world::nodes().len()));
    slave.boot_slave_of(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), Some(master)).await;
    sleep(3 * SECOND).await;
    (slave.store().log_end(), slave.slave().last_fault.expect("the connection was closed"))
}

/// The head of a record of 100 bytes.
fn head() -> Vec<u8> {
    [100_i32.to_be_bytes().as_slice(), &0xDAA3_20A7_u32.to_be_bytes(), &[0, 0]].concat()
}

#[test]
fn a_master_that_sends_what_is_no_record_is_left_and_its_bytes_are_cut() {
    run_test(|| async {
        let master = Machine::new("master");
        master.boot_master(store_config(FlushMode::Async), true).await;
        let end = master.append(5, 100).await.end;
        let log = master.log().await.to_vec();
        let damaged = raw_master(vec![(0, i32::try_from(log.len()).unwrap(), log), (end.0, 50, vec![0; 50])]);
        let slave = Machine::new("slave");
        slave.boot_slave_of(store_config(FlushMode::Sync), HaSlaveConfig::standard("b:1"), Some(damaged)).await;
        sleep(SECOND).await;
        let fault = slave.slave().last_fault.expect("the connection was closed");
        assert!(matches!(*fault, SlaveFault::SentDamage { at } if at == end), "{fault}");
        sleep(10 * SECOND).await;
        assert_eq!((slave.store().log_end(), slave.store().poisoned().is_some()), (end, false));
        check_equal(&master, &slave).await;
    });
}

#[test]
fn gap_overlap_and_malformed_frames_append_nothing_and_close_the_connection() {
    run_test(|| async {
        let first = (0, 10, head());
        let (end, fault) = under(vec![first.clone(), (11, 5, vec![2; 5])]).await;
        assert!(matches!(*fault, SlaveFault::NotContiguous { .. }) && end == PhysicalOffset(10), "{fault} {end}");
        let (end, fault) = under(vec![first.clone(), (9, 5, vec![2; 5])]).await;
        assert!(matches!(*fault, SlaveFault::NotContiguous { .. }) && end == PhysicalOffset(10), "{fault} {end}");
        let (end, fault) = under(vec![first.clone(), (10, -1, vec![])]).await;
        assert!(matches!(*fault, SlaveFault::BadSize { .. }) && end == PhysicalOffset(10), "{fault} {end}");
        let (end, fault) = under(vec![first, (10, i32::MAX, vec![])]).await;
        assert!(matches!(*fault, SlaveFault::BadSize { .. }) && end == PhysicalOffset(10), "{fault} {end}");
        let (end, fault) = under(vec![(77, 5, vec![2; 5])]).await;
        assert!(matches!(*fault, SlaveFault::Append(_)) && end == PhysicalOffset(0), "{fault} {end}");
    });
}

#[test]
fn a_silent_master_is_left_after_20_seconds() {
    run_test(|| async {
        let slave = Machine::new("slave");
        let master = raw_master(vec![]);
        slave.boot_slave_of(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), Some(master)).await;
        sleep(19 * SECOND).await;
        assert!(slave.slave().last_fault.is_none());
        sleep(2 * SECOND).await;
        assert!(matches!(slave.slave().last_fault.as_deref(), Some(SlaveFault::Silent { .. })));
    });
}

#[test]
fn a_slave_that_reports_what_it_was_not_sent_is_disconnected_and_not_counted() {
    run_test(|| async {
        let (master, liar) = (Machine::new("master"), Machine::new("liar"));
        master.boot_master(store_config(FlushMode::Async), true).await;
        let end = master.append(3, 1000).await.end;
        for reports in [vec![end.get() + 1], vec![end.get(), end.get() + 1], vec![end.get(), 5], vec![-1]] {
            let at = SocketAddr::new(ip(master.node), HA_PORT);
            liar.run(async move {
                let mut stream = TcpStream::connect(at).await.unwrap();
                for report in reports {
                    stream.write_all(&report.to_be_bytes()).await.unwrap();
                    sleep(Duration::from_millis(50)).await;
                }
                let mut rest = Vec::new();
                let _ = timeout(SECOND, stream.read_to_end(&mut rest)).await.expect("the master closes");
            })
            .await;
        }
        sleep(SECOND).await;
        let ha = master.master();
        assert!(ha.slaves().is_empty());
        assert!(master.run(async move { ha.wait_replicated(end, 1, SECOND).await }).await.is_err());
    });
}

#[test]
fn a_slave_that_does_not_read_costs_no_memory_and_is_dropped_when_silent() {
    run_test(|| async {
        let (master, stuck) = (Machine::new("master"), Machine::new("stuck"));
        master.boot_master(store_config(FlushMode::Async), true).await;
        let at = SocketAddr::new(ip(master.node), HA_PORT);
        spawn_on(stuck.node, async move {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(&0_i64.to_be_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        sleep(SECOND).await;
        master.append(600, 1000).await;
        sleep(10 * SECOND).await;
        assert!(master.master().slaves()[0].transferred_bytes < 300_000);
        sleep(11 * SECOND).await;
        assert!(master.master().slaves().is_empty());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn no_bytes_on_the_ha_port_harm_the_master_or_its_slaves(noise: Vec<u8>, reports: [i64; 3], first in any::<bool>()) {
        run_test(move || async move {
            let (master, slave) = pair(FlushMode::Async).await;
            let at = SocketAddr::new(ip(master.node), HA_PORT);
            spawn_on(add_node("noise"), async move {
                let mut stream = TcpStream::connect(at).await.unwrap();
                if first {
                    let _ = stream.write_all(&noise).await;
                }
                for report in reports {
                    let _ = stream.write_all(&report.to_be_bytes()).await;
                }
                let _ = stream.write_all(&noise).await;
                sleep(SECOND).await;
            });
            let end = master.append(5, 1000).await.end;
            wait_end(&slave, end, 5 * SECOND).await;
            check_equal(&master, &slave).await;
        });
    }
}
