//! Tasks: who runs next, how they end, and what is found.
use rt::sync::{Notify, mpsc};
use rt::task::{TaskGroup, spawn, yield_now};
use rt::time::{Duration, sleep, timeout};
use rt::world::{self, Finding, FindingKind, Limits, Outcome, Policy, WorldConfig};
use std::sync::{Arc, Mutex};

fn with_policy(seed: u64, policy: Policy) -> WorldConfig {
    WorldConfig { seed, policy, ..WorldConfig::default() }
}

/// The order in which five tasks that are ready together run.
fn order(config: WorldConfig) -> Vec<u32> {
    world::run_test_with(config, || async {
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..5)
            .map(|n| {
                let order = Arc::clone(&order);
                spawn(async move { order.lock().unwrap().push(n) })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        std::mem::take(&mut *order.lock().unwrap())
    })
}

#[test]
fn fifo_runs_in_order() {
    assert_eq!(order(with_policy(1, Policy::Fifo)), [0, 1, 2, 3, 4]);
}

#[test]
fn random_orders_differ_by_seed_and_repeat_by_seed() {
    let orders: Vec<_> = (0..20).map(|seed| order(with_policy(seed, Policy::Random))).collect();
    let distinct: std::collections::BTreeSet<_> = orders.iter().collect();
    assert!(distinct.len() > 10, "{orders:?}");
    assert_eq!(orders[3], order(with_policy(3, Policy::Random)));
}

#[test]
fn scripted_picks_as_told_then_in_order() {
    // Main picks first alone; then five are ready.
    assert_eq!(order(with_policy(1, Policy::Scripted(vec![4, 0, 2]))), [4, 0, 3, 1, 2]);
}

#[test]
fn priority_runs_one_task_to_its_end_before_another() {
    let runs = world::run_test_with(with_policy(9, Policy::Priority { changes: 0, polls: 100 }), || async {
        let log = Arc::new(Mutex::new(Vec::new()));
        let (left, right) = (Arc::clone(&log), Arc::clone(&log));
        // Each message wakes a task that is already above the other, so a batch is never interleaved.
        let worker = |name: char, log: Arc<Mutex<Vec<char>>>| async move {
            let (sender, mut receiver) = mpsc::channel(8);
            for _ in 0..4 {
                sender.send(()).await.unwrap();
                receiver.recv().await.unwrap();
                log.lock().unwrap().push(name);
            }
        };
        let (a, b) = (spawn(worker('a', left)), spawn(worker('b', right)));
        a.await.unwrap();
        b.await.unwrap();
        let text: String = log.lock().unwrap().iter().collect();
        text
    });
    assert!(runs == "aaaabbbb" || runs == "bbbbaaaa", "{runs}");
}

/// Two tasks that lose an update if one is overtaken between its read and its write, by one preemption.
fn lost_update(config: WorldConfig) -> bool {
    world::run_test_with(config, || async {
        let value = Arc::new(Mutex::new(0));
        let step = |value: Arc<Mutex<u32>>| async move {
            let read = *value.lock().unwrap();
            for _ in 0..20 {
                let (sender, receiver) = rt::sync::oneshot::channel();
                spawn(async move { sender.send(()).unwrap() });
                receiver.await.unwrap();
            }
            *value.lock().unwrap() = read + 1;
        };
        let (a, b) = (spawn(step(Arc::clone(&value))), spawn(step(Arc::clone(&value))));
        a.await.unwrap();
        b.await.unwrap();
        *value.lock().unwrap() != 2
    })
}

#[test]
fn priorities_find_a_lost_update_in_some_seeds_and_not_in_all() {
    let found =
        (0..50).filter(|seed| lost_update(with_policy(*seed, Policy::Priority { changes: 2, polls: 100 }))).count();
    assert!((1..50).contains(&found), "{found} of 50");
}

#[test]
fn a_yielding_loop_starves_nobody_under_priorities() {
    for seed in 0..20 {
        world::run_test_with(with_policy(seed, Policy::Priority { changes: 0, polls: 100 }), || async {
            let done = Arc::new(Notify::new());
            let waits = Arc::clone(&done);
            let spinner = spawn(async move {
                let notified = waits.notified();
                let mut notified = std::pin::pin!(notified);
                loop {
                    rt::select! { () = &mut notified => return, () = yield_now() => {} }
                }
            });
            spawn(async move { done.notify_one() });
            spinner.await.unwrap();
        });
    }
}

fn finding(outcome: Outcome<()>) -> Finding {
    assert!(outcome.value.is_none());
    outcome.finding.expect("something is found")
}

#[test]
fn a_panic_is_a_finding_with_node_place_and_time() {
    let outcome = world::run(WorldConfig { backtraces: true, ..WorldConfig::default() }, || async {
        let node = world::add_node("broker");
        world::spawn_on(node, async {
            sleep(Duration::from_millis(1500)).await;
            panic!("went {}", "wrong");
        });
        sleep(Duration::from_secs(10)).await;
    });
    assert_eq!(outcome.virtual_time, Duration::from_millis(1500), "the run ends there");
    let finding = finding(outcome);
    assert_eq!(
        (finding.kind, finding.node.as_str(), finding.message.as_str()),
        (FindingKind::Panic, "broker", "went wrong")
    );
    assert_eq!(finding.at, Duration::from_millis(1500));
    assert!(finding.place.as_ref().unwrap().contains("executor.rs:"), "{finding}");
    assert!(finding.backtrace.is_some());
}

#[test]
fn a_panic_of_main_and_of_a_destructor_are_findings() {
    let found = finding(world::run(WorldConfig::default(), || async { panic!("main") }));
    assert_eq!((found.node.as_str(), found.message.as_str()), ("world", "main"));

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    let found = finding(world::run(WorldConfig::default(), || async {
        let node = world::add_node("broker");
        world::spawn_on(node, async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        });
        sleep(Duration::from_secs(1)).await;
        world::crash(node);
        sleep(Duration::from_secs(1)).await;
    }));
    assert_eq!((found.node.as_str(), found.message.as_str()), ("broker", "in drop"));
    assert_eq!(found.at, Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "Panic on node world at 0.000000000 s: told")]
