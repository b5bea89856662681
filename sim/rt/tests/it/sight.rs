//! What an onlooker sees, and that looking on changes nothing.
use rt::fs::{OpenOptions, sync_dir};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::time::{Duration, sleep};
use rt::world::{self, Fate, Latency, NodeId, Outcome, Sight, WorldConfig, network};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

const MS: Duration = Duration::from_millis(1);

fn address(node: NodeId, port: u16) -> SocketAddr {
    SocketAddr::new(world::ip(node), port)
}

/// A world whose packets travel exactly a millisecond.
fn exact() -> WorldConfig {
    let mut config = WorldConfig::default();
    config.network.latency = Latency::uniform(1_000_000, 1_000_000);
    config.network.split_one_in = 0;
    config
}

/// A sight as one line, with milliseconds.
fn line(sight: &Sight<'_>) -> String {
    let what = match sight {
        Sight::Departs { packet, bytes, fate, .. } => {
            let text = String::from_utf8_lossy(&bytes.concat()).into_owned();
            let lost = if *fate == Fate::Travels { "" } else { " lost at once" };
            format!("{:?} {} -> {} {text:?}{lost}", packet.kind, packet.from.index(), packet.to.index())
        }
        Sight::Arrives { kind, .. } => format!("{kind:?} arrives"),
        Sight::Lost { .. } => "lost on its way".to_owned(),
        Sight::SyncBegins { path, .. } => format!("sync of {path}"),
        Sight::SyncEnds { ok, .. } => format!("sync ends, ok: {ok}"),
        Sight::Starts { node } => format!("{} starts", node.index()),
    };
    format!("{} ms: {what}", world::elapsed().as_millis())
}

/// Runs `work` on node 1 beside a server that answers each word and writes it to its disk; what was seen, and what came of it.
fn run<F: Future + 'static>(looks: bool, work: fn(NodeId) -> F) -> (Vec<String>, Outcome<F::Output>) {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&seen);
    let outcome = world::run(exact(), move || async move {
        if looks {
            world::look_on(move |sight| told.borrow_mut().push(line(sight)));
        }
        let server = world::add_node("server");
        drop(world::spawn_on(server, async move {
            let listener = TcpListener::bind(address(server, 80)).await.unwrap();
            let file = OpenOptions::new().create(true).write(true).open("/log").unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut word = [0; 4];
                while stream.read_exact(&mut word).await.is_ok() {
                    file.write_at(&word, 0).unwrap();
                    file.sync_data().await.unwrap();
                    stream.write_all(b"done").await.unwrap();
                }
            }
        }));
        sleep(MS).await;
        work(server).await
    });
    assert_eq!(outcome.finding, None);
    (seen.take(), outcome)
}

async fn ask_once(server: NodeId) {
    let mut stream = TcpStream::connect(address(server, 80)).await.unwrap();
    stream.write_all(b"word").await.unwrap();
    stream.read_exact(&mut [0; 4]).await.unwrap();
    drop(stream);
    sleep(5 * MS).await;
}

#[test]
fn packets_are_seen_when_they_leave_and_when_they_arrive() {
    let (seen, _) = run(true, ask_once);
    let mut expected =
        vec!["0 ms: 1 starts", "1 ms: Syn 0 -> 1 \"\"", "2 ms: Syn arrives", "3 ms: Data 0 -> 1 \"word\""];
    expected.extend(["4 ms: Data arrives", "4 ms: sync of /log"]);
    assert_eq!(seen[..6], expected[..], "{seen:#?}");
    let rest = |text: &str| seen[6..].iter().any(|line| line.ends_with(text));
    for text in ["sync ends, ok: true", "Data 1 -> 0 \"done\"", "Fin 0 -> 1 \"\"", "Fin arrives"] {
        assert!(rest(text), "{text} of {seen:#?}");
    }
}

async fn meet_faults(server: NodeId) {
    let mut stream = TcpStream::connect(address(server, 80)).await.unwrap();
    // The first word is stopped before it leaves, the second one on its way.
    network::block(NodeId::WORLD, server);
    stream.write_all(b"word").await.unwrap();
    sleep(10 * MS).await;
    network::heal();
    stream.read_exact(&mut [0; 4]).await.unwrap();
    stream.write_all(b"next").await.unwrap();
    network::block(NodeId::WORLD, server);
    sleep(10 * MS).await;
    network::heal();
    stream.read_exact(&mut [0; 4]).await.unwrap();
    let socket = UdpSocket::bind(address(NodeId::WORLD, 0)).await.unwrap();
    socket.send_to(b"datagram", address(server, 81)).await.unwrap();
    sync_dir("/").await.unwrap();
    world::power_loss(server);
    sleep(10 * MS).await;
    drop(world::spawn_on(server, async {}));
    sleep(10 * MS).await;
}

#[test]
fn what_is_lost_is_seen_and_leaves_again() {
    let (seen, _) = run(true, meet_faults);
    let count = |text: &str| seen.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("\"word\" lost at once"), 1, "{seen:#?}");
    assert_eq!(count("lost on its way"), 1, "{seen:#?}");
    assert_eq!((count("\"word\""), count("\"next\"")), (2, 2), "{seen:#?}");
    assert_eq!((count("Datagram 0 -> 1 \"datagram\""), count("1 starts")), (1, 2), "{seen:#?}");
    assert_eq!(count("sync of /"), count("sync ends"), "{seen:#?}");
}

#[test]
fn looking_on_changes_nothing() {
    let fingerprint = |looks: bool| {
        let (_, one) = run(looks, ask_once);
        let (_, other) = run(looks, meet_faults);
        [one.hash, one.events, one.polls, other.hash, other.events, other.polls]
    };
    assert_eq!(fingerprint(true), fingerprint(false));
}
