//! Limits: what a peer cannot make us do.
use crate::faults::{addr, serve};
use crate::support::{SECOND, client, echo, pull, reaching, until};
use bytes::BytesMut;
use protocol::{Command, ResponseCode};
use remoting::{ClientConfig, Fate, RemotingError, ServerConfig};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{Duration, Instant, sleep, timeout};
use rt::world::{add_node, crash, ip, run_test, spawn_on};
use std::net::SocketAddr;

fn frames(requests: impl IntoIterator<Item = Command>) -> BytesMut {
    let mut out = BytesMut::new();
    for (i, mut request) in requests.into_iter().enumerate() {
        request.opaque = i as i32;
        request.encode(&mut out);
    }
    out
}

#[test]
fn a_client_that_does_not_read_is_served_only_as_far_as_the_write_queue_goes() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let mut config = ServerConfig::standard();
        config.connection.write_queue_bytes_max = 1 << 20;
        config.connection.prompt_in_flight_max = 16;
        let script = serve(broker, config);
        sleep(SECOND).await;
        let stalled = spawn_on(desk, async move {
            let mut stream = TcpStream::connect(SocketAddr::new(ip(broker), 10911)).await.unwrap();
            let requests = frames((0..20_000).map(|_| echo("").with_ext("bytes", "100000")));
            // Takes all that the buffers between hold, then no more.
            let written = timeout(60 * SECOND, stream.write_all(&requests)).await;
            assert!(written.is_err(), "the server must have stopped reading");
            stream
        });
        let _stream = stalled.await.unwrap();
        let stats = script.connection(0).stats();
        assert!(stats.write_queue_bytes <= 1 << 20, "{stats:?}");
        // Ten answers fill the queue, one is being written, two lie in the kernels, sixteen wait with their handlers.
        assert!(script.handled() <= 10 + 2 + 2 + 16, "{}", script.handled());
        assert!(script.running_max() <= 16);
        sleep(121 * SECOND).await;
        assert_eq!(script.closed().len(), 1, "nothing moved for the idle time");
    });
}

#[test]
fn a_full_prompt_lane_stops_the_reading_until_a_request_is_answered() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let mut config = ServerConfig::standard();
        config.connection.prompt_in_flight_max = 4;
        let script = serve(broker, config);
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let calls: Vec<_> = (0..12)
            .map(|i| {
                let (client, addr) = (client.clone(), addr(broker));
                let request = echo("x").with_ext("hold", i.to_string());
                spawn_on(desk, async move { client.request(&addr, request, 600 * SECOND).await })
            })
            .collect();
        sleep(30 * SECOND).await;
        assert_eq!(script.handled(), 4);
        for i in 0..12 {
            script.gate(&i.to_string()).notify_one();
        }
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!((script.handled(), script.running_max()), (12, 4));
    });
}

#[test]
fn bytes_of_requests_being_served_are_bounded_too() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let mut config = ServerConfig::standard();
        config.connection.in_flight_bytes_max = 300_000;
        let script = serve(broker, config);
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let large = "x".repeat(140_000);
        let calls: Vec<_> = (0..6)
            .map(|_| {
                let (client, addr) = (client.clone(), addr(broker));
                let request = echo(&large).with_ext("delay_ms", "1000");
                spawn_on(desk, async move { client.request(&addr, request, 60 * SECOND).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!(script.running_max(), 2);
    });
}

#[test]
fn held_requests_beyond_their_limit_are_answered_busy_and_never_stop_the_others() {
    reaching("remoting.held_lane_full", || async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let mut config = ServerConfig::standard();
        config.connection.held_in_flight_max = 3;
        let script = serve(broker, config);
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let asked = |request: Command| {
            let (client, addr) = (client.clone(), addr(broker));
            spawn_on(desk, async move { client.request(&addr, request, 60 * SECOND).await })
        };
        let held: Vec<_> = (0..3).map(|i| asked(pull().with_ext("hold", i.to_string()))).collect();
        until(|| script.handled() == 3).await;
        let busy = asked(pull()).await.unwrap().unwrap();
        assert_eq!(busy.response_code(), Some(ResponseCode::SystemBusy));
        assert_eq!(busy.remark.as_deref(), Some("[OVERLOAD]system busy, start flow control for a while"));
        assert_eq!(asked(echo("heartbeat")).await.unwrap().unwrap().body, "heartbeat");
        for i in 0..3 {
            script.gate(&i.to_string()).notify_one();
        }
        for call in held {
            assert_eq!(call.await.unwrap().unwrap().response_code(), Some(ResponseCode::Success));
        }
        assert_eq!(asked(pull()).await.unwrap().unwrap().response_code(), Some(ResponseCode::Success));
    });
}

