//! Packet rules, and links of little bandwidth.
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::time::{Duration, sleep, timeout};
use rt::world::network::{self, effects};
use rt::world::{self, Bandwidth, Latency, NodeId, PacketKind, Verdict, WorldConfig};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const PORT: u16 = 9876;

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), PORT)
}

/// A world whose packets travel exactly a millisecond, in one piece.
fn exact() -> WorldConfig {
    let mut config = WorldConfig::default();
    config.network.latency = Latency::uniform(1_000_000, 1_000_000);
    config.network.split_one_in = 0;
    config
}

async fn listening(node: NodeId) -> TcpListener {
    world::spawn_on(node, TcpListener::bind(address(node))).await.unwrap().unwrap()
}

async fn pair(node: NodeId) -> (TcpStream, TcpStream) {
    let listener = listening(node).await;
    let near = TcpStream::connect(address(node)).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

#[test]
fn a_rule_sees_every_packet_of_a_connection_in_its_order() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&seen);
        let watch = move |packet: &world::Packet| {
            assert_eq!(packet.from == NodeId::WORLD, packet.destination == address(node));
            assert_eq!(packet.to == NodeId::WORLD, packet.source == address(node));
            told.lock().unwrap().push((packet.from.index(), packet.kind, packet.length));
            Verdict::Pass
        };
        network::set_rule("watch", Box::new(watch));
        let (mut near, mut far) = pair(node).await;
        near.write_all(b"question").await.unwrap();
        far.read_exact(&mut [0; 8]).await.unwrap();
        far.write_all(b"answer").await.unwrap();
        near.read_exact(&mut [0; 6]).await.unwrap();
        drop(near);
        assert_eq!(far.read(&mut [0; 4]).await.unwrap(), 0);
        drop(far);
        let (client, server) = (0, 1);
        let expected = [
            (client, PacketKind::Syn, 0),
            (server, PacketKind::SynAck, 0),
            (client, PacketKind::Ack, 0),
            (client, PacketKind::Data, 8),
            (server, PacketKind::Data, 6),
            (client, PacketKind::Fin, 0),
            (server, PacketKind::Fin, 0),
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
    });
}

#[test]
fn a_rule_that_passes_changes_nothing() {
    let took = |rule: bool| {
        let outcome = world::run(WorldConfig::default(), move || async move {
            let node = world::add_node("broker");
            if rule {
                network::set_rule("pass", Box::new(|_| Verdict::Pass));
            }
            let (mut near, mut far) = pair(node).await;
            for _ in 0..50 {
                near.write_all(&[1; 1000]).await.unwrap();
                far.read_exact(&mut [0; 1000]).await.unwrap();
            }
            world::elapsed()
        });
        outcome.value.unwrap()
    };
    assert_eq!(took(true), took(false));
}

#[test]
fn a_delayed_packet_holds_back_its_stream_only() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let late = |packet: &world::Packet| match packet.length {
            1 => Verdict::Later(MS * 70),
            _ => Verdict::Pass,
        };
        network::set_rule("late", Box::new(late));
        network::set_rule("later", Box::new(late));
        let start = world::elapsed();
        near.write_all(b"a").await.unwrap();
        near.write_all(b"bc").await.unwrap();
        far.read_exact(&mut [0; 3]).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 141, "delays add up, and no byte overtakes another");
        assert_eq!(effects().delayed_by_rule, 1);
        network::clear_rule("late");
        network::clear_rule("later");
        near.write_all(b"a").await.unwrap();
        far.read_exact(&mut [0; 1]).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 142);
    });
}

#[test]
fn a_dropped_packet_is_sent_again() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let mut left = 2;
        let drop_two = move |packet: &world::Packet| {
            let dropped = packet.kind == PacketKind::Data && left > 0;
            left -= u32::from(dropped);
            if dropped { Verdict::Drop } else { Verdict::Pass }
        };
        network::set_rule("drop two", Box::new(drop_two));
        let start = world::elapsed();
        near.write_all(b"abc").await.unwrap();
        far.read_exact(&mut [0; 3]).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 601, "after 200 ms and 400 ms");
        assert_eq!((effects().dropped_by_rule, effects().retransmissions), (2, 2));
    });
}

#[test]
fn a_rejected_syn_refuses_the_connection_at_once() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let listener = listening(node).await;
        let reject = |packet: &world::Packet| match packet.destination.port() {
            PORT => Verdict::Reject,
            _ => Verdict::Pass,
        };
        network::set_rule("firewall", Box::new(reject));
        let start = world::elapsed();
        let error = TcpStream::connect(address(node)).await.unwrap_err();
        assert_eq!((error.kind(), world::elapsed() - start), (ErrorKind::ConnectionRefused, MS * 2));
        assert_eq!(effects().rejected_by_rule, 1);
        network::heal();
        TcpStream::connect(address(node)).await.unwrap();
        listener.accept().await.unwrap();
    });
}

