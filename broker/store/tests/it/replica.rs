//! The raw log of a slave: contiguous, whole, and cut for good.
use crate::support::{
    SECOND, body, check_keys, config, for_seeds, for_seeds_reaching, get, message, open, read_all, started, view,
};
use protocol::PhysicalOffset;
use rt::sync::CancellationToken;
use rt::time::sleep;
use rt::world::{CrashKind, CrashPoint};
use std::sync::{Arc, Mutex};
use store::{FlushMode, GetStatus, ReplicaError, Store, StoreConfig};

fn slave_config() -> StoreConfig {
    StoreConfig { root: "/data/slave".into(), ..config(FlushMode::Async) }
}

async fn filled(count: u64) -> Arc<Store> {
    let master = started(config(FlushMode::Async)).await;
    for n in 0..count {
        master.append(message(i32::try_from(n % 3).unwrap(), body(n))).unwrap();
    }
    sleep(SECOND).await;
    master
}

/// Sends everything in frames of `frame` bytes, as a master does.
async fn copy(master: &Store, slave: &Store, frame: u32) {
    while slave.log_end() < master.confirm_end() {
        let at = slave.log_end();
        let bytes = master.read_log(at, frame).await.unwrap();
        slave.append_replica(at, &bytes).unwrap();
    }
}

#[test]
fn slave_becomes_byte_equal_whatever_the_frames() {
    for_seeds(5, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(60).await;
            for frame in [1000, 7, 32_768] {
                let slave_config =
                    StoreConfig { root: format!("/data/slave-{frame}").into(), ..config(FlushMode::Sync) };
                let slave = started(slave_config.clone()).await;
                copy(&master, &slave, frame).await;
                slave.flushed(slave.log_end(), SECOND).await.unwrap();
                sleep(SECOND).await;
                assert_eq!(view(&slave).await, view(&master).await);
                let [a, b] = [&master, &slave].map(|store| store.log_digest(0.into(), master.log_end()));
                assert_eq!(a.await.unwrap(), b.await.unwrap());
                slave.check_invariants();
                slave.shutdown().await.unwrap();
                drop(slave);
                let slave = open(slave_config).await.unwrap();
                assert!(slave.recovery_report().is_clean);
                assert_eq!(view(&slave).await, view(&master).await);
            }
        });
        task.await.unwrap();
    });
}

#[test]
fn gap_and_overlap_are_refused() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let slave = open(slave_config()).await.unwrap();
            slave.append_replica(0.into(), &[1; 100]).unwrap();
            for at in [0, 99, 101, 4096] {
                let error = slave.append_replica(at.into(), &[1; 10]).unwrap_err();
                assert!(matches!(error, ReplicaError::NotContiguous { end: PhysicalOffset(100), .. }), "{error}");
            }
        });
        task.await.unwrap();
    });
}

#[test]
fn empty_slave_begins_with_the_last_segment_of_its_master() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(66).await;
            let slave = started(slave_config()).await;
            let start = master.last_segment_start();
            assert!(start.0 > 0);
            assert!(matches!(slave.append_replica(start + 1, &[0; 4]), Err(ReplicaError::UnalignedStart { .. })));
            let bytes = master.read_log(start, 500).await.unwrap();
            slave.append_replica(start, &bytes).unwrap();
            copy(&master, &slave, 100).await;
            sleep(SECOND).await;
            for store in [Arc::clone(&slave), {
                slave.shutdown().await.unwrap();
                open(StoreConfig { root: "/data/other".into(), ..slave_config() }).await.unwrap()
            }] {
                if store.log_end().0 == 0 {
                    continue;
                }
                assert_eq!(store.log_min(), start);
                check_keys(&store).await;
                for queue_id in 0..3 {
                    let (min, max) = store.queue_bounds("Orders", queue_id).unwrap();
                    assert!(min.0 > 0);
                    assert_eq!(max, master.queue_bounds("Orders", queue_id).unwrap().1);
                    let early = get(&store, queue_id, 0).await;
                    assert_eq!((early.status, early.next), (GetStatus::OffsetTooSmall, min));
                    let all = read_all(&master, queue_id).await;
                    assert_eq!(read_all(&store, queue_id).await, all[usize::try_from(min.0).unwrap()..]);
                }
            }
            drop(slave);
            let slave = open(slave_config()).await.unwrap();
            assert_eq!(slave.log_min(), start);
            let (min, _) = slave.queue_bounds("Orders", 1).unwrap();
            assert_eq!(read_all(&slave, 1).await, read_all(&master, 1).await[usize::try_from(min.0).unwrap()..]);
        });
        task.await.unwrap();
    });
}

