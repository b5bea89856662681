//! UDP as a program sees it.
use crate::conformance::stage::Stage;
use rt::net::UdpSocket;
use rt::time::{Duration, sleep, timeout};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

crate::conformance::table! {
    a_datagram_arrives_whole_with_its_sender
    bounds_between_datagrams_are_kept
    an_empty_datagram_arrives
    the_largest_datagram_arrives
    a_datagram_beyond_the_largest_is_refused
    a_buffer_too_small_loses_the_rest_of_the_datagram
    an_answer_finds_its_way
    datagrams_of_one_sender_keep_their_order
    what_nobody_has_received_waits
    a_full_receive_buffer_loses_what_comes_then
    sending_to_a_closed_port_is_no_error
    a_connected_socket_learns_that_nobody_is_there_by_receiving
    a_connected_socket_learns_that_nobody_is_there_by_sending
    the_refusal_is_told_once
    a_refused_socket_works_again_when_somebody_binds
    a_connected_socket_hears_its_peer_only
    a_stranger_is_told_that_a_connected_socket_is_not_for_him
    connecting_again_changes_the_peer
    connecting_fixes_the_local_address
    a_connected_socket_may_send_to_others
    connecting_sends_nothing_and_never_fails_for_a_closed_port
    sending_without_a_peer_is_an_error
    sending_to_port_zero_is_invalid
    peer_addr_without_a_peer_is_not_connected
    a_bound_datagram_port_is_taken
    a_datagram_port_is_free_after_drop
    streams_and_datagrams_have_ports_of_their_own
    datagram_port_zero_means_any_free_port
    a_foreign_datagram_address_is_not_available
    an_unspecified_socket_is_reachable
    datagrams_work_within_a_node
    peeking_takes_no_datagram
    receiving_from_an_empty_socket_would_block
    readable_waits_for_a_datagram
    a_refusal_makes_no_socket_readable
    writable_is_at_once
    a_cancelled_receive_loses_nothing
    two_tasks_may_receive
}

/// Long enough for a datagram that would come.
const WHILE: Duration = Duration::from_millis(100);

async fn bound(stage: &Stage) -> (UdpSocket, SocketAddr) {
    let any_port = stage.any_port();
    let socket = stage.on_server(async move { UdpSocket::bind(any_port).await.unwrap() }).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A socket of the client's node, and one of the server's.
async fn pair(stage: &Stage) -> (UdpSocket, UdpSocket, SocketAddr) {
    let client = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
    let (server, address) = bound(stage).await;
    (client, server, address)
}

/// An address of the server's node where nobody is.
async fn closed_port(stage: &Stage) -> SocketAddr {
    bound(stage).await.1
}

/// A socket that was connected to a closed port and has sent there; the refusal has come.
async fn refused(stage: &Stage) -> (UdpSocket, SocketAddr) {
    let nobody = closed_port(stage).await;
    let client = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
    client.connect(nobody).await.unwrap();
    client.send(b"anybody?").await.unwrap();
    sleep(WHILE).await;
    (client, nobody)
}

async fn silent(socket: &UdpSocket) -> bool {
    timeout(WHILE, socket.recv_from(&mut [0; 8])).await.is_err()
}

async fn a_datagram_arrives_whole_with_its_sender(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    assert_eq!(client.send_to(b"hello", address).await.unwrap(), 5);
    let mut bytes = [0; 16];
    let (length, from) = server.recv_from(&mut bytes).await.unwrap();
    assert_eq!(&bytes[..length], b"hello");
    assert_eq!(from.port(), client.local_addr().unwrap().port());
    assert!(!from.ip().is_unspecified());
}

async fn bounds_between_datagrams_are_kept(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    for text in [&b"one"[..], b"three", b"two"] {
        client.send_to(text, address).await.unwrap();
    }
    let mut bytes = [0; 64];
    for expected in [&b"one"[..], b"three", b"two"] {
        let length = server.recv(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..length], expected);
    }
}

async fn an_empty_datagram_arrives(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    assert_eq!(client.send_to(b"", address).await.unwrap(), 0);
    assert_eq!(server.recv_from(&mut [0; 8]).await.unwrap().0, 0);
}

