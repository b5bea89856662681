//! Extensions of queues: units that entries name, bit maps that come back, and entries that are read without.
use crate::golden;
use crate::support::{
    ROOT, SECOND, TOPIC, body, config, ended_at_each_disk_operation, filled_until_the_end, for_seeds,
    for_seeds_reaching, message, read_all, request,
};
use protocol::PhysicalOffset;
use protocol::message::RecordView;
use rt::sync::CancellationToken;
use rt::time::sleep;
use rt::world::{NodeId, disk, run_test};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use store::{
    BitMaps, EntryFilter, FlushMode, GetStatus, ReadError, Removal, Retainer, RetentionConfig, Store, StoreConfig,
    StoreError, UnrecoveredStore, inspect, repair,
};

/// A bit map of 14 bytes that follows from the body; none for each third length.
fn bit_map(body: &[u8]) -> Vec<u8> {
    if body.len().is_multiple_of(3) { Vec::new() } else { vec![u8::try_from(body.len() % 251).unwrap(); 14] }
}

struct OfBody;

impl BitMaps for OfBody {
    fn bit_map(&self, record: &RecordView<'_>) -> Vec<u8> {
        bit_map(record.body())
    }
}

/// Notes what a queue says of each message, and wants them all.
#[derive(Default)]
struct Noted(Mutex<Vec<(Option<i64>, Vec<u8>)>>);

impl EntryFilter for Noted {
    fn wants(&self, _: PhysicalOffset, tags_code: Option<i64>, bit_map: &[u8]) -> bool {
        self.0.lock().unwrap().push((tags_code, bit_map.to_vec()));
        true
    }
}

/// Files of some 14 units.
fn extended(flush_mode: FlushMode) -> StoreConfig {
    StoreConfig { extend_queues: true, extension_file_size: 512, ..config(flush_mode) }
}

async fn open(config: StoreConfig) -> Result<Arc<Store>, StoreError> {
    let mut store = UnrecoveredStore::open(config).await?;
    store.set_bit_maps(Arc::new(OfBody));
    store.recover().await
}

async fn started(config: StoreConfig) -> Arc<Store> {
    let store = open(config).await.unwrap();
    store.start(&CancellationToken::new());
    store
}

async fn append(store: &Store, numbers: std::ops::Range<u64>) {
    for n in numbers {
        store.append(message(0, body(n))).unwrap();
    }
    sleep(SECOND).await;
}

/// What a queue says of each of its messages, in order.
async fn said(store: &Store, topic: &str) -> Vec<(Option<i64>, Vec<u8>)> {
    let (min, max) = store.queue_bounds(topic, 0).unwrap_or_default();
    let mut said = Vec::new();
    let mut next = min;
    while next < max {
        let noted = Noted::default();
        let request = store::GetRequest { topic: topic.to_owned(), max_messages: 1, ..request(0, next.0) };
        let outcome = store.get_where(request, &noted).await.unwrap();
        assert_eq!(outcome.status, GetStatus::Found, "{topic} at {next}");
        said.extend(noted.0.into_inner().unwrap().into_iter().next());
        next = outcome.next;
    }
    said
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<(Option<i64>, Vec<u8>)> {
    let tags_code = protocol::message::tags_code("tag");
    numbers.map(|n| (Some(tags_code), bit_map(&body(n)))).collect()
}

fn files(node: NodeId) -> Vec<String> {
    let paths = disk::list(node, format!("{ROOT}/consumequeue_ext/{TOPIC}/0")).unwrap_or_default();
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().trim_start_matches('0').to_owned()).collect()
}

async fn damage(config: &StoreConfig) -> Vec<String> {
    let found = inspect(&config.root, None, config.index, |_, _| {}).await.unwrap();
    found.damage.iter().map(ToString::to_string).collect()
}

#[test]
fn a_filter_is_told_the_tag_and_the_bit_map_of_each_message() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..40).await;
            assert_eq!(said(&store, TOPIC).await, expected(0..40));
            store.check_invariants();
            store.shutdown().await.unwrap();
            drop(store);
            let store = started(extended(FlushMode::Async)).await;
            assert_eq!(said(&store, TOPIC).await, expected(0..40));
            append(&store, 40..60).await;
            assert_eq!(said(&store, TOPIC).await, expected(0..60));
            assert_eq!(read_all(&store, 0).await.len(), 60);
            store.shutdown().await.unwrap();
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
    });
}

/// The tag of those that are in the extension is read, and new entries have theirs in themselves.
#[test]
fn what_was_written_is_read_when_the_setting_is_off_again() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..30).await;
            store.shutdown().await.unwrap();
            drop(store);
            let plain = StoreConfig { extend_queues: false, ..extended(FlushMode::Async) };
            let store = started(plain).await;
            append(&store, 30..40).await;
            let said = said(&store, TOPIC).await;
            // What recovery dispatched anew has none either.
            let with = said.iter().filter(|(_, bit_map)| !bit_map.is_empty()).count();
            assert!(with > 5, "{with}");
            assert_eq!(said[..10], expected(0..10));
            assert!(said.iter().all(|(tags_code, _)| *tags_code == Some(protocol::message::tags_code("tag"))));
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
    });
}

