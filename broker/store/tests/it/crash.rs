//! What a crash leaves: process crash, power loss, failed syncs, full disks, at any moment.
use crate::support::{
    ROOT, SECOND, TOPIC, body, check_keys, config, ended_at_each_disk_operation, for_seeds, get, message, open,
    read_all, seeded, started, view,
};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep};
use rt::world::{CrashKind, CrashPoint, NodeId, disk};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::{AppendError, FlushError, FlushMode, GetStatus, Store, repair};

/// What a producer was told: (queue, offset) to body, and which of them were acknowledged as durable.
#[derive(Default)]
struct Told {
    appended: BTreeMap<(i32, i64), Vec<u8>>,
    durable: BTreeMap<(i32, i64), Vec<u8>>,
    seen: BTreeMap<(i32, i64), Vec<u8>>,
}

type History = Arc<Mutex<Told>>;

/// Appends for ever to two queues from three tasks; notes each durable append.
async fn produce(store: Arc<Store>, history: History, task: u64) {
    for n in 0.. {
        let (queue_id, body) = (i32::try_from(n % 2).unwrap(), body(n * 10 + task));
        let Ok(appended) = store.append(message(queue_id, body.clone())) else { return };
        let key = (queue_id, appended.queue_offset.0);
        let before = history.lock().unwrap().appended.insert(key, body.clone());
        assert_eq!(before, None, "a queue offset is given once");
        if store.flushed(appended.end, SECOND).await.is_ok() {
            history.lock().unwrap().durable.insert(key, body);
        }
        sleep(Duration::from_micros(100 + n % 7 * 50)).await;
    }
}

async fn consume(store: Arc<Store>, history: History) {
    let mut next = [0; 2];
    loop {
        for queue_id in 0..2 {
            let outcome = get(&store, queue_id, next[usize::try_from(queue_id).unwrap()]).await;
            for (record, offset) in outcome.records.iter().zip(&outcome.offsets) {
                let body = protocol::message::RecordView::parse(record).unwrap().body().to_vec();
                history.lock().unwrap().seen.insert((queue_id, offset.0), body);
                next[usize::try_from(queue_id).unwrap()] = offset.0 + 1;
            }
        }
        sleep(Duration::from_micros(300)).await;
    }
}

fn run_broker(node: NodeId, mode: FlushMode, history: &History) {
    let history = Arc::clone(history);
    rt::world::spawn_on(node, async move {
        let store = started(config(mode)).await;
        for task in 0..3 {
            rt::task::spawn(produce(Arc::clone(&store), Arc::clone(&history), task));
        }
        consume(store, history).await;
    });
}

/// The bodies of queues 0 and 1 after recovery, by offset.
async fn recovered(node: NodeId, mode: FlushMode) -> BTreeMap<(i32, i64), Vec<u8>> {
    let task = rt::world::spawn_on(node, async move {
        let store = open(config(mode)).await.unwrap();
        let first = view(&store).await;
        check_keys(&store).await;
        drop(store);
        // Recovery is idempotent.
        let again = open(config(mode)).await.unwrap();
        assert_eq!(view(&again).await, first);
        assert!(again.recovery_report().dropped.is_none(), "the first recovery has cut the tail");
        check_keys(&again).await;
        first.1
    });
    let queues = task.await.unwrap();
    let mut out = BTreeMap::new();
    for (queue_id, bodies) in (0..2).zip(queues) {
        out.extend((0..).zip(bodies).map(|(offset, body)| ((queue_id, offset), body)));
    }
    out
}

#[test]
fn synced_append_survives_power_loss_and_no_offset_changes_its_message() {
    for_seeds(40, |node| async move {
        let history = History::default();
        run_broker(node, FlushMode::Sync, &history);
        sleep(Duration::from_millis(3 + 2 * (rt::rand::RngCore::next_u64(&mut rt::rand::stream("when")) % 60))).await;
        rt::world::power_loss(node);
        let told = std::mem::take(&mut *history.lock().unwrap());
        let found = recovered(node, FlushMode::Sync).await;
        for (key, body) in &told.durable {
            assert_eq!(found.get(key), Some(body), "acknowledged {key:?}");
        }
        for (key, body) in &told.seen {
            assert_eq!(found.get(key), Some(body), "a consumer has seen {key:?}");
        }
        for (key, body) in &found {
            assert_eq!(told.appended.get(key), Some(body), "{key:?} was never appended like this");
        }
    });
}