fn run_test_fails_with_the_finding() {
    world::run_test(|| async { panic!("told") })
}

#[test]
fn a_deadlock_names_who_waits() {
    let found = finding(world::run(WorldConfig::default(), || async {
        let node = world::add_node("broker");
        world::spawn_on(node, std::future::pending::<()>());
        // A time-out that was given up must not keep the run alive.
        let _ = timeout(Duration::from_secs(3600), async {}).await;
        std::future::pending::<()>().await
    }));
    assert_eq!(found.kind, FindingKind::Deadlock);
    assert_eq!(found.message, "no task is ready and nothing is to come; waiting tasks: world 1 broker 1");
    assert_eq!(found.at, Duration::ZERO);
}

#[test]
fn a_livelock_is_found() {
    let limits = Limits { polls_per_instant_max: 1000, ..Limits::default() };
    let outcome = world::run(WorldConfig { limits, ..WorldConfig::default() }, || async {
        loop {
            yield_now().await;
        }
    });
    assert_eq!(outcome.polls, 1001);
    let found: Finding = outcome.finding.unwrap();
    assert_eq!(
        (found.kind, found.message.as_str()),
        (FindingKind::Livelock, "1000 polls at one instant, the last of task 0")
    );
}

#[test]
fn many_polls_spread_over_time_are_no_livelock() {
    let limits = Limits { polls_per_instant_max: 10, ..Limits::default() };
    world::run_test_with(WorldConfig { limits, ..WorldConfig::default() }, || async {
        for _ in 0..1000 {
            sleep(Duration::from_nanos(1)).await;
        }
    });
}

#[test]
fn virtual_time_can_be_limited() {
    let limits = Limits { virtual_time_max: Some(Duration::from_secs(5)), ..Limits::default() };
    let outcome = world::run(WorldConfig { limits, ..WorldConfig::default() }, || async {
        loop {
            sleep(Duration::from_secs(2)).await;
        }
    });
    assert_eq!(outcome.virtual_time, Duration::from_secs(4));
    let found: Finding = outcome.finding.unwrap();
    assert_eq!(found.kind, FindingKind::TimeLimit);
}

#[test]
fn handles_join_abort_and_detach() {
    world::run_test(|| async {
        assert_eq!(spawn(async { 7 }).await.unwrap(), 7);

        let task = spawn(std::future::pending::<()>());
        assert!(!task.is_finished());
        let abort = task.abort_handle();
        abort.abort();
        assert!(!task.is_finished(), "it ends when it is picked");
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(abort.is_finished());
        abort.abort();

        let task = spawn(async {});
        yield_now().await;
        sleep(Duration::from_nanos(1)).await;
        task.abort();
        task.await.expect("an ended task cannot be aborted");

        let (sender, mut receiver) = mpsc::channel(1);
        drop(spawn(async move { sender.send("detached").await.unwrap() }));
        assert_eq!(receiver.recv().await, Some("detached"));
    });
}

#[test]
fn a_task_that_aborts_itself_ends_when_its_poll_returns() {
    world::run_test(|| async {
        let (sender, receiver) = rt::sync::oneshot::channel::<rt::task::AbortHandle>();
        let reached = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&reached);
        let task = spawn(async move {
            receiver.await.unwrap().abort();
            log.lock().unwrap().push("same poll");
            yield_now().await;
            log.lock().unwrap().push("next poll");
        });
        sender.send(task.abort_handle()).unwrap();
        assert!(task.await.is_err());
        assert_eq!(*reached.lock().unwrap(), ["same poll"]);
    });
}

#[test]
fn a_group_ends_its_tasks() {
    world::run_test(|| async {
        let group = TaskGroup::child_of(&rt::sync::CancellationToken::new());
        let token = group.token().clone();
        group.spawn(async move { token.cancelled().await });
        group.spawn(async {});
        sleep(Duration::from_millis(1)).await;
        assert_eq!(group.running(), 1);
        group.shutdown().await;
        assert_eq!(group.running(), 0);

        let group = TaskGroup::default();
        let left = group.spawn(std::future::pending());
        drop(group);
        sleep(Duration::from_millis(1)).await;
        assert!(left.is_finished());
    });
}

#[test]
fn tasks_inherit_the_node() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let inner = world::spawn_on(node, async { spawn(async { world::current_node() }).await.unwrap() });
        assert_eq!(inner.await.unwrap(), node);
        assert_eq!(world::ip(node).to_string(), "10.0.0.2");
        assert_eq!(&*world::node_name(node), "broker");
        assert_eq!(world::log_context().unwrap().node.as_ref(), "world");
    });
    assert!(world::log_context().is_none());
}
