//! Light queues: what the log says of them is what they show, whatever happened in between.
use crate::golden;
use crate::support::{
    ROOT, SECOND, TOPIC, body, config, ended_at_each_disk_operation, filled_until_the_end, for_seeds, message, open,
    request, started,
};
use protocol::QueueOffset;
use protocol::message::{Properties, RecordView};
use rt::time::sleep;
use rt::world::{NodeId, disk, run_test};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{
    AppendError, FlushMode, GetRequest, GetStatus, NewMessage, ReadError, Removal, Retainer, RetentionConfig, Store,
    StoreConfig, inspect, repair,
};

const A: &str = "%LMQ%a";
const B: &str = "%LMQ%b";

fn dispatching(flush_mode: FlushMode) -> StoreConfig {
    StoreConfig { multi_dispatch: true, ..config(flush_mode) }
}

/// A message that is in these light queues too.
fn named(n: u64, names: &str) -> NewMessage {
    let one = message(0, body(n));
    NewMessage { properties: format!("{}INNER_MULTI_DISPATCH\u{1}{names}\u{2}", one.properties), ..one }
}

/// Message `n` is in A; every second one is in B too.
fn numbered(n: u64) -> NewMessage {
    named(n, if n.is_multiple_of(2) { "%LMQ%a,%LMQ%b" } else { A })
}

fn in_b(until: u64) -> Vec<Vec<u8>> {
    (0..until).filter(|n| n.is_multiple_of(2)).map(body).collect()
}

async fn filled(config: StoreConfig, numbers: std::ops::Range<u64>) -> Arc<Store> {
    let store = started(config).await;
    append(&store, numbers).await;
    store
}

async fn append(store: &Store, numbers: std::ops::Range<u64>) {
    for n in numbers {
        store.append(numbered(n)).unwrap();
    }
    sleep(SECOND).await;
}

/// Every body of a light queue, in order.
async fn read(store: &Store, queue: &str) -> Vec<Vec<u8>> {
    let Some((min, max)) = store.queue_bounds(queue, 0) else { return Vec::new() };
    let (mut bodies, mut next) = (Vec::new(), min);
    while next < max {
        let outcome = store.get(GetRequest { topic: queue.to_owned(), ..request(0, next.0) }).await.unwrap();
        assert_eq!(outcome.status, GetStatus::Found, "{queue} at {next} of {min}..{max}");
        bodies.extend(outcome.records.iter().map(|record| RecordView::parse(record).unwrap().body().to_vec()));
        next = outcome.next;
    }
    bodies
}

async fn damage(config: &StoreConfig) -> Vec<String> {
    let found = inspect(&config.root, None, config.index, |_, _| {}).await.unwrap();
    found.damage.iter().map(ToString::to_string).collect()
}

/// The properties that a record of the log has.
async fn properties_at(store: &Store, offset: i64) -> Properties {
    let record = store.get(request(0, offset)).await.unwrap().records.remove(0);
    Properties::parse_bytes(RecordView::parse(&record).unwrap().properties())
}

#[test]
fn a_message_is_in_each_light_queue_that_it_names_under_the_offset_that_its_record_says() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(dispatching(FlushMode::Async), 0..30).await;
            assert_eq!(read(&store, A).await, (0..30).map(body).collect::<Vec<_>>());
            assert_eq!(read(&store, B).await, in_b(30));
            assert_eq!(properties_at(&store, 28).await.get("INNER_MULTI_QUEUE_OFFSET"), Some("28,14"));
            assert_eq!(read(&store, TOPIC).await.len(), 30);
            store.check_invariants();
            store.shutdown().await.unwrap();
            drop(store);
            let store = started(dispatching(FlushMode::Async)).await;
            assert!(store.recovery_report().is_clean);
            append(&store, 30..40).await;
            assert_eq!(read(&store, B).await, in_b(40));
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
    });
}

#[test]
fn names_that_are_no_light_queue_and_offsets_that_a_client_sends_count_for_nothing() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(dispatching(FlushMode::Async)).await;
            store.append(named(0, "%LMQ%a/../b,Other,%LMQ%a,%LMQ%a")).unwrap();
            let forged = named(1, A);
            let properties = format!("{}INNER_MULTI_QUEUE_OFFSET\u{1}900\u{2}", forged.properties);
            store.append(NewMessage { properties, ..forged }).unwrap();
            store.append(NewMessage { topic: "%RETRY%g".to_owned(), ..named(2, A) }).unwrap();
            sleep(SECOND).await;
            assert_eq!(read(&store, A).await, [body(0), body(1)]);
            assert_eq!(properties_at(&store, 0).await.get("INNER_MULTI_QUEUE_OFFSET"), Some("0,,0,0"));
            assert_eq!(store.queues().len(), 3);
            assert_eq!(disk::list(node, format!("{ROOT}/consumequeue")).unwrap().len(), 3);
        });
        task.await.unwrap();
    });
}

