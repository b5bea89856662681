//! IPv6 beside IPv4, and sockets that serve both. A machine without IPv6 can show none of it on the real half.
use crate::conformance::stage::Stage;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use rt::time::{Duration, sleep, timeout};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

crate::conformance::table! {
    streams_work_over_ipv6
    streams_work_on_the_loopback_of_ipv6
    connecting_over_ipv6_without_listener_is_refused
    a_listener_of_every_ipv6_address_serves_ipv4_too
    a_listener_of_ipv4_is_not_reached_over_ipv6
    listeners_of_every_address_exclude_those_of_one
    a_listener_of_every_ipv4_address_leaves_ipv6_free
    a_mapped_address_is_one_of_ipv4
    a_listener_of_a_mapped_address_serves_ipv4
    connecting_to_no_ipv6_address_means_this_machine
    a_foreign_ipv6_address_is_not_available
    an_ipv6_address_is_its_own_name
    datagrams_work_over_ipv6
    a_datagram_socket_of_every_ipv6_address_serves_ipv4_too
    a_datagram_socket_of_ipv4_does_not_know_ipv6
    a_datagram_socket_of_an_ipv6_address_cannot_send_to_ipv4
    the_largest_datagram_of_ipv6_is_longer
    connecting_a_datagram_socket_fixes_its_ipv6_address
    connecting_a_datagram_socket_to_ipv4_fixes_a_mapped_address
    a_refusal_over_ipv6_is_told
}

const EVERYWHERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
const EVERYWHERE_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const HERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// An IPv6 address of the server's machine; `None`: this machine has none.
fn server_ip(stage: &Stage) -> Option<IpAddr> {
    #[cfg(madsim)]
    {
        let nodes = rt::world::nodes();
        let server = nodes.iter().find(|node| rt::world::ip(**node) == stage.server_ip).unwrap();
        let ip = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        rt::world::network::add_address(*server, ip(2));
        rt::world::network::add_address(rt::world::current_node(), ip(3));
        Some(ip(2))
    }
    #[cfg(not(madsim))]
    {
        assert!(stage.server_ip.is_loopback(), "the loopback of IPv6 stands for the server's address");
        std::net::TcpListener::bind(HERE).is_ok().then_some(HERE.ip())
    }
}

fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => panic!("{address} is one of IPv6"),
    }
}

async fn listening(stage: &Stage, address: SocketAddr) -> io::Result<TcpListener> {
    stage.on_server(async move { TcpListener::bind(address).await }).await.unwrap()
}

async fn bound(stage: &Stage, address: SocketAddr) -> UdpSocket {
    stage.on_server(async move { UdpSocket::bind(address).await.unwrap() }).await.unwrap()
}

/// Sends something there and back, and compares what both ends show.
async fn talk(listener: &TcpListener, to: SocketAddr) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(to).await.unwrap();
    let (mut server, peer) = listener.accept().await.unwrap();
    assert_eq!(server.peer_addr().unwrap(), peer);
    client.write_all(b"ping").await.unwrap();
    let mut bytes = [0; 4];
    server.read_exact(&mut bytes).await.unwrap();
    server.write_all(&bytes).await.unwrap();
    client.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"ping");
    (client, server)
}

