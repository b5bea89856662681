//! Clocks and timers.
use rt::task::spawn;
use rt::time::{
    Duration, Elapsed, Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout, timeout_at, unix_ms,
    unix_nanos,
};
use rt::world::{self, ClockConfig, NodeId};
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

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A node with that clock; waits a local second on it and gives what its clocks and the world's showed of that.
fn a_second_of(clock: ClockConfig) -> (Duration, Duration, i64) {
    world::run_test(move || async move {
        let node = world::add_node_with_clock("machine", clock);
        let before = unix_nanos();
        let second = async {
            let (start, wall) = (Instant::now(), unix_nanos());
            sleep(S).await;
            (start.elapsed(), unix_nanos() - wall)
        };
        let (own, wall) = world::spawn_on(node, second).await.unwrap();
        assert_eq!((own, wall), (S, 1_000_000_000), "its own clocks agree with each other");
        (world::elapsed(), Duration::from_nanos(world::unix_nanos_of(node).abs_diff(before)), unix_nanos() - before)
    })
}

#[test]
fn a_machine_may_have_another_time_from_the_start() {
    assert_eq!(a_second_of(ClockConfig::default()), (S, S, 1_000_000_000));
    let behind = ClockConfig { wall_ahead_ms: -3_600_000, ..ClockConfig::default() };
    assert_eq!(a_second_of(behind), (S, S * 3_599, 1_000_000_000));
    let ahead = ClockConfig { wall_ahead_ms: 60_000, ..ClockConfig::default() };
    assert_eq!(a_second_of(ahead), (S, S * 61, 1_000_000_000));
}

#[test]
fn machines_drift_by_five_percent_both_ways_and_their_timers_with_them() {
    // A local second, in the world's nanoseconds: rounded up, because no timer is early.
    for (drift_ppm, nanos) in [(50_000, 952_380_953), (-50_000, 1_052_631_579), (1, 999_999_001), (-1, 1_000_001_001)] {
        let (world, ..) = a_second_of(ClockConfig { drift_ppm, ..ClockConfig::default() });
        assert_eq!(world, Duration::from_nanos(nanos), "{drift_ppm} ppm");
    }
}

#[test]
fn the_time_since_boot_is_the_machines_own() {
    world::run_test(|| async {
        let young = ClockConfig { uptime: S, ..ClockConfig::default() };
        let node = world::add_node_with_clock("young", young);
        assert_eq!(world::spawn_on(node, up_for_a_second()).await.unwrap(), (true, false));
        // One that joins later has the world's time of day, and its own time since boot.
        sleep(S * 100).await;
        let late = world::add_node_with_clock("late", young);
        assert_eq!(world::unix_nanos_of(late), unix_nanos());
        assert_eq!(world::spawn_on(late, up_for_a_second()).await.unwrap(), (true, false));
    });
}

/// Whether the monotonic clock shows at least a second, and whether it shows more.
async fn up_for_a_second() -> (bool, bool) {
    let now = Instant::now();
    (now.checked_sub(S).is_some(), now.checked_sub(S + MS).is_some())
}

#[test]
fn a_year_has_365_days_on_every_clock() {
    let year = DAY * 365;
    for drift_ppm in [0, 50_000, -50_000] {
        on_a_node(async move |node| {
            world::set_clock_drift_ppm(node, drift_ppm);
            let days = async {
                let (start, wall) = (Instant::now(), unix_nanos());
                let mut days = interval(DAY);
                for day in 0..=365 {
                    days.tick().await;
                    assert_eq!(start.elapsed(), DAY * day, "each tick is on its day");
                }
                unix_nanos() - wall
            };
            let wall = world::spawn_on(node, days).await.unwrap();
            assert_eq!(wall, year.as_nanos() as i64);
            let exact = (year.as_nanos() * 1_000_000).div_ceil((1_000_000 + drift_ppm) as u128);
            assert_eq!(world::elapsed().as_nanos(), exact, "the base is off by no nanosecond");
        });
    }
}

