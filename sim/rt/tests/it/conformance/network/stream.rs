//! What tokio's stream does besides reading and writing: to try, to wait, to write several parts, to reset.
use super::{pair, pattern, reset_client};
use crate::conformance::stage::Stage;
use rt::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use rt::net::TcpStream;
use rt::time::{Duration, sleep, timeout};
use std::io::{ErrorKind, IoSlice};

crate::conformance::table! {
    trying_to_read_nothing_would_block
    trying_to_read_gives_what_is_there
    trying_to_read_the_end_gives_zero
    trying_to_read_a_reset_stream_tells_it
    trying_to_write_hands_bytes_over
    trying_to_write_a_full_stream_would_block
    trying_to_write_after_shutdown_is_a_broken_pipe
    readable_waits_for_bytes
    readable_comes_with_the_end
    readable_comes_with_a_reset
    writable_waits_for_room
    one_task_waits_to_read_while_another_writes
    parts_arrive_in_their_order
    trying_to_write_parts_keeps_their_order
    parts_beyond_the_room_are_taken_in_part
    empty_parts_write_nothing
    streams_and_halves_write_parts_at_once
    zero_linger_resets_the_peer
    zero_linger_leaves_what_has_arrived
    linger_is_off_until_it_is_zero
    ttl_is_64_and_can_be_set
    a_ttl_of_zero_is_invalid
    peek_waits_for_bytes
    peek_at_the_end_gives_zero
    halves_try_and_wait_too
    halves_show_their_stream
    reading_into_no_space_waits_all_the_same
    a_cancelled_write_loses_nothing_that_it_counted
}

/// Long enough for something that would come.
const WHILE: Duration = Duration::from_millis(100);