async fn the_largest_datagram_arrives(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    let bytes: Vec<u8> = (0..65_507_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(client.send_to(&bytes, address).await.unwrap(), 65_507);
    let mut received = vec![0; 70_000];
    assert_eq!(server.recv(&mut received).await.unwrap(), 65_507);
    assert!(received[..65_507] == bytes);
}

async fn a_datagram_beyond_the_largest_is_refused(stage: Stage) {
    let (client, _server, address) = pair(&stage).await;
    let error = client.send_to(&[0; 65_508], address).await.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
}

async fn a_buffer_too_small_loses_the_rest_of_the_datagram(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    client.send_to(b"truncated", address).await.unwrap();
    client.send_to(b"next", address).await.unwrap();
    let mut bytes = [0; 5];
    assert_eq!(server.recv_from(&mut bytes).await.unwrap().0, 5);
    assert_eq!(&bytes, b"trunc");
    assert_eq!(server.recv_from(&mut bytes).await.unwrap().0, 4);
    assert_eq!(&bytes[..4], b"next");
}

async fn an_answer_finds_its_way(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    client.send_to(b"ping", address).await.unwrap();
    let (_, from) = server.recv_from(&mut [0; 8]).await.unwrap();
    stage.on_server(async move { server.send_to(b"pong", from).await.unwrap() }).await.unwrap();
    let mut bytes = [0; 8];
    assert_eq!(client.recv_from(&mut bytes).await.unwrap(), (4, address));
    assert_eq!(&bytes[..4], b"pong");
}

async fn datagrams_of_one_sender_keep_their_order(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    for at in 0..50_u8 {
        client.send_to(&[at], address).await.unwrap();
    }
    for at in 0..50_u8 {
        let mut byte = [0];
        server.recv(&mut byte).await.unwrap();
        assert_eq!(byte, [at]);
    }
}

async fn what_nobody_has_received_waits(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    client.send_to(b"x", address).await.unwrap();
    drop(client);
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 1);
}

async fn a_full_receive_buffer_loses_what_comes_then(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    for at in 0..5_000_u32 {
        let mut bytes = [0; 1000];
        bytes[..4].copy_from_slice(&at.to_be_bytes());
        client.send_to(&bytes, address).await.unwrap();
    }
    // All have come or are lost.
    sleep(WHILE).await;
    let mut kept = 0_u32;
    let mut bytes = [0; 1000];
    while let Ok(received) = timeout(WHILE, server.recv(&mut bytes)).await {
        assert_eq!(received.unwrap(), 1000);
        assert_eq!(bytes[..4], kept.to_be_bytes(), "the first ones are kept, in their order");
        kept += 1;
    }
    assert!((10..5_000).contains(&kept), "{kept}");
    client.send_to(b"room again", address).await.unwrap();
    assert_eq!(server.recv(&mut bytes).await.unwrap(), 10);
}

async fn sending_to_a_closed_port_is_no_error(stage: Stage) {
    let nobody = closed_port(&stage).await;
    let (client, _server, _) = pair(&stage).await;
    for _ in 0..3 {
        assert_eq!(client.send_to(b"x", nobody).await.unwrap(), 1);
        assert!(silent(&client).await, "without a peer, no refusal is told");
    }
}

