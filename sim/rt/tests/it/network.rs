//! The simulated network under faults: what a program on Linux would meet, and that each fault shows its effect.
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, lookup_host};
use rt::time::{Duration, sleep, timeout};
use rt::world::network::{self, effects};
use rt::world::{self, CrashKind, CrashPoint, Latency, NodeId, WorldConfig};
use std::io::ErrorKind;
use std::net::SocketAddr;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const PORT: u16 = 9876;

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), PORT)
}

/// Listens on `node`, which keeps what it accepts for ever.
async fn keeper(node: NodeId) {
    let (tell, told) = rt::sync::oneshot::channel();
    world::spawn_on(node, async move {
        let listener = TcpListener::bind(address(node)).await.unwrap();
        tell.send(()).unwrap();
        let mut kept = Vec::new();
        loop {
            kept.push(listener.accept().await.unwrap().0);
        }
    });
    told.await.unwrap();
}

/// A stream from the world's node to `node`, both ends in the caller's hands.
async fn pair(node: NodeId) -> (TcpStream, TcpStream) {
    let (tell, told) = rt::sync::oneshot::channel();
    let accepted = world::spawn_on(node, async move {
        let listener = TcpListener::bind(address(node)).await.unwrap();
        tell.send(()).unwrap();
        listener.accept().await.unwrap().0
    });
    told.await.unwrap();
    let near = TcpStream::connect(address(node)).await.unwrap();
    (near, accepted.await.unwrap())
}

async fn connect_error(to: SocketAddr) -> (ErrorKind, Duration) {
    let start = world::elapsed();
    let error = TcpStream::connect(to).await.unwrap_err();
    (error.kind(), world::elapsed() - start)
}

#[test]
fn connecting_takes_a_round_trip() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        network::set_usual_latency(Latency::uniform(1_000_000, 1_000_000));
        keeper(node).await;
        let start = world::elapsed();
        TcpStream::connect(address(node)).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 2);
        let nobody = SocketAddr::new(world::ip(node), 1);
        assert_eq!(connect_error(nobody).await, (ErrorKind::ConnectionRefused, MS * 2));
        assert_eq!(effects().connections_refused, 1);
    });
}

#[test]
fn connecting_into_a_partition_times_out_after_63_seconds_whichever_way_is_blocked() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        for (from, to) in [(NodeId::WORLD, node), (node, NodeId::WORLD)] {
            network::block(from, to);
            assert_eq!(connect_error(address(node)).await, (ErrorKind::TimedOut, S * 63));
            network::unblock(from, to);
        }
        assert_eq!(effects().connections_timed_out, 2);
        assert_eq!(effects().dropped_by_block, 12);
        TcpStream::connect(address(node)).await.unwrap();
    });
}

#[test]
fn connecting_to_nothing_and_to_a_dark_node_times_out_and_to_a_crashed_one_is_refused() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        assert_eq!(connect_error("10.0.0.200:80".parse().unwrap()).await, (ErrorKind::TimedOut, S * 63));
        world::crash(node);
        assert_eq!(connect_error(address(node)).await.0, ErrorKind::ConnectionRefused);
        world::power_loss(node);
        assert_eq!(connect_error(address(node)).await, (ErrorKind::TimedOut, S * 63));
        assert_eq!(effects().dropped_by_silence, 6);
        world::power_on(node);
        assert_eq!(connect_error(address(node)).await.0, ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_connection_begun_in_a_short_partition_is_made_by_a_later_syn() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        network::isolate(node);
        let connecting = rt::task::spawn(TcpStream::connect(address(node)));
        sleep(S * 2).await;
        network::rejoin(node);
        connecting.await.unwrap().unwrap();
        assert_eq!(world::elapsed().as_secs(), 3, "SYNs leave after 0, 1 and 3 seconds");
    });
}

