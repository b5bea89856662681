//! Ports of clients: TIME_WAIT, exhaustion, and their return.
use rt::io::AsyncReadExt;
use rt::net::{TcpListener, TcpStream};
use rt::time::{Duration, sleep};
use rt::world::{self, NodeId, WorldConfig};
use std::io::ErrorKind;
use std::net::SocketAddr;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const PORT: u16 = 9876;

fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(world::ip(node), PORT)
}

fn four_ports() -> WorldConfig {
    let mut config = WorldConfig::default();
    config.network.ephemeral_ports = 40_000..=40_003;
    config
}

async fn listening(node: NodeId) -> TcpListener {
    world::spawn_on(node, TcpListener::bind(address(node))).await.unwrap().unwrap()
}

/// Connects from the world's node and ends the stream in order, the client first or the server.
async fn connect_and_close(listener: &TcpListener, client_first: bool) -> u16 {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, peer) = listener.accept().await.unwrap();
    if client_first {
        drop(client);
        assert_eq!(server.read(&mut [0; 4]).await.unwrap(), 0);
    } else {
        drop(server);
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
    }
    peer.port()
}

async fn connect_error(to: SocketAddr) -> ErrorKind {
    TcpStream::connect(to).await.unwrap_err().kind()
}

#[test]
fn a_client_that_closes_first_runs_out_of_ports_until_time_wait_is_over() {
    world::run_test_with(four_ports(), || async {
        let listener = listening(world::add_node("broker")).await;
        let to = listener.local_addr().unwrap();
        for port in 40_000..=40_003 {
            assert_eq!(connect_and_close(&listener, true).await, port);
        }
        assert_eq!(connect_error(to).await, ErrorKind::AddrNotAvailable);
        sleep(S * 59).await;
        assert_eq!(connect_error(to).await, ErrorKind::AddrNotAvailable);
        sleep(S).await;
        for port in 40_000..=40_003 {
            assert_eq!(connect_and_close(&listener, true).await, port);
        }
    });
}

#[test]
fn a_client_whose_server_closes_first_may_reuse_its_ports_at_once() {
    world::run_test_with(four_ports(), || async {
        let listener = listening(world::add_node("broker")).await;
        for port in (40_000..=40_003).cycle().take(40) {
            assert_eq!(connect_and_close(&listener, false).await, port);
            sleep(MS * 10).await;
        }
    });
}

#[test]
fn a_reset_leaves_no_time_wait() {
    world::run_test_with(four_ports(), || async {
        let listener = listening(world::add_node("broker")).await;
        for _ in 0..40 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            client.set_zero_linger().unwrap();
            drop(client);
            assert_eq!(server.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn open_connections_run_out_of_ports_too_and_each_peer_has_its_own() {
    world::run_test_with(four_ports(), || async {
        let (one, other) = (world::add_node("one"), world::add_node("other"));
        let (first, second) = (listening(one).await, listening(other).await);
        let mut open = Vec::new();
        for listener in [&first, &second] {
            for _ in 0..4 {
                open.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            }
            assert_eq!(connect_error(listener.local_addr().unwrap()).await, ErrorKind::AddrNotAvailable);
        }
        let nobody = SocketAddr::new(world::ip(one), 1);
        for _ in 0..10 {
            assert_eq!(connect_error(nobody).await, ErrorKind::ConnectionRefused);
        }
        drop(open);
    });
}

#[test]
fn a_process_crash_keeps_time_wait_and_a_power_loss_forgets_it() {
    world::run_test_with(four_ports(), || async {
        let (node, client) = (world::add_node("broker"), world::add_node("client"));
        let listener = std::sync::Arc::new(listening(node).await);
        let exhaust = || {
            let listener = std::sync::Arc::clone(&listener);
            world::spawn_on(client, async move {
                let to = listener.local_addr().unwrap();
                let mut connected = 0;
                loop {
                    match TcpStream::connect(to).await {
                        Ok(_) => connected += 1,
                        Err(error) => return (connected, error.kind()),
                    }
                    // The server's handles live on the server's node, so the harness only takes them here.
                }
            })
        };
        let accepting = std::sync::Arc::clone(&listener);
        world::spawn_on(node, async move {
            while let Ok((mut server, _)) = accepting.accept().await {
                rt::task::spawn(async move { server.read(&mut [0; 4]).await });
            }
        });
        let all = (4, ErrorKind::AddrNotAvailable);
        assert_eq!(exhaust().await.unwrap(), all);
        sleep(S).await;
        world::crash(client);
        assert_eq!(exhaust().await.unwrap(), (0, ErrorKind::AddrNotAvailable), "the kernel has not forgotten");
        world::power_loss(client);
        assert_eq!(exhaust().await.unwrap(), all);
    });
}

#[test]
fn a_port_in_time_wait_cannot_be_listened_on() {
    world::run_test_with(four_ports(), || async {
        let listener = listening(world::add_node("broker")).await;
        let port = connect_and_close(&listener, true).await;
        let own = SocketAddr::new(world::ip(NodeId::WORLD), port);
        assert_eq!(TcpListener::bind(own).await.unwrap_err().kind(), ErrorKind::AddrInUse);
        sleep(S * 60).await;
        TcpListener::bind(own).await.unwrap();
    });
}

#[test]
fn time_wait_adds_no_event_and_no_draw() {
    let run = |time_wait_ns: u64| {
        let mut config = WorldConfig::default();
        config.network.time_wait_ns = time_wait_ns;
        let outcome = world::run(config, || async {
            let listener = listening(world::add_node("broker")).await;
            for round in 0..20 {
                connect_and_close(&listener, round % 3 == 0).await;
            }
            sleep(S * 200).await;
        });
        (outcome.hash, outcome.events)
    };
    assert_eq!(run(0), run(60_000_000_000));
}