async fn a_connected_socket_learns_that_nobody_is_there_by_receiving(stage: Stage) {
    let (client, _) = refused(&stage).await;
    assert_eq!(client.recv(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn a_connected_socket_learns_that_nobody_is_there_by_sending(stage: Stage) {
    let (client, _) = refused(&stage).await;
    assert_eq!(client.send(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn the_refusal_is_told_once(stage: Stage) {
    let (client, _) = refused(&stage).await;
    assert!(client.recv(&mut [0; 8]).await.is_err());
    assert!(silent(&client).await);
}

async fn a_refused_socket_works_again_when_somebody_binds(stage: Stage) {
    let (client, nobody) = refused(&stage).await;
    assert!(client.recv(&mut [0; 8]).await.is_err());
    let server = stage.on_server(async move { UdpSocket::bind(nobody).await.unwrap() }).await.unwrap();
    client.send(b"x").await.unwrap();
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 1);
}

async fn a_connected_socket_hears_its_peer_only(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    let (stranger, _) = bound(&stage).await;
    client.connect(address).await.unwrap();
    let here = client.local_addr().unwrap();
    let sent = stage.on_server(async move {
        stranger.send_to(b"stranger", here).await.unwrap();
        server.send_to(b"peer", here).await.unwrap();
        (stranger, server)
    });
    let _open = sent.await.unwrap();
    let mut bytes = [0; 16];
    assert_eq!(client.recv(&mut bytes).await.unwrap(), 4);
    assert_eq!(&bytes[..4], b"peer");
    assert!(silent(&client).await);
}

async fn a_stranger_is_told_that_a_connected_socket_is_not_for_him(stage: Stage) {
    let (client, _server, address) = pair(&stage).await;
    client.connect(address).await.unwrap();
    let (stranger, _) = bound(&stage).await;
    let here = client.local_addr().unwrap();
    let told = stage.on_server(async move {
        stranger.connect(here).await?;
        stranger.send(b"x").await?;
        stranger.recv(&mut [0; 8]).await
    });
    assert_eq!(told.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn connecting_again_changes_the_peer(stage: Stage) {
    let (client, first, address) = pair(&stage).await;
    let (second, other) = bound(&stage).await;
    client.connect(address).await.unwrap();
    client.connect(other).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), other);
    client.send(b"x").await.unwrap();
    assert_eq!(second.recv(&mut [0; 8]).await.unwrap(), 1);
    assert!(silent(&first).await);
}

async fn connecting_fixes_the_local_address(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    assert!(client.local_addr().unwrap().ip().is_unspecified());
    client.connect(address).await.unwrap();
    let here = client.local_addr().unwrap();
    assert!(!here.ip().is_unspecified());
    client.send(b"x").await.unwrap();
    assert_eq!(server.recv_from(&mut [0; 8]).await.unwrap(), (1, here));
}

async fn a_connected_socket_may_send_to_others(stage: Stage) {
    let (client, _server, address) = pair(&stage).await;
    let (other_socket, other) = bound(&stage).await;
    client.connect(address).await.unwrap();
    client.send_to(b"x", other).await.unwrap();
    assert_eq!(other_socket.recv(&mut [0; 8]).await.unwrap(), 1);
}

async fn connecting_sends_nothing_and_never_fails_for_a_closed_port(stage: Stage) {
    let nobody = closed_port(&stage).await;
    let (client, _server, _) = pair(&stage).await;
    client.connect(nobody).await.unwrap();
    assert!(silent(&client).await);
}

async fn sending_without_a_peer_is_an_error(stage: Stage) {
    let (client, _server, _) = pair(&stage).await;
    assert_eq!(client.send(b"x").await.unwrap_err().raw_os_error(), Some(libc::EDESTADDRREQ));
}

async fn sending_to_port_zero_is_invalid(stage: Stage) {
    let (client, _server, mut address) = pair(&stage).await;
    address.set_port(0);
    assert_eq!(client.send_to(b"x", address).await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

async fn peer_addr_without_a_peer_is_not_connected(stage: Stage) {
    let (client, _server, address) = pair(&stage).await;
    assert_eq!(client.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    client.connect(address).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), address);
}

async fn binding(stage: &Stage, address: SocketAddr) -> io::Result<()> {
    stage.on_server(async move { UdpSocket::bind(address).await.map(|_| ()) }).await.unwrap()
}

async fn a_bound_datagram_port_is_taken(stage: Stage) {
    let (_socket, address) = bound(&stage).await;
    assert_eq!(binding(&stage, address).await.unwrap_err().kind(), ErrorKind::AddrInUse);
    let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
    assert_eq!(binding(&stage, everywhere).await.unwrap_err().kind(), ErrorKind::AddrInUse);
}

async fn a_datagram_port_is_free_after_drop(stage: Stage) {
    let address = closed_port(&stage).await;
    binding(&stage, address).await.unwrap();
}

async fn streams_and_datagrams_have_ports_of_their_own(stage: Stage) {
    let (_socket, address) = bound(&stage).await;
    let listening = stage.on_server(async move { rt::net::TcpListener::bind(address).await });
    assert_eq!(listening.await.unwrap().unwrap().local_addr().unwrap(), address);
}

async fn datagram_port_zero_means_any_free_port(stage: Stage) {
    let (_first, one) = bound(&stage).await;
    let (_second, other) = bound(&stage).await;
    assert_ne!(one.port(), 0);
    assert_ne!(one, other);
}

async fn a_foreign_datagram_address_is_not_available(_: Stage) {
    let foreign = SocketAddr::from(([203, 0, 113, 1], 0));
    assert_eq!(UdpSocket::bind(foreign).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
}

async fn an_unspecified_socket_is_reachable(stage: Stage) {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let server = stage.on_server(async move { UdpSocket::bind(everywhere).await.unwrap() }).await.unwrap();
    let to = SocketAddr::new(stage.server_ip, server.local_addr().unwrap().port());
    let (client, _other, _) = pair(&stage).await;
    client.send_to(b"x", to).await.unwrap();
    let (_, from) = server.recv_from(&mut [0; 8]).await.unwrap();
    stage.on_server(async move { server.send_to(b"y", from).await.unwrap() }).await.unwrap();
    assert_eq!(client.recv_from(&mut [0; 8]).await.unwrap(), (1, to), "the answer comes from where it was asked");
}

async fn datagrams_work_within_a_node(_: Stage) {
    let one = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let other = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
    other.send_to(b"x", one.local_addr().unwrap()).await.unwrap();
    let (_, from) = one.recv_from(&mut [0; 8]).await.unwrap();
    assert!(from.ip().is_loopback());
    let to_any = SocketAddr::from(([0, 0, 0, 0], one.local_addr().unwrap().port()));
    other.send_to(b"x", to_any).await.unwrap();
    assert_eq!(one.recv_from(&mut [0; 8]).await.unwrap(), (1, from));
}

async fn peeking_takes_no_datagram(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    client.send_to(b"abc", address).await.unwrap();
    let mut bytes = [0; 2];
    assert_eq!(server.peek_from(&mut bytes).await.unwrap().0, 2);
    let mut bytes = [0; 8];
    assert_eq!(server.recv(&mut bytes).await.unwrap(), 3);
    assert_eq!(&bytes[..3], b"abc");
}

async fn receiving_from_an_empty_socket_would_block(stage: Stage) {
    let (client, _server, _) = pair(&stage).await;
    assert_eq!(client.try_recv_from(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.try_recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn readable_waits_for_a_datagram(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    assert!(timeout(WHILE, server.readable()).await.is_err());
    client.send_to(b"abc", address).await.unwrap();
    server.readable().await.unwrap();
    assert_eq!(server.try_recv_from(&mut [0; 8]).unwrap().0, 3);
    assert_eq!(server.try_recv_from(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn a_refusal_makes_no_socket_readable(stage: Stage) {
    let (client, _) = refused(&stage).await;
    assert!(timeout(WHILE, client.readable()).await.is_err());
    assert_eq!(client.try_recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.send(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn writable_is_at_once(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    client.writable().await.unwrap();
    assert_eq!(client.try_send_to(b"abc", address).unwrap(), 3);
    client.connect(address).await.unwrap();
    assert_eq!(client.try_send(b"de").unwrap(), 2);
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 3);
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 2);
}

async fn a_cancelled_receive_loses_nothing(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    assert!(timeout(Duration::from_millis(5), server.recv(&mut [0; 8])).await.is_err());
    client.send_to(b"abc", address).await.unwrap();
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 3);
}

async fn two_tasks_may_receive(stage: Stage) {
    let (client, server, address) = pair(&stage).await;
    let server = std::sync::Arc::new(server);
    let receivers: Vec<_> = (0..2)
        .map(|_| {
            let server = std::sync::Arc::clone(&server);
            stage.on_server(async move { server.recv(&mut [0; 8]).await.unwrap() })
        })
        .collect();
    sleep(WHILE).await;
    client.send_to(b"a", address).await.unwrap();
    client.send_to(b"b", address).await.unwrap();
    for receiver in receivers {
        assert_eq!(receiver.await.unwrap(), 1);
    }
}