async fn streams_work_over_ipv6(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let listener = listening(&stage, SocketAddr::new(ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(address.to_string(), format!("[{ip}]:{}", address.port()));
    let (client, server) = talk(&listener, address).await;
    assert_eq!(client.peer_addr().unwrap(), address);
    assert_eq!(server.local_addr().unwrap(), address);
    assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
    assert!(client.local_addr().unwrap().is_ipv6());
}

async fn streams_work_on_the_loopback_of_ipv6(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let listener = TcpListener::bind(HERE).await.unwrap();
    let (client, _server) = talk(&listener, listener.local_addr().unwrap()).await;
    assert_eq!(client.local_addr().unwrap().ip(), HERE.ip());
}

async fn connecting_over_ipv6_without_listener_is_refused(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let listener = listening(&stage, SocketAddr::new(ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn a_listener_of_every_ipv6_address_serves_ipv4_too(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let listener = listening(&stage, EVERYWHERE).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(listener.local_addr().unwrap(), SocketAddr::new(EVERYWHERE.ip(), port));
    let v6 = SocketAddr::new(ip, port);
    let (_client, server) = talk(&listener, v6).await;
    assert_eq!(server.local_addr().unwrap(), v6);
    let v4 = SocketAddr::new(stage.server_ip, port);
    let (client, server) = talk(&listener, v4).await;
    assert_eq!((client.peer_addr().unwrap(), server.local_addr().unwrap()), (v4, mapped(v4)));
    assert_eq!(server.peer_addr().unwrap(), mapped(client.local_addr().unwrap()));
}

async fn a_listener_of_ipv4_is_not_reached_over_ipv6(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let listener = listening(&stage, EVERYWHERE_V4).await.unwrap();
    let to = SocketAddr::new(ip, listener.local_addr().unwrap().port());
    assert_eq!(TcpStream::connect(to).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn listeners_of_every_address_exclude_those_of_one(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let all = listening(&stage, EVERYWHERE).await.unwrap();
    let port = all.local_addr().unwrap().port();
    let others = [ip, stage.server_ip, EVERYWHERE_V4.ip()].map(|ip| SocketAddr::new(ip, port));
    for other in others {
        assert_eq!(listening(&stage, other).await.unwrap_err().kind(), ErrorKind::AddrInUse, "{other}");
    }
    drop(all);
    let _one = listening(&stage, others[0]).await.unwrap();
    let all = SocketAddr::new(EVERYWHERE.ip(), port);
    assert_eq!(listening(&stage, all).await.unwrap_err().kind(), ErrorKind::AddrInUse);
}

async fn a_listener_of_every_ipv4_address_leaves_ipv6_free(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let v4 = listening(&stage, EVERYWHERE_V4).await.unwrap();
    let port = v4.local_addr().unwrap().port();
    let v6 = listening(&stage, SocketAddr::new(ip, port)).await.unwrap();
    talk(&v4, SocketAddr::new(stage.server_ip, port)).await;
    talk(&v6, SocketAddr::new(ip, port)).await;
}

async fn a_mapped_address_is_one_of_ipv4(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let listener = listening(&stage, stage.any_port()).await.unwrap();
    let to = mapped(listener.local_addr().unwrap());
    let (client, server) = talk(&listener, to).await;
    assert_eq!(client.peer_addr().unwrap(), to);
    assert_eq!(client.local_addr().unwrap(), mapped(server.peer_addr().unwrap()));
}

async fn a_listener_of_a_mapped_address_serves_ipv4(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let listener = listening(&stage, mapped(stage.any_port())).await.unwrap();
    let address = listener.local_addr().unwrap();
    let v4 = SocketAddr::new(stage.server_ip, address.port());
    assert_eq!(address, mapped(v4));
    let (client, server) = talk(&listener, v4).await;
    assert_eq!(server.peer_addr().unwrap(), mapped(client.local_addr().unwrap()));
}

async fn connecting_to_no_ipv6_address_means_this_machine(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let listener = TcpListener::bind(HERE).await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(SocketAddr::new(EVERYWHERE.ip(), address.port())).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), address);
}

async fn a_foreign_ipv6_address_is_not_available(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let foreign: SocketAddr = "[2001:db8::1]:0".parse().unwrap();
    assert_eq!(TcpListener::bind(foreign).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    assert_eq!(UdpSocket::bind(foreign).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
}

async fn an_ipv6_address_is_its_own_name(_: Stage) {
    let address: SocketAddr = "[2001:db8::7]:9876".parse().unwrap();
    assert_eq!(lookup_host("[2001:db8::7]:9876").await.unwrap(), [address]);
}

async fn datagrams_work_over_ipv6(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let server = bound(&stage, SocketAddr::new(ip, 0)).await;
    let client = UdpSocket::bind(EVERYWHERE).await.unwrap();
    client.send_to(b"ping", server.local_addr().unwrap()).await.unwrap();
    let mut bytes = [0; 8];
    let (length, from) = server.recv_from(&mut bytes).await.unwrap();
    assert!(from.is_ipv6() && !from.ip().is_unspecified());
    server.send_to(&bytes[..length], from).await.unwrap();
    assert_eq!(client.recv_from(&mut bytes).await.unwrap(), (4, server.local_addr().unwrap()));
}

async fn a_datagram_socket_of_every_ipv6_address_serves_ipv4_too(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let server = bound(&stage, EVERYWHERE).await;
    let client = UdpSocket::bind(EVERYWHERE_V4).await.unwrap();
    let to = SocketAddr::new(stage.server_ip, server.local_addr().unwrap().port());
    client.send_to(b"ping", to).await.unwrap();
    let mut bytes = [0; 8];
    let (_, from) = server.recv_from(&mut bytes).await.unwrap();
    assert_eq!(from.ip(), mapped(SocketAddr::new(from.ip().to_canonical(), 0)).ip(), "shown as one of IPv6");
    // Both spellings lead back.
    for to in [from, SocketAddr::new(from.ip().to_canonical(), from.port())] {
        server.send_to(b"pong", to).await.unwrap();
        assert_eq!(client.recv_from(&mut bytes).await.unwrap().0, 4);
    }
}

async fn a_datagram_socket_of_ipv4_does_not_know_ipv6(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let client = UdpSocket::bind(EVERYWHERE_V4).await.unwrap();
    let to = SocketAddr::new(ip, 9);
    assert_eq!(client.send_to(b"x", to).await.unwrap_err().raw_os_error(), Some(libc::EAFNOSUPPORT));
    assert_eq!(client.connect(to).await.unwrap_err().raw_os_error(), Some(libc::EAFNOSUPPORT));
}

async fn a_datagram_socket_of_an_ipv6_address_cannot_send_to_ipv4(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let server = bound(&stage, stage.any_port()).await;
    let client = UdpSocket::bind(HERE).await.unwrap();
    let to = server.local_addr().unwrap();
    assert_eq!(client.send_to(b"x", to).await.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    assert_eq!(client.send_to(b"x", mapped(to)).await.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
}

async fn the_largest_datagram_of_ipv6_is_longer(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let server = bound(&stage, SocketAddr::new(ip, 0)).await;
    let (client, to) = (UdpSocket::bind(EVERYWHERE).await.unwrap(), server.local_addr().unwrap());
    assert_eq!(client.send_to(&[7; 65_527], to).await.unwrap(), 65_527);
    assert_eq!(server.recv(&mut [0; 70_000]).await.unwrap(), 65_527);
    assert_eq!(client.send_to(&[7; 65_528], to).await.unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
}

async fn connecting_a_datagram_socket_fixes_its_ipv6_address(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let (server, client) = (bound(&stage, SocketAddr::new(ip, 0)).await, UdpSocket::bind(EVERYWHERE).await.unwrap());
    client.connect(server.local_addr().unwrap()).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    client.send(b"ping").await.unwrap();
    assert_eq!(server.recv_from(&mut [0; 8]).await.unwrap().1, client.local_addr().unwrap());
}

async fn connecting_a_datagram_socket_to_ipv4_fixes_a_mapped_address(stage: Stage) {
    let Some(_) = server_ip(&stage) else { return };
    let (server, client) = (bound(&stage, stage.any_port()).await, UdpSocket::bind(EVERYWHERE).await.unwrap());
    let to = mapped(server.local_addr().unwrap());
    client.connect(to).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), to);
    client.send(b"ping").await.unwrap();
    let from = server.recv_from(&mut [0; 8]).await.unwrap().1;
    assert_eq!(client.local_addr().unwrap(), mapped(from));
    server.send_to(b"pong", from).await.unwrap();
    assert_eq!(client.recv_from(&mut [0; 8]).await.unwrap(), (4, to));
}

async fn a_refusal_over_ipv6_is_told(stage: Stage) {
    let Some(ip) = server_ip(&stage) else { return };
    let nobody = bound(&stage, SocketAddr::new(ip, 0)).await.local_addr().unwrap();
    let client = UdpSocket::bind(EVERYWHERE).await.unwrap();
    client.connect(nobody).await.unwrap();
    client.send(b"anybody?").await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let refusal = timeout(Duration::from_secs(10), client.recv(&mut [0; 8])).await.unwrap();
    assert_eq!(refusal.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
