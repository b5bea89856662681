//! Random operations and crashes against the simplest store there is: a list of messages and a mark of what is durable.
use crate::support::{SECOND, body, config, for_seeds, message, open, read_all};
use rt::rand::{Rng, stream};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep};
use std::sync::{Arc, Mutex};
use store::{FlushMode, Store};

#[derive(Debug, Default)]
struct Model {
    /// Every append in log order, by message number; messages go to queue `number % 4`.
    log: Vec<u64>,
    /// So many of them are certain to survive a power loss.
    durable: usize,
    next: u64,
}

#[test]
fn store_agrees_with_the_model() {
    for_seeds(60, |node| async move {
        let model = Arc::new(Mutex::new(Model::default()));
        let mode = if stream("mode").random_bool(0.5) { FlushMode::Sync } else { FlushMode::Async };
        for _life in 0..5 {
            let kept = Arc::clone(&model);
            let task = rt::world::spawn_on(node, async move {
                let store = open(config(mode)).await.unwrap();
                store.check_invariants();
                agree(&store, &kept).await;
                store.start(&CancellationToken::new());
                live(&store, &kept).await
            });
            let is_orderly = task.await.unwrap_or(false);
            if !is_orderly {
                match stream("end").random_range(0..2) {
                    0 => rt::world::crash(node),
                    _ => rt::world::power_loss(node),
                }
            }
        }
        let kept = Arc::clone(&model);
        let task = rt::world::spawn_on(node, async move { agree(&open(config(mode)).await.unwrap(), &kept).await });
        task.await.unwrap();
    });
}

/// After recovery: a prefix of the log, at least the durable part; then the model forgets the rest.
async fn agree(store: &Store, model: &Mutex<Model>) {
    let mut queues = Vec::new();
    for queue_id in 0..4 {
        queues.push(read_all(store, queue_id).await);
    }
    let found = queues.iter().map(Vec::len).sum::<usize>();
    let mut model = model.lock().unwrap();
    assert!(found >= model.durable, "{found} messages of at least {}", model.durable);
    assert!(found <= model.log.len(), "{found} messages of at most {}", model.log.len());
    model.log.truncate(found);
    model.durable = found;
    for (queue_id, bodies) in (0..).zip(&queues) {
        let expected = model.log.iter().filter(|n| **n % 4 == queue_id).map(|n| body(*n)).collect::<Vec<_>>();
        assert_eq!(*bodies, expected, "queue {queue_id}");
    }
}

/// Some operations; `true` if the store was shut down in order.
async fn live(store: &Store, model: &Mutex<Model>) -> bool {
    let mut random = stream("operations");
    for _ in 0..random.random_range(1..60) {
        match random.random_range(0..10) {
            0..6 => {
                let number = {
                    let mut model = model.lock().unwrap();
                    model.next += 1;
                    model.next
                };
                store.append(message(i32::try_from(number % 4).unwrap(), body(number))).unwrap();
                model.lock().unwrap().log.push(number);
            }
            6 => {
                let (end, count) = (store.log_end(), model.lock().unwrap().log.len());
                store.flushed(end, 5 * SECOND).await.unwrap();
                let mut model = model.lock().unwrap();
                model.durable = model.durable.max(count);
            }
            7 => sleep(Duration::from_millis(random.random_range(0..3000))).await,
            8 => sleep(Duration::from_micros(random.random_range(0..500))).await,
            _ => {
                store.check_invariants();
            }
        }
    }
    if random.random_bool(0.2) {
        store.shutdown().await.unwrap();
        let mut model = model.lock().unwrap();
        model.durable = model.log.len();
        return true;
    }
    false
}