#[test]
fn requests_to_a_server_that_does_not_read_time_out_unsent_and_queue_no_more_than_allowed() {
    reaching("remoting.request_given_up_in_queue", || async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let at = SocketAddr::new(ip(broker), 10911);
        let later = spawn_on(broker, async move {
            let listener = TcpListener::bind(at).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            sleep(60 * SECOND).await;
            // Now read all that ever comes.
            let mut all = BytesMut::new();
            while timeout(30 * SECOND, stream.read_buf(&mut all)).await.is_ok() {}
            all
        });
        sleep(SECOND).await;
        let mut config = ClientConfig::standard();
        config.connection.write_queue_bytes_max = 1 << 20;
        let client = spawn_on(desk, async { client(config) }).await.unwrap();
        let body = "x".repeat(100_000);
        let (opener, to) = (client.clone(), addr(broker));
        let connection = spawn_on(desk, async move { opener.connect(&to, SECOND).await }).await.unwrap().unwrap();
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (connection, request) = (connection.clone(), echo(&body));
                spawn_on(desk, async move { connection.request(request, 10 * SECOND).await })
            })
            .collect();
        sleep(5 * SECOND).await;
        let stats = connection.stats();
        assert!(stats.write_queue_bytes <= 1 << 20);
        assert_eq!(stats.pending, 50);
        let mut sent = 0;
        for call in calls {
            match call.await.unwrap() {
                Err(RemotingError::Timeout { fate: Fate::MaybeSent, .. }) => sent += 1,
                Err(RemotingError::Timeout { fate: Fate::NotSent, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!((1..=13).contains(&sent), "{sent}");
        // What was said to be unsent was never sent.
        let all = later.await.unwrap();
        assert!(all.len() <= sent * 100_500, "{} bytes, {sent} requests", all.len());
        assert_eq!(connection.stats().pending, 0);
    });
}

#[test]
fn calls_beyond_the_limit_fail_after_their_time_out() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let script = serve(broker, ServerConfig::standard());
        sleep(SECOND).await;
        let config = ClientConfig { requests_max: 2, ..ClientConfig::standard() };
        let client = spawn_on(desk, async { client(config) }).await.unwrap();
        for _ in 0..2 {
            let (client, addr) = (client.clone(), addr(broker));
            spawn_on(
                desk,
                async move { client.request(&addr, echo("x").with_ext("delay_ms", "5000"), 60 * SECOND).await },
            );
        }
        until(|| script.handled() == 2).await;
        let (third, addr) = (client.clone(), addr(broker));
        let (error, took) = spawn_on(desk, async move {
            let begun = Instant::now();
            (third.request(&addr, echo("x"), SECOND).await.unwrap_err(), begun.elapsed())
        })
        .await
        .unwrap();
        assert!(matches!(error, RemotingError::TooManyRequests { limit: 2 }), "{error}");
        assert_eq!(took.as_secs(), 1);
    });
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let script = serve(broker, ServerConfig { connections_max: 2, ..ServerConfig::standard() });
        sleep(SECOND).await;
        let ended = spawn_on(desk, async move {
            let at = SocketAddr::new(ip(broker), 10911);
            let _kept = (TcpStream::connect(at).await.unwrap(), TcpStream::connect(at).await.unwrap());
            let mut third = TcpStream::connect(at).await.unwrap();
            timeout(Duration::from_secs(5), third.read(&mut [0; 1])).await.is_ok()
        });
        assert!(ended.await.unwrap());
        assert_eq!(script.opened.lock().unwrap().len(), 2);
    });
}

#[test]
fn requests_that_were_not_sent_when_their_connection_broke_go_out_on_a_new_one() {
    reaching("remoting.request_repeated_on_new_connection", || async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let at = SocketAddr::new(ip(broker), 10911);
        spawn_on(broker, async move {
            let listener = TcpListener::bind(at).await.unwrap();
            let _stuck = listener.accept().await.unwrap();
            std::future::pending::<()>().await;
        });
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let body = "x".repeat(100_000);
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let (client, addr, request) = (client.clone(), addr(broker), echo(&body));
                spawn_on(desk, async move { client.request(&addr, request, 60 * SECOND).await })
            })
            .collect();
        sleep(5 * SECOND).await;
        crash(broker);
        let script = serve(broker, ServerConfig::standard());
        let mut answered = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(_) => answered += 1,
                Err(RemotingError::Closed { fate: Fate::MaybeSent, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(answered >= 15, "{answered}");
        assert_eq!(script.handled(), answered);
    });
}