/// A slave whose first bytes did not stay (its disk was full, or failed, or lost power) has a first segment with nothing in it.
#[test]
fn slave_that_kept_nothing_begins_anywhere_again() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(60).await;
            let start = master.last_segment_start();
            assert!(start.0 > 0);
            for reopened in [false, true] {
                let config = StoreConfig { root: format!("/data/{reopened}").into(), ..slave_config() };
                let mut slave = started(config.clone()).await;
                slave.append_replica(0.into(), &master.read_log(0.into(), 100).await.unwrap()).unwrap();
                if reopened {
                    // The head of a record without its rest is nothing.
                    slave.shutdown().await.unwrap();
                    drop(slave);
                    slave = open(config).await.unwrap();
                } else {
                    slave.truncate_to(0.into()).await.unwrap();
                }
                assert_eq!(slave.log_end(), PhysicalOffset::ZERO);
                slave.append_replica(start, &master.read_log(start, 500).await.unwrap()).unwrap();
                copy(&master, &slave, 100).await;
                assert_eq!((slave.log_min(), slave.log_end()), (start, master.log_end()));
                slave.check_invariants();
            }
        });
        task.await.unwrap();
    });
}

#[test]
fn truncated_log_goes_on_and_equals_one_that_never_was_longer() {
    for_seeds(6, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(60).await;
            let slave = started(slave_config()).await;
            copy(&master, &slave, 333).await;
            sleep(SECOND).await;
            let end = slave.log_end();
            // Inside a record, at a segment's start, at the very start, and nothing at all.
            for to in [end.0, end.0 - 5, 8192, 4097, 4096, 300, 0] {
                slave.truncate_to(to.into()).await.unwrap();
                slave.check_invariants();
                assert_eq!(slave.log_end().0, to);
                sleep(SECOND).await;
                let visible = read_all(&slave, 0).await;
                assert!(read_all(&master, 0).await.starts_with(&visible));
                copy(&master, &slave, 100).await;
                sleep(SECOND).await;
                assert_eq!(view(&slave).await, view(&master).await);
                check_keys(&slave).await;
            }
            assert!(matches!(slave.truncate_to(end + 1).await, Err(ReplicaError::TruncateRange { .. })));
        });
        task.await.unwrap();
    });
}

#[test]
fn what_is_no_record_is_told_and_cut_and_the_log_goes_on() {
    for_seeds_reaching(&["store.replica.sent_damage"], 6, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(40).await;
            let slave = started(slave_config()).await;
            let (at, half) = (master.log_end() - 700, 700);
            while slave.log_end() < at {
                let room = u32::try_from(at - slave.log_end()).unwrap();
                let bytes = master.read_log(slave.log_end(), room.min(300)).await.unwrap();
                slave.append_replica(slave.log_end(), &bytes).unwrap();
            }
            // In one frame: the rest of a record, whole records, and pages that a disk has lost.
            let mut bytes = master.read_log(at, half).await.unwrap().to_vec();
            let lost = 400;
            bytes[lost..].fill(0);
            slave.append_replica(at, &bytes).unwrap();
            sleep(SECOND).await;
            let damage = (*slave.sent_damage().borrow()).unwrap();
            assert!(damage <= at + 400, "{damage}");
            assert_eq!((slave.dispatched_end(), slave.poisoned().is_some()), (damage, false));
            slave.truncate_to(damage).await.unwrap();
            assert_eq!(*slave.sent_damage().borrow(), None);
            copy(&master, &slave, 300).await;
            sleep(SECOND).await;
            assert_eq!(view(&slave).await, view(&master).await);
            check_keys(&slave).await;
            slave.check_invariants();
            // As a master that fetches what it lost, and gets this.
            slave.append_replica(slave.log_end(), &[0; 100]).unwrap();
            let error = slave.settle_replica().await.unwrap_err();
            assert!(matches!(error, ReplicaError::SentDamage { at } if at == master.log_end()), "{error}");
            assert_eq!(slave.log_end(), master.log_end());
            slave.append(message(0, body(99))).unwrap();
            sleep(SECOND).await;
            assert_eq!(slave.dispatched_end(), slave.log_end());
        });
        task.await.unwrap();
    });
}

