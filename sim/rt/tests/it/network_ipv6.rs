//! IPv6 between machines: the same links and faults, nodes with one family or both.
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use rt::time::{Duration, sleep, timeout};
use rt::world::network::{self, effects};
use rt::world::{self, Bandwidth, NodeId, Verdict};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const S: Duration = Duration::from_secs(1);
const PORT: u16 = 9876;

/// The address of a node in a network of its own.
fn v6(node: NodeId) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1 + node.index() as u16))
}

/// A node with IPv6, and IPv6 for the world's own.
fn add_node(name: &str) -> NodeId {
    let node = world::add_node(name);
    network::add_address(node, v6(node));
    network::add_address(NodeId::WORLD, v6(NodeId::WORLD));
    node
}

async fn listening(node: NodeId, address: SocketAddr) -> TcpListener {
    world::spawn_on(node, async move { TcpListener::bind(address).await.unwrap() }).await.unwrap()
}

async fn connect_error(to: SocketAddr) -> (ErrorKind, Duration) {
    let start = world::elapsed();
    let error = TcpStream::connect(to).await.unwrap_err();
    (error.kind(), world::elapsed() - start)
}

#[test]
fn faults_of_a_link_meet_both_families() {
    world::run_test(|| async {
        let node = add_node("broker");
        let everywhere = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT);
        let listener = listening(node, everywhere).await;
        for ip in [v6(node), world::ip(node)] {
            let to = SocketAddr::new(ip, PORT);
            let mut near = TcpStream::connect(to).await.unwrap();
            let (mut far, _) = listener.accept().await.unwrap();
            network::isolate(node);
            near.write_all(b"x").await.unwrap();
            assert!(timeout(S * 10, far.read(&mut [0; 8])).await.is_err());
            assert_eq!(connect_error(to).await, (ErrorKind::TimedOut, S * 63));
            network::rejoin(node);
            assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 1);
        }
    });
}

#[test]
fn the_loopback_of_ipv6_is_exempt_from_faults() {
    world::run_test(|| async {
        let node = add_node("broker");
        network::set_loss_everywhere(1_000_000);
        network::isolate(node);
        network::set_rule("firewall", Box::new(|_| Verdict::Drop));
        for ip in [IpAddr::V6(Ipv6Addr::LOCALHOST), v6(node)] {
            let echo = world::spawn_on(node, async move {
                let listener = TcpListener::bind(SocketAddr::new(ip, 0)).await.unwrap();
                let mut near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                near.write_all(b"x").await.unwrap();
                let (mut far, peer) = listener.accept().await.unwrap();
                assert_eq!(peer.ip(), ip);
                far.read(&mut [0; 8]).await.unwrap()
            });
            assert_eq!(timeout(S, echo).await.unwrap().unwrap(), 1);
        }
        // From outside nobody reaches it.
        network::heal();
        let _listener = listening(node, SocketAddr::new(Ipv6Addr::LOCALHOST.into(), PORT)).await;
        let outside = SocketAddr::new(v6(node), PORT);
        assert_eq!(connect_error(outside).await.0, ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_node_may_have_ipv6_only() {
    world::run_test(|| async {
        let node = add_node("broker");
        network::remove_address(node, world::ip(node));
        let v4 = SocketAddr::new(world::ip(node), PORT);
        let here = SocketAddr::new(world::ip(NodeId::WORLD), PORT);
        assert_eq!(lookup_host("broker:9876").await.unwrap(), [SocketAddr::new(v6(node), PORT)]);
        assert_eq!(connect_error(v4).await, (ErrorKind::TimedOut, S * 63), "no machine has that address");
        let inside = world::spawn_on(node, async move {
            assert_eq!(TcpListener::bind(v4).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
            assert_eq!(connect_error(here).await, (ErrorKind::NetworkUnreachable, Duration::ZERO));
            let socket = UdpSocket::bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)).await.unwrap();
            assert_eq!(socket.send_to(b"x", here).await.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
            TcpListener::bind(SocketAddr::new(v6(node), PORT)).await.unwrap()
        });
        let listener = inside.await.unwrap();
        let near = TcpStream::connect(SocketAddr::new(v6(node), PORT)).await.unwrap();
        assert_eq!(listener.accept().await.unwrap().1, near.local_addr().unwrap());
        assert_eq!(near.local_addr().unwrap().ip(), v6(NodeId::WORLD));
        network::add_address(node, world::ip(node));
        assert_eq!(connect_error(v4).await.0, ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_node_without_ipv6_reaches_nobody_over_it() {
    world::run_test(|| async {
        let (old, new) = (world::add_node("old"), add_node("new"));
        let to = SocketAddr::new(v6(new), PORT);
        let error = world::spawn_on(old, connect_error(to)).await.unwrap();
        assert_eq!(error, (ErrorKind::NetworkUnreachable, Duration::ZERO));
        let names = lookup_host("new:9876").await.unwrap();
        assert_eq!(names, [SocketAddr::new(world::ip(new), PORT), to]);
    });
}

#[test]
fn rules_see_addresses_of_ipv6_and_links_their_longer_headers() {
    world::run_test(|| async {
        let node = add_node("broker");
        let to = SocketAddr::new(v6(node), PORT);
        network::set_rule(
            "firewall",
            Box::new(move |packet| if packet.destination == to { Verdict::Reject } else { Verdict::Pass }),
        );
        let _listener = listening(node, SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT)).await;
        assert_eq!(connect_error(to).await.0, ErrorKind::ConnectionRefused);
        TcpStream::connect(SocketAddr::new(world::ip(node), PORT)).await.unwrap();
        assert_eq!(effects().rejected_by_rule, 1);
        network::clear_rule("firewall");
        let took = async |ip| {
            let narrow = Bandwidth { bytes_per_second: 10, queue_bytes: 1000 };
            network::set_bandwidth(NodeId::WORLD, node, Some(narrow));
            let start = world::elapsed();
            TcpStream::connect(SocketAddr::new(ip, PORT)).await.unwrap();
            let took = (world::elapsed() - start).as_secs();
            // What is left of the stream leaves the link.
            sleep(S * 60).await;
            took
        };
        assert_eq!((took(world::ip(node)).await, took(v6(node)).await), (4, 6));
    });
}