#[test]
fn a_rejected_segment_resets_its_sender_and_leaves_the_peer_half_open() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        network::set_rule("firewall", Box::new(|_| Verdict::Reject));
        near.write_all(b"abc").await.unwrap();
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(timeout(S * 10, far.read(&mut [0; 4])).await.is_err());
        network::clear_rule("firewall");
        far.write_all(b"there?").await.unwrap();
        assert_eq!(far.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop((near, far));
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn a_rejected_acknowledgement_ends_the_handshake_at_the_server() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let listener = listening(node).await;
        let reject = |packet: &world::Packet| match packet.kind {
            PacketKind::Ack => Verdict::Reject,
            _ => Verdict::Pass,
        };
        network::set_rule("firewall", Box::new(reject));
        let mut near = TcpStream::connect(address(node)).await.unwrap();
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(timeout(S * 60, listener.accept()).await.is_err());
        drop(near);
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn an_orphan_whose_end_is_rejected_is_gone() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (near, mut far) = pair(node).await;
        network::set_rule("firewall", Box::new(|_| Verdict::Reject));
        drop(near);
        assert!(timeout(S * 60, far.read(&mut [0; 4])).await.is_err());
        drop(far);
        sleep(S).await;
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn datagrams_are_dropped_delayed_and_rejected_by_rules() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let far = world::spawn_on(node, UdpSocket::bind(address(node))).await.unwrap().unwrap();
        let near = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
        near.connect(address(node)).await.unwrap();
        let by_length = |packet: &world::Packet| match packet.length {
            1 => Verdict::Drop,
            2 => Verdict::Later(MS * 50),
            3 => Verdict::Reject,
            _ => Verdict::Pass,
        };
        network::set_rule("by length", Box::new(by_length));
        near.send(&[0; 1]).await.unwrap();
        near.send(&[0; 2]).await.unwrap();
        assert_eq!(far.recv(&mut [0; 8]).await.unwrap(), 2);
        assert_eq!(world::elapsed(), MS * 51);
        near.send(&[0; 3]).await.unwrap();
        assert_eq!(near.recv(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        near.send(&[0; 4]).await.unwrap();
        assert_eq!(far.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn rules_are_not_asked_about_packets_within_a_node() {
    world::run_test(|| async {
        network::set_rule("drop", Box::new(|_| Verdict::Drop));
        let (mut near, mut far) = pair(NodeId::WORLD).await;
        near.write_all(b"abc").await.unwrap();
        assert_eq!(far.read(&mut [0; 4]).await.unwrap(), 3);
        assert_eq!(effects().dropped_by_rule, 0);
    });
}

#[test]
fn a_narrow_link_takes_its_time_and_holds_the_writer_back() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let bandwidth = Bandwidth { bytes_per_second: 100_000, queue_bytes: 1 << 20 };
        network::set_bandwidth(NodeId::WORLD, node, Some(bandwidth));
        let start = world::elapsed();
        let writer = rt::task::spawn(async move {
            near.write_all(&vec![7; 1_000_000]).await.unwrap();
            world::elapsed()
        });
        let mut all = vec![0; 1_000_000];
        far.read_exact(&mut all).await.unwrap();
        let took = (world::elapsed() - start).as_millis();
        // 691 segments of 40 bytes more than what they carry.
        assert!((10_270..10_320).contains(&took), "{took} ms");
        let written = (writer.await.unwrap() - start).as_millis();
        assert!(written > 8_500, "the writer is held back by what the buffers do not take: {written} ms");
        assert!(effects().queued >= 691, "{}", effects().queued);
        assert_eq!(effects().dropped_by_queue, 0);
        far.write_all(b"x").await.unwrap();
    });
}

#[test]
fn two_streams_share_a_narrow_link() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let listener = listening(node).await;
        let bandwidth = Bandwidth { bytes_per_second: 100_000, queue_bytes: 1 << 20 };
        network::set_bandwidth(NodeId::WORLD, node, Some(bandwidth));
        let start = world::elapsed();
        let mut readers = Vec::new();
        for _ in 0..2 {
            let mut near = TcpStream::connect(address(node)).await.unwrap();
            let (mut far, _) = listener.accept().await.unwrap();
            rt::task::spawn(async move { near.write_all(&[7; 50_000]).await });
            readers.push(rt::task::spawn(async move { far.read_exact(&mut vec![0; 50_000]).await }));
        }
        for reader in readers {
            reader.await.unwrap().unwrap();
        }
        let took = (world::elapsed() - start).as_millis();
        assert!((1_000..1_060).contains(&took), "{took} ms");
    });
}

#[test]
fn a_short_queue_drops_and_nothing_is_missing_in_the_end() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let bandwidth = Bandwidth { bytes_per_second: 1_000_000, queue_bytes: 10_000 };
        network::set_bandwidth(NodeId::WORLD, node, Some(bandwidth));
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let sent = bytes.clone();
        rt::task::spawn(async move {
            near.write_all(&sent).await.unwrap();
        });
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        assert!(all == bytes);
        assert!(effects().dropped_by_queue > 0);
    });
}

#[test]
fn datagrams_beyond_the_queue_are_lost() {
    world::run_test_with(exact(), || async {
        let node = world::add_node("broker");
        let far = world::spawn_on(node, UdpSocket::bind(address(node))).await.unwrap().unwrap();
        let near = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
        let bandwidth = Bandwidth { bytes_per_second: 100_000, queue_bytes: 10_000 };
        network::set_bandwidth(NodeId::WORLD, node, Some(bandwidth));
        for _ in 0..100 {
            near.send_to(&[0; 960], address(node)).await.unwrap();
        }
        let mut arrived = 0;
        while timeout(S, far.recv(&mut [0; 1000])).await.is_ok() {
            arrived += 1;
        }
        assert_eq!(arrived, 11, "ten wait, and the one that makes the queue full");
        assert_eq!(effects().dropped_by_queue, 89);
    });
}
