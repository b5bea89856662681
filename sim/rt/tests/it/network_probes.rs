//! Silence: keep-alive of an idle stream, and writers whose peer has no room.
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{KeepAlive, TcpListener, TcpStream, keep_alive, set_keep_alive};
use rt::time::{Duration, sleep, timeout};
use rt::world::network::{self, effects};
use rt::world::{self, FindingKind, NodeId, PacketKind, Verdict, WorldConfig};
use std::io::ErrorKind;
use std::net::SocketAddr;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Given up 25 seconds after the last sign of life.
const SOON: KeepAlive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(5), probes: 3 };

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), 9876)
}

/// A stream from the world's node to `node`, both ends in the caller's hands.
async fn pair(node: NodeId) -> (TcpStream, TcpStream) {
    let listener = world::spawn_on(node, async move { TcpListener::bind(address(node)).await.unwrap() });
    let listener = listener.await.unwrap();
    let near = TcpStream::connect(address(node)).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

/// How reading ends, and after how long.
async fn end_of(stream: &mut TcpStream) -> (ErrorKind, Duration) {
    let start = world::elapsed();
    let error = stream.read(&mut [0; 8]).await.unwrap_err();
    (error.kind(), world::elapsed() - start)
}

/// Writes until there is no room, on both sides; returns how much.
async fn fill(stream: &mut TcpStream) -> usize {
    let mut written = 0;
    while let Ok(length) = timeout(S, stream.write(&[7; 4096])).await {
        written += length.unwrap();
    }
    written
}

/// How a writer without room ends, and after how long.
async fn end_of_writing(stream: &mut TcpStream) -> (ErrorKind, Duration) {
    let start = world::elapsed();
    let error = stream.write_all(&[7; 1 << 20]).await.unwrap_err();
    (error.kind(), world::elapsed() - start)
}

async fn read_all(stream: &mut TcpStream, length: usize) {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
}

/// Turns keep-alive on at the near end of an idle stream, lets `fault` happen, and waits for the end.
fn keep_alive_meets(fault: fn(NodeId)) -> (ErrorKind, Duration) {
    world::run_test(move || async move {
        let node = world::add_node("broker");
        let (mut near, _far) = pair(node).await;
        sleep(S).await;
        set_keep_alive(&near, Some(SOON)).unwrap();
        fault(node);
        let end = end_of(&mut near).await;
        assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 0, "the error is told once");
        assert_eq!(near.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        end
    })
}

#[test]
fn keep_alive_gives_up_a_peer_that_is_silent() {
    assert_eq!(keep_alive_meets(world::power_loss), (ErrorKind::TimedOut, S * 25));
    assert_eq!(keep_alive_meets(network::isolate), (ErrorKind::TimedOut, S * 25));
    assert_eq!(keep_alive_meets(|node| network::block(NodeId::WORLD, node)), (ErrorKind::TimedOut, S * 25));
    assert_eq!(keep_alive_meets(|node| network::block(node, NodeId::WORLD)), (ErrorKind::TimedOut, S * 25));
    let drop_probes = |_| {
        let verdict = |kind| if kind == PacketKind::Probe { Verdict::Drop } else { Verdict::Pass };
        network::set_rule("firewall", Box::new(move |packet| verdict(packet.kind)));
    };
    assert_eq!(keep_alive_meets(drop_probes), (ErrorKind::TimedOut, S * 25));
}

#[test]
fn keep_alive_learns_of_a_peer_that_was_started_again() {
    let (kind, after) = keep_alive_meets(|node| {
        world::power_loss(node);
        world::power_on(node);
    });
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(after > S * 10 && after < S * 11, "{after:?}");
}

#[test]
fn keep_alive_meets_a_firewall_that_rejects() {
    let (kind, after) = keep_alive_meets(|_| network::set_rule("firewall", Box::new(|_| Verdict::Reject)));
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(after > S * 10 && after < S * 11, "{after:?}");
}

#[test]
fn keep_alive_leaves_a_live_peer_alone_even_if_its_program_is_held() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        set_keep_alive(&near, Some(SOON)).unwrap();
        world::pause(node);
        sleep(S * 3600).await;
        world::resume(node);
        assert_eq!(effects().probes, 360);
        near.write_all(b"x").await.unwrap();
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 1);
        network::check_invariants();
    });
}

