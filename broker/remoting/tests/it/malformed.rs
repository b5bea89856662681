//! Hostile bytes: whatever a peer sends, the server goes on serving the others.
use crate::faults::{addr, serve};
use crate::support::{SECOND, client, echo};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use remoting::{ClientConfig, ServerConfig};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use rt::time::{sleep, timeout};
use rt::world::{add_node, ip, run_test, spawn_on};
use std::net::SocketAddr;

/// A good frame, a good frame with a damaged byte, a cut frame, a bare length word, or noise.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let good = Just(echo("good").to_bytes().to_vec());
    let damaged = (good.clone(), any::<usize>(), any::<u8>()).prop_map(|(mut frame, at, byte)| {
        let at = at % frame.len();
        frame[at] = byte;
        frame
    });
    let cut = (good.clone(), any::<usize>()).prop_map(|(mut frame, at)| {
        frame.truncate(at % frame.len());
        frame
    });
    let length = any::<i32>().prop_map(|length| length.to_be_bytes().to_vec());
    prop_oneof![good, damaged, cut, length, vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_bytes_harm_the_server_or_its_other_clients(pieces in vec(piece(), 1..8)) {
        run_test(|| async move {
            let (broker, desk, good) = (add_node("broker"), add_node("desk"), add_node("good"));
            let script = serve(broker, ServerConfig::standard());
            sleep(SECOND).await;
            spawn_on(desk, async move {
                let mut stream = TcpStream::connect(SocketAddr::new(ip(broker), 10911)).await.unwrap();
                for piece in pieces {
                    if stream.write_all(&piece).await.is_err() {
                        return;
                    }
                }
                let mut answers = BytesMut::new();
                while matches!(timeout(5 * SECOND, stream.read_buf(&mut answers)).await, Ok(Ok(count)) if count > 0) {}
            })
            .await
            .unwrap();
            let client = spawn_on(good, async { client(ClientConfig::standard()) }).await.unwrap();
            let addr = addr(broker);
            let answer = spawn_on(good, async move { client.request(&addr, echo("alive"), SECOND).await }).await.unwrap();
            assert_eq!(answer.unwrap().body, "alive");
            sleep(SECOND).await;
            assert!(script.closed().contains(&script.connection(0).peer_addr()));
        });
    }
}