#[test]
fn neither_bytes_nor_the_end_cross_a_partition_and_both_come_after_it() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        network::block(NodeId::WORLD, node);
        near.write_all(b"late").await.unwrap();
        drop(near);
        let mut bytes = [0; 16];
        assert!(timeout(S * 60, far.read(&mut bytes)).await.is_err());
        network::heal();
        assert_eq!(timeout(S * 120, far.read(&mut bytes)).await.unwrap().unwrap(), 4);
        assert_eq!(timeout(S, far.read(&mut bytes)).await.unwrap().unwrap(), 0);
        assert!(effects().retransmissions >= 8, "{:?}", effects());
        drop(far);
        sleep(S).await;
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn a_reset_does_not_cross_a_partition() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        let mut near = TcpStream::connect(address(node)).await.unwrap();
        sleep(S).await;
        network::isolate(node);
        world::crash(node);
        assert!(timeout(S * 600, near.read(&mut [0; 4])).await.is_err(), "half-open: nothing says so");
        network::rejoin(node);
        assert!(timeout(S * 600, near.read(&mut [0; 4])).await.is_err(), "and nobody will");
        near.write_all(b"there?").await.unwrap();
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_process_crash_resets_its_streams() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        let mut near = TcpStream::connect(address(node)).await.unwrap();
        sleep(S).await;
        world::crash(node);
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(effects().resets, 1);
        keeper(node).await; // the port is free
        TcpStream::connect(address(node)).await.unwrap();
    });
}

#[test]
fn a_power_loss_leaves_streams_half_open_until_the_node_is_back_and_is_spoken_to() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        keeper(node).await;
        let mut near = TcpStream::connect(address(node)).await.unwrap();
        sleep(S).await;
        world::power_loss(node);
        let mut bytes = [0; 4];
        assert!(timeout(S * 60, near.read(&mut bytes)).await.is_err(), "silence, no end");
        near.write_all(b"there?").await.unwrap();
        assert!(timeout(S * 60, near.read(&mut bytes)).await.is_err());
        assert!(effects().dropped_by_silence > 0);
        world::power_on(node);
        let error = timeout(S * 120, near.read(&mut bytes)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_stream_into_a_partition_times_out_after_a_quarter_of_an_hour() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        network::isolate(node);
        let start = world::elapsed();
        near.write_all(b"x").await.unwrap();
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        let took = (world::elapsed() - start).as_secs();
        assert_eq!(took, 924);
        assert_eq!(near.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(effects().streams_timed_out, 1);
        // The other side has sent nothing, so it notices nothing until it writes.
        network::rejoin(node);
        assert!(timeout(S, far.read(&mut [0; 4])).await.is_err());
        far.write_all(b"x").await.unwrap();
        assert_eq!(far.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn bytes_that_arrive_while_their_acknowledgements_are_blocked_time_the_writer_out() {
    let mut config = WorldConfig::default();
    config.network.retransmit_limit_ns = 30 * 1_000_000_000;
    world::run_test_with(config, || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        network::block(node, NodeId::WORLD);
        near.write_all(b"one way").await.unwrap();
        let mut bytes = [0; 7];
        timeout(S, far.read_exact(&mut bytes)).await.unwrap().unwrap();
        let start = world::elapsed();
        let filled = timeout(S * 10, async { while near.write_all(&[0; 4096]).await.is_ok() {} }).await;
        assert!(filled.is_err(), "the send buffer fills, for nothing is acknowledged");
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(world::elapsed() - start > S * 25);
    });
}

#[test]
fn a_short_block_of_acknowledgements_heals() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        network::block(node, NodeId::WORLD);
        let bytes = vec![3; 300_000];
        let writer = rt::task::spawn(async move {
            near.write_all(&bytes).await.unwrap();
            near
        });
        let reader = rt::task::spawn(async move {
            let mut all = vec![0; 300_000];
            far.read_exact(&mut all).await.unwrap();
        });
        sleep(S * 5).await;
        assert!(!writer.is_finished() && !reader.is_finished());
        network::unblock(node, NodeId::WORLD);
        timeout(S * 20, writer).await.unwrap().unwrap();
        timeout(S * 20, reader).await.unwrap().unwrap();
    });
}

#[test]
fn loss_delays_and_never_damages() {
    for seed in 0..10 {
        world::run_test_with(WorldConfig { seed, ..WorldConfig::default() }, || async {
            let node = world::add_node("broker");
            let (mut near, mut far) = pair(node).await;
            network::set_loss_everywhere(100_000);
            let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
            let sent = bytes.clone();
            let writer = rt::task::spawn(async move {
                for chunk in sent.chunks(1000) {
                    near.write_all(chunk).await.unwrap();
                }
            });
            let mut all = Vec::new();
            far.read_to_end(&mut all).await.unwrap();
            assert!(all == bytes);
            writer.await.unwrap();
            assert!(world::elapsed() > S, "each loss costs a time-out");
            assert!(effects().dropped_by_loss > 0);
            network::check_invariants();
        });
    }
}