#[test]
fn without_the_setting_no_offset_is_given_and_none_counts() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(config(FlushMode::Async), 0..3).await;
            assert_eq!(store.queue_bounds(A, 0), None);
            assert_eq!(properties_at(&store, 0).await.get("INNER_MULTI_QUEUE_OFFSET"), None);
        });
        task.await.unwrap();
    });
}

/// The offsets make a record longer, after its size was looked at.
#[test]
fn what_gets_too_long_by_its_offsets_is_refused_and_takes_no_place() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let config = StoreConfig { max_message_size: 600, segment_size: 1 << 18, ..dispatching(FlushMode::Async) };
            let store = started(config).await;
            let long = NewMessage { body: vec![b'x'; 500].into(), ..named(0, A) };
            let refused = store.append(long.clone()).unwrap_err();
            assert!(matches!(refused, AppendError::LightRecordTooLong { limit: 600, .. }), "{refused}");
            // With these names alone the properties are within their limit.
            let names = (0..2000).map(|n| format!("%LMQ%{n:09}")).collect::<Vec<_>>().join(",");
            let refused = store.append(named(0, &names)).unwrap_err();
            assert!(matches!(refused, AppendError::PropertiesTooLong { limit: 32_767, .. }), "{refused}");
            store.append(NewMessage { properties: String::new(), ..long }).unwrap();
            let appended = store.append(named(1, A)).unwrap();
            assert_eq!(appended.queue_offset, QueueOffset(1));
            sleep(SECOND).await;
            assert_eq!(read(&store, A).await, [body(1)]);
        });
        task.await.unwrap();
    });
}

#[test]
fn a_slave_has_the_same_light_queues_and_goes_on_with_them() {
    for_seeds(3, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(dispatching(FlushMode::Async), 0..30).await;
            let slave_config = StoreConfig { root: "/data/slave".into(), ..dispatching(FlushMode::Async) };
            let slave = started(slave_config).await;
            while slave.log_end() < master.confirm_end() {
                let at = slave.log_end();
                slave.append_replica(at, &master.read_log(at, 700).await.unwrap()).unwrap();
            }
            sleep(SECOND).await;
            slave.settle_replica().await.unwrap();
            append(&slave, 30..33).await;
            assert_eq!(read(&slave, A).await, (0..33).map(body).collect::<Vec<_>>());
            assert_eq!(read(&slave, B).await, in_b(33));
            // What is cut off is in no queue any more.
            let middle = slave.get(request(0, 20)).await.unwrap().records.remove(0);
            let middle = RecordView::parse(&middle).unwrap().physical_offset();
            slave.truncate_to(middle).await.unwrap();
            assert_eq!(read(&slave, A).await, (0..20).map(body).collect::<Vec<_>>());
            assert_eq!(read(&slave, B).await, in_b(20));
            sleep(SECOND).await;
            slave.settle_replica().await.unwrap();
            append(&slave, 20..22).await;
            assert_eq!(read(&slave, B).await, in_b(22));
        });
        task.await.unwrap();
    });
}

/// A topic's removal leaves the light queues of its messages, and that of a light queue leaves the others.
#[test]
fn a_light_queue_is_removed_by_itself_and_begins_anew() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(dispatching(FlushMode::Async), 0..10).await;
            store.remove_topic(B).await.unwrap();
            assert_eq!(store.queue_bounds(B, 0), None);
            append(&store, 10..14).await;
            store.remove_topic(TOPIC).await.unwrap();
            store.flushed(store.log_end(), SECOND).await.unwrap();
        });
        task.await.unwrap();
        rt::world::power_loss(node);
        let task = rt::world::spawn_on(node, async {
            for _ in 0..2 {
                let store = open(dispatching(FlushMode::Async)).await.unwrap();
                assert_eq!(read(&store, A).await, (0..14).map(body).collect::<Vec<_>>());
                assert_eq!(read(&store, B).await, [body(10), body(12)]);
                assert_eq!(store.queue_bounds(TOPIC, 0), None);
                store.shutdown().await.unwrap();
                // Once more, all of them from the log.
                rt::fs::remove_file(format!("{ROOT}/consumequeue/{A}/0/00000000000000000000")).unwrap();
            }
        });
        task.await.unwrap();
    });
}

/// Nobody needs what has expired.
struct Nobody;

