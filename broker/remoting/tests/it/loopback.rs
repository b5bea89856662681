use crate::support::{SECOND, Scripted, any_port, client, echo, pull, run, server, until};
use protocol::{Command, Flag, ResponseCode};
use remoting::{
    BoxFuture, Client, ClientConfig, ConnectReason, Connection, Fate, Handler, RemotingError, ServerConfig,
};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use rt::sync::CancellationToken;
use std::io::ErrorKind;
use std::sync::Arc;

#[test]
fn each_caller_gets_its_own_answer_though_the_last_asked_is_answered_first() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let (addr, client) = (server.local_addr().to_string(), client(ClientConfig::standard()));
        let mut asked = Vec::new();
        for i in 0..20 {
            let (client, addr) = (client.clone(), addr.clone());
            let request = echo(&format!("body {i}")).with_ext("hold", format!("gate {i}")).with_ext("i", i.to_string());
            asked.push(rt::task::spawn(async move { client.request(&addr, request, 30 * SECOND).await }));
            until(|| script.handled() == i + 1).await;
        }
        for i in (0..20).rev() {
            script.gate(&format!("gate {i}")).notify_one();
            let answer = asked.pop().unwrap().await.unwrap().unwrap();
            assert_eq!(answer.body, format!("body {i}"));
            assert_eq!(answer.ext_fields.get("i"), Some(i.to_string().as_str()));
            assert!(answer.is_response());
        }
        assert_eq!(server.connections().len(), 1, "all callers share one connection");
        client.shutdown().await;
        server.shutdown().await;
    });
}

#[test]
fn a_oneway_request_is_served_and_never_answered() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let (addr, client) = (server.local_addr().to_string(), client(ClientConfig::standard()));
        client.oneway(&addr, echo("first"), SECOND).await.unwrap();
        let answer = client.request(&addr, echo("second"), 30 * SECOND).await.unwrap();
        assert_eq!(answer.body, "second");
        until(|| script.handled() == 2).await;
        assert_eq!(client.late_responses(), 0);
    });
}

#[test]
fn a_server_asks_and_tells_its_client_over_the_clients_connection() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let addr = server.local_addr().to_string();
        let own = Arc::new(crate::support::Script::default());
        let handler = Arc::new(Scripted(Arc::clone(&own)));
        let client = Client::new(ClientConfig::standard(), Some(handler), &CancellationToken::new());
        client.request(&addr, echo("hello"), 30 * SECOND).await.unwrap();
        let connection = script.connection(0);
        assert_eq!(connection.request(echo("push"), 30 * SECOND).await.unwrap().body, "push");
        connection.send_oneway(echo("notice")).await.unwrap();
        until(|| own.handled() == 2).await;
        assert_eq!(own.connection(0).peer_addr(), server.local_addr());
        client.shutdown().await;
        until(|| !script.closed().is_empty()).await;
        assert!(matches!(
            connection.request(echo("gone"), SECOND).await,
            Err(RemotingError::Closed { fate: Fate::NotSent, .. })
        ));
        assert_eq!(own.closed().len(), 1);
    });
}

#[test]
fn a_client_without_a_handler_answers_not_supported() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let client = client(ClientConfig::standard());
        client.request(&server.local_addr().to_string(), echo(""), 30 * SECOND).await.unwrap();
        let answer = script.connection(0).request(echo("push"), 30 * SECOND).await.unwrap();
        assert_eq!(answer.response_code(), Some(ResponseCode::RequestCodeNotSupported));
        assert_eq!(answer.remark.as_deref(), Some(" request type 34 not supported"));
    });
}

#[test]
fn frames_beyond_the_limit_are_refused_on_both_sides() {
    run(|| async {
        let mut config = ServerConfig::standard();
        config.connection.frame_bytes_max = 1000;
        let (server, script) = server(any_port(), config).await;
        let addr = server.local_addr().to_string();
        let mut config = ClientConfig::standard();
        config.connection.frame_bytes_max = 2000;
        let client = client(config);
        let large = |bytes| echo(&"x".repeat(bytes));
        let error = client.request(&addr, large(2000), 30 * SECOND).await.unwrap_err();
        assert!(matches!(error, RemotingError::FrameTooLarge { limit: 2000, .. }), "{error}");
        let error = client.request(&addr, large(1000), 30 * SECOND).await.unwrap_err();
        assert!(matches!(error, RemotingError::Closed { fate: Fate::MaybeSent, .. }), "{error}");
        let answer = client.request(&addr, echo("").with_ext("bytes", "1000"), 30 * SECOND).await.unwrap();
        assert_eq!(answer.response_code(), Some(ResponseCode::SystemError));
        assert_eq!(script.closed().len(), 1);
    });
}

