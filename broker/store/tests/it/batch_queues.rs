//! Batch queues: one record and one entry for the messages of a batch, each of which has its own offset.
use crate::golden;
use crate::support::{
    ROOT, SECOND, TOPIC, body, config, ended_at_each_disk_operation, filled_until_the_end, for_seeds,
    for_seeds_reaching, message, request, started,
};
use protocol::message::{Properties, RecordView};
use protocol::{PhysicalOffset, QueueOffset, SysFlag};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep};
use rt::world::{NodeId, disk, run_test};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{
    FlushMode, GetRequest, GetStatus, NewMessage, ReadError, Removal, Retainer, RetentionConfig, Store, StoreConfig,
    StoreError, TimeBoundary, UnrecoveredStore, inspect, repair,
};

/// Files of ten entries.
fn batching(flush_mode: FlushMode) -> StoreConfig {
    StoreConfig { batch_queue_file_size: 460, ..config(flush_mode) }
}

/// How many messages batch `n` has.
fn count(n: u64) -> i64 {
    i64::try_from(n % 5 + 1).unwrap()
}

/// Offset of the first message of batch `n`.
fn base(n: u64) -> i64 {
    (0..n).map(count).sum()
}

/// Batch `n`, or a single message where that has one.
fn batch(n: u64) -> NewMessage {
    let one = message(0, body(n));
    if count(n) == 1 {
        return one;
    }
    let properties = format!("{}INNER_NUM\u{1}{}\u{2}", one.properties, count(n));
    NewMessage { properties, sys_flag: SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP, ..one }
}

async fn open(config: StoreConfig) -> Result<Arc<Store>, StoreError> {
    let mut store = UnrecoveredStore::open(config).await?;
    store.make_batch_topic(TOPIC).await?;
    store.recover().await
}

async fn opened(config: StoreConfig) -> Arc<Store> {
    let store = open(config).await.unwrap();
    store.start(&CancellationToken::new());
    store
}

async fn append(store: &Store, numbers: std::ops::Range<u64>) {
    for n in numbers {
        let appended = store.append(batch(n)).unwrap();
        assert_eq!(appended.queue_offset.0, base(n), "batch {n}");
    }
    sleep(SECOND).await;
}

/// Each record of the queue from an offset on: the first offset of its messages, and its body.
async fn read(store: &Store, from: i64) -> Vec<(i64, Vec<u8>)> {
    let (_, max) = store.queue_bounds(TOPIC, 0).unwrap_or_default();
    let (mut records, mut next) = (Vec::new(), QueueOffset(from));
    while next < max {
        let outcome = store.get(request(0, next.0)).await.unwrap();
        assert_eq!(outcome.status, GetStatus::Found, "at {next} of {max}");
        for (record, offset) in outcome.records.iter().zip(&outcome.offsets) {
            let view = RecordView::parse(record).unwrap();
            assert_eq!(view.queue_offset(), *offset);
            records.push((offset.0, view.body().to_vec()));
        }
        assert!(outcome.next > next);
        next = outcome.next;
    }
    records
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<(i64, Vec<u8>)> {
    numbers.map(|n| (base(n), body(n))).collect()
}

async fn damage(config: &StoreConfig) -> Vec<String> {
    let found = inspect(&config.root, None, config.index, |_, _| {}).await.unwrap();
    found.damage.iter().map(ToString::to_string).collect()
}

#[test]
fn a_batch_has_one_entry_and_its_messages_an_offset_each() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = opened(batching(FlushMode::Async)).await;
            append(&store, 0..35).await;
            assert_eq!(store.queue_bounds(TOPIC, 0), Some((QueueOffset(0), QueueOffset(base(35)))));
            assert_eq!(read(&store, 0).await, expected(0..35));
            // From inside of a batch it is the whole batch; behind its last message it is the next one.
            for offset in 0..base(35) {
                let first = (0..35).find(|n| base(*n) + count(*n) > offset).unwrap();
                assert_eq!(read(&store, offset).await, expected(first..35), "{offset}");
            }
            let record = store.get(request(0, base(8))).await.unwrap().records.remove(0);
            let properties = Properties::parse_bytes(RecordView::parse(&record).unwrap().properties());
            assert_eq!(properties.get("INNER_BASE"), Some(base(8).to_string().as_str()));
            assert!(disk::list(node, format!("{ROOT}/consumequeue/{TOPIC}")).is_err());
            store.check_invariants();
            store.shutdown().await.unwrap();
            drop(store);
            // The directory says of which kind the topic is.
            let store = started(batching(FlushMode::Async)).await;
            assert!(store.is_batch_topic(TOPIC));
            append(&store, 35..40).await;
            assert_eq!(read(&store, 0).await, expected(0..40));
            store.shutdown().await.unwrap();
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
    });
}