#[test]
fn a_year_of_changing_drift_loses_less_than_a_microsecond() {
    on_a_node(async |node| {
        let year = world::spawn_on(node, async {
            let (start, wall) = (Instant::now(), unix_nanos());
            sleep(DAY * 366).await;
            (start.elapsed(), unix_nanos() - wall)
        });
        // Fast on odd days, slow on even ones: after a year all is as if nothing had been.
        for day in 0..365 {
            world::set_clock_drift_ppm(node, if day % 2 == 0 { 50_000 } else { -50_000 });
            sleep(DAY).await;
        }
        world::set_clock_drift_ppm(node, 0);
        let shifted = world::unix_nanos_of(node) - unix_nanos();
        let one_day = DAY.as_nanos() as i64 / 20;
        assert!((shifted - one_day).abs() < 1_000, "one fast day is left of 365, not {shifted} ns");
        let (own, wall) = year.await.unwrap();
        assert_eq!((own, wall), (DAY * 366, (DAY * 366).as_nanos() as i64));
    });
}

#[test]
fn midnight_leap_days_and_summer_time_change_nothing() {
    // Half a second before each: UTC has no time zone, and a day has 86,400 seconds.
    let moments = [
        ("midnight of New Year's Eve", 1_798_761_600_000),
        ("the end of 29 February 2028", 1_835_481_600_000),
        ("summer time begins in the European Union", 1_774_746_000_000),
        ("summer time ends in the European Union", 1_792_890_000_000),
        ("daylight saving begins in New York", 1_772_953_200_000),
        ("the leap second of 2016", 1_483_228_800_000),
        ("32 bits of seconds are used up", 2_147_483_648_000),
    ];
    for (name, at_ms) in moments {
        let config = world::WorldConfig { start_unix_ms: at_ms - 500, ..world::WorldConfig::default() };
        world::run_test_with(config, move || async move {
            let start = Instant::now();
            for tenth in 0..20 {
                assert_eq!(unix_ms(), at_ms - 500 + 100 * tenth, "{name}");
                sleep(MS * 100).await;
            }
            assert_eq!(start.elapsed(), S * 2, "{name}");
        });
    }
}

#[test]
fn clocks_freeze_and_jump_while_the_program_sleeps() {
    // A machine that is suspended for ten seconds: the timer counts the time awake, the wall clock is set afterwards.
    on_a_node(async |node| {
        let task = world::spawn_on(node, async {
            let (start, wall) = (Instant::now(), unix_ms());
            sleep(S * 2).await;
            (start.elapsed(), unix_ms() - wall)
        });
        sleep(S).await;
        world::pause(node);
        world::freeze_clock(node);
        sleep(S * 10).await;
        world::thaw_clock(node);
        world::step_wall_clock(node, 10_000);
        world::resume(node);
        assert_eq!(task.await.unwrap(), (S * 2, 12_000));
        assert_eq!(world::elapsed(), S * 12);
    });
}

#[test]
fn a_wall_clock_may_be_before_1970_and_an_instant_never_goes_back() {
    on_a_node(async |node| {
        let reads = world::spawn_on(node, async {
            let mut last = (Instant::now(), unix_ms());
            let mut back = 0;
            for _ in 0..100 {
                sleep(MS * 10).await;
                let now = (Instant::now(), unix_ms());
                assert_eq!(now.0 - last.0, MS * 10);
                back += u32::from(now.1 < last.1);
                last = now;
            }
            (back, last.1)
        });
        for step in [-1_000, 5_000, -1_790_000_000_000, 60_000, -60_000] {
            sleep(MS * 95).await;
            world::step_wall_clock(node, step);
        }
        let (back, last) = reads.await.unwrap();
        assert_eq!(back, 3, "each step back shows once");
        assert!((0..10_000).contains(&last), "{last}");
    });
}