#[test]
fn unsynced_append_survives_a_process_crash() {
    for_seeds(10, |node| async move {
        let history = History::default();
        run_broker(node, FlushMode::Async, &history);
        sleep(Duration::from_millis(37)).await;
        rt::world::crash(node);
        let told = std::mem::take(&mut *history.lock().unwrap());
        let found = recovered(node, FlushMode::Async).await;
        assert_eq!(found, told.appended);
    });
}

#[test]
fn power_loss_under_async_flush_loses_a_suffix_only() {
    for_seeds(40, |node| async move {
        let history = History::default();
        let log = Arc::clone(&history);
        rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Async)).await;
            for n in 0..10_000 {
                let queue_id = i32::try_from(n % 2).unwrap();
                let appended = store.append(message(queue_id, body(n))).unwrap();
                log.lock().unwrap().appended.insert((queue_id, appended.queue_offset.0), body(n));
                sleep(Duration::from_millis(5)).await;
            }
        });
        sleep(Duration::from_millis(1_700)).await;
        rt::world::power_loss(node);
        let told = std::mem::take(&mut *history.lock().unwrap());
        let found = recovered(node, FlushMode::Async).await;
        for (key, body) in &found {
            assert_eq!(told.appended.get(key), Some(body));
        }
        // The two queues were written in turn, so a suffix of the log is lost if their lengths differ by one at most.
        let length = |queue_id| found.keys().filter(|(queue, _)| *queue == queue_id).count();
        assert!(length(0) == length(1) || length(0) == length(1) + 1, "{} and {}", length(0), length(1));
        assert!(length(0) >= 100, "what the interval flush has synced is there");
    });
}

/// Appends, rolls segments, truncates, shuts down: crashed at each disk operation in turn.
#[test]
fn every_disk_operation_may_be_the_last() {
    let total = rt::world::run(seeded(1), || async {
        let node = rt::world::add_node("broker");
        rt::world::spawn_on(node, script(History::default())).await.unwrap();
        rt::world::disk_operations(node)
    });
    let total = total.value.expect("the script ends");
    assert!(total > 60, "the script does something");
    for point in 1..=total {
        let kind = if point % 4 == 0 { CrashKind::Process } else { CrashKind::Power };
        let outcome = rt::world::run(seeded(point), move || async move {
            let node = rt::world::add_node("broker");
            let history = History::default();
            rt::world::crash_at(node, CrashPoint::DiskOperation(point), kind);
            let _ = rt::world::spawn_on(node, script(Arc::clone(&history))).await;
            // And recovery itself is cut short once.
            rt::world::crash_at(node, CrashPoint::DiskOperation(1 + point % 23), CrashKind::Power);
            let _ = rt::world::spawn_on(node, async { open(config(FlushMode::Sync)).await.map(|_| ()) }).await;
            rt::world::power_loss(node);
            let told = std::mem::take(&mut *history.lock().unwrap());
            let found = recovered(node, FlushMode::Sync).await;
            for (key, body) in &told.durable {
                assert_eq!(found.get(key), Some(body), "acknowledged {key:?}");
            }
            for (key, body) in &found {
                assert_eq!(told.appended.get(key), Some(body), "{key:?} was never appended like this");
            }
        });
        if let Some(finding) = outcome.finding {
            panic!("crash at disk operation {point} ({kind:?}): {finding}");
        }
    }
}

#[test]
fn a_repair_may_end_at_any_disk_operation() {
    let repaired = || async {
        let _ = repair(config(FlushMode::Sync)).await;
    };
    ended_at_each_disk_operation(21, move |node, end| async move {
        let history = History::default();
        rt::world::spawn_on(node, script(Arc::clone(&history))).await.unwrap();
        let operations = end.in_work(node, repaired()).await;
        rt::world::power_loss(node);
        let stored = std::mem::take(&mut *history.lock().unwrap()).appended;
        assert_eq!(recovered(node, FlushMode::Sync).await, stored);
        rt::world::spawn_on(node, script(History::default())).await.unwrap();
        rt::world::spawn_on(node, repaired()).await.unwrap();
        assert!(recovered(node, FlushMode::Sync).await.len() > stored.len());
        operations
    });
}

/// Calls may fail once the node is about to end.
async fn script(history: History) {
    let Ok(store) = open(config(FlushMode::Sync)).await else { return };
    store.start(&CancellationToken::new());
    for n in 0..24 {
        let queue_id = i32::try_from(n % 2).unwrap();
        let Ok(appended) = store.append(message(queue_id, body(n))) else { return };
        let key = (queue_id, appended.queue_offset.0);
        history.lock().unwrap().appended.insert(key, body(n));
        if n % 3 == 0 && store.flushed(appended.end, SECOND).await.is_ok() {
            // A sync covers all that was appended before.
            let mut told = history.lock().unwrap();
            told.durable = told.appended.clone();
        }
    }
    let _ = store.shutdown().await;
}

