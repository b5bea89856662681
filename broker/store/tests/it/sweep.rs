//! A life of 2,000 operations, ended at its disk operations in turn: no promise is broken, and the store goes on.
//!
//! `cargo test` takes every 499th of them; `HOTFIRE_SWEEP=1 cargo test -p store --test it -- sweep` takes each.
use crate::support::{SECOND, body, check_keys, config, message, open, seeded};
use protocol::PhysicalOffset;
use protocol::message::RecordView;
use rt::sync::CancellationToken;
use rt::time::Duration;
use rt::world::{CrashKind, CrashPoint, NodeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::{
    FlushMode, GetRequest, GetStatus, IndexConfig, NewMessage, ReadError, Removal, Retainer, RetentionConfig, Store,
    StoreConfig,
};

/// Topic, queue and offset of a message, and its body.
type Messages = BTreeMap<(String, i32, i64), Vec<u8>>;

const OPERATIONS: u64 = 2_000;
const SEEDS: u64 = 3;
/// Prime, so that it meets operations of every kind.
const STEP: u64 = 499;
const TOPICS: [&str; 3] = ["Orders", "Payments", "SCHEDULE_TOPIC_XXXX"];

/// What the life was told.
#[derive(Default)]
struct Told {
    appended: Messages,
    durable: Messages,
    /// Where each record begins.
    places: BTreeMap<(String, i32, i64), PhysicalOffset>,
}

/// Nobody needs what has expired.
struct Nobody;

impl Retainer for Nobody {
    async fn keep_from(&self, _: Removal) -> Result<PhysicalOffset, ReadError> {
        Ok(PhysicalOffset(i64::MAX))
    }
}

type History = Arc<Mutex<Told>>;

/// Few index files: each message is looked for in all of them.
fn sweep_config() -> StoreConfig {
    let index = Some(IndexConfig { hash_slots: 500, entries: 1_000 });
    let retention = RetentionConfig {
        delete_hours: (0..24).collect(),
        reserved: Duration::ZERO,
        batch_max: 5,
        ..RetentionConfig::default()
    };
    StoreConfig { index, retention, ..config(FlushMode::Sync) }
}

/// Message `part` of operation `n`.
fn numbered(n: u64, part: u64) -> NewMessage {
    let topic = TOPICS[usize::try_from(n % 7 % 3).unwrap()].to_owned();
    let one = message(i32::try_from(n % 3).unwrap(), body(n + part));
    let delay = if topic.starts_with("SCHEDULE") { "DELAY\u{1}2\u{2}" } else { "" };
    NewMessage { properties: format!("{}{delay}", one.properties), topic, ..one }
}

/// Single messages, batches, delayed ones, syncs, removals of what has expired, and now and then an orderly stop and a start. Calls may fail once the node is about to
/// end.
async fn live(history: History) {
    let mut n = 0;
    while n < OPERATIONS {
        let Ok(store) = open(sweep_config()).await else { return };
        store.start(&CancellationToken::new());
        let stop = n + 700;
        while n < OPERATIONS.min(stop) {
            let parts = if n.is_multiple_of(11) { 3 } else { 1 };
            let messages: Vec<_> = (0..parts).map(|part| numbered(n, part)).collect();
            let bodies: Vec<_> =
                messages.iter().map(|one| (one.topic.clone(), one.queue_id, one.body.to_vec())).collect();
            let Ok(places) = store.append_batch(messages) else { return };
            let end = places.last().expect("one at least").end;
            for ((topic, queue_id, body), place) in bodies.into_iter().zip(places) {
                let key = (topic, queue_id, place.queue_offset.0);
                let mut told = history.lock().unwrap();
                told.places.insert(key.clone(), place.physical);
                assert_eq!(told.appended.insert(key, body), None, "a queue offset is given once");
            }
            if n % 5 == 0 && store.flushed(end, SECOND).await.is_ok() {
                // A sync covers all that was appended before.
                let mut told = history.lock().unwrap();
                told.durable = told.appended.clone();
            }
            if n % 450 == 449 && store.remove_expired(&Nobody).await.is_err() {
                return;
            }
            n += 1;
        }
        if store.shutdown().await.is_err() {
            return;
        }
        let mut told = history.lock().unwrap();
        told.durable = told.appended.clone();
    }
}

async fn messages(store: &Store) -> Messages {
    let mut found = Messages::new();
    for (topic, queue_id) in store.queues() {
        let Some((min, max)) = store.queue_bounds(&topic, queue_id) else { continue };
        let mut next = min;
        while next < max {
            let request = GetRequest { topic: topic.to_string(), ..crate::support::request(queue_id, next.0) };
            let run = store.get(request).await.unwrap();
            assert_eq!(run.status, GetStatus::Found, "{topic} queue {queue_id} at {next} of {min}..{max}");
            for (record, offset) in run.records.iter().zip(&run.offsets) {
                let body = RecordView::parse(record).unwrap().body().to_vec();
                found.insert((topic.to_string(), queue_id, offset.0), body);
            }
            next = run.next;
        }
    }
    found
}

/// After the end: what was promised is there, nothing was invented, and the store takes and keeps another message.
async fn check(node: NodeId, told: Told) {
    let task = rt::world::spawn_on(node, async move {
        let store = open(sweep_config()).await.unwrap();
        store.check_invariants();
        let found = messages(&store).await;
        let has_expired = |place| told.places[place] < store.log_min();
        for (place, body) in told.durable.iter().filter(|(place, _)| !has_expired(*place)) {
            assert_eq!(found.get(place), Some(body), "{place:?} was acknowledged");
        }
        for (place, body) in &found {
            assert_eq!(told.appended.get(place), Some(body), "{place:?} was never appended like this");
        }
        check_keys(&store).await;
        store.start(&CancellationToken::new());
        let appended = store.append(numbered(1, 0)).unwrap();
        store.flushed(appended.end, SECOND).await.unwrap();
        rt::time::sleep(SECOND).await;
        assert_eq!(messages(&store).await.len(), found.len() + 1);
        store.shutdown().await.unwrap();
    });
    task.await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "how many points a run takes is asked for outside of the world")]
