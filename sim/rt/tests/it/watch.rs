//! The watch channel: tokio's meanings, and an order of waking that does not depend on the runs before.
use rt::sync::watch;
use rt::task::{spawn, yield_now};
use rt::time::{Duration, sleep, timeout};
use rt::world::{self, Policy, WorldConfig};

const S: Duration = Duration::from_secs(1);

#[test]
fn waiters_wake_in_the_order_of_waiting() {
    let order = || {
        world::run_test_with(WorldConfig { policy: Policy::Fifo, ..WorldConfig::default() }, || async {
            let (sender, receiver) = watch::channel(0);
            let (log, mut woken) = rt::sync::mpsc::channel(20);
            for n in 0..20 {
                let (mut receiver, log) = (receiver.clone(), log.clone());
                spawn(async move {
                    receiver.changed().await.unwrap();
                    log.send(n).await.unwrap();
                });
            }
            drop(log);
            sleep(S).await;
            sender.send(1).unwrap();
            let mut order = Vec::new();
            while let Some(n) = woken.recv().await {
                order.push(n);
            }
            order
        })
    };
    for _ in 0..3 {
        // tokio's order would differ each time, even on a fresh thread.
        assert_eq!(std::thread::spawn(order).join().unwrap(), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn a_receiver_sees_the_newest_value_once() {
    world::run_test(|| async {
        let (sender, mut receiver) = watch::channel(0);
        assert!(!receiver.has_changed().unwrap());
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        assert!(receiver.borrow().has_changed() && receiver.has_changed().unwrap());
        receiver.changed().await.unwrap();
        assert_eq!((*receiver.borrow(), receiver.borrow().has_changed()), (2, false));
        assert!(timeout(S, receiver.changed()).await.is_err());
        receiver.mark_changed();
        assert_eq!(*receiver.borrow_and_update(), 2);
        assert!(!receiver.has_changed().unwrap());
        assert!(!sender.send_if_modified(|value| {
            *value = 3;
            false
        }));
        assert!(!receiver.has_changed().unwrap() && *receiver.borrow() == 3, "changed in silence");
        assert_eq!(sender.send_replace(4), 3);
        receiver.mark_unchanged();
        assert!(!receiver.has_changed().unwrap());
    });
}

#[test]
fn both_ends_learn_of_the_others_end() {
    world::run_test(|| async {
        let (sender, mut receiver) = watch::channel(0);
        let second = sender.clone();
        sender.send(1).unwrap();
        drop(sender);
        let waits = spawn(async move {
            let first = receiver.changed().await.is_ok();
            let second = receiver.changed().await.is_ok();
            (first, second, receiver.has_changed().is_err())
        });
        sleep(S).await;
        drop(second);
        assert_eq!(waits.await.unwrap(), (true, false, true));

        let (sender, receiver) = watch::channel(0);
        let other = receiver.clone();
        assert_eq!(sender.receiver_count(), 2);
        drop(receiver);
        let closed = spawn(async move {
            sender.closed().await;
            (sender.is_closed(), sender.send(5).unwrap_err().0, *sender.borrow())
        });
        yield_now().await;
        drop(other);
        assert_eq!(closed.await.unwrap(), (true, 5, 0));
    });
}

#[test]
fn waiting_for_a_value_looks_at_the_present_one_first() {
    world::run_test(|| async {
        let (sender, mut receiver) = watch::channel(5);
        assert_eq!(*receiver.wait_for(|value| *value == 5).await.unwrap(), 5);
        let waits = spawn(async move {
            let found = receiver.wait_for(|value| *value > 7).await.map(|value| *value).ok();
            let lost = receiver.wait_for(|value| *value > 70).await.is_err();
            (found, lost)
        });
        for value in 6..10 {
            sleep(S).await;
            sender.send(value).unwrap();
        }
        sleep(S).await;
        drop(sender);
        assert_eq!(waits.await.unwrap(), (Some(8), true));
    });
}