#[test]
fn without_keep_alive_a_reader_waits_for_ever_at_a_dead_peer() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, _far) = pair(node).await;
        assert_eq!(keep_alive(&near).unwrap(), None);
        set_keep_alive(&near, Some(SOON)).unwrap();
        set_keep_alive(&near, None).unwrap();
        world::power_loss(node);
        assert!(timeout(S * 100_000, near.read(&mut [0; 8])).await.is_err());
        assert_eq!(effects().probes, 0);
    });
}

#[test]
fn keep_alive_asks_only_after_silence_and_counts_anew_after_an_answer() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        set_keep_alive(&near, Some(SOON)).unwrap();
        for _ in 0..20 {
            sleep(S * 6).await;
            far.write_all(b"x").await.unwrap();
            assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 1);
        }
        assert_eq!(effects().probes, 0, "who was heard is not asked");
        for _ in 0..3 {
            // At most two probes are lost, and the next is answered.
            network::isolate(node);
            sleep(S * 9).await;
            network::rejoin(node);
            sleep(S * 20).await;
        }
        assert!(timeout(S, near.read(&mut [0; 8])).await.is_err());
        assert!(effects().dropped_by_block >= 3, "{:?}", effects());
    });
}

#[test]
fn bytes_on_their_way_are_the_business_of_retransmission() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, _far) = pair(node).await;
        set_keep_alive(&near, Some(SOON)).unwrap();
        network::isolate(node);
        near.write_all(b"x").await.unwrap();
        let (kind, after) = end_of(&mut near).await;
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!(after > S * 900, "{after:?}");
        assert_eq!(effects().probes, 0);
    });
}

#[test]
fn probes_change_no_draw_of_others() {
    let took = |options: Option<KeepAlive>| {
        world::run_test(move || async move {
            let node = world::add_node("broker");
            let (mut near, mut far) = pair(node).await;
            set_keep_alive(&far, options).unwrap();
            network::set_loss_everywhere(200_000);
            let mut times = Vec::new();
            for _ in 0..20 {
                near.write_all(b"x").await.unwrap();
                far.read_exact(&mut [0; 1]).await.unwrap();
                sleep(S * 25).await;
                times.push(world::elapsed());
            }
            (times, effects().probes > 0)
        })
    };
    let ((with, asked), (without, _)) = (took(Some(SOON)), took(None));
    assert!(asked);
    assert_eq!(with, without);
}

/// A writer without room lets `fault` happen, and waits for the end.
fn zero_window_meets(fault: fn(NodeId)) -> (ErrorKind, Duration) {
    world::run_test(move || async move {
        let node = world::add_node("broker");
        let (mut near, _far) = pair(node).await;
        fill(&mut near).await;
        sleep(S * 3600).await;
        assert_eq!(effects().probes, 0, "nobody asks while the answer is certain");
        fault(node);
        end_of_writing(&mut near).await
    })
}

#[test]
fn a_writer_without_room_gives_up_a_peer_that_is_silent() {
    let drop_all = |_| network::set_rule("firewall", Box::new(|_| Verdict::Drop));
    let faults: [fn(NodeId); 5] = [
        world::power_loss,
        network::isolate,
        |node| network::block(NodeId::WORLD, node),
        |node| network::block(node, NodeId::WORLD),
        drop_all,
    ];
    for fault in faults {
        let (kind, after) = zero_window_meets(fault);
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!(after > S * 900 && after < S * 1100, "{after:?}");
    }
}

