//! One seed, one run; and a trace that notices every difference.
use rt::fs::OpenOptions;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::rand::{RngCore, SeedableRng, stream};
use rt::task::spawn;
use rt::time::{Duration, Instant, sleep};
use rt::world::{self, Checkpoint, Outcome, WorldConfig};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

fn seeded(seed: u64) -> WorldConfig {
    WorldConfig { seed, ..WorldConfig::default() }
}

/// Some tasks on some nodes that draw, sleep, wake each other, talk and write.
fn bustle(seed: u64) -> Outcome<Vec<u64>> {
    world::run(seeded(seed), || async {
        let (sender, mut receiver) = rt::sync::mpsc::channel(4);
        for n in 0..6u8 {
            let (node, sender) = (world::add_node(&format!("n{n}")), sender.clone());
            world::spawn_on(node, async move {
                let mut random = stream("pace");
                let file = OpenOptions::new().write(true).create(true).open("/log").unwrap();
                let address = SocketAddr::new(world::ip(world::current_node()), 80);
                let listener = TcpListener::bind(address).await.unwrap();
                spawn(async move {
                    let mut peer = TcpStream::connect(SocketAddr::new(world::ip(world::nodes()[1]), 80)).await.unwrap();
                    peer.write_all(&[n; 3000]).await.unwrap();
                });
                spawn(async move {
                    while let Ok((mut peer, _)) = listener.accept().await {
                        let mut bytes = Vec::new();
                        peer.read_to_end(&mut bytes).await.unwrap();
                        assert_eq!(bytes.len(), 3000);
                        file.write_at(&bytes, 0).unwrap();
                        file.sync_data().await.unwrap();
                    }
                });
                for _ in 0..100 {
                    sleep(Duration::from_nanos(random.next_u64() % 1000)).await;
                    sender.send(random.next_u64()).await.unwrap();
                }
            });
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(value) = receiver.recv().await {
            all.push(value);
        }
        all
    })
}

fn on_a_fresh_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(work).join().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let digest = |seed| {
        let outcome = bustle(seed);
        (outcome.hash, outcome.events, outcome.polls, outcome.virtual_time, outcome.value.unwrap())
    };
    let first = on_a_fresh_thread(move || digest(5));
    assert_eq!(first.4.len(), 600);
    for _ in 0..5 {
        assert_eq!(first, on_a_fresh_thread(move || digest(5)));
    }
    // On a thread that has run other seeds as well.
    assert_eq!(first, {
        digest(1);
        digest(5)
    });
    assert_ne!(first.0, digest(6).0);
}

#[test]
fn every_difference_shows_in_the_hash() {
    let hash = |main: fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>>| world::run(seeded(1), main).hash;
    let hashes = [
        hash(|| Box::pin(async {})),
        hash(|| Box::pin(async { sleep(Duration::from_nanos(1)).await })),
        hash(|| Box::pin(async { sleep(Duration::from_nanos(2)).await })),
        hash(|| Box::pin(async { _ = stream("a").next_u64() })),
        hash(|| Box::pin(async { rt::task::yield_now().await })),
        hash(|| Box::pin(async { spawn(async {}).await.unwrap() })),
        hash(|| Box::pin(async { world::spawn_on(world::add_node("n"), async {}).await.unwrap() })),
        hash(|| Box::pin(async { world::crash(world::add_node("n")) })),
        hash(|| Box::pin(async { world::power_loss(world::add_node("n")) })),
        hash(|| Box::pin(async { world::pause(world::add_node("n")) })),
        hash(|| Box::pin(async { world::record(1) })),
        hash(|| Box::pin(async { world::record(2) })),
    ];
    let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
    assert_eq!(distinct.len(), hashes.len(), "{hashes:x?}");
}

#[test]
fn an_extra_draw_in_one_stream_shifts_no_other() {
    let draws = |extra: bool| {
        world::run_test(move || async move {
            let mut first = stream("first");
            let before = first.next_u64();
            if extra {
                first.next_u64();
                stream("third").next_u64();
            }
            let here = stream("second").next_u64();
            let again = stream("second").next_u64();
            let there = world::spawn_on(world::add_node("n"), async { stream("second").next_u64() }).await.unwrap();
            (before, here, again, there)
        })
    };
    let (before, here, again, there) = draws(false);
    assert_eq!(draws(true), (before, here, again, there));
    let distinct: std::collections::BTreeSet<_> = [before, here, again, there].into();
    assert_eq!(distinct.len(), 4, "name, opening and node each make another stream");
}

#[test]
fn a_restarted_program_draws_other_numbers() {
    world::run_test(|| async {
        let node = world::add_node("n");
        let draw = async || world::spawn_on(node, async { stream("jitter").next_u64() }).await.unwrap();
        let first = draw().await;
        world::crash(node);
        assert_ne!(first, draw().await);
    });
}

