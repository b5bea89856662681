use crate::support::{Machine, SECOND, SEGMENT, check_equal, master_addr, pair, store_config, wait_end};
use protocol::PhysicalOffset;
use replication::{HaSlaveConfig, ReplicationWaitError, SlaveFault, SlavePhase};
use rt::time::sleep;
use rt::world::{WorldConfig, crash, network, power_loss, run_test, run_test_with};
use std::sync::Arc;
use store::FlushMode;

#[test]
fn what_the_master_appends_is_soon_on_the_slave() {
    for flush in [FlushMode::Async, FlushMode::Sync] {
        run_test(move || async move {
            let (master, slave) = pair(flush).await;
            for _ in 0..20 {
                let end = master.append(10, 1000).await.end;
                wait_end(&slave, end, SECOND).await;
            }
            assert!(master.store().log_end().get() as u64 > 3 * SEGMENT, "segment ends were crossed");
            check_equal(&master, &slave).await;
            sleep(30 * SECOND).await;
            let slaves = master.master().slaves();
            assert_eq!(slaves.len(), 1, "heartbeats keep the connection");
            assert_eq!((slaves[0].identity.as_str(), slaves[0].in_sync, slaves[0].behind_bytes), ("b:1", true, 0));
            assert_eq!(slave.slave().phase, SlavePhase::Transfer);
            assert!(slave.store().queue_bounds("T", 0).unwrap().1.0 >= 200, "the slave dispatches what it got");
        });
    }
}

#[test]
fn nothing_unflushed_leaves_a_synchronously_flushing_master() {
    for seed in 0..10 {
        run_test_with(WorldConfig { seed, ..WorldConfig::default() }, || async {
            let (master, slave) = pair(FlushMode::Sync).await;
            for _ in 0..100 {
                master.append(1, 3000).await;
                assert!(slave.store().log_end() <= master.store().flushed_end());
                sleep(std::time::Duration::from_micros(700)).await;
                assert!(slave.store().log_end() <= master.store().flushed_end());
            }
        });
    }
}

#[test]
fn a_partition_delays_the_copy_and_a_waiting_put_says_so() {
    run_test(|| async {
        let (master, slave) = pair(FlushMode::Async).await;
        let end = master.append(5, 500).await.end;
        wait_end(&slave, end, SECOND).await;
        network::isolate(slave.node);
        let end = master.append(5, 500).await.end;
        let ha = master.master();
        let error = master.run(async move { ha.wait_replicated(end, 1, 3 * SECOND).await.unwrap_err() }).await;
        assert_eq!(error, ReplicationWaitError::Timeout { end, copies: 1, holding: 0, after: 3 * SECOND });
        sleep(40 * SECOND).await;
        assert!(master.master().slaves().is_empty(), "a silent slave is dropped after 20 s");
        assert!(matches!(slave.slave().phase, SlavePhase::Ready | SlavePhase::Comparing));
        network::rejoin(slave.node);
        let ha = master.master();
        master.run(async move { ha.wait_replicated(end, 1, 30 * SECOND).await.unwrap() }).await;
        check_equal(&master, &slave).await;
    });
}

#[test]
fn a_slave_that_crashes_or_loses_power_catches_up() {
    for seed in 0..6 {
        run_test_with(WorldConfig { seed, ..WorldConfig::default() }, move || async move {
            let (master, slave) = pair(FlushMode::Async).await;
            for round in 0..4 {
                let end = master.append(40, 1000).await.end;
                if round == 3 {
                    wait_end(&slave, end, SECOND).await;
                }
                if (seed + round) % 2 == 0 {
                    crash(slave.node)
                } else {
                    power_loss(slave.node)
                }
                slave.forget();
                let end = master.append(40, 1000).await.end;
                slave.boot_slave(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), &master).await;
                wait_end(&slave, end, 30 * SECOND).await;
                check_equal(&master, &slave).await;
                assert_eq!(slave.slave().truncated_bytes, 0, "the slave's log was always a prefix");
            }
        });
    }
}

#[test]
fn a_slave_finds_its_master_again_after_the_masters_crash() {
    run_test(|| async {
        let (master, slave) = pair(FlushMode::Async).await;
        let end = master.append(40, 1000).await.end;
        wait_end(&slave, end, SECOND).await;
        crash(master.node);
        master.forget();
        sleep(12 * SECOND).await;
        assert_eq!(slave.slave().phase, SlavePhase::Ready);
        assert!(matches!(slave.slave().last_fault.as_deref(), Some(SlaveFault::Connect { .. })));
        master.boot_master(store_config(FlushMode::Async), true).await;
        let end = master.append(5, 1000).await.end;
        wait_end(&slave, end, 10 * SECOND).await;
        check_equal(&master, &slave).await;
        assert_eq!(slave.slave().truncated_bytes, 0);
    });
}

#[test]
fn an_empty_slave_joins_at_the_masters_last_segment() {
    run_test(|| async {
        let (master, slave) = (Machine::new("master"), Machine::new("slave"));
        master.boot_master(store_config(FlushMode::Async), true).await;
        let end = master.append(150, 1000).await.end;
        slave.boot_slave(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), &master).await;
        wait_end(&slave, end, 10 * SECOND).await;
        let start = end - end.get() % SEGMENT as i64;
        assert!(start > PhysicalOffset::ZERO);
        assert_eq!(slave.store().log_min(), start);
        assert_eq!(slave.log().await, master.log().await.slice(start.get() as usize..));
        // It goes on after a restart, with a log that does not begin at 0.
        crash(slave.node);
        let end = master.append(150, 1000).await.end;
        slave.boot_slave(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), &master).await;
        wait_end(&slave, end, 10 * SECOND).await;
        assert_eq!(slave.log().await, master.log().await.slice(start.get() as usize..));
    });
}

#[test]
fn another_master_is_followed_at_once_and_none_means_none() {
    run_test(|| async {
        let (master, slave) = pair(FlushMode::Async).await;
        sleep(SECOND).await;
        let handle = slave.parts().slave.unwrap();
        handle.set_master(None);
        sleep(SECOND).await;
        assert_eq!(slave.slave().phase, SlavePhase::NoMaster);
        assert!(master.master().slaves().is_empty());
        let other = Machine::new("other");
        other.boot_master(store_config(FlushMode::Async), true).await;
        let end = other.append(3, 100).await.end;
        handle.set_master(Some(master_addr(&other)));
        wait_end(&slave, end, SECOND).await;
        check_equal(&other, &slave).await;
    });
}

#[test]
fn shutdown_ends_waiting_puts_and_the_slaves_connection() {
    run_test(|| async {
        let (master, slave) = pair(FlushMode::Async).await;
        network::isolate(slave.node);
        let end = master.append(1, 100).await.end;
        let ha = master.master();
        let waiting = Arc::clone(&ha);
        let waiting =
            rt::world::spawn_on(master.node, async move { waiting.wait_replicated(end, 1, 600 * SECOND).await });
        sleep(SECOND).await;
        master.run(async move { ha.shutdown().await }).await;
        assert_eq!(waiting.await.unwrap(), Err(ReplicationWaitError::Stopped));
        let handle = slave.parts().slave.unwrap();
        slave.run(async move { handle.shutdown().await }).await;
        assert_eq!(slave.slave().phase, SlavePhase::Shutdown);
    });
}
