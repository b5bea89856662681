//! What retention removes, what it keeps, and that no crash on the way leaves a store that cannot be read.
use crate::golden;
use crate::support::{
    ROOT, SECOND, TOPIC, body, check_keys, config, ended_at_each_disk_operation, for_seeds, for_seeds_reaching, get,
    message, open, read_all, request, started,
};
use protocol::PhysicalOffset;
use rt::sync::CancellationToken;
use rt::time::sleep;
use rt::world::{NodeId, disk};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    AppendError, Cleaned, FlushMode, GetRequest, GetStatus, ReadError, Removal, Retainer, RetentionConfig,
    RetentionError, Store, StoreConfig,
};

/// What a test lets go: by age, and for space.
struct Keep {
    by_age: i64,
    for_space: i64,
}

const NOTHING: Keep = Keep { by_age: i64::MAX, for_space: i64::MAX };

impl Retainer for Keep {
    async fn keep_from(&self, removal: Removal) -> Result<PhysicalOffset, ReadError> {
        Ok(PhysicalOffset(if removal == Removal::Expired { self.by_age } else { self.for_space }))
    }
}

/// Messages are kept for ten seconds, and removed at any hour.
fn short_lived(flush_mode: FlushMode) -> StoreConfig {
    let retention =
        RetentionConfig { delete_hours: (0..24).collect(), reserved: 10 * SECOND, ..RetentionConfig::default() };
    StoreConfig { retention, ..config(flush_mode) }
}

async fn append(store: &Store, numbers: std::ops::Range<u64>) {
    for n in numbers {
        store.append(message(i32::try_from(n % 3).unwrap(), body(n))).unwrap();
    }
    sleep(SECOND).await;
}

/// Runs until nothing goes any more; returns how much went.
async fn clean(store: &Store, keep: &Keep) -> Cleaned {
    let mut all = Cleaned::default();
    loop {
        let cleaned = store.remove_expired(keep).await.unwrap();
        store.check_invariants();
        if cleaned == Cleaned::default() {
            return all;
        }
        all.segments += cleaned.segments;
        all.queue_files += cleaned.queue_files;
    }
}

fn names(node: NodeId, dir: &str) -> Vec<String> {
    let paths = disk::list(node, dir).unwrap();
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Each queue shows a dense end of what was appended to it, and a reader before that is told so.
async fn check_ends(store: &Store, appended: &[Vec<Vec<u8>>]) {
    for (queue_id, appended) in (0..).zip(appended) {
        let (min, max) = store.queue_bounds(TOPIC, queue_id).unwrap();
        assert_eq!(max.0, i64::try_from(appended.len()).unwrap(), "queue {queue_id}");
        assert_eq!(read_all(store, queue_id).await, appended[usize::try_from(min.0).unwrap()..]);
        if min.0 > 0 {
            let early = get(store, queue_id, 0).await;
            assert_eq!((early.status, early.next), (GetStatus::OffsetTooSmall, min));
        }
    }
    check_keys(store).await;
}

/// What [`append`] gave to the three queues.
fn appended(count: u64) -> Vec<Vec<Vec<u8>>> {
    (0..3).map(|queue| (0..count).filter(|n| n % 3 == queue).map(body).collect()).collect()
}

#[test]
fn expired_segments_go_oldest_first_and_the_last_stays() {
    for flush_mode in [FlushMode::Sync, FlushMode::Async] {
        for_seeds(3, move |node| async move {
            let task = rt::world::spawn_on(node, async move {
                let store = started(short_lived(flush_mode)).await;
                append(&store, 0..100).await;
                assert_eq!(clean(&store, &NOTHING).await.segments, 0, "nothing has expired");
                sleep(10 * SECOND).await;
                let first = store.remove_expired(&NOTHING).await.unwrap();
                assert_eq!(first.segments, 10, "no more than a batch");
                assert!(first.queue_files > 0);
                check_ends(&store, &appended(100)).await;
                append(&store, 100..101).await;
                clean(&store, &NOTHING).await;
                assert_eq!(store.log_min(), store.last_segment_start());
                check_ends(&store, &appended(101)).await;
                let before = store.read_log(0.into(), 100).await;
                assert!(matches!(before, Err(ReadError::OutOfRange { .. })), "{before:?}");
                assert_eq!(store.record_at(0.into()).await.unwrap(), None);
                append(&store, 101..130).await;
                check_ends(&store, &appended(130)).await;
                store.shutdown().await.unwrap();
                store.log_min()
            });
            let min = task.await.unwrap();
            assert!(names(node, &format!("{ROOT}/index")).len() < 4, "old index files are gone");
            let task = rt::world::spawn_on(node, async move {
                let store = open(short_lived(flush_mode)).await.unwrap();
                assert!(store.recovery_report().is_clean);
                assert_eq!(store.log_min(), min);
                check_ends(&store, &appended(130)).await;
            });
            task.await.unwrap();
        });
    }
}

#[test]
fn segments_that_expired_wait_for_the_hour_or_for_an_operator() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let hour = u8::try_from(rt::time::unix_ms() / 3_600_000 % 24).unwrap();
            let mut config = short_lived(FlushMode::Async);
            config.retention.delete_hours = [(hour + 2) % 24].into();
            let store = started(config).await;
            append(&store, 0..100).await;
            sleep(3_600 * SECOND).await;
            assert_eq!(clean(&store, &NOTHING).await.segments, 0);
            store.ask_for_removal();
            assert_eq!(store.remove_expired(&NOTHING).await.unwrap().segments, 10);
            for _ in 0..20 {
                store.remove_expired(&NOTHING).await.unwrap();
            }
            append(&store, 100..150).await;
            sleep(20 * SECOND).await;
            assert_eq!(clean(&store, &NOTHING).await.segments, 0, "the wish is used up");
            sleep(3_600 * SECOND).await;
            assert!(clean(&store, &NOTHING).await.segments > 0);
        });
        task.await.unwrap();
    });
}

