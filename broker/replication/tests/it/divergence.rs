//! A master that lost a suffix of its log, and a slave that has it.
use crate::support::{Machine, SECOND, check_equal, pair, reaching, store_config, wait_end, wait_same_end};
use replication::{DivergencePolicy, HaSlaveConfig, SlaveFault};
use rt::time::sleep;
use rt::world::{WorldConfig, network, power_loss, run_test, run_test_with};
use store::FlushMode;

/// A pair of which the master has just lost power with unsynced records that the slave holds. Returns the bytes of the slave's log.
async fn longer_slave(slave_config: HaSlaveConfig, again: usize) -> (Machine, Machine, bytes::Bytes) {
    let (master, slave) = (Machine::new("master"), Machine::new("slave"));
    master.boot_master(store_config(FlushMode::Async), true).await;
    slave.boot_slave(store_config(FlushMode::Async), slave_config, &master).await;
    master.append(20, 1000).await;
    // Everything so far is synced.
    sleep(15 * SECOND).await;
    let end = master.append(100, 1000).await.end;
    wait_end(&slave, end, SECOND).await;
    power_loss(master.node);
    let held = slave.log().await;
    network::isolate(slave.node);
    master.boot_master(store_config(FlushMode::Async), true).await;
    if again > 0 {
        master.append(again, 900).await;
    }
    network::rejoin(slave.node);
    (master, slave, held)
}

#[test]
fn a_slave_with_a_lost_suffix_goes_back_to_the_common_prefix_before_anything_is_appended() {
    let cut = reaching("replication.slave_truncated", 0..24, |seed| async move {
        // The new log is shorter than, about as long as, or longer than the slave's.
        let again = [0, 3, 105, 300][seed as usize % 4];
        let (master, slave, held) = longer_slave(HaSlaveConfig::standard("b:1"), again).await;
        master.append(2, 100).await;
        let now = master.log().await;
        let common = held.iter().zip(now.iter()).take_while(|(a, b)| a == b).count();
        wait_same_end(&master, &slave).await;
        check_equal(&master, &slave).await;
        let bounds = slave.store().queue_bounds("T", 0);
        assert_eq!(bounds, master.store().queue_bounds("T", 0), "the slave's queues were cut as well");
        let truncated = slave.slave().truncated_bytes;
        assert_eq!(truncated, (held.len() - common) as u64, "exactly what was not common was cut");
        truncated
    });
    let times = cut.into_iter().filter(|bytes| *bytes > 0).count();
    assert!(times >= 12, "the master lost something in {times} of 24 runs only");
}

#[test]
fn a_refusing_slave_keeps_its_log_and_says_why() {
    let refused = reaching("replication.divergence_refused", 0..8, |_| async {
        let mut config = HaSlaveConfig::standard("b:1");
        config.divergence = DivergencePolicy::Refuse;
        let (master, slave, held) = longer_slave(config, 3).await;
        sleep(60 * SECOND).await;
        if master.log().await.starts_with(&held) {
            return 0;
        }
        assert_eq!(slave.log().await, held);
        let fault = slave.slave().last_fault;
        assert!(matches!(fault.as_deref(), Some(SlaveFault::Diverged { .. })), "{fault:?}");
        1
    });
    assert!(refused.iter().sum::<i32>() >= 4, "{refused:?}");
}

#[test]
fn a_master_with_an_empty_disk_does_not_empty_a_large_slave_but_a_small_one() {
    for (messages, emptied) in [(200, false), (5, true)] {
        run_test(move || async move {
            let (master, slave) = (Machine::new("master"), Machine::new("slave"));
            master.boot_master(store_config(FlushMode::Async), true).await;
            let mut config = HaSlaveConfig::standard("b:1");
            config.divergence = DivergencePolicy::Truncate { bytes_max: 1 << 30, everything_bytes_max: 20_000 };
            slave.boot_slave(store_config(FlushMode::Async), config, &master).await;
            let end = master.append(messages, 1000).await.end;
            wait_end(&slave, end, 5 * SECOND).await;
            let other = Machine::new("replaced");
            other.boot_master(store_config(FlushMode::Async), true).await;
            slave.parts().slave.unwrap().set_master(Some(crate::support::master_addr(&other)));
            sleep(10 * SECOND).await;
            if emptied {
                let end = other.append(3, 100).await.end;
                wait_end(&slave, end, 10 * SECOND).await;
                check_equal(&other, &slave).await;
            } else {
                assert_eq!(slave.store().log_end(), end);
                assert!(matches!(slave.slave().last_fault.as_deref(), Some(SlaveFault::Diverged { .. })));
            }
        });
    }
}

#[test]
fn a_master_that_cannot_compare_is_followed_as_apache_does() {
    reaching("replication.master_cannot_compare", 0..1, |_| async {
        let (master, slave) = (Machine::new("apache"), Machine::new("slave"));
        master.boot_master(store_config(FlushMode::Async), false).await;
        slave.boot_slave(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), &master).await;
        let end = master.append(20, 1000).await.end;
        wait_end(&slave, end, 10 * SECOND).await;
        check_equal(&master, &slave).await;
        assert_eq!(
            master.master().slaves()[0].identity,
            rt::world::ip(slave.node).to_string(),
            "nobody announced a name"
        );
    });
}

#[test]
fn a_longer_slave_that_does_not_compare_is_refused_by_the_master_and_never_counted() {
    let refused = reaching("replication.longer_slave_refused", 0..8, |_| async {
        let (master, slave) = (Machine::new("master"), Machine::new("slave"));
        master.boot_master(store_config(FlushMode::Async), true).await;
        // As an Apache slave: it knows no remoting address to ask.
        let addr = replication::MasterAddr { remoting: None, ..crate::support::master_addr(&master) };
        slave.boot_slave_of(store_config(FlushMode::Async), HaSlaveConfig::standard("b:1"), Some(addr)).await;
        master.append(20, 1000).await;
        sleep(15 * SECOND).await;
        let end = master.append(100, 1000).await.end;
        wait_end(&slave, end, SECOND).await;
        power_loss(master.node);
        let held = slave.store().log_end();
        network::isolate(slave.node);
        master.boot_master(store_config(FlushMode::Async), true).await;
        network::rejoin(slave.node);
        sleep(30 * SECOND).await;
        if master.store().log_end() == held {
            return 0;
        }
        let ha = master.master();
        let end = master.append(1, 100).await.end;
        assert!(end < held);
        assert!(master.run(async move { ha.wait_replicated(end, 1, 20 * SECOND).await }).await.is_err());
        1
    });
    assert!(refused.iter().sum::<i32>() >= 4, "{refused:?}");
}

#[test]
fn with_synchronous_flush_no_slave_is_ever_longer() {
    for seed in 0..12 {
        run_test_with(WorldConfig { seed, ..WorldConfig::default() }, || async {
            let (master, slave) = pair(FlushMode::Sync).await;
            for _ in 0..3 {
                let end = master.append(30, 1000).await.end;
                sleep(std::time::Duration::from_millis(3)).await;
                power_loss(master.node);
                let held = slave.store().log_end();
                master.boot_master(store_config(FlushMode::Sync), true).await;
                assert!(master.store().log_end() >= held, "{} < {held} of {end}", master.store().log_end());
                let end = master.append(1, 100).await.end;
                wait_end(&slave, end, 20 * SECOND).await;
            }
            assert_eq!(slave.slave().truncated_bytes, 0);
            check_equal(&master, &slave).await;
        });
    }
}
