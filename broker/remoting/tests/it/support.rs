//! A server whose answers are asked for in the request.
use protocol::header::HeartbeatRequest;
use protocol::{Command, RequestCode, ResponseCode};
use remoting::{BoxFuture, Client, ClientConfig, Connection, ConnectionId, Handler, Lane, Server, ServerConfig};
use rt::sync::{CancellationToken, Notify};
use rt::time::{Duration, sleep};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub const SECOND: Duration = Duration::from_secs(1);

/// Runs an async test body, in whichever half this is.
#[cfg(madsim)]
pub fn run<F: Future + 'static>(body: impl FnOnce() -> F + 'static) -> F::Output {
    rt::world::run_test(body)
}

/// Runs an async test body, in whichever half this is.
#[cfg(not(madsim))]
pub fn run<F: Future>(body: impl FnOnce() -> F) -> F::Output {
    rt::block_on(body()).expect("the runtime starts")
}

/// Counts what happened, and answers as the request's ext fields say:
/// `hold`: first wait for the gate of that name; `open`: open that gate; `delay_ms`: first sleep; `bytes`: answer with so large a body; `silent`: no answer.
#[derive(Default)]
pub struct Script {
    pub handled: AtomicUsize,
    pub running: AtomicUsize,
    pub running_max: AtomicUsize,
    pub opened: Mutex<Vec<Connection>>,
    pub closed: Mutex<BTreeMap<ConnectionId, (SocketAddr, usize)>>,
    gates: Mutex<BTreeMap<String, Arc<Notify>>>,
}

impl Script {
    pub fn gate(&self, name: &str) -> Arc<Notify> {
        Arc::clone(self.gates.lock().unwrap().entry(name.to_owned()).or_default())
    }

    pub fn handled(&self) -> usize {
        self.handled.load(Ordering::SeqCst)
    }

    #[cfg(madsim)]
    pub fn running_max(&self) -> usize {
        self.running_max.load(Ordering::SeqCst)
    }

    /// The connections that were closed, each exactly once.
    pub fn closed(&self) -> Vec<SocketAddr> {
        let closed = self.closed.lock().unwrap();
        assert!(closed.values().all(|(_, times)| *times == 1), "{closed:?}");
        closed.values().map(|(addr, _)| *addr).collect()
    }

    pub fn connection(&self, index: usize) -> Connection {
        self.opened.lock().unwrap()[index].clone()
    }

    fn answer(&self, request: &Command) -> Option<Command> {
        if request.ext_fields.get("silent").is_some() {
            return None;
        }
        let body = match request.ext_fields.get("bytes") {
            Some(bytes) => vec![7; bytes.parse().unwrap()].into(),
            None => request.body.clone(),
        };
        let mut answer = Command::reply(request, ResponseCode::Success).with_body(body);
        for (key, value) in request.ext_fields.iter() {
            answer.ext_fields.insert(key, value);
        }
        Some(answer)
    }
}

pub struct Scripted(pub Arc<Script>);

impl Handler for Scripted {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let script = Arc::clone(&self.0);
        Box::pin(async move {
            script.handled.fetch_add(1, Ordering::SeqCst);
            let running = script.running.fetch_add(1, Ordering::SeqCst) + 1;
            script.running_max.fetch_max(running, Ordering::SeqCst);
            if let Some(gate) = request.ext_fields.get("open") {
                script.gate(gate).notify_one();
            }
            if let Some(gate) = request.ext_fields.get("hold") {
                script.gate(gate).notified().await;
            }
            if let Some(delay) = request.ext_fields.get("delay_ms") {
                sleep(Duration::from_millis(delay.parse().unwrap())).await;
            }
            let answer = script.answer(&request);
            script.running.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }

    fn lane(&self, request: &Command) -> Lane {
        if request.request_code() == Some(RequestCode::PullMessage) { Lane::Held } else { Lane::Prompt }
    }

    fn connection_opened(&self, connection: &Connection) {
        self.0.opened.lock().unwrap().push(connection.clone());
    }

    fn connection_closed(&self, connection: &Connection) {
        assert!(connection.is_closed());
        let mut closed = self.0.closed.lock().unwrap();
        closed.entry(connection.id()).or_insert((connection.peer_addr(), 0)).1 += 1;
    }
}

pub fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub async fn server(addr: SocketAddr, config: ServerConfig) -> (Server, Arc<Script>) {
    let script = Arc::new(Script::default());
    let server = Server::bind(addr, config, Arc::new(Scripted(Arc::clone(&script)))).await.unwrap();
    (server, script)
}

pub fn client(config: ClientConfig) -> Client {
    Client::new(config, None, &CancellationToken::new())
}

/// A request whose answer is its own body.
pub fn echo(body: &str) -> Command {
    blank(RequestCode::HeartBeat).with_body(body.as_bytes().to_vec())
}

/// A request for the held lane.
pub fn pull() -> Command {
    blank(RequestCode::PullMessage)
}

fn blank(code: RequestCode) -> Command {
    Command::request(code, &HeartbeatRequest {})
}

/// Waits until the condition holds; a test that waits in vain fails.
pub async fn until(condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("waited in vain");
}

/// Runs the body in a world, and demands that it reaches the probe.
#[cfg(madsim)]
pub fn reaching<F: Future + 'static>(probe: &str, body: impl FnOnce() -> F + 'static) -> F::Output {
    let outcome = rt::world::run(rt::world::WorldConfig::default(), body);
    if let Some(finding) = outcome.finding {
        panic!("{finding}");
    }
    assert!(outcome.probes.hits.contains_key(probe), "{:?}", outcome.probes);
    outcome.value.expect("a run without a finding has a value")
}
