//! A client says how long it will wait; a server does not begin what nobody waits for any more.

use super::{RUN, SECOND};
use proptest::strategy::BoxedStrategy;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::rand::Rng;
use rt::time::{Instant, sleep, timeout, unix_ms};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::nemesis::Nemesis;
use sim::verdict::Violation;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub const CLAIM: &str = "nobody is told that time is over before it is";

/// How long the client waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// Sooner than this no clock that is 5 % fast counts [`PATIENCE`].
const PATIENCE_MIN: Duration = Duration::from_millis(900);

const DONE: u8 = 1;
const TOO_LATE: u8 = 2;

pub fn faults() -> BoxedStrategy<Vec<Fault>> {
    super::faults(&["clock_step", "clock_drift", "clock_freeze", "suspend", "pause"], &["server", "client"])
}

/// Each question waits its turn for a while. The number in it is milliseconds: since 1970 by the client's clock (the planted bug),
/// or those that are left.
async fn serve(planted: bool) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 80))).await?;
    let mut random = rt::rand::stream("turns");
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Ok(Ok(number)) = timeout(SECOND, stream.read_i64()).await else { continue };
        let arrived = Instant::now();
        sleep(Duration::from_millis(random.random_range(0..1_500))).await;
        let over = if planted { unix_ms() > number } else { arrived.elapsed().as_millis() as i64 > number };
        let _ = stream.write_u8(if over { TOO_LATE } else { DONE }).await;
    }
}

async fn ask(server: SocketAddr, planted: bool) -> io::Result<u8> {
    let patience = PATIENCE.as_millis() as i64;
    let number = if planted { unix_ms() + patience } else { patience };
    let mut stream = TcpStream::connect(server).await?;
    stream.write_i64(number).await?;
    stream.read_u8().await
}

pub async fn run(desk: Desk, faults: &[Fault], planted: bool) {
    let (server, client) = (rt::world::add_node("server"), rt::world::add_node("client"));
    drop(rt::world::spawn_on(server, serve(planted)));
    let (address, work) = (SocketAddr::new(rt::world::ip(server), 80), desk.clone());
    let questions = async move {
        loop {
            let asked_at = rt::world::elapsed();
            let answer = timeout(PATIENCE * 2, ask(address, planted)).await;
            let after = rt::world::elapsed() - asked_at;
            if matches!(answer, Ok(Ok(TOO_LATE))) && after < PATIENCE_MIN {
                let summary = format!("told so {} ms after the question", after.as_millis());
                return work.violated(Violation::new(CLAIM, summary));
            }
            work.count(if matches!(answer, Ok(Ok(DONE))) { "done" } else { "late" }, 1);
            sleep(SECOND / 10).await;
        }
    };
    drop(rt::world::spawn_on(client, questions));
    let nemesis = Nemesis::new(&desk, |_, _| {}).node("server", server, || {}).node("client", client, || {});
    let loose = nemesis.release(faults).expect("faults name these nodes");
    sleep(RUN).await;
    loose.heal().await;
}