#[test]
fn an_answer_has_no_more_messages_than_were_asked_for_but_one_batch() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = opened(batching(FlushMode::Async)).await;
            append(&store, 0..20).await;
            let asked = async |from: u64, most| {
                let request = GetRequest { max_messages: most, ..request(0, base(from)) };
                store.get(request).await.unwrap().records.len()
            };
            // Of 1, 2, 3, 4, 5, 1 … messages; a read gives less when chance says so.
            assert_eq!(asked(4, 1).await, 1);
            assert!((1..=3).contains(&asked(0, 6).await));
            assert!((1..=2).contains(&asked(0, 5).await));
        });
        task.await.unwrap();
    });
}

#[test]
fn a_time_finds_the_first_message_of_a_batch() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = opened(batching(FlushMode::Async)).await;
            let mut times = Vec::new();
            for n in 0..15 {
                times.push(store.append(batch(n)).unwrap().store_timestamp);
                sleep(Duration::from_millis(10)).await;
            }
            sleep(SECOND).await;
            for (n, time) in (0..).zip(&times) {
                let at = async |time, boundary| store.offset_by_time(TOPIC, 0, time, boundary).await.unwrap().0;
                assert_eq!(at(*time, TimeBoundary::Lower).await, base(n));
                assert_eq!(at(*time + 1, TimeBoundary::Upper).await, base(n));
                assert_eq!(at(*time + 1, TimeBoundary::Lower).await, base(n + 1));
                assert_eq!(store.store_time_at(TOPIC, 0, QueueOffset(base(n + 1) - 1)).await.unwrap(), Some(*time));
            }
        });
        task.await.unwrap();
    });
}

#[test]
fn a_slave_has_the_same_queue_and_a_cut_takes_whole_batches() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = opened(batching(FlushMode::Async)).await;
            append(&master, 0..30).await;
            let slave = opened(StoreConfig { root: "/data/slave".into(), ..batching(FlushMode::Async) }).await;
            while slave.log_end() < master.confirm_end() {
                let at = slave.log_end();
                slave.append_replica(at, &master.read_log(at, 700).await.unwrap()).unwrap();
            }
            sleep(SECOND).await;
            slave.settle_replica().await.unwrap();
            append(&slave, 30..33).await;
            assert_eq!(read(&slave, 0).await, expected(0..33));
            let middle = slave.get(request(0, base(12))).await.unwrap().records.remove(0);
            slave.truncate_to(RecordView::parse(&middle).unwrap().physical_offset()).await.unwrap();
            assert_eq!(slave.queue_bounds(TOPIC, 0).unwrap().1.0, base(12));
            slave.settle_replica().await.unwrap();
            append(&slave, 12..25).await;
            assert_eq!(read(&slave, 0).await, expected(0..25));
            slave.check_invariants();
        });
        task.await.unwrap();
    });
}

/// Nobody needs what has expired.
struct Nobody;

impl Retainer for Nobody {
    async fn keep_from(&self, _: Removal) -> Result<PhysicalOffset, ReadError> {
        Ok(PhysicalOffset(i64::MAX))
    }
}

#[test]
fn a_batch_queue_loses_what_expires_and_keeps_its_offsets() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let retention =
                RetentionConfig { delete_hours: (0..24).collect(), reserved: SECOND, ..RetentionConfig::default() };
            let config = StoreConfig { retention, ..batching(FlushMode::Async) };
            let store = opened(config.clone()).await;
            append(&store, 0..70).await;
            sleep(3 * SECOND).await;
            while store.remove_expired(&Nobody).await.unwrap().segments > 0 {}
            let (min, max) = store.queue_bounds(TOPIC, 0).unwrap();
            let first = (0..70).find(|n| base(*n) == min.0).expect("a batch begins there");
            assert!(first > 30, "{first}");
            assert_eq!(max.0, base(70));
            assert_eq!(read(&store, min.0).await, expected(first..70));
            let early = store.get(request(0, 0)).await.unwrap();
            assert_eq!((early.status, early.next), (GetStatus::OffsetTooSmall, min));
            let files = rt::fs::read_dir(format!("{ROOT}/batchconsumequeue/{TOPIC}/0")).unwrap();
            assert!(!files[0].ends_with("00000000000000000000"), "{files:?}");
            store.shutdown().await.unwrap();
            drop(store);
            let store = opened(config).await;
            assert_eq!(store.queue_bounds(TOPIC, 0), Some((min, max)));
            append(&store, 70..75).await;
            assert_eq!(read(&store, min.0).await, expected(first..75));
        });
        task.await.unwrap();
    });
}