#[test]
fn a_writer_without_room_learns_that_its_peer_knows_nothing_any_more() {
    let rebooted = |node| {
        world::power_loss(node);
        world::power_on(node);
    };
    let (kind, after) = zero_window_meets(rebooted);
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(after < S, "{after:?}");
    // The reset of a process that ends is lost, and nobody repeats it.
    let crashed_behind_a_partition = |node| {
        network::isolate(node);
        world::crash(node);
        world::spawn_on(NodeId::WORLD, async move {
            sleep(S * 30).await;
            network::rejoin(node);
        });
    };
    let (kind, after) = zero_window_meets(crashed_behind_a_partition);
    assert_eq!(kind, ErrorKind::ConnectionReset);
    assert!(after > S * 30 && after < S * 61, "{after:?}");
}

#[test]
fn a_window_that_opens_while_all_is_lost_is_found() {
    let faults: [fn(NodeId); 3] =
        [network::isolate, |node| network::block(node, NodeId::WORLD), |_| network::set_loss_everywhere(500_000)];
    for fault in faults {
        world::run_test(move || async move {
            let node = world::add_node("broker");
            let (mut near, mut far) = pair(node).await;
            let written = fill(&mut near).await;
            fault(node);
            let more = rt::task::spawn(async move {
                near.write_all(&[7; 200_000]).await.unwrap();
                near
            });
            sleep(S * 60).await;
            // What has arrived is read, and the news of it is lost.
            let mut bytes = vec![0; written];
            let arrived = far.read(&mut bytes).await.unwrap();
            sleep(S * 60).await;
            network::heal();
            read_all(&mut far, written - arrived + 200_000).await;
            let near = timeout(S * 130, more).await.unwrap().unwrap();
            drop((near, far));
            sleep(S).await;
            network::check_invariants();
        });
    }
}

#[test]
fn a_window_that_opens_as_usual_costs_no_probe_and_no_time() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let written = fill(&mut near).await;
        // Another machine is cut off: no business of this one.
        network::isolate(world::add_node("other"));
        let more = rt::task::spawn(async move { near.write_all(&[7; 8]).await.unwrap() });
        sleep(S * 100).await;
        assert_eq!(effects().probes, 0);
        // A lossy link makes an answer uncertain, and one that comes is enough.
        network::set_loss(NodeId::WORLD, node, 1);
        sleep(S * 100).await;
        assert_eq!(effects().probes, 1);
        network::set_loss(NodeId::WORLD, node, 0);
        let start = world::elapsed();
        read_all(&mut far, written + 8).await;
        more.await.unwrap();
        assert!(world::elapsed() - start < MS * 50, "{:?}", world::elapsed() - start);
    });
}

#[test]
fn a_writer_without_room_learns_that_its_peer_has_given_up() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, far) = pair(node).await;
        fill(&mut near).await;
        set_keep_alive(&far, Some(SOON)).unwrap();
        network::isolate(node);
        sleep(S * 60).await;
        network::rejoin(node);
        network::check_invariants();
        let (kind, after) = end_of_writing(&mut near).await;
        assert_eq!(kind, ErrorKind::ConnectionReset);
        assert!(after < S * 61, "{after:?}");
        drop(far);
    });
}

#[test]
fn an_orphan_without_room_is_forgotten_when_its_peer_is_gone() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let (mut near, _far) = pair(node).await;
        fill(&mut near).await;
        drop(near);
        world::power_loss(node);
        sleep(S * 1100).await;
        assert_eq!(network::connections(), 0);
        network::check_invariants();
    });
}

#[test]
fn two_programs_that_wait_for_each_others_reading_are_a_deadlock() {
    let outcome = world::run(WorldConfig::default(), || async {
        let node = world::add_node("broker");
        let (mut near, mut far) = pair(node).await;
        let there = world::spawn_on(node, async move { far.write_all(&[7; 1 << 20]).await });
        near.write_all(&[7; 1 << 20]).await.unwrap();
        there.await.unwrap().unwrap();
    });
    assert_eq!(outcome.finding.unwrap().kind, FindingKind::Deadlock);
}
