//! Datagrams under faults: what only they show, and that streams notice nothing of it.
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::time::{Duration, sleep, timeout};
use rt::world::network::{self, effects};
use rt::world::{self, CrashKind, CrashPoint, NodeId, Reordering, WorldConfig};
use std::io::ErrorKind;
use std::net::SocketAddr;

const S: Duration = Duration::from_secs(1);
const PORT: u16 = 5353;

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), PORT)
}

async fn bound(node: NodeId) -> UdpSocket {
    world::spawn_on(node, UdpSocket::bind(address(node))).await.unwrap().unwrap()
}

/// A socket of the world's node, and one of a new node.
async fn pair() -> (UdpSocket, UdpSocket, NodeId) {
    let node = world::add_node("peer");
    let far = bound(node).await;
    let near = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
    near.connect(address(node)).await.unwrap();
    (near, far, node)
}

/// Sends numbered datagrams a microsecond apart and gives the numbers that arrive.
async fn numbers(near: &UdpSocket, far: &UdpSocket, count: u32) -> Vec<u32> {
    let mut arrived = Vec::new();
    for at in 0..count {
        near.send(&at.to_be_bytes()).await.unwrap();
        sleep(Duration::from_micros(1)).await;
        assert!(far.try_recv_from(&mut [0; 4]).is_err(), "none arrives before the shortest latency");
        if at % 50 == 49 {
            arrived.extend(drain(far).await);
        }
    }
    arrived.extend(drain(far).await);
    arrived
}

async fn drain(far: &UdpSocket) -> Vec<u32> {
    let mut arrived = Vec::new();
    let mut bytes = [0; 4];
    while let Ok(received) = timeout(S, far.recv(&mut bytes)).await {
        received.unwrap();
        arrived.push(u32::from_be_bytes(bytes));
    }
    arrived
}

#[test]
fn links_keep_the_order_of_datagrams_whatever_the_latency() {
    world::run_test(|| async {
        let (near, far, _) = pair().await;
        assert_eq!(numbers(&near, &far, 500).await, (0..500).collect::<Vec<_>>());
        assert_eq!(effects().datagrams_delivered, 500);
    });
}

#[test]
fn lossy_links_lose_datagrams_for_ever() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        network::set_loss(NodeId::WORLD, node, 300_000);
        let arrived = numbers(&near, &far, 1000).await;
        assert!((600..800).contains(&arrived.len()), "{}", arrived.len());
        assert!(arrived.is_sorted());
        assert_eq!(effects().dropped_by_loss, 1000 - arrived.len() as u64);
    });
}

#[test]
fn a_link_that_doubles_datagrams_lets_both_arrive() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        network::set_duplication(NodeId::WORLD, node, 250_000);
        let arrived = numbers(&near, &far, 400).await;
        assert!(arrived.is_sorted());
        let twice = arrived.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(arrived.len(), 400 + twice);
        assert!((60..140).contains(&twice), "{twice}");
        assert_eq!(effects().duplicated, twice as u64);
        network::set_duplication(NodeId::WORLD, node, 0);
        assert_eq!(numbers(&near, &far, 50).await.len(), 50);
    });
}

#[test]
fn a_link_that_reorders_lets_datagrams_overtake() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        network::set_reordering(NodeId::WORLD, node, Some(Reordering { ppm: 200_000, held_ns_max: 5_000_000 }));
        let mut arrived = numbers(&near, &far, 400).await;
        assert!(!arrived.is_sorted());
        assert!((40..120).contains(&effects().reordered), "{}", effects().reordered);
        arrived.sort_unstable();
        assert_eq!(arrived, (0..400).collect::<Vec<_>>(), "each arrives once");
    });
}

/// When the last byte of a stream's echo was back.
fn echo_took(faults: impl Fn(NodeId) + Send + 'static, chatter: bool) -> Duration {
    let outcome = world::run(WorldConfig::default(), move || async move {
        let node = world::add_node("peer");
        faults(node);
        faults(NodeId::WORLD);
        let listener = world::spawn_on(node, TcpListener::bind(address(node))).await.unwrap().unwrap();
        if chatter {
            let (near, far) = (UdpSocket::bind(address(NodeId::WORLD)).await.unwrap(), bound(node).await);
            rt::task::spawn(async move {
                let _far = far;
                loop {
                    near.send_to(b"chatter", address(node)).await.unwrap();
                    sleep(Duration::from_micros(70)).await;
                }
            });
        }
        world::spawn_on(node, async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 100];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.unwrap();
            }
        });
        let mut stream = TcpStream::connect(address(node)).await.unwrap();
        for at in 0..100_u8 {
            let mut bytes = [at; 100];
            stream.write_all(&bytes).await.unwrap();
            stream.read_exact(&mut bytes).await.unwrap();
            assert_eq!(bytes, [at; 100]);
        }
        world::elapsed()
    });
    outcome.value.unwrap()
}

