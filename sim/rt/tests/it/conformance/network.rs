//! TCP as a program sees it. Below: what tokio adds to reading and writing, errors and addresses, and UDP.
mod addresses;
mod ipv6;
mod keep_alive;
mod stream;
mod udp;

use super::stage::{Stage, until};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, lookup_host};
use rt::sync::oneshot;
use rt::time::{Duration, timeout};
use std::io::ErrorKind;
use std::net::SocketAddr;

super::table! {
    connect_without_listener_is_refused
    bytes_arrive_in_order_both_ways
    many_small_writes_arrive_whole
    reader_sees_the_end_after_shutdown
    reader_sees_the_end_after_drop
    the_end_is_read_again_and_again
    a_half_closed_stream_still_carries_the_other_way
    the_server_may_half_close_first
    writing_after_shutdown_is_a_broken_pipe
    writing_to_a_dropped_peer_fails_at_last
    dropping_unread_bytes_resets_the_peer
    a_reset_is_told_once_then_reads_end_and_writes_break
    a_write_learns_of_a_reset_first_then_breaks
    shutdown_after_a_reset_succeeds
    peer_addr_of_a_reset_stream_is_not_connected
    a_writer_waits_for_a_reader_that_does_not_read
    an_empty_write_writes_nothing
    flush_succeeds
    shutting_down_twice_succeeds
    a_bound_port_is_taken
    a_bound_port_is_free_after_drop
    port_zero_means_any_free_port
    a_foreign_address_is_not_available
    an_unspecified_listener_is_reachable
    loopback_works_within_a_node
    a_dropped_listener_refuses
    a_dropped_listener_keeps_accepted_streams
    a_dropped_listener_resets_what_nobody_accepted
    connections_are_accepted_in_their_order
    a_client_may_write_before_it_is_accepted
    a_client_may_leave_before_it_is_accepted
    addresses_are_symmetrical
    nodelay_is_off_and_can_be_set
    halves_work_in_two_tasks
    dropping_the_write_half_ends_the_stream
    dropping_the_read_half_changes_nothing_for_the_writer
    dropping_both_halves_closes
    peek_takes_nothing
    a_cancelled_accept_loses_nothing
    a_cancelled_read_loses_nothing
    a_cancelled_connect_leaves_the_listener_working
    an_address_is_its_own_name
    localhost_is_a_name
    a_name_without_port_is_invalid
    an_unknown_name_is_an_error
}

/// A connected pair: the client's end, and the server's.
async fn pair(stage: &Stage) -> (TcpStream, TcpStream) {
    let (tell, told) = oneshot::channel();
    let any_port = stage.any_port();
    let server = stage.on_server(async move {
        let listener = TcpListener::bind(any_port).await.unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        listener.accept().await.unwrap().0
    });
    let client = TcpStream::connect(told.await.unwrap()).await.unwrap();
    (client, server.await.unwrap())
}

