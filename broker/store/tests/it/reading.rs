//! Reads: statuses, limits, filters, times.
use crate::support::{SECOND, TOPIC, body, config, for_seeds, get, message, open, read_all, request, seeded, started};
use protocol::{QueueOffset, tags_code};
use rt::time::{Duration, sleep};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use store::{
    AppendError, Arrival, Arrivals, FlushMode, GetRequest, GetStatus, NewMessage, StoreConfig, TagFilter, TimeBoundary,
};

#[derive(Default)]
struct Heard(Mutex<Vec<(i32, i64)>>);

impl Arrivals for Heard {
    fn arrived(&self, arrival: &Arrival) {
        assert_eq!(arrival.tags_code, Some(tags_code("tag")));
        self.0.lock().unwrap().push((arrival.queue_id, arrival.queue_offset.0));
    }
}

#[test]
fn statuses_and_next_offsets() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(config(FlushMode::Async)).await;
            let heard = Arc::new(Heard::default());
            store.set_arrivals(heard.clone());
            for n in 0..50 {
                store.append(message(0, body(n))).unwrap();
            }
            sleep(Duration::from_millis(50)).await;
            assert_eq!(*heard.0.lock().unwrap(), (0..50).map(|n| (0, n)).collect::<Vec<_>>());
            let check = async |queue_id, from, status, next: i64| {
                let outcome = get(&store, queue_id, from).await;
                assert_eq!((outcome.status, outcome.next), (status, QueueOffset(next)), "queue {queue_id} from {from}");
            };
            check(0, -1, GetStatus::OffsetTooSmall, 0).await;
            // One consume-queue file holds 20 entries.
            check(0, 0, GetStatus::Found, 20).await;
            check(0, 45, GetStatus::Found, 50).await;
            check(0, 50, GetStatus::OffsetOverflowOne, 50).await;
            check(0, 51, GetStatus::OffsetOverflowBadly, 50).await;
            check(7, 3, GetStatus::NoMatchedLogicQueue, 0).await;
            let other = TagFilter::Codes(BTreeSet::from([tags_code("other")]));
            let outcome = store.get(GetRequest { tags: other, ..request(0, 3) }).await.unwrap();
            assert_eq!((outcome.status, outcome.next.0), (GetStatus::NoMatchedMessage, 20));
            let limited = store.get(GetRequest { max_messages: 3, ..request(0, 0) }).await.unwrap();
            assert_eq!((limited.records.len(), limited.next.0), (3, 3));
            let limited = store.get(GetRequest { max_bytes: 1, ..request(0, 0) }).await.unwrap();
            assert_eq!((limited.records.len(), limited.next.0), (1, 1));
            assert!(!limited.suggest_slave);
            store.check_invariants();
        });
        task.await.unwrap();
    });
}

#[test]
fn far_behind_reader_is_sent_to_a_slave_and_gets_less() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let config = StoreConfig { memory_bytes: 10_000, ..config(FlushMode::Async) };
            let store = started(config).await;
            for n in 0..60 {
                store.append(message(0, body(n))).unwrap();
            }
            sleep(Duration::from_millis(50)).await;
            let far = get(&store, 0, 0).await;
            assert!(far.suggest_slave);
            assert_eq!(far.records.len(), 8);
            assert!(!get(&store, 0, 58).await.suggest_slave);
        });
        task.await.unwrap();
    });
}

#[test]
fn offsets_by_time() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(config(FlushMode::Async)).await;
            let mut times = Vec::new();
            for n in 0..45 {
                times.push(store.append(message(0, body(n))).unwrap().store_timestamp);
                sleep(Duration::from_millis(if n % 3 == 0 { 10 } else { 0 })).await;
            }
            sleep(Duration::from_millis(50)).await;
            let index = |n: usize| QueueOffset(i64::try_from(n).unwrap());
            for time in times[0] - 2..times[44] + 2 {
                let lower = store.offset_by_time(TOPIC, 0, time, TimeBoundary::Lower).await.unwrap();
                assert_eq!(lower, index(times.partition_point(|t| *t < time)));
                let upper = store.offset_by_time(TOPIC, 0, time, TimeBoundary::Upper).await.unwrap();
                assert_eq!(upper, index(times.partition_point(|t| *t <= time).max(1) - 1));
            }
            assert_eq!(store.earliest_store_time(TOPIC, 0).await.unwrap(), Some(times[0]));
            assert_eq!(store.earliest_log_store_time().await.unwrap(), Some(times[0]));
            assert_eq!(store.store_time_at(TOPIC, 0, QueueOffset(44)).await.unwrap(), Some(times[44]));
            assert_eq!(store.store_time_at(TOPIC, 0, QueueOffset(45)).await.unwrap(), None);
            assert_eq!(store.record_at(1.into()).await.unwrap(), None);
        });
        task.await.unwrap();
    });
}