#[test]
fn what_someone_needs_is_held_back_and_goes_afterwards() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Async)).await;
            append(&store, 0..100).await;
            sleep(20 * SECOND).await;
            let needed = 3 * 4096 + 17;
            let held = Keep { by_age: needed, ..NOTHING };
            assert_eq!(clean(&store, &held).await.segments, 3);
            assert_eq!(store.log_min(), PhysicalOffset(3 * 4096));
            assert!(!store.read_log(needed.into(), 100).await.unwrap().is_empty());
            assert_eq!(clean(&store, &Keep { by_age: 4 * 4096, ..NOTHING }).await.segments, 1);
            clean(&store, &NOTHING).await;
            assert_eq!(store.log_min(), store.last_segment_start());
            check_ends(&store, &appended(100)).await;
        });
        task.await.unwrap();
    });
}

/// Makes the disk look so full: most of it is another's, so that a segment more or less is a tenth of a percent.
fn fill(node: NodeId, percent: u64) {
    disk::heal(node);
    disk::write_file(node, "/data/others", &[7; 4 << 20]).unwrap();
    let (free, all) = rt::fs::free_bytes(ROOT).unwrap();
    disk::set_capacity(node, (all - free) * 100 / percent);
}

#[test]
fn a_disk_that_fills_up_loses_what_expired_then_what_is_old_then_takes_nothing() {
    let probes = ["store.retention.disk_full_or_not", "store.append.disk_full", "store.retention.held_back"];
    for_seeds_reaching(&probes, 2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let mut config = short_lived(FlushMode::Sync);
            config.retention.delete_hours.clear();
            config.retention.batch_max = 1;
            let store = started(config).await;
            append(&store, 0..150).await;
            sleep(20 * SECOND).await;
            append(&store, 150..250).await;
            let spares = Keep { for_space: 5 * 4096, ..NOTHING };
            let run = async |percent| {
                fill(node, percent);
                let segments = store.remove_expired(&spares).await.unwrap().segments;
                (segments, store.is_disk_full())
            };
            assert_eq!(run(70).await, (0, false));
            assert_eq!(run(80).await, (1, false));
            // Nothing is full yet, so what has not expired goes too.
            assert_eq!(run(88).await, (1, false));
            assert_eq!(run(94).await, (1, true));
            let refused = store.append(message(0, body(0))).unwrap_err();
            assert!(matches!(refused, AppendError::DiskFull { used_percent: 93..=95 }), "{refused}");
            assert_eq!(get(&store, 0, store.queue_bounds(TOPIC, 0).unwrap().0.0).await.status, GetStatus::Found);
            // Still refused between the two levels, taken again below both.
            assert_eq!(run(88).await, (1, true));
            assert_eq!(run(88).await, (1, true));
            assert_eq!(run(88).await, (0, true));
            assert_eq!(store.log_min(), PhysicalOffset(5 * 4096), "what must be spared is");
            assert!(!run(84).await.1);
            disk::heal(node);
            append(&store, 250..260).await;
            check_ends(&store, &appended(260)).await;
        });
        task.await.unwrap();
    });
}