#[test]
fn bytes_of_other_protocols_end_the_connection() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        for first in
            [&[0x16, 3, 1, 0, 5][..], b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n", b"GET / HTTP/1.1\r\n\r\n", &[0xff; 8]]
        {
            let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
            stream.write_all(first).await.unwrap();
            let mut rest = Vec::new();
            // An orderly end or a reset, according to what the kernel had read.
            let _ = stream.read_to_end(&mut rest).await;
            assert!(rest.is_empty());
        }
        until(|| script.closed().len() == 5).await;
        assert_eq!(script.handled(), 0);
    });
}

#[test]
fn connecting_to_nobody_fails_at_once_and_says_so() {
    run(|| async {
        let (server, _) = server(any_port(), ServerConfig::standard()).await;
        let addr = server.local_addr().to_string();
        server.shutdown().await;
        drop(server);
        let client = client(ClientConfig::standard());
        let error = client.request(&addr, echo(""), 30 * SECOND).await.unwrap_err();
        assert_eq!(error.fate(), Fate::NotSent);
        assert!(
            matches!(&error, RemotingError::Connect { reason: ConnectReason::Io(ErrorKind::ConnectionRefused), .. }),
            "{error}"
        );
        let error = client.request("no port here", echo(""), 30 * SECOND).await.unwrap_err();
        assert!(matches!(&error, RemotingError::Connect { reason: ConnectReason::Resolve(_), .. }), "{error}");
    });
}

#[test]
fn shutdown_answers_what_is_being_served_and_then_refuses() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let server = Arc::new(server);
        let (addr, client) = (server.local_addr().to_string(), client(ClientConfig::standard()));
        let served = {
            let (client, addr) = (client.clone(), addr.clone());
            rt::task::spawn(
                async move { client.request(&addr, echo("slow").with_ext("hold", "gate"), 30 * SECOND).await },
            )
        };
        until(|| script.handled() == 1).await;
        let stopping = {
            let server = Arc::clone(&server);
            rt::task::spawn(async move { server.shutdown().await })
        };
        script.gate("gate").notify_one();
        assert_eq!(served.await.unwrap().unwrap().body, "slow");
        stopping.await.unwrap();
        assert_eq!(script.closed().len(), 1);
        assert!(server.connections().is_empty());
        assert!(client.request(&addr, echo(""), 30 * SECOND).await.is_err());
    });
}

#[test]
fn a_client_that_is_shut_down_writes_what_is_queued_and_refuses_calls() {
    run(|| async {
        let (server, script) = server(any_port(), ServerConfig::standard()).await;
        let (addr, client) = (server.local_addr().to_string(), client(ClientConfig::standard()));
        client.request(&addr, echo(""), 30 * SECOND).await.unwrap();
        for _ in 0..50 {
            client.oneway(&addr, echo("commit"), SECOND).await.unwrap();
        }
        let waiting = {
            let (client, addr) = (client.clone(), addr.clone());
            rt::task::spawn(async move { client.request(&addr, pull().with_ext("hold", "never"), 30 * SECOND).await })
        };
        until(|| script.handled() == 52).await;
        client.shutdown().await;
        assert!(matches!(waiting.await.unwrap(), Err(RemotingError::Closed { fate: Fate::MaybeSent, .. })));
        assert!(matches!(client.request(&addr, echo(""), SECOND).await, Err(RemotingError::ShutDown)));
        until(|| script.closed().len() == 1).await;
    });
}

/// Answers with a command that is no answer.
struct Careless;

impl Handler for Careless {
    fn handle(&self, _: Connection, mut request: Command) -> BoxFuture<'static, Option<Command>> {
        request.opaque += 5;
        request.flag = Flag(2);
        Box::pin(async move { Some(request) })
    }
}

#[test]
fn opaque_and_response_flag_are_set_here_whatever_the_handler_says() {
    run(|| async {
        let server = remoting::Server::bind(any_port(), ServerConfig::standard(), Arc::new(Careless)).await.unwrap();
        let client = client(ClientConfig::standard());
        let mut request = echo("x");
        request.opaque = 77;
        let answer = client.request(&server.local_addr().to_string(), request, 30 * SECOND).await.unwrap();
        assert_eq!((answer.opaque, answer.is_response(), answer.body.len()), (0, true, 1));
    });
}

/// Panics instead of answering.
#[cfg(not(madsim))]
struct Panicking;

#[cfg(not(madsim))]
impl Handler for Panicking {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        Box::pin(async move { panic!("no answer to {request}") })
    }
}

// In a simulation a panic is a finding that ends the run.
#[cfg(not(madsim))]
#[test]
fn a_panic_of_the_handler_is_answered_with_an_error() {
    run(|| async {
        let server = remoting::Server::bind(any_port(), ServerConfig::standard(), Arc::new(Panicking)).await.unwrap();
        let client = client(ClientConfig::standard());
        let answer = client.request(&server.local_addr().to_string(), echo("x"), 30 * SECOND).await.unwrap();
        assert_eq!(answer.response_code(), Some(ResponseCode::SystemError));
    });
}