impl Retainer for Nobody {
    async fn keep_from(&self, _: Removal) -> Result<protocol::PhysicalOffset, ReadError> {
        Ok(protocol::PhysicalOffset(i64::MAX))
    }
}

#[test]
fn a_light_queue_loses_what_expires_and_keeps_its_offsets() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let retention =
                RetentionConfig { delete_hours: (0..24).collect(), reserved: SECOND, ..RetentionConfig::default() };
            let config = StoreConfig { retention, ..dispatching(FlushMode::Async) };
            let store = filled(config, 0..90).await;
            sleep(3 * SECOND).await;
            while store.remove_expired(&Nobody).await.unwrap().segments > 0 {}
            let (min, max) = store.queue_bounds(B, 0).unwrap();
            assert!(min.0 > 20, "its minimum moves: {min}");
            assert_eq!(max.0, 45);
            assert_eq!(read(&store, B).await, in_b(90)[usize::try_from(min.0).unwrap()..]);
            let files = rt::fs::read_dir(format!("{ROOT}/consumequeue/{B}/0")).unwrap();
            assert!(!files[0].ends_with("00000000000000000000"), "files without live entries go");
        });
        task.await.unwrap();
    });
}

/// What was told to be durable is in its light queues, wherever the node ended.
#[test]
fn every_disk_operation_may_be_the_last() {
    ended_at_each_disk_operation(60, |node, end| async move {
        let (operations, acknowledged) =
            filled_until_the_end((node, end), open(dispatching(FlushMode::Sync)), 24, numbered).await;
        let task = rt::world::spawn_on(node, async move {
            let store = started(dispatching(FlushMode::Sync)).await;
            let found = read(&store, A).await;
            let count = u64::try_from(found.len()).unwrap();
            assert!(count >= acknowledged, "{count} of {acknowledged}");
            assert_eq!(found, (0..count).map(body).collect::<Vec<_>>());
            assert_eq!(read(&store, B).await, in_b(count));
            append(&store, count..count + 3).await;
            assert_eq!(read(&store, B).await, in_b(count + 3));
            assert_eq!(damage(store.config()).await, [""; 0]);
        });
        task.await.unwrap();
        operations
    });
}

#[test]
fn damage_of_a_light_queue_is_named_and_repaired() {
    run_test(|| async {
        let store = filled(dispatching(FlushMode::Async), 0..10).await;
        store.shutdown().await.unwrap();
        drop(store);
        let file = format!("{ROOT}/consumequeue/{B}/0/00000000000000000000");
        let sound = disk::read_file(NodeId::WORLD, &file).unwrap();
        let mut damaged = sound.clone();
        damaged[27] ^= 0xff;
        disk::write_file(NodeId::WORLD, &file, &damaged).unwrap();
        // What a tool that has no configuration goes by.
        let config = config(FlushMode::Async).with_sizes_of_files().unwrap();
        let told = damage(&config).await;
        assert!(told.iter().any(|line| line.contains("%LMQ%b queue 0 offset 1: its entry names")), "{told:?}");
        rt::fs::remove_file(&file).unwrap();
        rt::fs::remove_dir(format!("{ROOT}/consumequeue/{B}/0")).unwrap();
        rt::fs::remove_dir(format!("{ROOT}/consumequeue/{B}")).unwrap();
        let told = damage(&config).await;
        assert!(told.iter().any(|line| line.contains("%LMQ%b queue 0: there is none")), "{told:?}");
        repair(config.clone()).await.unwrap();
        assert_eq!(damage(&config).await, [""; 0]);
        assert_eq!(disk::read_file(NodeId::WORLD, &file).unwrap(), sound);
    });
}

/// Apache's log gives the light queues that Apache's broker made of it.
#[test]
fn the_light_queues_of_apache_come_again_with_the_same_bytes() {
    let mut files = golden::files("features");
    let is_light = |path: &Path| path.starts_with("consumequeue") && path.to_string_lossy().contains("%LMQ%");
    let light: Vec<(PathBuf, Vec<u8>)> =
        files.iter().filter(|(path, _)| is_light(path)).map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    assert_eq!(light.len(), 3);
    files.retain(|path, _| !is_light(path));
    run_test(move || async move {
        golden::plant(&files);
        let store = open(StoreConfig { multi_dispatch: true, ..golden::config() }).await.unwrap();
        assert_eq!(read(&store, "%LMQ%device1").await.len(), 4);
        store.shutdown().await.unwrap();
        for (path, bytes) in &light {
            let found = disk::read_file(NodeId::WORLD, Path::new(golden::ROOT).join(path)).unwrap();
            assert_eq!(found, *bytes, "{}", path.display());
        }
    });
}