#[test]
fn a_replica_goes_on_while_its_disk_is_full() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let master = started(config(FlushMode::Async)).await;
            append(&master, 0..30).await;
            let mut slave_config = StoreConfig { root: "/data/slave".into(), ..config(FlushMode::Async) };
            slave_config.retention.is_forcible = false;
            let slave = started(slave_config).await;
            let bytes = master.read_log(0.into(), 2_000).await.unwrap();
            slave.append_replica(0.into(), &bytes).unwrap();
            fill(node, 95);
            slave.remove_expired(&NOTHING).await.unwrap();
            assert!(slave.is_disk_full());
            let at = slave.log_end();
            let more = master.read_log(at, 1_000).await.unwrap();
            slave.append_replica(at, &more).unwrap();
        });
        task.await.unwrap();
    });
}

#[test]
fn an_idle_store_is_not_looked_at() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(short_lived(FlushMode::Async)).await;
            store.remove_expired(&NOTHING).await.unwrap();
            append(&store, 0..3).await;
            store.remove_expired(&NOTHING).await.unwrap();
            sleep(100 * SECOND).await;
            let before = rt::world::disk_operations(node);
            for _ in 0..10 {
                store.remove_expired(&NOTHING).await.unwrap();
            }
            assert_eq!(rt::world::disk_operations(node), before);
        });
        task.await.unwrap();
    });
}

#[test]
fn readers_go_on_across_the_removal() {
    for_seeds(20, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Async)).await;
            append(&store, 0..150).await;
            sleep(20 * SECOND).await;
            let reader = Arc::clone(&store);
            let reading = rt::task::spawn(async move {
                let all = appended(150);
                for from in (0..50).chain((0..50).rev()) {
                    for (queue_id, all) in (0..).zip(&all) {
                        let outcome = get(&reader, queue_id, from).await;
                        match outcome.status {
                            GetStatus::Found => {}
                            GetStatus::OffsetTooSmall => assert!(outcome.next.0 > from),
                            GetStatus::MessageWasRemoving => assert!(outcome.next.0 > from),
                            other => panic!("{other:?}"),
                        }
                        for (record, offset) in outcome.records.iter().zip(&outcome.offsets) {
                            let view = protocol::message::RecordView::parse(record).unwrap();
                            assert_eq!(view.body(), all[usize::try_from(offset.0).unwrap()]);
                        }
                    }
                    sleep(rt::time::Duration::from_millis(13)).await;
                }
            });
            clean(&store, &NOTHING).await;
            reading.await.unwrap();
            check_ends(&store, &appended(150)).await;
        });
        task.await.unwrap();
    });
}