/// The old tail must not come back, wherever the power goes, even if new and shorter bytes lie over its beginning.
#[test]
fn truncated_bytes_never_come_back_after_power_loss() {
    for_seeds(60, |node| async move {
        let seed = rt::rand::RngCore::next_u64(&mut rt::rand::stream("point"));
        let done = Arc::new(Mutex::new(None));
        let note = Arc::clone(&done);
        rt::world::spawn_on(node, async {
            let store = filled(40).await;
            store.shutdown().await.unwrap();
        })
        .await
        .unwrap();
        rt::world::crash_at(node, CrashPoint::DiskOperation(20 + seed % 60), CrashKind::Power);
        let task = rt::world::spawn_on(node, async move {
            // Calls fail once the power is gone.
            let Ok(store) = open(config(FlushMode::Async)).await else { return };
            store.start(&CancellationToken::new());
            let to = PhysicalOffset(i64::try_from(seed % 9000).unwrap());
            if store.truncate_to(to).await.is_ok() {
                *note.lock().unwrap() = Some(to);
                // Fewer bytes than were cut, and no record: what was behind them must not show again.
                let _ = store.append_replica(to, &[7; 50]);
            }
            sleep(4 * SECOND).await;
        });
        let _ = task.await;
        rt::world::power_loss(node);
        let cut = *done.lock().unwrap();
        let task = rt::world::spawn_on(node, async move {
            let store = open(config(FlushMode::Async)).await.unwrap();
            if let Some(to) = cut {
                assert!(store.log_end() <= to, "{} is behind {to}", store.log_end());
            }
            for queue_id in 0..3 {
                let expected =
                    (0..40).filter(|n| n % 3 == u64::try_from(queue_id).unwrap()).map(body).collect::<Vec<_>>();
                assert!(expected.starts_with(&read_all(&store, queue_id).await));
            }
        });
        task.await.unwrap();
    });
}

#[test]
fn a_settled_log_ends_with_a_whole_record_and_takes_own_appends() {
    for flush in [FlushMode::Async, FlushMode::Sync] {
        for_seeds(3, move |node| async move {
            let task = rt::world::spawn_on(node, async move {
                let master = filled(60).await;
                // Every way to cut a record, and a segment's filler.
                for cut in (0..2000).step_by(67) {
                    let root = format!("/data/slave-{cut}");
                    let settings = StoreConfig { root: root.into(), ..config(flush) };
                    let slave = started(settings.clone()).await;
                    let to = master.confirm_end() - cut;
                    while slave.log_end() < to {
                        let at = slave.log_end();
                        let bytes = master.read_log(at, u32::try_from(to - at).unwrap()).await.unwrap();
                        slave.append_replica(at, &bytes).unwrap();
                    }
                    slave.settle_replica().await.unwrap();
                    let end = slave.log_end();
                    assert!(end <= to);
                    assert_eq!((slave.dispatched_end(), slave.flushed_end()), (end, end));
                    let bounds = [0, 1, 2].map(|queue_id| slave.queue_bounds("Orders", queue_id).unwrap().1);
                    let appended = slave.append(message(0, body(1000))).unwrap();
                    assert_eq!((appended.queue_offset, appended.physical >= end), (bounds[0], true));
                    slave.flushed(appended.end, SECOND).await.unwrap();
                    sleep(SECOND).await;
                    slave.check_invariants();
                    slave.shutdown().await.unwrap();
                    let before = view(&slave).await;
                    drop(slave);
                    let again = open(settings).await.unwrap();
                    assert!(again.recovery_report().is_clean);
                    assert_eq!(view(&again).await, before);
                }
            });
            task.await.unwrap();
        });
    }
}
