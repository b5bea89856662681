//! Clocks and timers.
use rt::task::spawn;
use rt::time::{
    Duration, Elapsed, Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout, timeout_at, unix_ms,
};
use rt::world::{self, NodeId};
use std::error::Error;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Runs on a node of its own, next to the desk.
fn on_a_node<T: Send + 'static>(test: impl AsyncFnOnce(NodeId) -> T + 'static) -> T {
    world::run_test(async || test(world::add_node("broker")).await)
}

#[test]
fn sleeps_are_exact_and_ordered() {
    world::run_test(|| async {
        let (sender, mut receiver) = rt::sync::mpsc::channel(8);
        for n in [5u64, 1, 3, 2, 4] {
            let sender = sender.clone();
            spawn(async move {
                sleep(Duration::from_nanos(n)).await;
                sender.send((n, world::elapsed().as_nanos() as u64)).await.unwrap();
            });
        }
        for n in 1..=5 {
            assert_eq!(receiver.recv().await.unwrap(), (n, n));
        }
    });
}

#[test]
fn instants_add_up() {
    world::run_test(|| async {
        let start = Instant::now();
        sleep(S).await;
        let later = Instant::now();
        assert_eq!((start.elapsed(), later - start, start - later), (S, S, Duration::ZERO));
        assert_eq!(later.checked_duration_since(start), Some(S));
        assert_eq!(start.checked_duration_since(later), None);
        assert_eq!((start + S, later - S), (later, start));
        assert_eq!(start.checked_add(Duration::MAX), None);
        assert!(start.checked_sub(Duration::from_secs(60)).is_some(), "the machine has been up for a while");
    });
}