/// A listener of the server's node.
async fn listener(stage: &Stage) -> (TcpListener, SocketAddr) {
    let any_port = stage.any_port();
    let listener = stage.on_server(async move { TcpListener::bind(any_port).await.unwrap() }).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

/// Writes until that fails.
async fn write_error(stream: &mut TcpStream) -> ErrorKind {
    for _ in 0..10_000 {
        if let Err(error) = stream.write_all(b"x").await {
            return error.kind();
        }
        rt::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("writing goes on");
}

async fn connect_without_listener_is_refused(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    drop(listener);
    let error = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

async fn bytes_arrive_in_order_both_ways(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let bytes = pattern(1 << 20);
    let echo = stage.on_server(async move {
        let mut all = vec![0; 1 << 20];
        server.read_exact(&mut all).await.unwrap();
        server.write_all(&all).await.unwrap();
    });
    client.write_all(&bytes).await.unwrap();
    let mut back = vec![0; 1 << 20];
    client.read_exact(&mut back).await.unwrap();
    assert!(back == bytes);
    echo.await.unwrap();
}

async fn many_small_writes_arrive_whole(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    for at in 0..1000_u32 {
        client.write_all(&at.to_le_bytes()[..1 + at as usize % 4]).await.unwrap();
    }
    drop(client);
    let mut all = Vec::new();
    server.read_to_end(&mut all).await.unwrap();
    let expected: Vec<u8> = (0..1000_u32).flat_map(|at| at.to_le_bytes()[..1 + at as usize % 4].to_vec()).collect();
    assert_eq!(all, expected);
}

async fn reader_sees_the_end_after_shutdown(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "last words");
}

async fn reader_sees_the_end_after_drop(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.write_all(b"last words").await.unwrap();
    drop(client);
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "last words");
}

async fn the_end_is_read_again_and_again(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    drop(client);
    for _ in 0..3 {
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

async fn a_half_closed_stream_still_carries_the_other_way(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    server.write_all(&pattern(20_000)).await.unwrap_or_else(|error| panic!("{error}"));
    drop(server);
    let mut all = Vec::new();
    client.read_to_end(&mut all).await.unwrap();
    assert!(all == pattern(20_000));
}

async fn the_server_may_half_close_first(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    server.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    client.write_all(b"still here").await.unwrap();
    drop(client);
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "still here");
}

async fn writing_after_shutdown_is_a_broken_pipe(stage: Stage) {
    let (mut client, _server) = pair(&stage).await;
    client.shutdown().await.unwrap();
    assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

async fn writing_to_a_dropped_peer_fails_at_last(stage: Stage) {
    let (mut client, server) = pair(&stage).await;
    drop(server);
    // The end of the stream has come before the reset, so the pipe is broken rather than reset.
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(write_error(&mut client).await, ErrorKind::BrokenPipe);
    assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
}

/// A client that was reset and has not looked yet.
async fn reset_client(stage: &Stage) -> TcpStream {
    let (mut client, server) = pair(stage).await;
    client.write_all(b"nobody reads this").await.unwrap();
    let server = until_readable(server).await;
    drop(server);
    client
}

/// Waits until bytes are there, without taking them.
async fn until_readable(stream: TcpStream) -> TcpStream {
    assert!(stream.peek(&mut [0; 1]).await.unwrap() > 0);
    stream
}

async fn dropping_unread_bytes_resets_the_peer(stage: Stage) {
    let mut client = reset_client(&stage).await;
    assert_eq!(client.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn a_reset_is_told_once_then_reads_end_and_writes_break(stage: Stage) {
    let mut client = reset_client(&stage).await;
    assert_eq!(client.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

async fn a_write_learns_of_a_reset_first_then_breaks(stage: Stage) {
    let mut client = reset_client(&stage).await;
    assert_eq!(write_error(&mut client).await, ErrorKind::ConnectionReset);
    assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
}

async fn shutdown_after_a_reset_succeeds(stage: Stage) {
    let mut client = reset_client(&stage).await;
    assert!(client.read(&mut [0; 8]).await.is_err());
    client.shutdown().await.unwrap();
}

async fn peer_addr_of_a_reset_stream_is_not_connected(stage: Stage) {
    let mut client = reset_client(&stage).await;
    assert!(client.read(&mut [0; 8]).await.is_err());
    assert_eq!(client.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
}

async fn a_writer_waits_for_a_reader_that_does_not_read(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let chunk = vec![7; 64 << 10];
    let mut written = 0_usize;
    // A writer that is not served for this long is held back, on a loaded machine too.
    while let Ok(done) = timeout(Duration::from_millis(500), client.write(&chunk)).await {
        written += done.unwrap();
        assert!(written < 64 << 20, "the buffers are bounded");
    }
    let reader = stage.on_server(async move {
        let mut all = vec![0; written];
        server.read_exact(&mut all).await.unwrap();
        assert!(all.iter().all(|byte| *byte == 7));
        server
    });
    let _server = reader.await.unwrap();
    client.write_all(b"room again").await.unwrap();
}

async fn an_empty_write_writes_nothing(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    assert_eq!(client.write(b"").await.unwrap(), 0);
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn flush_succeeds(stage: Stage) {
    let (mut client, _server) = pair(&stage).await;
    client.write_all(b"x").await.unwrap();
    client.flush().await.unwrap();
}

async fn shutting_down_twice_succeeds(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.shutdown().await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
}

async fn a_bound_port_is_taken(stage: Stage) {
    let (_listener, address) = listener(&stage).await;
    let again = stage.on_server(async move { TcpListener::bind(address).await.map(|_| ()) });
    assert_eq!(again.await.unwrap().unwrap_err().kind(), ErrorKind::AddrInUse);
    let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
    let again = stage.on_server(async move { TcpListener::bind(everywhere).await.map(|_| ()) });
    assert_eq!(again.await.unwrap().unwrap_err().kind(), ErrorKind::AddrInUse);
}

async fn a_bound_port_is_free_after_drop(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    drop(listener);
    stage.on_server(async move { TcpListener::bind(address).await.map(|_| ()) }).await.unwrap().unwrap();
}

async fn port_zero_means_any_free_port(stage: Stage) {
    let (_first, one) = listener(&stage).await;
    let (_second, other) = listener(&stage).await;
    assert_ne!(one.port(), 0);
    assert_ne!(other.port(), 0);
    assert_ne!(one, other);
}

async fn a_foreign_address_is_not_available(_: Stage) {
    let foreign = SocketAddr::from(([203, 0, 113, 1], 0));
    assert_eq!(TcpListener::bind(foreign).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
}

async fn an_unspecified_listener_is_reachable(stage: Stage) {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let listener = stage.on_server(async move { TcpListener::bind(everywhere).await.unwrap() }).await.unwrap();
    let address = listener.local_addr().unwrap();
    assert!(address.ip().is_unspecified());
    let accepted = stage.on_server(async move { listener.accept().await.unwrap().0.local_addr().unwrap() });
    let to = SocketAddr::new(stage.server_ip, address.port());
    let _client = TcpStream::connect(to).await.unwrap();
    assert_eq!(accepted.await.unwrap(), to);
}

async fn loopback_works_within_a_node(_: Stage) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let (mut server, peer) = listener.accept().await.unwrap();
    assert!(peer.ip().is_loopback());
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn a_dropped_listener_refuses(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let _client = TcpStream::connect(address).await.unwrap();
    let _server = listener.accept().await.unwrap();
    drop(listener);
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn a_dropped_listener_keeps_accepted_streams(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    drop(listener);
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn a_dropped_listener_resets_what_nobody_accepted(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"hello?").await.unwrap();
    drop(listener);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn connections_are_accepted_in_their_order(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        let client = TcpStream::connect(address).await.unwrap();
        clients.push(client.local_addr().unwrap());
        // Accepted in the order in which the handshakes end, so one ends before the next begins.
        let accepted = timeout(Duration::from_secs(10), listener.accept()).await.unwrap().unwrap();
        assert_eq!(accepted.1, *clients.last().unwrap());
    }
}

async fn a_client_may_write_before_it_is_accepted(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"early").await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let mut bytes = [0; 5];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"early");
}

async fn a_client_may_leave_before_it_is_accepted(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"bye").await.unwrap();
    drop(client);
    let (mut server, _) = listener.accept().await.unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "bye");
}

async fn addresses_are_symmetrical(stage: Stage) {
    let (client, server) = pair(&stage).await;
    assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
    assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    assert_eq!(server.local_addr().unwrap().ip(), stage.server_ip);
}

async fn nodelay_is_off_and_can_be_set(stage: Stage) {
    let (client, server) = pair(&stage).await;
    assert!(!client.nodelay().unwrap());
    client.set_nodelay(true).unwrap();
    assert!(client.nodelay().unwrap());
    assert!(!server.nodelay().unwrap());
}

async fn halves_work_in_two_tasks(stage: Stage) {
    let (client, server) = pair(&stage).await;
    let (mut server_read, mut server_write) = server.into_split();
    let echo = stage.on_server(async move {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = server_read.read(&mut buffer).await {
            server_write.write_all(&buffer[..length]).await.unwrap();
        }
    });
    let (mut read, mut write) = client.into_split();
    let writer = rt::task::spawn(async move {
        write.write_all(&pattern(500_000)).await.unwrap();
    });
    let mut all = vec![0; 500_000];
    read.read_exact(&mut all).await.unwrap();
    assert!(all == pattern(500_000));
    writer.await.unwrap();
    echo.await.unwrap();
}

async fn dropping_the_write_half_ends_the_stream(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let (mut read, mut write) = client.into_split();
    write.write_all(b"x").await.unwrap();
    drop(write);
    let mut all = Vec::new();
    server.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"x");
    server.write_all(b"y").await.unwrap();
    assert_eq!(read.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn dropping_the_read_half_changes_nothing_for_the_writer(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let (read, mut write) = client.into_split();
    drop(read);
    server.write_all(b"nobody reads").await.unwrap();
    write.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn dropping_both_halves_closes(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let (read, write) = client.into_split();
    drop(write);
    drop(read);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(write_error(&mut server).await, ErrorKind::BrokenPipe);
}

async fn peek_takes_nothing(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.write_all(b"abc").await.unwrap();
    let mut bytes = [0; 1];
    assert_eq!(server.peek(&mut bytes).await.unwrap(), 1);
    assert_eq!(&bytes, b"a");
    let mut bytes = [0; 3];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"abc");
}

async fn a_cancelled_accept_loses_nothing(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    assert!(timeout(Duration::from_millis(5), listener.accept()).await.is_err());
    let _client = TcpStream::connect(address).await.unwrap();
    listener.accept().await.unwrap();
}

async fn a_cancelled_read_loses_nothing(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let mut bytes = [0; 8];
    assert!(timeout(Duration::from_millis(5), server.read(&mut bytes)).await.is_err());
    client.write_all(b"abc").await.unwrap();
    let mut bytes = [0; 3];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"abc");
}

async fn a_cancelled_connect_leaves_the_listener_working(stage: Stage) {
    let (listener, address) = listener(&stage).await;
    for _ in 0..10 {
        let _ = timeout(Duration::from_micros(10), TcpStream::connect(address)).await;
    }
    let client = TcpStream::connect(address).await.unwrap();
    let here = client.local_addr().unwrap();
    let found = until(|| async {
        let (_, peer) = listener.accept().await.unwrap();
        (peer == here).then_some(())
    });
    found.await;
}

async fn an_address_is_its_own_name(_: Stage) {
    let address: SocketAddr = "192.0.2.7:9876".parse().unwrap();
    assert_eq!(lookup_host("192.0.2.7:9876").await.unwrap(), [address]);
}

async fn localhost_is_a_name(_: Stage) {
    let found = lookup_host("localhost:80").await.unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
    assert!(!found.is_empty());
}

async fn a_name_without_port_is_invalid(_: Stage) {
    assert_eq!(lookup_host("somewhere").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(lookup_host("somewhere:port").await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

async fn an_unknown_name_is_an_error(_: Stage) {
    assert!(lookup_host("no-such-machine.invalid:80").await.is_err());
}
