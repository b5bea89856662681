//! The end of a node, seen from other nodes and from its own destructors.
use rt::fs::{OpenOptions, create_dir, read, sync_dir};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::task::spawn;
use rt::time::{Duration, sleep};
use rt::world::{self, CrashKind, CrashPoint, NodeEnd, NodeId, WorldConfig};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const S: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

/// Says where and when it is dropped.
struct Witness(&'static str, Log);

impl Drop for Witness {
    fn drop(&mut self) {
        let node = world::current_node();
        let text = format!(
            "{} on {} up={} incarnation={}",
            self.0,
            world::node_name(node),
            world::is_up(node),
            world::incarnation(node)
        );
        self.1.lock().unwrap().push(text);
    }
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

#[test]
fn destructors_run_at_once_in_spawn_order_on_their_own_node_which_is_down() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let log = Log::default();
        for name in ["first", "second", "third"] {
            let witness = Witness(name, Arc::clone(&log));
            world::spawn_on(node, async move {
                let _witness = witness;
                std::future::pending::<()>().await;
            });
        }
        let other = spawn(std::future::pending::<()>());
        sleep(S).await;
        world::crash(node);
        let expected = ["first", "second", "third"].map(|name| format!("{name} on broker up=false incarnation=1"));
        assert_eq!(taken(&log), expected);
        assert_eq!((world::tasks(node), world::is_up(node), world::incarnation(node)), (0, true, 1));
        assert_eq!(world::current_node(), NodeId::WORLD);
        assert!(!other.is_finished(), "other nodes go on");
    });
}

#[test]
fn a_node_in_its_own_poll_ends_when_the_poll_returns() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let log = Log::default();
        let (witness, own) = (Witness("bystander", Arc::clone(&log)), Arc::clone(&log));
        world::spawn_on(node, async move {
            let _witness = witness;
            std::future::pending::<()>().await;
        });
        let suicide = world::spawn_on(node, async move {
            sleep(S).await;
            world::crash(node);
            own.lock().unwrap().push(format!("goes on, incarnation {}", world::incarnation(node)));
            sleep(S).await;
            own.lock().unwrap().push("never".to_owned());
        });
        assert!(suicide.await.unwrap_err().is_cancelled());
        assert_eq!(taken(&log), ["goes on, incarnation 0", "bystander on broker up=false incarnation=1"]);
        assert_eq!(world::elapsed(), S);
    });
}

#[test]
fn what_a_dying_node_spawns_never_runs() {
    struct Spawner(Log);
    impl Drop for Spawner {
        fn drop(&mut self) {
            let log = Arc::clone(&self.0);
            let task = spawn(async move { log.lock().unwrap().push("ran".to_owned()) });
            assert!(task.is_finished());
        }
    }
    world::run_test(|| async {
        let node = world::add_node("broker");
        let log = Log::default();
        let spawner = Spawner(Arc::clone(&log));
        world::spawn_on(node, async move {
            let _spawner = spawner;
            std::future::pending::<()>().await;
        });
        sleep(S).await;
        world::crash(node);
        sleep(S).await;
        assert_eq!(taken(&log), Vec::<String>::new());
    });
}

#[test]
fn timers_of_the_dead_do_not_fire_for_the_living() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (sender, receiver) = rt::sync::oneshot::channel();
        world::spawn_on(node, async move {
            let mut sleep = Box::pin(sleep(S * 10));
            // Registered on this node, then handed to another that outlives it.
            let _ = rt::time::timeout(S, &mut sleep).await;
            sender.send(sleep).unwrap();
            std::future::pending::<()>().await;
        });
        let orphan = receiver.await.unwrap();
        world::crash(node);
        let living = world::spawn_on(node, async { sleep(S * 20).await });
        sleep(Duration::from_nanos(1)).await;
        orphan.await;
        assert_eq!(world::elapsed(), S + Duration::from_nanos(1), "an orphaned sleep ends");
        living.await.unwrap();
        assert_eq!(world::elapsed(), S * 21);
    });
}

#[test]
fn power_stays_off_until_the_node_is_started() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        world::power_loss(node);
        assert!(!world::is_up(node));
        world::crash(node);
        assert_eq!(world::incarnation(node), 1, "nothing is left to end");
        world::power_on(node);
        assert!(world::is_up(node));
        world::power_loss(node);
        assert_eq!(world::spawn_on(node, async { 7 }).await.unwrap(), 7);
        assert!(world::is_up(node));
    });
}

