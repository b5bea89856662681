//! Addresses and ports, and the kind of error that a caller sees.
use super::{listener, pair};
use crate::conformance::stage::Stage;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{Duration, sleep, timeout};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

crate::conformance::table! {
    two_addresses_share_a_port
    a_second_address_is_an_address
    the_listener_of_one_address_is_not_reached_by_another
    an_exact_listener_and_one_of_all_addresses_exclude_each_other
    a_clients_port_cannot_be_listened_on
    a_listener_may_bind_over_streams_that_it_closed_first
    a_listener_may_bind_over_streams_that_are_open
    a_client_that_closed_first_connects_again
    connecting_to_port_zero_is_refused
    connecting_to_no_address_means_this_machine
    two_tasks_may_accept
    a_hundred_connections_at_once_are_all_accepted
    a_client_that_resets_before_it_is_accepted_is_told_by_reading
    a_reset_stream_knows_its_own_address
    an_end_in_the_middle_is_an_unexpected_end
    an_elapsed_timeout_is_a_timed_out_error
    reading_after_the_peers_reset_and_shutdown_gives_the_end
    a_refused_connect_may_be_repeated
}

/// An address of the server's machine besides the first.
fn second_address(stage: &Stage) -> IpAddr {
    #[cfg(madsim)]
    {
        let second = std::net::Ipv4Addr::new(192, 168, 7, 1);
        let nodes = rt::world::nodes();
        let server = nodes.iter().find(|node| rt::world::ip(**node) == stage.server_ip);
        rt::world::network::add_address(*server.unwrap(), second);
        second.into()
    }
    #[cfg(not(madsim))]
    {
        assert!(stage.server_ip.is_loopback(), "all of 127.0.0.0/8 are addresses of this machine");
        IpAddr::from([127, 0, 0, 2])
    }
}

async fn listening(stage: &Stage, address: SocketAddr) -> io::Result<TcpListener> {
    stage.on_server(async move { TcpListener::bind(address).await }).await.unwrap()
}

async fn two_addresses_share_a_port(stage: Stage) {
    let second = second_address(&stage);
    let (first_listener, first) = listener(&stage).await;
    let second = SocketAddr::new(second, first.port());
    let second_listener = listening(&stage, second).await.unwrap();
    let _one = TcpStream::connect(first).await.unwrap();
    let _other = TcpStream::connect(second).await.unwrap();
    assert_eq!(first_listener.accept().await.unwrap().0.local_addr().unwrap(), first);
    assert_eq!(second_listener.accept().await.unwrap().0.local_addr().unwrap(), second);
}

async fn a_second_address_is_an_address(stage: Stage) {
    let second = second_address(&stage);
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let listener = listening(&stage, everywhere).await.unwrap();
    let to = SocketAddr::new(second, listener.local_addr().unwrap().port());
    let client = TcpStream::connect(to).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), to);
    assert_eq!(listener.accept().await.unwrap().0.local_addr().unwrap(), to);
}