#[test]
fn loopback_is_exempt_from_faults() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        network::isolate(node);
        network::set_loss_everywhere(1_000_000);
        let played = world::spawn_on(node, async move {
            for address in [SocketAddr::from(([127, 0, 0, 1], 1000)), SocketAddr::new(world::ip(node), 1001)] {
                let listener = TcpListener::bind(address).await.unwrap();
                let mut near = TcpStream::connect(address).await.unwrap();
                let (mut far, peer) = listener.accept().await.unwrap();
                assert_eq!(peer.ip(), address.ip());
                near.write_all(b"x").await.unwrap();
                assert_eq!(far.read(&mut [0; 4]).await.unwrap(), 1);
            }
        });
        timeout(S, played).await.unwrap().unwrap();
        assert_eq!(effects().dropped_by_block + effects().dropped_by_loss, 0);
    });
}

#[test]
fn a_loopback_listener_is_not_reachable_from_another_node() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let listener = world::spawn_on(node, TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], PORT))));
        let _listener = listener.await.unwrap().unwrap();
        assert_eq!(connect_error(address(node)).await.0, ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_full_backlog_drops_syns_until_there_is_room() {
    let mut config = WorldConfig::default();
    config.network.backlog = 2;
    world::run_test_with(config, || async {
        let node = world::add_node("broker");
        let listener = world::spawn_on(node, TcpListener::bind(address(node))).await.unwrap().unwrap();
        let _one = TcpStream::connect(address(node)).await.unwrap();
        let _two = TcpStream::connect(address(node)).await.unwrap();
        sleep(MS * 10).await;
        let third = rt::task::spawn(TcpStream::connect(address(node)));
        sleep(MS * 500).await;
        assert!(!third.is_finished());
        assert_eq!(effects().dropped_by_backlog, 1);
        listener.accept().await.unwrap();
        timeout(S, third).await.unwrap().unwrap().unwrap();
    });
}

#[test]
fn writes_are_split_and_joined_at_random() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let writer = rt::task::spawn(async move {
            for _ in 0..2000 {
                near.write_all(&[1; 100]).await.unwrap();
                sleep(Duration::from_micros(150)).await;
            }
        });
        let (mut shorter, mut longer, mut buffer) = (0, 0, [0; 4096]);
        while let Ok(length @ 1..) = far.read(&mut buffer).await {
            shorter += u32::from(length < 100);
            longer += u32::from(length > 100);
        }
        writer.await.unwrap();
        assert!(shorter > 10 && longer > 10, "{shorter} shorter, {longer} longer");
    });
}

#[test]
fn a_link_has_its_own_latency() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        network::set_usual_latency(Latency::uniform(1_000_000, 1_000_000));
        let (mut near, mut far) = pair(node).await;
        network::set_latency(NodeId::WORLD, node, Some(Latency::uniform(80_000_000, 80_000_000)));
        let start = world::elapsed();
        near.write_all(b"x").await.unwrap();
        far.read_exact(&mut [0; 1]).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 80);
        far.write_all(b"x").await.unwrap();
        near.read_exact(&mut [0; 1]).await.unwrap();
        assert_eq!(world::elapsed() - start, MS * 81);
        assert_eq!(effects().delayed, 1);
    });
}

#[test]
fn partitions_cut_between_groups_only_and_overlap() {
    world::run_test(|| async {
        let [a, b, c] = ["a", "b", "c"].map(world::add_node);
        for node in [a, b, c] {
            keeper(node).await;
        }
        let reaches = |from: NodeId, to: NodeId| async move {
            let connecting =
                world::spawn_on(from, async move { timeout(MS * 500, TcpStream::connect(address(to))).await.is_ok() });
            connecting.await.unwrap()
        };
        network::partition(&[&[a, b], &[c]]);
        network::isolate(c);
        assert!(reaches(a, b).await && !reaches(a, c).await && !reaches(c, b).await);
        network::unpartition(&[&[a, b], &[c]]);
        assert!(!reaches(a, c).await, "still isolated");
        network::rejoin(c);
        assert!(reaches(a, c).await && reaches(c, b).await);
    });
}

#[test]
fn names_are_node_names_unless_the_run_says_otherwise() {
    world::run_test(|| async {
        let node = world::add_node("namesrv");
        let other = world::add_node("elsewhere");
        assert_eq!(lookup_host("namesrv:9876").await.unwrap(), [address(node)]);
        network::set_name("namesrv", &[world::ip(other)]);
        assert_eq!(lookup_host("namesrv:9876").await.unwrap(), [address(other)]);
        network::fail_name("namesrv");
        assert!(lookup_host("namesrv:9876").await.is_err());
        network::restore_name("namesrv");
        assert_eq!(lookup_host("namesrv:9876").await.unwrap(), [address(node)]);
        assert_eq!(effects().names_changed, 2);
    });
}