#[test]
fn streams_hide_duplication_and_reordering_and_draw_nothing_for_them() {
    let plain = echo_took(|_| {}, false);
    let nasty = |node| {
        for other in [NodeId::WORLD, node] {
            network::set_duplication(other, node, 500_000);
            network::set_reordering(node, other, Some(Reordering { ppm: 500_000, held_ns_max: 9_000_000 }));
        }
    };
    assert_eq!(echo_took(nasty, false), plain);
}

#[test]
fn datagrams_change_no_draw_of_streams() {
    assert_eq!(echo_took(|_| {}, true), echo_took(|_| {}, false));
}

#[test]
fn neither_datagrams_nor_answers_cross_a_partition() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        near.send(b"in flight").await.unwrap();
        network::block(NodeId::WORLD, node);
        near.send(b"blocked").await.unwrap();
        assert!(drain(&far).await.is_empty());
        assert_eq!(effects().dropped_by_block, 2);
        network::unblock(NodeId::WORLD, node);
        network::block(node, NodeId::WORLD);
        drop(far);
        near.send(b"anybody?").await.unwrap();
        assert!(timeout(S, near.recv(&mut [0; 4])).await.is_err(), "the refusal does not come back");
        assert_eq!((effects().datagrams_unreachable, effects().dropped_by_block), (1, 3));
        network::heal();
        near.send(b"anybody?").await.unwrap();
        assert_eq!(near.recv(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn silence_is_no_error() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        near.send_to(b"x", "10.0.0.200:1".parse().unwrap()).await.unwrap();
        world::power_loss(node);
        drop(far);
        near.send(b"x").await.unwrap();
        assert!(timeout(S, near.recv(&mut [0; 4])).await.is_err());
        assert_eq!(effects().dropped_by_silence, 1);
        world::power_on(node);
        near.send(b"x").await.unwrap();
        assert_eq!(near.recv(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_crash_closes_sockets_and_gives_their_ports_back() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        let call = world::spawn_on(node, async move {
            let received = far.recv(&mut [0; 4]).await;
            (far, received)
        });
        world::crash(node);
        assert!(call.await.unwrap_err().is_cancelled());
        near.send(b"x").await.unwrap();
        assert_eq!(near.recv(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let far = bound(node).await;
        near.send(b"x").await.unwrap();
        assert_eq!(far.recv(&mut [0; 4]).await.unwrap(), 1);
        world::power_loss(node);
        assert_eq!(far.send_to(b"x", address(NodeId::WORLD)).await.unwrap_err().kind(), ErrorKind::NotConnected);
    });
}

#[test]
fn a_node_may_end_at_any_datagram_which_does_not_leave() {
    world::run_test(|| async {
        let (near, far, node) = pair().await;
        let to = near.local_addr().unwrap();
        world::crash_at(node, CrashPoint::Packet(3), CrashKind::Process);
        let sender = world::spawn_on(node, async move {
            for at in 0..10_u32 {
                far.send_to(&at.to_be_bytes(), to).await.unwrap();
            }
        });
        assert_eq!(drain(&near).await, [0, 1]);
        assert!(sender.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_socket_of_loopback_reaches_no_other_machine() {
    world::run_test(|| async {
        let node = world::add_node("peer");
        let near = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        assert_eq!(near.send_to(b"x", address(node)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(near.connect(address(node)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn datagram_ports_run_out_and_come_back() {
    let mut config = WorldConfig::default();
    config.network.ephemeral_ports = 40_000..=40_001;
    world::run_test_with(config, || async {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let one = UdpSocket::bind(any).await.unwrap();
        let _other = UdpSocket::bind(any).await.unwrap();
        assert_eq!(UdpSocket::bind(any).await.unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(one);
        UdpSocket::bind(any).await.unwrap();
    });
}

#[test]
fn one_seed_one_order_of_datagrams() {
    let run = |seed: u64, byte: u8| {
        let config = WorldConfig { seed, hash_payload: true, ..WorldConfig::default() };
        let outcome = world::run(config, move || async move {
            let (near, far, node) = pair().await;
            network::set_loss(NodeId::WORLD, node, 100_000);
            network::set_duplication(NodeId::WORLD, node, 100_000);
            network::set_reordering(NodeId::WORLD, node, Some(Reordering { ppm: 100_000, held_ns_max: 3_000_000 }));
            near.send(&[byte; 4]).await.unwrap();
            numbers(&near, &far, 200).await
        });
        (outcome.hash, outcome.value.unwrap())
    };
    assert_eq!(run(1, 0), run(1, 0));
    assert_ne!(run(1, 0).1, run(2, 0).1);
    assert_ne!(run(1, 0).0, run(1, 1).0, "payload is part of the trace when asked");
}