fn entropy_of_dependencies(seed: u64) -> (Vec<u32>, u64, [u8; 24], u64) {
    let outcome = world::run(seeded(seed), || async {
        let map: HashMap<u32, ()> = (0..50).map(|n| (n, ())).collect();
        let mut raw = [0u8; 24];
        // What getrandom 0.2 does, and so rand 0.8 and ring.
        // SAFETY: the buffer has the given length.
        let got = unsafe { libc::syscall(libc::SYS_getrandom, raw.as_mut_ptr(), raw.len(), 0) };
        assert_eq!(got, 24);
        let os = rand::rngs::SmallRng::from_os_rng().next_u64();
        (map.into_keys().collect(), os, raw)
    });
    let (order, os, raw) = outcome.value.unwrap();
    (order, os, raw, outcome.stray_entropy_reads)
}

#[test]
fn entropy_and_hash_order_of_dependencies_follow_the_seed() {
    let one = on_a_fresh_thread(|| entropy_of_dependencies(1));
    assert_eq!(one, on_a_fresh_thread(|| entropy_of_dependencies(1)));
    assert_eq!(one.3, 1);
    let two = on_a_fresh_thread(|| entropy_of_dependencies(2));
    assert_ne!((&one.0, one.1, one.2), (&two.0, two.1, two.2));
    assert!(one.0 != two.0 && one.1 != two.1 && one.2 != two.2, "each of the three");
}

#[test]
#[cfg(target_os = "linux")]
fn clocks_of_dependencies_follow_the_node_and_are_counted() {
    let outcome = world::run(WorldConfig { catch_clock_read: Some(3), ..WorldConfig::default() }, || async {
        let node = world::add_node("n");
        world::set_clock_drift_ppm(node, 1_000_000);
        world::step_wall_clock(node, 5_000);
        let seen = world::spawn_on(node, async {
            let (start, wall) = (std::time::Instant::now(), std::time::SystemTime::now());
            sleep(Duration::from_secs(10)).await;
            (start.elapsed(), wall.elapsed().unwrap(), wall.duration_since(std::time::UNIX_EPOCH).unwrap())
        });
        let (monotonic, wall, since) = seen.await.unwrap();
        assert_eq!((monotonic, wall), (Duration::from_secs(10), Duration::from_secs(10)));
        assert_eq!(world::elapsed(), Duration::from_secs(5));
        assert_eq!(since.as_millis(), 1_790_000_005_000);
    });
    assert_eq!(outcome.finding, None);
    assert_eq!(outcome.stray_clock_reads, 4);
    assert!(outcome.caught_clock_read.unwrap().contains("clocks_of_dependencies"));
    assert!(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).is_ok(), "outside it is the real one");
}

#[test]
fn a_thread_is_a_finding() {
    let outcome = world::run(seeded(1), || async { drop(std::thread::spawn(|| {})) });
    let finding = outcome.finding.unwrap();
    assert_eq!(finding.kind, world::FindingKind::Panic);
}

#[test]
fn checkpoints_come_every_1024_events_and_at_the_end() {
    let seen = Rc::new(RefCell::new(Vec::<Checkpoint>::new()));
    let log = Rc::clone(&seen);
    let outcome = world::run(seeded(1), || async move {
        world::on_checkpoint(move |checkpoint| {
            assert_eq!(world::trace_tail(1)[0].index + 1, checkpoint.events);
            log.borrow_mut().push(checkpoint);
        });
        for _ in 0..1500 {
            sleep(Duration::from_nanos(1)).await;
        }
    });
    assert_eq!(outcome.finding, None);
    let seen = seen.borrow();
    assert_eq!(seen.iter().map(|checkpoint| checkpoint.events).collect::<Vec<_>>(), [1024, 2048, outcome.events]);
    assert_eq!(seen[2].hash, outcome.hash);
}

#[test]
fn the_trace_can_be_read() {
    let (lines, draw) = world::run_test(|| async {
        let node = world::add_node("broker");
        let task = world::spawn_on(node, async {
            sleep(Duration::from_millis(2)).await;
            // Only its place in the trace matters here.
            _ = stream("jitter").next_u64();
        });
        task.await.unwrap();
        world::crash(node);
        let tail = world::trace_tail(20);
        (tail.iter().map(ToString::to_string).collect::<Vec<_>>(), tail[6].clone())
    });
    // The drawn value itself is nobody's promise.
    let lines: Vec<_> = lines.iter().map(|line| line.split(" 0x").next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "#0    0.000000000s world spawn task 0 by the world",
            "#1    0.000000000s world pick task 0 of 1 ready",
            "#2    0.000000000s world spawn task 1 by task 0",
            "#3    0.000000000s broker pick task 1 of 1 ready",
            "#4    0.002000000s broker timer due at local 1000000002000000 ns",
            "#5    0.002000000s broker pick task 1 of 1 ready",
            "#6    0.002000000s broker draw",
            "#7    0.002000000s world pick task 0 of 1 ready",
            "#8    0.002000000s broker crash, incarnation 0 ends",
        ]
    );
    assert_eq!(draw.stream.as_deref(), Some("jitter#0"));
}

#[test]
fn real_time_does_not_pass() {
    let outcome = world::run(seeded(1), || async {
        let start = Instant::now();
        sleep(Duration::from_secs(100 * 365 * 24 * 3600)).await;
        assert_eq!(start.elapsed().as_secs(), 100 * 365 * 24 * 3600);
    });
    assert_eq!(outcome.finding, None);
    assert_eq!(outcome.polls, 2);
}