#[test]
fn one_node_may_see_a_stale_name_and_another_none_at_all() {
    world::run_test(|| async {
        let [namesrv, other, stale, blind] = ["namesrv", "other", "stale", "blind"].map(world::add_node);
        let seen = |by: NodeId| async move {
            let found = world::spawn_on(by, lookup_host("namesrv:9876")).await.unwrap();
            found.map(|addresses| addresses[0]).map_err(|error| error.kind())
        };
        network::set_name_on(stale, "namesrv", &[world::ip(other)]);
        network::fail_name_on(blind, "namesrv");
        assert_eq!(seen(stale).await, Ok(address(other)));
        assert_eq!(seen(blind).await, Err(ErrorKind::Other));
        assert_eq!(seen(other).await, Ok(address(namesrv)));
        assert_eq!(effects().names_changed, 2);
        network::fail_name("namesrv");
        assert_eq!(seen(stale).await, Ok(address(other)), "its own view counts more");
        assert!(seen(other).await.is_err());
        network::restore_name("namesrv");
        network::restore_name_on(blind, "namesrv");
        assert_eq!(seen(blind).await, Ok(address(namesrv)));
        network::heal();
        assert_eq!(seen(stale).await, Ok(address(namesrv)));
    });
}

#[test]
fn nothing_is_left_of_connections_that_are_over() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        for round in 0..20 {
            let (near, far) = pair(node).await;
            if round % 2 == 0 {
                drop(near);
                sleep(MS * 10).await;
                drop(far);
            } else {
                drop(far);
                drop(near);
            }
            let nobody = SocketAddr::new(world::ip(node), 1);
            assert!(TcpStream::connect(nobody).await.is_err());
            let _ = timeout(Duration::from_micros(50), TcpStream::connect(nobody)).await;
        }
        sleep(S * 70).await;
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn a_dying_process_says_nothing_in_order() {
    struct Farewell(Option<TcpStream>);
    impl Drop for Farewell {
        fn drop(&mut self) {
            let mut stream = self.0.take().unwrap();
            let waker = std::task::Waker::noop();
            let mut context = std::task::Context::from_waker(waker);
            let write = std::pin::pin!(stream.write_all(b"goodbye"));
            assert!(!matches!(write.poll(&mut context), std::task::Poll::Ready(Ok(()))));
        }
    }
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, far) = pair(node).await;
        world::spawn_on(node, async move {
            let _farewell = Farewell(Some(far));
            std::future::pending::<()>().await;
        });
        sleep(S).await;
        world::power_loss(node);
        assert!(timeout(S * 10, near.read(&mut [0; 16])).await.is_err(), "neither bytes nor an end");
    });
}