async fn the_listener_of_one_address_is_not_reached_by_another(stage: Stage) {
    let second = second_address(&stage);
    let (_listener, first) = listener(&stage).await;
    let other = SocketAddr::new(second, first.port());
    assert_eq!(TcpStream::connect(other).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn an_exact_listener_and_one_of_all_addresses_exclude_each_other(stage: Stage) {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let all = listening(&stage, everywhere).await.unwrap();
    let exact = SocketAddr::new(stage.server_ip, all.local_addr().unwrap().port());
    assert_eq!(listening(&stage, exact).await.unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(all);
    listening(&stage, exact).await.unwrap();
}

async fn a_clients_port_cannot_be_listened_on(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let own = client.local_addr().unwrap();
    assert_eq!(TcpListener::bind(own).await.unwrap_err().kind(), ErrorKind::AddrInUse);
}

async fn a_listener_may_bind_over_streams_that_it_closed_first(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    drop(listener.accept().await.unwrap());
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    drop(client);
    drop(listener);
    let listener = listening(&stage, address).await.unwrap();
    let _client = TcpStream::connect(address).await.unwrap();
    listener.accept().await.unwrap();
}

async fn a_listener_may_bind_over_streams_that_are_open(stage: Stage) {
    let (first, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let (mut server, _) = first.accept().await.unwrap();
    drop(first);
    let second = listening(&stage, address).await.unwrap();
    let _other = TcpStream::connect(address).await.unwrap();
    second.accept().await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1, "the old stream goes on");
}

async fn a_client_that_closed_first_connects_again(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut ports = Vec::new();
    for _ in 0..20 {
        let client = TcpStream::connect(address).await.unwrap();
        let (mut server, peer) = listener.accept().await.unwrap();
        drop(client);
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(!ports.contains(&peer), "a four-tuple is not used again that soon");
        ports.push(peer);
    }
}

async fn connecting_to_port_zero_is_refused(stage: Stage) {
    let error = TcpStream::connect(stage.any_port()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

async fn connecting_to_no_address_means_this_machine(_: Stage) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(SocketAddr::from(([0, 0, 0, 0], address.port()))).await.unwrap();
    assert_eq!(client.peer_addr().unwrap(), address);
    assert_eq!(listener.accept().await.unwrap().1, client.local_addr().unwrap());
}

async fn two_tasks_may_accept(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let listener = Arc::new(listener);
    let accepting: Vec<_> = (0..2)
        .map(|_| {
            let listener = Arc::clone(&listener);
            stage.on_server(async move { listener.accept().await.unwrap().0 })
        })
        .collect();
    sleep(Duration::from_millis(20)).await;
    let _one = TcpStream::connect(address).await.unwrap();
    let _other = TcpStream::connect(address).await.unwrap();
    for accepted in accepting {
        timeout(Duration::from_secs(10), accepted).await.expect("both are served").unwrap();
    }
}

async fn a_hundred_connections_at_once_are_all_accepted(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let clients: Vec<_> = (0..100).map(|_| rt::task::spawn(TcpStream::connect(address))).collect();
    let mut peers = Vec::new();
    for _ in 0..100 {
        let (stream, peer) = listener.accept().await.unwrap();
        peers.push((peer, stream));
    }
    for client in clients {
        let here = client.await.unwrap().unwrap().local_addr().unwrap();
        assert_eq!(peers.iter().filter(|(peer, _)| *peer == here).count(), 1);
    }
}

async fn a_client_that_resets_before_it_is_accepted_is_told_by_reading(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let client = TcpStream::connect(address).await.unwrap();
    let here = client.local_addr().unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    sleep(Duration::from_millis(20)).await;
    let (mut server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, here);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn a_reset_stream_knows_its_own_address(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let address = server.local_addr().unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    assert!(server.read(&mut [0; 8]).await.is_err());
    assert_eq!(server.local_addr().unwrap(), address);
    assert_eq!(server.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
}

async fn an_end_in_the_middle_is_an_unexpected_end(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.write_all(b"half").await.unwrap();
    drop(client);
    assert_eq!(server.read_exact(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

async fn an_elapsed_timeout_is_a_timed_out_error(stage: Stage) {
    let (mut client, _server) = pair(&stage).await;
    let elapsed = timeout(Duration::from_millis(10), client.read(&mut [0; 8])).await.unwrap_err();
    assert_eq!(io::Error::from(elapsed).kind(), ErrorKind::TimedOut);
}

async fn reading_after_the_peers_reset_and_shutdown_gives_the_end(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    client.set_zero_linger().unwrap();
    drop(client);
    sleep(Duration::from_millis(20)).await;
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0, "the end had come before the reset");
    assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

async fn a_refused_connect_may_be_repeated(stage: Stage) {
    let (first, address) = listener(&stage).await;
    drop(first);
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let second = listening(&stage, address).await.unwrap();
    let _client = TcpStream::connect(address).await.unwrap();
    second.accept().await.unwrap();
}