#[test]
fn limits_are_named() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = open(StoreConfig { max_message_size: 100, ..config(FlushMode::Async) }).await.unwrap();
            let refused = |change: fn(&mut NewMessage)| {
                let mut message = message(0, vec![1; 10]);
                change(&mut message);
                store.append(message).unwrap_err().to_string()
            };
            let texts = [
                refused(|m| m.body = vec![0; 101].into()),
                refused(|m| m.properties = "x".repeat(32_768)),
                refused(|m| m.topic = "t".repeat(128)),
                refused(|m| m.topic = format!("%RETRY%{}", "g".repeat(249))),
                refused(|m| m.topic = "../x".to_owned()),
                refused(|m| m.queue_id = -1),
                refused(|m| m.properties = "a\u{1}b\0".to_owned()),
                refused(|m| m.properties = "x".repeat(5000)),
            ];
            assert_eq!(
                texts,
                [
                    "message body has 101 bytes, maxMessageSize is 100",
                    "message properties have 32768 bytes, the limit is 32767",
                    "topic has 128 bytes, the limit is 127",
                    "topic has 256 bytes, the limit is 255",
                    "topic \"../x\" cannot be the name of a directory",
                    "queue id -1 is negative",
                    "message properties have zero bytes where a torn write would leave them",
                    "record of 5107 bytes does not fit a segment of 4096",
                ]
            );
            assert!(matches!(store.append_batch(Vec::new()), Err(AppendError::BadBatch)));
            assert_eq!(store.log_end().0, 0);
        });
        task.await.unwrap();
    });
}

#[test]
fn batch_is_not_split_over_segments() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = started(config(FlushMode::Async)).await;
            store.append(message(0, vec![1; 3000])).unwrap();
            let batch = store.append_batch((0..5).map(|n| message(0, vec![n; 200])).collect()).unwrap();
            assert_eq!(batch[0].physical.0, 4096);
            assert_eq!(batch.iter().map(|appended| appended.queue_offset.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
            sleep(Duration::from_millis(50)).await;
            assert_eq!(get(&store, 0, 0).await.records.len(), 6);
        });
        task.await.unwrap();
    });
}

#[test]
fn a_query_by_key_ends_with_its_bytes_but_gives_one() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            for _ in 0..5 {
                store.append(message(0, body(7))).unwrap();
            }
            store.flushed(store.log_end(), SECOND).await.unwrap();
            sleep(SECOND).await;
            let found = async |bytes_max| {
                let limits = (64, bytes_max);
                store.records_by_key(TOPIC, "message-7", limits, 0, i64::MAX).await.unwrap().len()
            };
            let one = usize::try_from(store.log_end().0).unwrap() / 5;
            assert_eq!([found(0).await, found(one).await, found(3 * one).await, found(usize::MAX).await], [1, 1, 3, 5]);
        });
        task.await.unwrap();
    });
}

#[test]
fn many_queues_share_few_open_files() {
    let outcome = rt::world::run(seeded(1), || async {
        let few = StoreConfig { open_queue_files_max: 3, ..config(FlushMode::Async) };
        let store = started(few.clone()).await;
        for n in 0..400 {
            store.append(message(i32::try_from(n % 40).unwrap(), body(n))).unwrap();
        }
        sleep(SECOND).await;
        let expected = |queue_id: u64| (0..10).map(|n| body(n * 40 + queue_id)).collect::<Vec<_>>();
        for queue_id in 0..40 {
            assert_eq!(read_all(&store, i32::try_from(queue_id).unwrap()).await, expected(queue_id));
        }
        store.shutdown().await.unwrap();
        drop(store);
        let store = open(few).await.unwrap();
        for queue_id in 0..40 {
            assert_eq!(read_all(&store, i32::try_from(queue_id).unwrap()).await, expected(queue_id));
        }
    });
    outcome.value.expect("the store works");
    assert!(outcome.probes.hits["store.queue_file.opened_again"] > 40);
}