/// Half of the messages are wanted by their bit maps.
#[test]
fn a_reader_gets_what_its_filter_wants() {
    struct Long;
    impl EntryFilter for Long {
        fn wants(&self, _: PhysicalOffset, _: Option<i64>, bit_map: &[u8]) -> bool {
            bit_map.first().is_none_or(|first| *first > 100)
        }
    }
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..20).await;
            let outcome = store.get_where(request(0, 0), &Long).await.unwrap();
            let found: Vec<_> =
                outcome.records.iter().map(|record| RecordView::parse(record).unwrap().body().to_vec()).collect();
            let wanted: Vec<_> =
                (0..20).map(body).filter(|body| Long.wants(PhysicalOffset(0), None, &bit_map(body))).collect();
            assert_eq!(found, wanted);
            assert!(wanted.len() > 5 && wanted.len() < 20);
            assert_eq!(outcome.next.0, 20);
        });
        task.await.unwrap();
    });
}

#[test]
fn a_cut_takes_units_with_it_and_the_next_lie_where_they_were() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..50).await;
            let at = store.get(request(0, 20)).await.unwrap().records.remove(0);
            let at = RecordView::parse(&at).unwrap().physical_offset();
            store.truncate_to(at).await.unwrap();
            assert_eq!(said(&store, TOPIC).await, expected(0..20));
            store.settle_replica().await.unwrap();
            append(&store, 20..45).await;
            assert_eq!(said(&store, TOPIC).await, expected(0..45));
            store.check_invariants();
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
        assert_eq!(files(node), ["", "512", "1024"]);
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
fn units_of_expired_messages_go_with_them() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let retention =
                RetentionConfig { delete_hours: (0..24).collect(), reserved: SECOND, ..RetentionConfig::default() };
            let store = started(StoreConfig { retention, ..extended(FlushMode::Async) }).await;
            append(&store, 0..60).await;
            sleep(3 * SECOND).await;
            while store.remove_expired(&Nobody).await.unwrap().segments > 0 {}
            let (min, _) = store.queue_bounds(TOPIC, 0).unwrap();
            assert_eq!(said(&store, TOPIC).await, expected(u64::try_from(min.0).unwrap()..60));
            store.shutdown().await.unwrap();
            drop(store);
            let store = started(extended(FlushMode::Async)).await;
            assert_eq!(said(&store, TOPIC).await, expected(u64::try_from(min.0).unwrap()..60));
        });
        task.await.unwrap();
        assert!(!files(node).contains(&String::new()), "the first file is gone: {:?}", files(node));
    });
}

#[test]
fn a_topics_removal_takes_its_extension_and_one_without_a_queue_goes_at_the_start() {
    for_seeds_reaching(&["store.extension.orphan_removed"], 2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..30).await;
            store.remove_topic(TOPIC).await.unwrap();
            assert!(disk::list(node, format!("{ROOT}/consumequeue_ext/{TOPIC}")).is_err());
            append(&store, 30..40).await;
            assert_eq!(said(&store, TOPIC).await, expected(30..40));
            store.shutdown().await.unwrap();
            drop(store);
            rt::fs::create_dir_all(format!("{ROOT}/consumequeue_ext/Other/0")).unwrap();
            let file = format!("{ROOT}/consumequeue_ext/Other/0/00000000000000000000");
            disk::write_file(node, &file, &[1; 512]).unwrap();
            let store = started(extended(FlushMode::Async)).await;
            assert!(rt::fs::metadata(&file).is_err());
            assert_eq!(said(&store, TOPIC).await, expected(30..40));
        });
        task.await.unwrap();
    });
}

/// A reader is told nothing of such a message, gets it, and no later unit takes the place.
#[test]
fn entries_whose_units_are_lost_are_read_without() {
    for_seeds_reaching(&["store.extension.unit_missing"], 2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 0..30).await;
            store.shutdown().await.unwrap();
            drop(store);
            for name in ["00000000000000000000", "00000000000000000512"] {
                rt::fs::remove_file(format!("{ROOT}/consumequeue_ext/{TOPIC}/0/{name}")).unwrap();
            }
            let store = started(extended(FlushMode::Async)).await;
            append(&store, 30..60).await;
            let said = said(&store, TOPIC).await;
            let lost = said.iter().take_while(|(tags_code, _)| tags_code.is_none()).count();
            assert!(lost > 5, "{lost}");
            assert_eq!(said[lost..], expected(u64::try_from(lost).unwrap()..60));
            assert_eq!(read_all(&store, 0).await, (0..60).map(body).collect::<Vec<_>>());
            let told = damage(store.config()).await;
            assert!(told[0].contains("offset 0: its entry names a unit there, which is not its"), "{told:?}");
        });
        task.await.unwrap();
    });
}