#[test]
fn hooks_learn_of_every_end_and_may_start_the_node_again() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let ends = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&ends);
        world::on_node_end(move |end: NodeEnd| {
            log.borrow_mut().push(end);
            if end.incarnation == 0 {
                drop(world::spawn_on(end.node, async move {
                    sleep(S).await;
                    world::crash(world::current_node());
                }));
            }
        });
        sleep(S).await;
        world::power_loss(node);
        sleep(S * 5).await;
        let end = |incarnation, kind, at| NodeEnd { node, incarnation, kind, at };
        assert_eq!(*ends.borrow(), [end(0, CrashKind::Power, S), end(1, CrashKind::Process, S * 2)]);
    });
}

#[test]
fn a_crash_ends_a_pause_and_a_stop_request() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let log = Log::default();
        let witness = Witness("paused", Arc::clone(&log));
        world::spawn_on(node, async move {
            let _witness = witness;
            loop {
                sleep(S).await;
            }
        });
        sleep(S).await;
        world::pause(node);
        world::request_stop(node);
        sleep(S * 3).await;
        world::crash(node);
        assert_eq!(taken(&log).len(), 1);
        let stopped = world::spawn_on(node, rt::signal::termination());
        world::spawn_on(node, sleep(S)).await.unwrap();
        assert!(!stopped.is_finished());
        world::request_stop(node);
        stopped.await.unwrap().unwrap();
        world::spawn_on(node, rt::signal::termination()).await.unwrap().unwrap();
    });
}

#[test]
#[should_panic(expected = "the world's own node has no faults")]
fn the_desk_cannot_crash() {
    world::run_test(|| async { world::crash(NodeId::WORLD) });
}

#[test]
fn at_the_end_of_a_run_everything_is_dropped_in_order() {
    let log = Log::default();
    let inside = Arc::clone(&log);
    world::run_test(|| async move {
        for name in ["b", "a"] {
            let (node, witness) = (world::add_node(name), Witness("left", Arc::clone(&inside)));
            world::spawn_on(node, async move {
                let _witness = witness;
                std::future::pending::<()>().await;
            });
        }
        sleep(S).await;
    });
    assert_eq!(taken(&log), ["left on b up=false incarnation=1", "left on a up=false incarnation=1"]);
}

/// Appends ten numbers, and tells after each how many are there for good, if `synced` is right.
async fn append(acked: Arc<Mutex<u8>>, synced: bool) -> std::io::Result<()> {
    create_dir("/data")?;
    let file = OpenOptions::new().write(true).create(true).open("/data/log")?;
    sync_dir("/data").await?;
    sync_dir("/").await?;
    for n in 1..=10u8 {
        file.write_at(&[n], u64::from(n) - 1)?;
        if synced {
            file.sync_data().await?;
        }
        *acked.lock().unwrap() = n;
    }
    Ok(())
}

/// Crashes the program at its `nth` disk operation. How many numbers were acknowledged, and the file after a restart; `None` if
/// there is no such operation.
fn crashed_at(nth: u64, kind: CrashKind, synced: bool) -> Option<(u8, Vec<u8>)> {
    // Another seed each time: what a power loss takes is drawn.
    world::run_test_with(WorldConfig { seed: nth, ..WorldConfig::default() }, move || async move {
        let node = world::add_node("broker");
        let acked = Arc::new(Mutex::new(0));
        world::crash_at(node, CrashPoint::DiskOperation(nth), kind);
        let task = world::spawn_on(node, append(Arc::clone(&acked), synced));
        if task.await.is_ok() {
            return None;
        }
        assert_eq!((world::incarnation(node), world::disk_operations(node)), (1, nth));
        let found = world::spawn_on(node, read("/data/log")).await.unwrap().unwrap_or_default();
        let acked = *acked.lock().unwrap();
        Some((acked, found))
    })
}

fn sweep(kind: CrashKind, synced: bool) -> Vec<(u8, Vec<u8>)> {
    (1..).map_while(|nth| crashed_at(nth, kind, synced)).collect()
}