#[test]
fn failed_sync_poisons_the_store_and_is_never_retried() {
    for_seeds(4, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            let first = store.append(message(0, body(1))).unwrap();
            store.flushed(first.end, SECOND).await.unwrap();
            disk::inject(
                node,
                rt::world::DiskFault {
                    operation: rt::world::DiskOperation::Sync,
                    path_contains: Some("commitlog".to_owned()),
                    chance: rt::world::DiskChance::Nth(1),
                    error: rt::world::DiskError::Io,
                },
            );
            let second = store.append(message(0, body(2))).unwrap();
            assert!(matches!(store.flushed(second.end, SECOND).await, Err(FlushError::Poisoned(_))));
            assert!(matches!(store.append(message(0, body(3))), Err(AppendError::Poisoned(_))));
            assert!(matches!(store.flushed(second.end, SECOND).await, Err(FlushError::Poisoned(_))));
            store.flushed(first.end, SECOND).await.unwrap();
            assert_eq!(store.wait_poisoned().await.action(), "sync");
            // Nothing that is not on disk was shown.
            assert_eq!(read_all(&store, 0).await, [body(1)]);
            assert!(store.shutdown().await.is_err());
            assert!(disk::read_file(node, format!("{ROOT}/abort")).is_ok());
        });
        task.await.unwrap();
        rt::world::power_loss(node);
        let found = recovered(node, FlushMode::Sync).await;
        assert_eq!(found.get(&(0, 0)), Some(&body(1)));
    });
}

#[test]
fn full_disk_refuses_and_the_store_goes_on_when_there_is_room() {
    for_seeds(8, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            let mut stored = Vec::new();
            for n in 0..60 {
                if n == 20 {
                    disk::set_capacity(node, 4096);
                }
                if n == 40 {
                    disk::heal(node);
                }
                match store.append(message(0, body(n))) {
                    Ok(appended) => {
                        assert_eq!(
                            appended.queue_offset.0,
                            i64::try_from(stored.len()).unwrap(),
                            "a refusal uses no offset"
                        );
                        stored.push(body(n));
                    }
                    Err(AppendError::NoSpace { .. } | AppendError::CreateSegment { .. }) => {
                        assert!((20..40).contains(&n))
                    }
                    Err(error) => panic!("{error}"),
                }
                store.check_invariants();
            }
            assert!(stored.len() < 60, "the disk was full");
            store.flushed(store.log_end(), SECOND).await.unwrap();
            sleep(3 * SECOND).await;
            assert_eq!(read_all(&store, 0).await, stored);
            stored
        });
        let stored = task.await.unwrap();
        rt::world::power_loss(node);
        let found = recovered(node, FlushMode::Sync).await;
        assert_eq!(found.into_values().collect::<Vec<_>>(), stored);
    });
}

#[test]
fn sync_flush_hides_what_is_not_on_disk() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            disk::stall(node);
            let appended = store.append(message(0, body(1))).unwrap();
            assert!(matches!(store.flushed(appended.end, SECOND).await, Err(FlushError::Timeout { .. })));
            assert_eq!(store.queue_bounds(TOPIC, 0), None);
            assert_eq!(store.read_log(0.into(), 1000).await.unwrap().len(), 0);
            disk::unstall(node);
            store.flushed(appended.end, SECOND).await.unwrap();
            sleep(SECOND).await;
            assert_eq!(get(&store, 0, 0).await.status, GetStatus::Found);
            assert_eq!(store.read_log(0.into(), 10_000).await.unwrap().len(), usize::try_from(appended.end.0).unwrap());
        });
        task.await.unwrap();
    });
}

#[test]
fn one_sync_answers_many_waiters() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            let before = rt::world::disk_operations(node);
            let tasks = (0..50).map(|_| {
                let store = Arc::clone(&store);
                rt::task::spawn(async move {
                    let appended = store.append(message(0, Vec::new())).unwrap();
                    store.flushed(appended.end, SECOND).await.unwrap();
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            // 50 writes, a few syncs of up to two segments and their names, and the dispatch of it all.
            assert!(rt::world::disk_operations(node) - before < 50 + 30);
        });
        task.await.unwrap();
    });
}

#[test]
fn second_process_is_refused() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let _first = open(config(FlushMode::Async)).await.unwrap();
            let error = open(config(FlushMode::Async)).await.expect_err("the lock is held");
            assert_eq!(error.to_string(), "/data/store/lock is locked: another process uses this store");
        });
        task.await.unwrap();
    });
}
