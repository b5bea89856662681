//! A server lends one thing for two seconds at a time; two clients use it while they believe that it is theirs.

use super::{RUN, SECOND};
use proptest::strategy::{BoxedStrategy, Strategy};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{Instant, sleep, timeout, unix_ms};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::nemesis::Nemesis;
use sim::verdict::Violation;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub const CLAIM: &str = "only the last one to whom it was lent uses it";

/// Counted by the server from the grant.
const LENT: Duration = Duration::from_secs(2);
/// Counted by the client from its question. Two clocks that are 5 % off, one each way, differ by a tenth; a fifth is sure.
const USED: Duration = Duration::from_millis(1_600);

/// Clients may run fast, slow, or not at all, and have any time of day. A monotonic clock that stands still while its program runs
/// would break every lease, so only the server's does.
pub fn faults() -> BoxedStrategy<Vec<Fault>> {
    let clients = super::faults(&["clock_step", "clock_drift", "pause"], &["client-1", "client-2"]);
    let server = super::faults(&["clock_step", "clock_drift", "clock_freeze", "suspend"], &["server"]);
    (clients, server).prop_map(|(clients, server)| [clients, server].concat()).boxed()
}

async fn lend(grants: Arc<AtomicU64>) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 80))).await?;
    let mut lent_until = Instant::now();
    loop {
        let (mut stream, _) = listener.accept().await?;
        if !matches!(timeout(SECOND, stream.read_u8()).await, Ok(Ok(_))) {
            continue;
        }
        let free = Instant::now() >= lent_until;
        if free {
            lent_until = Instant::now() + LENT;
        }
        let grant = if free { grants.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let _ = stream.write_u64(grant).await;
    }
}

async fn ask(server: SocketAddr) -> io::Result<u64> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_u8(1).await?;
    stream.read_u64().await
}

/// Until when a client believes that the thing is its own.
enum Until {
    /// By its clock that only goes on.
    Own(Instant),
    /// By the time of day: the planted bug.
    Wall(i64),
}

impl Until {
    fn from_now(planted: bool) -> Until {
        if planted { Until::Wall(unix_ms() + USED.as_millis() as i64) } else { Until::Own(Instant::now() + USED) }
    }

    fn lies_ahead(&self) -> bool {
        match self {
            Until::Own(instant) => Instant::now() < *instant,
            Until::Wall(milliseconds) => unix_ms() < *milliseconds,
        }
    }
}

async fn borrow(name: &'static str, server: SocketAddr, grants: Arc<AtomicU64>, desk: Desk, planted: bool) {
    loop {
        let until = Until::from_now(planted);
        let Ok(Ok(grant @ 1..)) = timeout(SECOND, ask(server)).await else {
            sleep(SECOND / 10).await;
            continue;
        };
        // It looks at its clock and uses the thing in one step, which no pause divides.
        while until.lies_ahead() {
            let last = grants.load(Ordering::Relaxed);
            if grant < last {
                let summary = format!("{name} uses grant {grant}, but grant {last} was made meanwhile");
                return desk.violated(Violation::new(CLAIM, summary));
            }
            sleep(SECOND / 20).await;
        }
        // So that the other one has its turn.
        sleep(SECOND / 2).await;
    }
}

pub async fn run(desk: Desk, faults: &[Fault], planted: bool) {
    let server = rt::world::add_node("server");
    let grants = Arc::new(AtomicU64::new(0));
    drop(rt::world::spawn_on(server, lend(Arc::clone(&grants))));
    let mut nemesis = Nemesis::new(&desk, |_, _| {}).node("server", server, || {});
    for name in ["client-1", "client-2"] {
        let node = rt::world::add_node(name);
        let address = SocketAddr::new(rt::world::ip(server), 80);
        drop(rt::world::spawn_on(node, borrow(name, address, Arc::clone(&grants), desk.clone(), planted)));
        nemesis = nemesis.node(name, node, || {});
    }
    let loose = nemesis.release(faults).expect("faults name these nodes");
    sleep(RUN).await;
    loose.heal().await;
    desk.count("grants", grants.load(Ordering::Relaxed));
}