#[test]
fn every_disk_operation_may_be_the_last() {
    ended_at_each_disk_operation(60, |node, end| async move {
        let (operations, acknowledged) =
            filled_until_the_end((node, end), open(extended(FlushMode::Sync)), 30, |n| message(0, body(n))).await;
        let task = rt::world::spawn_on(node, async move {
            let store = started(extended(FlushMode::Sync)).await;
            let count = store.queue_bounds(TOPIC, 0).map_or(0, |(_, max)| u64::try_from(max.0).unwrap());
            assert!(count >= acknowledged, "{count} of {acknowledged}");
            append(&store, count..count + 20).await;
            assert_eq!(said(&store, TOPIC).await, expected(0..count + 20));
            assert_eq!(read_all(&store, 0).await.len() as u64, count + 20);
            store.check_invariants();
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
        operations
    });
}

#[test]
fn damage_of_an_extension_is_named_and_repaired() {
    run_test(|| async {
        let store = started(extended(FlushMode::Async)).await;
        append(&store, 0..20).await;
        store.shutdown().await.unwrap();
        drop(store);
        let file = format!("{ROOT}/consumequeue_ext/{TOPIC}/0/00000000000000000000");
        let mut bytes = disk::read_file(NodeId::WORLD, &file).unwrap();
        bytes[9] ^= 0xff;
        disk::write_file(NodeId::WORLD, &file, &bytes).unwrap();
        let config = config(FlushMode::Async).with_sizes_of_files().unwrap();
        assert_eq!((config.extend_queues, config.extension_file_size), (true, 512));
        let told = damage(&config).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(&format!("{TOPIC} queue 0 offset 0: its entry names a unit there")), "{told:?}");
        repair(config.clone()).await.unwrap();
        assert_eq!(damage(&config).await, [""; 0]);
    });
}

/// Bit maps of Apache's files by the place of the record.
struct OfManifest(BTreeMap<i64, Vec<u8>>);

impl BitMaps for OfManifest {
    fn bit_map(&self, record: &RecordView<'_>) -> Vec<u8> {
        self.0.get(&record.physical_offset().0).cloned().unwrap_or_default()
    }
}

/// What Apache's broker has of each queue: bit map and hash, by the place of the record.
fn units_of_apache() -> BTreeMap<(String, i64), (i64, Vec<u8>)> {
    let manifest = golden::manifest("features");
    let mut units = BTreeMap::new();
    for (name, entries) in manifest["consumeQueueExt"].as_object().unwrap() {
        let topic = name.strip_suffix("/0").unwrap();
        for unit in entries.as_array().unwrap().iter().filter(|unit| unit["address"].is_i64()) {
            let entries = manifest["consumeQueue"][name]["entries"].as_array().unwrap();
            let entry = entries.iter().find(|entry| entry[2] == unit["address"]).unwrap();
            let text = unit["bitMap"].as_str().unwrap();
            let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
            let key = (topic.to_owned(), entry[0].as_i64().unwrap());
            units.insert(key, (unit["tagsCode"].as_i64().unwrap(), bytes.collect()));
        }
    }
    units
}

/// Read as they are, and made anew from the log, byte for byte.
#[test]
fn the_extensions_of_apache_are_read_and_come_again_with_the_same_bytes() {
    let files = golden::files("features");
    let units = units_of_apache();
    assert_eq!(units.len(), 12 + 30 + 4);
    let is_queue = |path: &Path| {
        ["consumequeue/Golden", "consumequeue_ext"].iter().any(|part| path.to_string_lossy().starts_with(part))
    };
    let queues: Vec<(PathBuf, Vec<u8>)> =
        files.iter().filter(|(path, _)| is_queue(path)).map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    for are_there in [true, false] {
        let (mut files, queues, units) = (files.clone(), queues.clone(), units.clone());
        files.retain(|path, _| are_there || !is_queue(path));
        run_test(move || async move {
            golden::plant(&files);
            let config =
                StoreConfig { extend_queues: true, extension_file_size: 512, multi_dispatch: true, ..golden::config() };
            let mut store = UnrecoveredStore::open(config).await.unwrap();
            let by_place = units.iter().map(|((_, at), (_, bit_map))| (*at, bit_map.clone())).collect();
            store.set_bit_maps(Arc::new(OfManifest(by_place)));
            let store = store.recover().await.unwrap();
            for topic in ["GoldenFilter", "GoldenCompact", "GoldenLmq"] {
                let of_topic = units.iter().filter(|((of, _), _)| of == topic);
                let expected: Vec<_> = of_topic.map(|(_, (code, bit_map))| (Some(*code), bit_map.clone())).collect();
                assert_eq!(said(&store, topic).await, expected, "{topic}");
            }
            store.shutdown().await.unwrap();
            for (path, bytes) in &queues {
                let found = disk::read_file(NodeId::WORLD, Path::new(golden::ROOT).join(path)).unwrap();
                assert_eq!(found, *bytes, "{}", path.display());
            }
        });
    }
}