#[test]
fn a_node_may_end_at_any_packet_which_does_not_leave() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        world::crash_at(node, CrashPoint::Packet(3), CrashKind::Process);
        let writer = world::spawn_on(node, async move {
            for at in 0..10_u8 {
                far.write_all(&[at]).await.unwrap();
                sleep(MS * 10).await;
            }
        });
        let mut all = Vec::new();
        let error = near.read_to_end(&mut all).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(all, [0, 1]);
        assert!(writer.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn payload_bytes_are_part_of_the_trace_when_asked() {
    let hash = |hash_payload: bool, byte: u8| {
        world::run(WorldConfig { hash_payload, ..WorldConfig::default() }, move || async move {
            let node = world::add_node("broker");
            let (mut near, mut far) = pair(node).await;
            near.write_all(&[byte; 100]).await.unwrap();
            far.read_exact(&mut [0; 100]).await.unwrap();
        })
        .hash
    };
    assert_eq!(hash(true, 1), hash(true, 1));
    assert_ne!(hash(true, 1), hash(true, 2));
    assert_eq!(hash(false, 1), hash(false, 2));
}

#[test]
fn a_writer_that_does_not_wait_learns_of_room_too() {
    let mut config = WorldConfig::default();
    config.network.receive_buffer = 1000;
    config.network.split_one_in = 0;
    world::run_test_with(config, || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        for _ in 0..10 {
            // The whole window, read at once; the next write comes before the sender can know.
            near.write_all(&[1; 1000]).await.unwrap();
            timeout(S, far.read_exact(&mut [0; 1000])).await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_node_that_ends_while_it_closes_a_stream_resets_it() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, far) = pair(node).await;
        world::crash_at(node, CrashPoint::Packet(1), CrashKind::Process);
        let closer = world::spawn_on(node, async move {
            drop(far);
            sleep(S).await;
        });
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(closer.await.unwrap_err().is_cancelled());
        sleep(S).await;
        drop(near);
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn a_power_loss_after_both_ends_closed_in_order_frees_nothing_twice() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        for _ in 0..2 {
            let (near, far) = pair(node).await;
            drop(far);
            sleep(MS * 10).await;
            drop(near);
            sleep(S).await;
            assert_eq!(network::connections(), 0);
            // The kernel that loses its memory here had ended the stream in order, and no application held it.
            world::power_loss(node);
            network::check_invariants();
            assert_eq!(network::connections(), 0);
            world::power_on(node);
        }
        let (mut first, mut first_far) = pair(node).await;
        first.write_all(&[1; 100]).await.unwrap();
        let (mut second, mut second_far) = pair(node).await;
        assert_eq!(network::connections(), 2);
        second.write_all(&[2; 10]).await.unwrap();
        let mut bytes = [0; 100];
        timeout(S, first_far.read_exact(&mut bytes)).await.unwrap().unwrap();
        assert_eq!(bytes, [1; 100]);
        timeout(S, second_far.read_exact(&mut bytes[..10])).await.unwrap().unwrap();
        assert_eq!(bytes[..10], [2; 10]);
        network::check_invariants();
    });
}

#[test]
fn connecting_to_a_node_that_crashes_meanwhile_ends() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        network::set_usual_latency(Latency::uniform(100_000_000, 100_000_000));
        keeper(node).await;
        // The SYN is on its way.
        let connecting = rt::task::spawn(TcpStream::connect(address(node)));
        sleep(MS * 50).await;
        world::crash(node);
        let refused = timeout(S, connecting).await.expect("the connecting task is woken").unwrap();
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);

        // The answer is on its way: the client believes it, and its acknowledgement meets a kernel that knows of nothing.
        keeper(node).await;
        let connecting = rt::task::spawn(TcpStream::connect(address(node)));
        sleep(MS * 150).await;
        world::power_loss(node);
        world::power_on(node);
        let mut near = timeout(S, connecting).await.expect("the connecting task is woken").unwrap().unwrap();
        let told = timeout(S, near.read(&mut [0; 4])).await.expect("a reset answers the acknowledgement");
        assert_eq!(told.unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(near);
        assert_eq!(network::connections(), 0);
    });
}

#[test]
fn bytes_that_end_a_handshake_nobody_wants_any_more_are_answered_until_the_answer_arrives() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        network::set_usual_latency(Latency::uniform(100_000_000, 100_000_000));
        let listener = world::spawn_on(node, async move { TcpListener::bind(address(node)).await.unwrap() });
        let listener = listener.await.unwrap();
        let connecting = rt::task::spawn(TcpStream::connect(address(node)));
        sleep(MS * 150).await;
        network::block(NodeId::WORLD, node);
        let mut near = connecting.await.unwrap().unwrap(); // its acknowledgement is lost
        network::unblock(NodeId::WORLD, node);
        drop(listener);
        network::block(node, NodeId::WORLD);
        near.write_all(b"hello").await.unwrap();
        sleep(MS * 150).await; // the reset is lost
        network::unblock(node, NodeId::WORLD);
        let told = timeout(S, near.read(&mut [0; 4])).await.expect("the bytes are sent again and answered again");
        assert_eq!(told.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_listener_on_any_port_gets_one_of_its_own() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let listen = |port: u16| {
            let address = SocketAddr::new(world::ip(node), port);
            let listener = world::spawn_on(node, async move { TcpListener::bind(address).await.unwrap() });
            async move { listener.await.unwrap() }
        };
        let first = listen(0).await.local_addr().unwrap().port();
        let fixed = listen(first + 1).await;
        let any = listen(0).await;
        assert_eq!(any.local_addr().unwrap().port(), first + 2, "a port that somebody listens on is passed over");
        drop(fixed);
        drop(any);
        // The crash of a process gives its ports back, as closing does.
        for _ in 0..30_000 {
            let _kept = listen(0).await;
            world::crash(node);
        }
    });
}
