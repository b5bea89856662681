//! A topic that is removed stays removed, whatever recovery walks over, and the next one of its name begins at offset 0.
use crate::support::{
    ROOT, SECOND, TOPIC, body, config, ended_at_each_disk_operation, for_seeds, for_seeds_reaching, get, message, open,
    read_all, started,
};
use rt::time::sleep;
use rt::world::disk;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::{FlushMode, GetStatus, NewMessage, RetentionError, Store, StoreConfig, inspect};

fn other(n: u64) -> NewMessage {
    NewMessage { topic: "Other".to_owned(), ..message(0, body(n)) }
}

/// Two topics, the second of which stays.
async fn filled(flush_mode: FlushMode) -> Arc<Store> {
    let store = started(config(flush_mode)).await;
    for n in 0..30 {
        store.append(message(i32::try_from(n % 2).unwrap(), body(n))).unwrap();
        store.append(other(n)).unwrap();
    }
    sleep(SECOND).await;
    store
}

async fn append(store: &Store, numbers: std::ops::Range<u64>) {
    for n in numbers {
        store.append(message(0, body(n))).unwrap();
    }
    sleep(SECOND).await;
}

#[test]
fn the_next_topic_of_the_name_begins_anew() {
    for_seeds(4, |node| async move {
        let task = rt::world::spawn_on(node, async move {
            let store = filled(FlushMode::Async).await;
            store.remove_topic(TOPIC).await.unwrap();
            assert_eq!(get(&store, 0, 3).await.status, GetStatus::NoMatchedLogicQueue);
            assert!(disk::list(node, format!("{ROOT}/consumequeue/{TOPIC}")).is_err(), "its directory is gone");
            append(&store, 100..103).await;
            assert_eq!(read_all(&store, 0).await, [body(100), body(101), body(102)]);
            assert_eq!(store.queue_bounds("Other", 0).unwrap().1.0, 30);
            store.shutdown().await.unwrap();
            drop(store);
            let found = inspect(Path::new(ROOT), None, config(FlushMode::Async).index, |_, _| {}).await.unwrap();
            assert!(found.is_sound(), "records of the removed topic need no queue: {:?}", found.damage);
            let store = started(config(FlushMode::Async)).await;
            assert_eq!(read_all(&store, 0).await, [body(100), body(101), body(102)]);
            // Once more, and nothing is appended afterwards.
            store.remove_topic(TOPIC).await.unwrap();
            store.remove_topic("Never there").await.unwrap();
            let refused = store.remove_topic("../Orders").await.unwrap_err();
            assert!(matches!(refused, RetentionError::TopicName { .. }), "{refused}");
        });
        task.await.unwrap();
        rt::world::power_loss(node);
        let task = rt::world::spawn_on(node, async {
            let store = started(config(FlushMode::Async)).await;
            assert_eq!(read_all(&store, 0).await, Vec::<Vec<u8>>::new());
            append(&store, 200..202).await;
            assert_eq!(read_all(&store, 0).await, [body(200), body(201)]);
            assert_eq!(store.queue_bounds("Other", 0).unwrap().1.0, 30);
        });
        task.await.unwrap();
    });
}

/// Queues that have to be built from the whole log again do not get what was removed.
#[test]
fn queues_built_anew_are_without_it() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(FlushMode::Async).await;
            store.remove_topic(TOPIC).await.unwrap();
            append(&store, 100..103).await;
            store.shutdown().await.unwrap();
        });
        task.await.unwrap();
        let task = rt::world::spawn_on(node, async {
            for dir in ["Orders/0", "Other/0"] {
                for path in rt::fs::read_dir(format!("{ROOT}/consumequeue/{dir}")).unwrap() {
                    rt::fs::remove_file(path).unwrap();
                }
            }
            let store = open(config(FlushMode::Async)).await.unwrap();
            assert!(store.recovery_report().is_rebuilt || store.recovery_report().scanned_from.0 == 0);
            assert_eq!(read_all(&store, 0).await, [body(100), body(101), body(102)]);
            assert_eq!(store.queue_bounds(TOPIC, 1), None);
            assert_eq!(store.queue_bounds("Other", 0).unwrap().1.0, 30);
        });
        task.await.unwrap();
    });
}