#[test]
fn a_sweep_over_all_crash_points_loses_nothing_that_was_synced() {
    for kind in [CrashKind::Process, CrashKind::Power] {
        let all = sweep(kind, true);
        assert_eq!(all.len(), 4 + 2 * 10, "a crash at each operation");
        for (acked, found) in all {
            assert!(found.len() >= usize::from(acked), "{kind:?}: {acked} acknowledged, found {found:?}");
            assert_eq!(found[..usize::from(acked)], (1..=acked).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_sweep_finds_that_only_power_loses_what_was_not_synced() {
    let lost = |kind| {
        sweep(kind, false)
            .iter()
            .filter(|(acked, found)| found.len() < usize::from(*acked) || found.contains(&0))
            .count()
    };
    assert_eq!(lost(CrashKind::Process), 0);
    assert!(lost(CrashKind::Power) > 0);
}

#[test]
fn a_node_crashed_at_a_packet_has_sent_the_ones_before_only() {
    world::run_test(|| async {
        let node = world::add_node("client");
        let address = SocketAddr::new(world::ip(NodeId::WORLD), 80);
        let listener = TcpListener::bind(address).await.unwrap();
        world::spawn_on(node, async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            world::crash_at(world::current_node(), CrashPoint::Packet(3), CrashKind::Power);
            for n in 0..10u8 {
                // Acknowledged in time, so each write is a segment of its own.
                sleep(S).await;
                stream.write_all(&[n]).await.unwrap();
            }
        });
        let mut stream = listener.accept().await.unwrap().0;
        let mut got = Vec::new();
        let mut byte = [0];
        while let Ok(Ok(1)) = rt::time::timeout(S * 30, stream.read(&mut byte)).await {
            got.push(byte[0]);
        }
        assert_eq!(got, [0, 1]);
        assert!(!world::is_up(node));
    });
}

/// What a node's programs hold: tasks, timers, open files, and connections of the whole world.
fn held(node: NodeId) -> (usize, usize, u64, usize) {
    (world::tasks(node), world::timers(node), world::disk::open_files(node), world::network::connections())
}

/// A server that holds something of each sort, and hands some of it to a place that outlives it.
async fn hold_much(outside: Arc<Mutex<Vec<Box<dyn std::any::Any + Send>>>>) {
    let address = SocketAddr::new(world::ip(world::current_node()), 80);
    let listener = TcpListener::bind(address).await.unwrap();
    let file = OpenOptions::new().write(true).create(true).open("/log").unwrap();
    file.try_lock().unwrap();
    let mut timer = Box::pin(sleep(S * 1_000));
    let _ = rt::time::timeout(S, &mut timer).await;
    outside.lock().unwrap().push(Box::new(file.clone()));
    outside.lock().unwrap().push(Box::new(timer));
    for _ in 0..3 {
        spawn(async move {
            let _file = OpenOptions::new().open("/log").unwrap();
            let mut stream = TcpStream::connect(address).await.unwrap();
            rt::time::timeout(S * 1_000, stream.read_u8()).await.unwrap().unwrap();
        });
    }
    let mut streams = Vec::new();
    loop {
        streams.push(listener.accept().await.unwrap());
    }
}

#[test]
fn an_ended_node_leaks_nothing() {
    for end in [world::crash as fn(NodeId), world::power_loss] {
        world::run_test(move || async move {
            let node = world::add_node("server");
            let outside = Arc::new(Mutex::new(Vec::new()));
            drop(world::spawn_on(node, hold_much(Arc::clone(&outside))));
            sleep(S * 2).await;
            let before = held(node);
            assert_eq!(before, (4, 4, 4, 3), "the server, its timer, its file, and three of each");
            end(node);
            assert_eq!(held(node), (0, 0, 0, 0));
            // The next program of the node finds the port, the lock and the name free.
            drop(world::spawn_on(node, hold_much(Arc::clone(&outside))));
            sleep(S * 2).await;
            assert_eq!(held(node), before);
            end(node);
            outside.lock().unwrap().clear();
            assert_eq!(held(node), (0, 0, 0, 0), "what was held outside is void, and is not given back twice");
        });
    }
}

#[test]
fn a_program_that_returns_leaves_nothing_either() {
    world::run_test(|| async {
        let node = world::add_node("server");
        let outside = Arc::new(Mutex::new(Vec::new()));
        let program = async move {
            let _ = rt::time::timeout(S * 5, hold_much(outside)).await;
        };
        world::spawn_on(node, program).await.unwrap();
        assert_eq!((world::elapsed(), world::tasks(node)), (S * 5, 3), "what it has spawned goes on");
        world::crash(node);
        sleep(S).await;
        assert_eq!(held(node), (0, 0, 0, 0));
    });
}
