//! The loads themselves, of any size.
use super::heap;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{Duration, sleep};
use rt::world::{self, Limits, NodeId, WorldConfig, network};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a load took, in bytes of heap beyond what was held before it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// At most, while it ran.
    pub peak_bytes: u64,
    /// After it, in the same world.
    pub left_bytes: u64,
}

impl Load {
    fn since(before: i64) -> Load {
        let beyond = |bytes: i64| u64::try_from(bytes - before).unwrap_or(0);
        Load { peak_bytes: beyond(heap::peak()), left_bytes: beyond(heap::live()) }
    }
}

const PORT: u16 = 80;

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), PORT)
}

/// Sends that many bytes, a multiple of 64 KiB, through one connection.
pub fn one_connection(bytes: u64) -> Load {
    const CHUNK: usize = 64 << 10;
    world::run_test(move || async move {
        let (server, client) = (world::add_node("server"), world::add_node("client"));
        let before = heap::begin();
        let reading = world::spawn_on(server, async move {
            let listener = TcpListener::bind(address(server)).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; CHUNK];
            let mut received = 0;
            loop {
                match stream.read(&mut buffer).await.unwrap() {
                    0 => return received,
                    length => received += length as u64,
                }
            }
        });
        let writing = world::spawn_on(client, async move {
            sleep(Duration::from_millis(1)).await;
            let mut stream = TcpStream::connect(address(server)).await.unwrap();
            let chunk = vec![7; CHUNK];
            for _ in 0..bytes / CHUNK as u64 {
                stream.write_all(&chunk).await.unwrap();
            }
        });
        writing.await.unwrap();
        assert_eq!(reading.await.unwrap(), bytes);
        Load::since(before)
    })
}

/// Lets that many tasks sleep at once, until instants all over an hour; when all have ended, the same again.
pub fn timers(count: u64, waves: u32) -> Load {
    // They are all spawned at one instant.
    let limits = Limits { polls_per_instant_max: u64::MAX, ..Limits::default() };
    world::run_test_with(WorldConfig { limits, ..WorldConfig::default() }, move || async move {
        let node = world::add_node("sleeper");
        let before = heap::begin();
        for _ in 0..waves {
            wave(node, count).await;
        }
        Load::since(before)
    })
}

async fn wave(node: NodeId, count: u64) {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let start = world::elapsed();
    let since = move || (world::elapsed() - start).as_nanos() as u64;
    let (fired, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    for n in 1..=count {
        let (fired, last) = (Arc::clone(&fired), Arc::clone(&last));
        // A multiplication by an odd number spreads them without a generator.
        let nanos = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % HOUR_NS;
        world::spawn_on(node, async move {
            sleep(Duration::from_nanos(nanos)).await;
            assert_eq!(since(), nanos);
            assert!(last.swap(nanos, Ordering::Relaxed) <= nanos, "a timer fired after a later one");
            fired.fetch_add(1, Ordering::Relaxed);
        });
    }
    sleep(Duration::from_nanos(1)).await;
    assert!(world::timers(node) as u64 >= count - 1, "all of them are pending");
    sleep(Duration::from_nanos(HOUR_NS)).await;
    assert_eq!((fired.load(Ordering::Relaxed), world::timers(node), world::tasks(node)), (count, 0, 0));
}

/// Lets that many nodes each ask three others, ten times a second for three seconds; one node is cut off for one of them.
pub fn nodes(count: usize) -> Load {
    world::run_test(move || async move {
        let before = heap::begin();
        let nodes: Vec<NodeId> = (0..count).map(|n| world::add_node(&format!("n{n}"))).collect();
        for node in &nodes {
            world::spawn_on(*node, serve(*node));
        }
        sleep(Duration::from_millis(1)).await;
        let mut asking = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            for step in [1, 7, count / 2] {
                let peer = address(nodes[(at + step) % count]);
                asking.push(world::spawn_on(*node, ask(peer)));
            }
        }
        sleep(Duration::from_secs(1)).await;
        network::isolate(nodes[count - 1]);
        sleep(Duration::from_secs(1)).await;
        network::rejoin(nodes[count - 1]);
        let mut answers = 0;
        for task in asking {
            answers += task.await.unwrap();
        }
        assert_eq!(answers, 3 * 30 * count as u64);
        Load::since(before)
    })
}

async fn serve(node: NodeId) {
    let listener = TcpListener::bind(address(node)).await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        rt::task::spawn(async move {
            let mut bytes = [0; 128];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.unwrap();
            }
        });
    }
}

async fn ask(peer: SocketAddr) -> u64 {
    let mut stream = TcpStream::connect(peer).await.unwrap();
    let mut bytes = [7; 128];
    for _ in 0..30 {
        stream.write_all(&bytes).await.unwrap();
        stream.read_exact(&mut bytes).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    30
}