#[test]
fn a_truncation_brings_no_removed_segment_back() {
    for_seeds(40, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(short_lived(FlushMode::Async)).await;
            append(&store, 0..150).await;
            sleep(20 * SECOND).await;
            let cutter = Arc::clone(&store);
            let cutting = rt::task::spawn(async move {
                for _ in 0..6 {
                    let range = cutter.log_end() - cutter.log_min();
                    cutter.truncate_to(cutter.log_end() - range / 10).await.unwrap();
                    cutter.check_invariants();
                    sleep(rt::time::Duration::from_millis(150)).await;
                }
            });
            let removed = clean(&store, &NOTHING).await;
            assert!(removed.segments > 0);
            cutting.await.unwrap();
            store.check_invariants();
            let first = store.log_min();
            store.shutdown().await.unwrap();
            drop(store);
            let store = open(short_lived(FlushMode::Async)).await.unwrap();
            assert_eq!(store.log_min(), first);
            for (queue_id, all) in (0..).zip(&appended(150)) {
                let (min, max) = store.queue_bounds(TOPIC, queue_id).unwrap();
                let [min, max] = [min, max].map(|offset| usize::try_from(offset.0).unwrap());
                assert_eq!(read_all(&store, queue_id).await, all[min..max]);
            }
        });
        task.await.unwrap();
    });
}

/// A queue without a message in the log goes on where it was, even if a power loss takes what its last file had.
#[test]
fn an_idle_queue_keeps_its_offsets() {
    for_seeds(6, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Async)).await;
            for n in 0..20 {
                // All of its first file.
                store.append(message(3, body(n))).unwrap();
            }
            append(&store, 0..60).await;
            sleep(100 * SECOND).await;
            let lost = store.append(message(3, body(20))).unwrap();
            assert_eq!(lost.queue_offset.0, 20);
            sleep(SECOND / 10).await;
            assert!(clean(&store, &NOTHING).await.queue_files > 0);
            assert!(store.log_min() > PhysicalOffset(20 * 100));
        });
        task.await.unwrap();
        rt::world::power_loss(node);
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Async)).await;
            let (min, max) = store.queue_bounds(TOPIC, 3).unwrap();
            assert!(max.0 == 20 || max.0 == 21, "{min}..{max}");
            let next = store.append(message(3, body(21))).unwrap();
            assert_eq!(next.queue_offset, max);
            sleep(SECOND).await;
            assert_eq!(read_all(&store, 3).await.last(), Some(&body(21)));
        });
        task.await.unwrap();
    });
}

/// Its last file has just begun, and what is in it was cut off: the offsets before it are used all the same.
#[test]
fn a_queue_whose_last_file_lost_its_entries_begins_there() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Async)).await;
            for n in 0..20 {
                store.append(message(3, body(n))).unwrap();
            }
            append(&store, 0..60).await;
            let cut = store.append(message(3, body(20))).unwrap();
            sleep(20 * SECOND).await;
            assert!(clean(&store, &NOTHING).await.queue_files > 0);
            store.truncate_to(cut.physical).await.unwrap();
            assert_eq!(store.queue_bounds(TOPIC, 3).unwrap().1.0, 20);
            store.check_invariants();
            sleep(SECOND).await;
            store.shutdown().await.unwrap();
            drop(store);
            let store = started(short_lived(FlushMode::Async)).await;
            assert_eq!(store.append(message(3, body(21))).unwrap().queue_offset.0, 20);
            sleep(SECOND).await;
            assert_eq!(read_all(&store, 3).await, [body(21)]);
        });
        task.await.unwrap();
    });
}

/// Cleans a store of many segments and queue files: crashed at each disk operation of it in turn.
#[test]
fn every_disk_operation_of_a_removal_may_be_the_last() {
    ended_at_each_disk_operation(31, |node, end| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(short_lived(FlushMode::Sync)).await;
            for n in 0..25 {
                store.append(message(3, body(n))).unwrap();
            }
            append(&store, 0..60).await;
            store.flushed(store.log_end(), SECOND).await.unwrap();
            sleep(12 * SECOND).await;
            store
        });
        let store = task.await.unwrap();
        let operations = end
            .in_work(node, async move {
                while store.remove_expired(&NOTHING).await.is_ok_and(|cleaned| cleaned != Cleaned::default()) {}
            })
            .await;
        rt::world::power_loss(node);
        let task = rt::world::spawn_on(node, async move {
            let store = started(short_lived(FlushMode::Sync)).await;
            check_ends(&store, &appended(60)).await;
            let (_, max) = store.queue_bounds(TOPIC, 3).unwrap();
            assert_eq!(max.0, 25, "an idle queue keeps its offsets");
            // The rest goes now, in queues and index too.
            clean(&store, &NOTHING).await;
            assert_eq!(store.log_min(), store.last_segment_start());
            check_ends(&store, &appended(60)).await;
            append(&store, 60..70).await;
            check_ends(&store, &appended(70)).await;
        });
        task.await.unwrap();
        let files = names(node, &format!("{ROOT}/consumequeue/{TOPIC}/3"));
        assert_eq!(files, ["00000000000000000400"], "files of queues that crash left are removed");
        operations
    });
}