fn step() -> u64 {
    std::env::var("HOTFIRE_SWEEP").map_or(STEP, |step| step.parse().expect("HOTFIRE_SWEEP is a number, 1 or more"))
}

#[test]
fn each_disk_operation_of_a_life_may_be_the_last() {
    let total = rt::world::run(seeded(1), || async {
        let node = rt::world::add_node("broker");
        rt::world::spawn_on(node, live(History::default())).await.unwrap();
        let operations = rt::world::disk_operations(node);
        let log_min = rt::world::spawn_on(node, async { open(sweep_config()).await.unwrap().log_min() });
        assert!(log_min.await.unwrap() > PhysicalOffset::ZERO, "something was removed");
        operations
    });
    let total = total.value.expect("the life ends");
    assert!(total > OPERATIONS, "each operation writes");
    for seed in 1..=SEEDS {
        for kind in [CrashKind::Process, CrashKind::Power] {
            // Each combination begins elsewhere.
            let first = 1 + (seed * 67 + u64::from(kind == CrashKind::Power) * 31) % step();
            for point in (first..=total).step_by(usize::try_from(step()).unwrap()) {
                let outcome = rt::world::run(seeded(seed), move || async move {
                    let (node, history) = (rt::world::add_node("broker"), History::default());
                    rt::world::crash_at(node, CrashPoint::DiskOperation(point), kind);
                    let _ = rt::world::spawn_on(node, live(Arc::clone(&history))).await;
                    let told = std::mem::take(&mut *history.lock().unwrap());
                    check(node, told).await;
                });
                if let Some(finding) = outcome.finding {
                    panic!("seed {seed}, {kind:?} at disk operation {point} of {total}: {finding}");
                }
            }
        }
    }
}