#[test]
fn a_timeout_gives_the_value_or_elapsed() {
    world::run_test(|| async {
        assert_eq!(timeout(S, async { 7 }).await, Ok(7));
        let elapsed: Elapsed = timeout(S, std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(elapsed.to_string(), "deadline has elapsed");
        assert!((&elapsed as &dyn Error).source().is_none());
        assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(world::elapsed(), S);
        // Ready at the deadline is in time.
        assert_eq!(timeout(S, sleep(S)).await, Ok(()));
        assert!(timeout_at(Instant::now(), std::future::pending::<()>()).await.is_err());
        assert_eq!(timeout(Duration::MAX, sleep(S)).await, Ok(()), "a deadline that never comes");
    });
}

#[test]
fn a_timeout_counts_from_its_making() {
    world::run_test(|| async {
        let late = timeout(S, std::future::pending::<()>());
        sleep(S * 3).await;
        assert!(late.await.is_err());
        assert_eq!(world::elapsed(), S * 3);
    });
}

#[test]
fn a_dropped_sleep_leaves_nothing_and_a_polled_one_registers_once() {
    world::run_test(|| async {
        let mut long = std::pin::pin!(sleep(S * 3600));
        for _ in 0..1000 {
            rt::select! {
                () = &mut long => unreachable!("it is an hour away"),
                () = sleep(MS) => {}
            }
        }
        assert_eq!(world::elapsed(), S);
        assert!(!long.is_elapsed());
        long.as_mut().reset(Instant::now() + S);
        assert_eq!(long.deadline(), Instant::now() + S);
        long.as_mut().await;
        assert!(long.is_elapsed());
        assert_eq!(world::elapsed(), S * 2);
    });
}

#[test]
fn an_interval_ticks_at_once_and_bursts_after_a_delay() {
    world::run_test(|| async {
        let start = Instant::now();
        let mut ticks = interval(S);
        assert_eq!(ticks.tick().await, start);
        assert_eq!(ticks.tick().await, start + S);
        sleep(S * 3 + MS * 500).await;
        // 2, 3 and 4 are overdue: they come at once, and 5 is on time.
        for n in 2..=4 {
            assert_eq!(ticks.tick().await, start + S * n);
            assert_eq!(start.elapsed(), MS * 4500);
        }
        ticks.tick().await;
        assert_eq!(start.elapsed(), S * 5);
        ticks.reset();
        sleep(MS * 300).await;
        ticks.tick().await;
        assert_eq!(start.elapsed(), S * 6);
    });
}

#[test]
fn missed_ticks_can_be_delayed_or_skipped() {
    let second_tick = |behavior| {
        world::run_test(move || async move {
            let start = Instant::now();
            let mut ticks = interval(S);
            ticks.set_missed_tick_behavior(behavior);
            ticks.tick().await;
            sleep(MS * 2300).await;
            ticks.tick().await;
            ticks.tick().await;
            start.elapsed()
        })
    };
    assert_eq!(second_tick(MissedTickBehavior::Burst), MS * 2300);
    assert_eq!(second_tick(MissedTickBehavior::Delay), MS * 3300);
    assert_eq!(second_tick(MissedTickBehavior::Skip), MS * 3000);
}

#[test]
fn drift_speeds_up_clock_and_timers_of_one_node() {
    on_a_node(async |node| {
        world::set_clock_drift_ppm(node, 1_000_000);
        world::spawn_on(node, async { sleep(S).await }).await.unwrap();
        assert_eq!(world::elapsed(), MS * 500, "twice as fast");
        // A running timer follows a change of the rate.
        let task = world::spawn_on(node, async { sleep(S).await });
        sleep(MS * 250).await;
        world::set_clock_drift_ppm(node, -500_000);
        task.await.unwrap();
        assert_eq!(world::elapsed(), MS * 1750, "half a second was left, at half speed");
    });
}

#[test]
fn a_frozen_clock_stops_timers_until_it_thaws() {
    on_a_node(async |node| {
        world::freeze_clock(node);
        let task = world::spawn_on(node, async { sleep(S).await });
        sleep(S * 10).await;
        assert!(!task.is_finished());
        let frozen_at = world::unix_nanos_of(node);
        sleep(S).await;
        assert_eq!(world::unix_nanos_of(node), frozen_at);
        world::thaw_clock(node);
        task.await.unwrap();
        assert_eq!(world::elapsed(), S * 12);
    });
}

#[test]
fn a_wall_clock_steps_both_ways_and_timers_do_not_notice() {
    on_a_node(async |node| {
        let task = world::spawn_on(node, async {
            let (wall, start) = (unix_ms(), Instant::now());
            sleep(S).await;
            (unix_ms() - wall, start.elapsed())
        });
        sleep(MS).await;
        world::step_wall_clock(node, -60_000);
        assert_eq!(task.await.unwrap(), (-59_000, S));
        assert_eq!(unix_ms(), 1_790_000_001_000, "other nodes keep theirs");
    });
}

#[test]
fn a_pause_stops_tasks_and_timers_but_not_the_clock() {
    on_a_node(async |node| {
        let task = world::spawn_on(node, async {
            let start = Instant::now();
            sleep(S).await;
            start.elapsed()
        });
        sleep(MS).await;
        world::pause(node);
        sleep(S * 10).await;
        assert!(!task.is_finished());
        world::resume(node);
        assert_eq!(task.await.unwrap(), S * 10 + MS);
        assert_eq!(world::elapsed(), S * 10 + MS);
    });
}

#[test]
fn a_paused_node_runs_nothing_that_is_woken() {
    on_a_node(async |node| {
        let (sender, mut receiver) = rt::sync::mpsc::channel(100);
        let task = world::spawn_on(node, async move {
            let mut got = 0;
            while receiver.recv().await.is_some() {
                got += 1;
            }
            got
        });
        sleep(MS).await;
        world::pause(node);
        for _ in 0..50 {
            sender.send(()).await.unwrap();
            sleep(MS).await;
        }
        assert_eq!(sender.capacity(), 50);
        drop(sender);
        world::resume(node);
        assert_eq!(task.await.unwrap(), 50);
    });
}

#[test]
fn a_slow_processor_takes_time_for_each_poll() {
    on_a_node(async |node| {
        world::set_poll_cost(node, MS);
        let tasks: Vec<_> = (0..10).map(|_| world::spawn_on(node, async {})).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(world::elapsed(), MS * 9, "one processor, ten polls, the last may end at once");
        world::set_poll_cost(node, Duration::ZERO);
        world::spawn_on(node, sleep_until(Instant::now())).await.unwrap();
    });
}

#[test]
fn timers_of_one_instant_make_their_tasks_ready_together() {
    // Ten nodes tick at the same instant: who runs first is the policy's choice, not the order of the nodes.
    let order = |seed| {
        world::run_test_with(world::WorldConfig { seed, ..world::WorldConfig::default() }, || async {
            let (sender, mut receiver) = rt::sync::mpsc::channel(10);
            for n in 0..10 {
                let (node, sender) = (world::add_node(&format!("n{n}")), sender.clone());
                world::spawn_on(node, async move {
                    sleep(S).await;
                    sender.send(n).await.unwrap();
                });
            }
            drop(sender);
            let mut order = Vec::new();
            while let Some(n) = receiver.recv().await {
                order.push(n);
            }
            order
        })
    };
    assert_ne!(order(1), order(2));
    assert_ne!(order(1), (0..10).collect::<Vec<_>>());
}