#[test]
fn a_failed_sync_of_the_removal_poisons_and_a_failed_removal_is_tried_again() {
    use rt::world::{DiskChance, DiskError, DiskFault, DiskOperation};
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(short_lived(FlushMode::Async)).await;
            append(&store, 0..60).await;
            sleep(20 * SECOND).await;
            let fault = |operation| DiskFault {
                operation,
                path_contains: Some("commitlog".to_owned()),
                chance: DiskChance::Nth(1),
                error: DiskError::Io,
            };
            disk::inject(node, fault(DiskOperation::Name));
            let failed = store.remove_expired(&NOTHING).await.unwrap_err();
            assert!(matches!(failed, RetentionError::Io { .. }), "{failed}");
            assert_eq!(store.log_min().0, 0);
            assert!(store.poisoned().is_none());
            store.ask_for_removal();
            assert!(store.remove_expired(&NOTHING).await.unwrap().segments > 0);
            append(&store, 60..100).await;
            sleep(20 * SECOND).await;
            disk::inject(node, fault(DiskOperation::Sync));
            let failed = store.remove_expired(&NOTHING).await.unwrap_err();
            assert!(matches!(failed, RetentionError::Poisoned(_)), "{failed}");
            assert!(store.poisoned().is_some());
        });
        task.await.unwrap();
    });
}

/// Apache's store, opened, cleaned and opened again: what stays is byte for byte what it was.
#[test]
fn a_store_of_apache_is_cleaned_and_what_stays_is_not_changed() {
    let files = golden::files("clean");
    rt::world::run_test(move || async move {
        golden::plant(&files);
        let store = open(golden::config()).await.unwrap();
        store.start(&CancellationToken::new());
        let whole = everything(&store).await;
        disk::set_capacity(NodeId::WORLD, 4096);
        assert!(clean(&store, &NOTHING).await.segments > 0);
        disk::heal(NodeId::WORLD);
        let min = store.last_segment_start();
        assert_eq!(store.log_min(), min);
        let kept = everything(&store).await;
        assert!(!kept.is_empty());
        assert_eq!(kept, whole.into_iter().filter(|(place, _)| *place >= min).collect());
        store.shutdown().await.unwrap();
        drop(store);
        let last = format!("commitlog/{:020}", min.0);
        let bytes = disk::read_file(NodeId::WORLD, format!("{}/{last}", golden::ROOT)).unwrap();
        assert_eq!(bytes, files[std::path::Path::new(&last)]);
        let store = open(golden::config()).await.unwrap();
        assert!(store.recovery_report().is_clean);
        assert_eq!(everything(&store).await, kept);
    });
}

/// Each record that some queue shows, by its place.
async fn everything(store: &Store) -> BTreeMap<PhysicalOffset, bytes::Bytes> {
    let mut all = BTreeMap::new();
    for (topic, queue_id) in store.queues() {
        let (mut next, max) = store.queue_bounds(&topic, queue_id).unwrap();
        while next < max {
            let request = GetRequest { topic: topic.to_string(), from: next, ..request(queue_id, 0) };
            let outcome = store.get(request).await.unwrap();
            assert_eq!(outcome.status, GetStatus::Found, "{topic} {queue_id} at {next}");
            for record in outcome.records {
                all.insert(protocol::message::RecordView::parse(&record).unwrap().physical_offset(), record);
            }
            next = outcome.next;
        }
    }
    all
}