#[test]
fn a_removed_topic_may_be_of_the_other_kind_next() {
    for_seeds_reaching(&["store.batch_topic.turned"], 2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = opened(batching(FlushMode::Async)).await;
            append(&store, 0..10).await;
            store.remove_topic(TOPIC).await.unwrap();
            assert!(!store.is_batch_topic(TOPIC));
            assert!(disk::list(node, format!("{ROOT}/batchconsumequeue/{TOPIC}")).is_err());
            assert_eq!(store.append(message(0, body(1))).unwrap().queue_offset.0, 0);
            sleep(SECOND).await;
            assert_eq!(crate::support::read_all(&store, 0).await, [body(1)]);
            assert!(!store.make_batch_topic(TOPIC).await.unwrap(), "it has queues of the other kind");
            store.shutdown().await.unwrap();
            drop(store);
            // But a start may turn it into one, from the log alone.
            let store = opened(batching(FlushMode::Async)).await;
            assert_eq!(read(&store, 0).await, [(0, body(1))]);
            assert!(disk::list(node, format!("{ROOT}/consumequeue/{TOPIC}")).unwrap().is_empty());
            append(&store, 1..4).await;
            assert_eq!(read(&store, 0).await[1..], expected(1..4));
        });
        task.await.unwrap();
    });
}

#[test]
fn every_disk_operation_may_be_the_last() {
    ended_at_each_disk_operation(60, |node, end| async move {
        let (operations, acknowledged) =
            filled_until_the_end((node, end), open(batching(FlushMode::Sync)), 25, batch).await;
        let task = rt::world::spawn_on(node, async move {
            let store = opened(batching(FlushMode::Sync)).await;
            let found = u64::try_from(read(&store, 0).await.len()).unwrap();
            assert!(found >= acknowledged, "{found} of {acknowledged}");
            append(&store, found..found + 15).await;
            assert_eq!(read(&store, 0).await, expected(0..found + 15));
            store.check_invariants();
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
        operations
    });
}

#[test]
fn damage_of_a_batch_queue_is_named_and_repaired() {
    run_test(|| async {
        let store = opened(batching(FlushMode::Async)).await;
        append(&store, 0..20).await;
        store.shutdown().await.unwrap();
        drop(store);
        let file = format!("{ROOT}/batchconsumequeue/{TOPIC}/0/00000000000000000000");
        let sound = disk::read_file(NodeId::WORLD, &file).unwrap();
        for (at, expected) in [
            (46 * 3 + 35, "offset 6: its entry names 4 messages from offset"),
            (46 * 3 + 37, "offset 6: its entry names"),
            (46 * 3 + 6, "offset 6: no entry for the record"),
        ] {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            disk::write_file(NodeId::WORLD, &file, &damaged).unwrap();
            let config = config(FlushMode::Async).with_sizes_of_files().unwrap();
            assert_eq!(config.batch_queue_file_size, 460);
            let told = damage(&config).await;
            assert!(told.iter().any(|line| line.contains(expected)), "{at}: {told:?}");
            repair(config.clone()).await.unwrap();
            assert_eq!(damage(&config).await, [""; 0]);
            assert_eq!(disk::read_file(NodeId::WORLD, &file).unwrap(), sound);
        }
    });
}

/// Read as it is, and made anew from the log, byte for byte.
#[test]
fn the_batch_queue_of_apache_is_read_and_comes_again_with_the_same_bytes() {
    let files = golden::files("features");
    let name = PathBuf::from("batchconsumequeue/GoldenInner/0/00000000000000000000");
    let manifest = golden::manifest("features");
    let entries = manifest["batchconsumequeue"]["GoldenInner/0"].as_array().unwrap().clone();
    for is_there in [true, false] {
        let (mut files, name, entries) = (files.clone(), name.clone(), entries.clone());
        let sound = files[&name].clone();
        files.retain(|path, _| is_there || *path != name);
        run_test(move || async move {
            golden::plant(&files);
            let config = StoreConfig { batch_queue_file_size: 460, ..golden::config() };
            let store = UnrecoveredStore::open(config).await.unwrap().recover().await.unwrap();
            assert_eq!(store.queue_bounds("GoldenInner", 0), Some((QueueOffset(0), QueueOffset(19))));
            for entry in &entries {
                let base = entry["base"].as_i64().unwrap();
                let request = GetRequest { topic: "GoldenInner".to_owned(), max_messages: 1, ..request(0, base) };
                let outcome = store.get(request).await.unwrap();
                let record = RecordView::parse(&outcome.records[0]).unwrap();
                assert_eq!(record.physical_offset().0, entry["phy"].as_i64().unwrap());
                assert_eq!(outcome.next.0, base + entry["count"].as_i64().unwrap());
            }
            store.shutdown().await.unwrap();
            assert_eq!(disk::read_file(NodeId::WORLD, Path::new(golden::ROOT).join(&name)).unwrap(), sound);
        });
    }
}