/// The records behind a cut are new ones, even where those of the removed topic were.
#[test]
fn what_is_written_behind_a_cut_is_not_removed() {
    for_seeds(2, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(FlushMode::Async).await;
            let middle = store.log_end() - 3_000;
            store.remove_topic(TOPIC).await.unwrap();
            store.truncate_to(middle).await.unwrap();
            sleep(SECOND).await;
            store.settle_replica().await.unwrap();
            append(&store, 100..103).await;
            assert_eq!(read_all(&store, 0).await, [body(100), body(101), body(102)]);
            drop(store);
        });
        task.await.unwrap();
        rt::world::crash(node);
        let task = rt::world::spawn_on(node, async {
            let store = open(config(FlushMode::Async)).await.unwrap();
            assert_eq!(read_all(&store, 0).await, [body(100), body(101), body(102)]);
        });
        task.await.unwrap();
    });
}

/// A slave learns from the log alone that its master has made the topic anew.
#[test]
fn a_replica_begins_the_queue_anew_when_its_master_does() {
    for_seeds_reaching(&["store.topic_removed", "store.dispatch.queue_anew"], 4, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let master = filled(FlushMode::Async).await;
            let slave_config = StoreConfig { root: "/data/slave".into(), ..config(FlushMode::Async) };
            let slave = started(slave_config.clone()).await;
            let copy = async || {
                while slave.log_end() < master.confirm_end() {
                    let at = slave.log_end();
                    slave.append_replica(at, &master.read_log(at, 700).await.unwrap()).unwrap();
                }
                sleep(SECOND).await;
            };
            copy().await;
            assert_eq!(read_all(&slave, 0).await.len(), 15);
            master.remove_topic(TOPIC).await.unwrap();
            append(&master, 100..102).await;
            copy().await;
            assert_eq!(read_all(&slave, 0).await, [body(100), body(101)]);
            // And goes on from there if it takes messages itself.
            slave.settle_replica().await.unwrap();
            let next = slave.append(message(0, body(102))).unwrap();
            assert_eq!(next.queue_offset.0, 2);
            slave.shutdown().await.unwrap();
            drop(slave);
            let slave = open(slave_config).await.unwrap();
            assert_eq!(read_all(&slave, 0).await, [body(100), body(101), body(102)]);
        });
        task.await.unwrap();
    });
}

#[test]
fn unwanted_topics_go_and_dead_ones_only_once_their_messages_have_expired() {
    for_seeds(1, |node| async move {
        let task = rt::world::spawn_on(node, async {
            let store = filled(FlushMode::Async).await;
            assert_eq!(store.remove_dead_topics(|_| false).await.unwrap(), 0, "the log has its messages");
            assert_eq!(store.remove_unwanted_topics(|topic| topic == TOPIC).await.unwrap(), 1);
            assert_eq!(store.queues().len(), 2);
            assert_eq!(store.queue_bounds("Other", 0), None);
            assert_eq!(read_all(&store, 0).await.len(), 15);
        });
        task.await.unwrap();
    });
}

/// Removes a topic and makes it again: crashed at each disk operation in turn, it is there as a whole or not at all.
#[test]
fn every_disk_operation_of_a_topic_removal_may_be_the_last() {
    ended_at_each_disk_operation(16, |node, end| async move {
        let store = rt::world::spawn_on(node, async {
            let store = filled(FlushMode::Sync).await;
            store.flushed(store.log_end(), SECOND).await.unwrap();
            sleep(SECOND).await;
            store
        });
        let store = store.await.unwrap();
        // How many messages of the new topic were acknowledged; none before it was removed.
        let told = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&told);
        let operations = end
            .in_work(node, async move {
                if store.remove_topic(TOPIC).await.is_err() {
                    return;
                }
                *tell.lock().unwrap() = Some(0);
                for n in 100..103 {
                    let Ok(appended) = store.append(message(0, body(n))) else { return };
                    if store.flushed(appended.end, SECOND).await.is_ok() {
                        *tell.lock().unwrap() = Some(usize::try_from(n - 99).unwrap());
                    }
                }
                sleep(3 * SECOND).await;
            })
            .await;
        rt::world::power_loss(node);
        let acknowledged = *told.lock().unwrap();
        let task = rt::world::spawn_on(node, async move {
            let store = started(config(FlushMode::Sync)).await;
            let old = (0..30).filter(|n| n % 2 == 0).map(body).collect::<Vec<_>>();
            let found = read_all(&store, 0).await;
            let new = (100..103).map(body).collect::<Vec<_>>();
            match acknowledged {
                None => assert!(found.is_empty() || found == old, "as a whole or not at all"),
                Some(count) => assert!(found.len() >= count && found == new[..found.len()]),
            }
            let next = i64::try_from(found.len()).unwrap();
            assert_eq!(store.append(message(0, body(200))).unwrap().queue_offset.0, next);
            assert_eq!(store.queue_bounds("Other", 0).unwrap().1.0, 30);
            store.check_invariants();
        });
        task.await.unwrap();
        operations
    });
}