/// Writes until there is no room for longer than the kernel needs to move bytes on.
async fn fill(stream: &TcpStream) -> usize {
    let mut written = 0;
    while timeout(Duration::from_millis(500), stream.writable()).await.is_ok() {
        match stream.try_write(&[7; 4096]) {
            Ok(length) => written += length,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    written
}

async fn trying_to_read_nothing_would_block(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    assert_eq!(client.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn trying_to_read_gives_what_is_there(stage: Stage) {
    let (mut client, server) = pair(&stage).await;
    client.write_all(b"abc").await.unwrap();
    server.readable().await.unwrap();
    let mut bytes = [0; 8];
    assert_eq!(server.try_read(&mut bytes).unwrap(), 3);
    assert_eq!(&bytes[..3], b"abc");
    assert_eq!(server.try_read(&mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn trying_to_read_the_end_gives_zero(stage: Stage) {
    let (client, server) = pair(&stage).await;
    drop(client);
    server.readable().await.unwrap();
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 0);
}

async fn trying_to_read_a_reset_stream_tells_it(stage: Stage) {
    let client = reset_client(&stage).await;
    client.readable().await.unwrap();
    assert_eq!(client.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn trying_to_write_hands_bytes_over(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    client.writable().await.unwrap();
    assert_eq!(client.try_write(b"abc").unwrap(), 3);
    let mut bytes = [0; 3];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"abc");
}

async fn trying_to_write_a_full_stream_would_block(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    assert!(fill(&client).await > 0);
    assert_eq!(client.try_write(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn trying_to_write_after_shutdown_is_a_broken_pipe(stage: Stage) {
    let (mut client, _server) = pair(&stage).await;
    client.shutdown().await.unwrap();
    client.writable().await.unwrap();
    assert_eq!(client.try_write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

async fn readable_waits_for_bytes(stage: Stage) {
    let (mut client, server) = pair(&stage).await;
    // tokio takes an accepted stream to be readable until it was tried.
    assert_eq!(server.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(timeout(WHILE, server.readable()).await.is_err());
    client.write_all(b"abc").await.unwrap();
    server.readable().await.unwrap();
    server.readable().await.unwrap();
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 3);
}

async fn readable_comes_with_the_end(stage: Stage) {
    let (mut client, server) = pair(&stage).await;
    let waiting = stage.on_server(async move { server.readable().await.map(|()| server) });
    client.shutdown().await.unwrap();
    let server = waiting.await.unwrap().unwrap();
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 0);
}

async fn readable_comes_with_a_reset(stage: Stage) {
    let (client, server) = pair(&stage).await;
    let waiting = stage.on_server(async move { server.readable().await.map(|()| server) });
    client.set_zero_linger().unwrap();
    drop(client);
    let server = waiting.await.unwrap().unwrap();
    assert_eq!(server.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn writable_waits_for_room(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let written = fill(&client).await;
    let reader = stage.on_server(async move {
        let mut all = vec![0; written];
        server.read_exact(&mut all).await.unwrap();
        server
    });
    client.writable().await.unwrap();
    let _server = reader.await.unwrap();
}

async fn one_task_waits_to_read_while_another_writes(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    let client = std::sync::Arc::new(client);
    let reading = std::sync::Arc::clone(&client);
    let reader = rt::task::spawn(async move {
        reading.readable().await.unwrap();
        let mut bytes = [0; 8];
        let length = reading.try_read(&mut bytes).unwrap();
        bytes[..length].to_vec()
    });
    client.writable().await.unwrap();
    assert_eq!(client.try_write(b"question").unwrap(), 8);
    stage
        .on_server(async move {
            server.read_exact(&mut [0; 8]).await.unwrap();
            server.write_all(b"answer").await.unwrap();
        })
        .await
        .unwrap();
    assert_eq!(reader.await.unwrap(), b"answer");
}

async fn parts_arrive_in_their_order(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let parts = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two "), IoSlice::new(b"three")];
    assert_eq!(client.write_vectored(&parts).await.unwrap(), 13);
    let mut bytes = [0; 13];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"one two three");
}

async fn trying_to_write_parts_keeps_their_order(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    client.writable().await.unwrap();
    assert_eq!(client.try_write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).unwrap(), 4);
    let mut bytes = [0; 4];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"abcd");
}

async fn parts_beyond_the_room_are_taken_in_part(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let half = pattern(16 << 20);
    let written = client.write_vectored(&[IoSlice::new(&half), IoSlice::new(&half)]).await.unwrap();
    assert!(0 < written && written < 32 << 20, "{written}");
    drop(client);
    let mut all = Vec::new();
    server.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), written);
    let expected = half.iter().chain(&half);
    assert!(all.iter().zip(expected).all(|(byte, expected)| byte == expected));
}

async fn empty_parts_write_nothing(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    assert_eq!(client.write_vectored(&[IoSlice::new(b""), IoSlice::new(b"")]).await.unwrap(), 0);
    assert_eq!(client.write_vectored(&[]).await.unwrap(), 0);
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
}

async fn streams_and_halves_write_parts_at_once(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    assert!(client.is_write_vectored());
    let (_read, mut write) = client.into_split();
    assert!(write.is_write_vectored());
    assert_eq!(write.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).await.unwrap(), 4);
    let mut bytes = [0; 4];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"abcd");
}

async fn zero_linger_resets_the_peer(stage: Stage) {
    let (client, mut server) = pair(&stage).await;
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

async fn zero_linger_leaves_what_has_arrived(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    client.write_all(b"abc").await.unwrap();
    assert_eq!(server.peek(&mut [0; 8]).await.unwrap(), 3);
    client.set_zero_linger().unwrap();
    drop(client);
    sleep(WHILE).await;
    let mut bytes = [0; 8];
    assert_eq!(server.read(&mut bytes).await.unwrap(), 3);
    assert_eq!(server.read(&mut bytes).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn linger_is_off_until_it_is_zero(stage: Stage) {
    let (client, server) = pair(&stage).await;
    assert_eq!(client.linger().unwrap(), None);
    client.set_zero_linger().unwrap();
    assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
    assert_eq!(server.linger().unwrap(), None);
}

async fn ttl_is_64_and_can_be_set(stage: Stage) {
    let (client, server) = pair(&stage).await;
    assert_eq!(client.ttl().unwrap(), 64);
    client.set_ttl(7).unwrap();
    assert_eq!((client.ttl().unwrap(), server.ttl().unwrap()), (7, 64));
}

async fn a_ttl_of_zero_is_invalid(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    for ttl in [0, 256] {
        assert_eq!(client.set_ttl(ttl).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

async fn peek_waits_for_bytes(stage: Stage) {
    let (mut client, server) = pair(&stage).await;
    assert!(timeout(WHILE, server.peek(&mut [0; 8])).await.is_err());
    client.write_all(b"abc").await.unwrap();
    assert_eq!(server.peek(&mut [0; 8]).await.unwrap(), 3);
    assert_eq!(server.peek(&mut [0; 2]).await.unwrap(), 2);
}

async fn peek_at_the_end_gives_zero(stage: Stage) {
    let (client, server) = pair(&stage).await;
    drop(client);
    assert_eq!(server.peek(&mut [0; 8]).await.unwrap(), 0);
}

async fn halves_try_and_wait_too(stage: Stage) {
    let (client, server) = pair(&stage).await;
    let (mut read, _write) = server.into_split();
    let (_other_read, write) = client.into_split();
    write.writable().await.unwrap();
    assert_eq!(write.try_write(b"abc").unwrap(), 3);
    read.readable().await.unwrap();
    let mut bytes = [0; 8];
    assert_eq!(read.peek(&mut bytes).await.unwrap(), 3);
    assert_eq!(read.try_read(&mut bytes).unwrap(), 3);
    assert_eq!(read.try_read(&mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
}

async fn halves_show_their_stream(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let here = client.local_addr().unwrap();
    let (read, write) = client.into_split();
    read.as_ref().set_nodelay(true).unwrap();
    assert!(write.as_ref().nodelay().unwrap());
    assert_eq!(write.as_ref().local_addr().unwrap(), here);
}

async fn reading_into_no_space_waits_all_the_same(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    assert!(timeout(WHILE, client.read(&mut [])).await.is_err());
    server.write_all(b"abc").await.unwrap();
    assert_eq!(client.read(&mut []).await.unwrap(), 0);
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 3);
}

async fn a_cancelled_write_loses_nothing_that_it_counted(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    let chunk = pattern(64 << 10);
    let mut written = 0;
    while let Ok(length) = timeout(Duration::from_millis(500), client.write(&chunk[written % chunk.len()..])).await {
        written += length.unwrap();
    }
    drop(client);
    let mut all = Vec::new();
    server.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), written);
    assert!(all.chunks(chunk.len()).all(|part| *part == chunk[..part.len()]));
}
