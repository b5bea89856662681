//! Faults of firewalls, narrow links, datagrams and names: what a client meets during each, that each shows its effect, and that
//! nothing of it stays.

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use rt::time::{Duration, sleep, timeout};
use rt::world::{NodeId, run_test};
use serde_json::{Value, json};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::nemesis::Nemesis;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

/// The kinds that are let loose here, and not in `faults.rs`.
pub const KINDS: [&str; 8] = [
    "firewall_drop",
    "firewall_reject",
    "swizzle_clog",
    "bandwidth",
    "duplicate",
    "reorder",
    "name_failure",
    "name_stale",
];

const STREAMS: u16 = 80;
const DATAGRAMS: u16 = 81;

/// Answers each connection with its mark, and each datagram with itself.
async fn serve(mark: u8) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], STREAMS))).await?;
    let socket = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], DATAGRAMS))).await?;
    rt::task::spawn(async move {
        let mut bytes = [0; 16];
        while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
            // One that cannot be answered is lost.
            let _ = socket.send_to(&bytes[..length], from).await;
        }
    });
    loop {
        let (mut stream, _) = listener.accept().await?;
        rt::task::spawn(async move { stream.write_all(&[mark]).await });
    }
}

async fn ask() -> String {
    let Ok(addresses) = lookup_host(&format!("server:{STREAMS}")).await else { return "no name".to_owned() };
    let asking = timeout(Duration::from_millis(400), async {
        let mut stream = TcpStream::connect(addresses[0]).await?;
        stream.read_u8().await
    });
    match asking.await {
        Err(_) => "silence".to_owned(),
        Ok(Err(error)) => format!("{:?}", error.kind()),
        Ok(Ok(1)) => "answer".to_owned(),
        Ok(Ok(_)) => "answer of another".to_owned(),
    }
}

/// Ten datagrams there and back.
async fn ask_by_datagrams(server: NodeId) -> String {
    let to = SocketAddr::new(rt::world::ip(server), DATAGRAMS);
    let socket = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.expect("there are ports");
    for at in 0..10_u8 {
        socket.send_to(&[at], to).await.expect("what happens to a datagram is no error");
    }
    let mut back = Vec::new();
    let mut byte = [0];
    while let Ok(received) = timeout(Duration::from_millis(300), socket.recv(&mut byte)).await {
        received.expect("the socket is not connected");
        back.push(byte[0]);
    }
    let each: BTreeSet<u8> = back.iter().copied().collect();
    match (each.len(), back.len()) {
        (0, _) => "silence",
        (1..10, _) => "loss",
        (_, 11..) => "doubles",
        _ if back.is_sorted() => "all in order",
        _ => "disorder",
    }
    .to_owned()
}

/// What was met before, during and after a fault from the 2nd to the 7th second, by streams and by datagrams; and its effect.
struct Met {
    during: BTreeSet<String>,
    by_datagrams: BTreeSet<String>,
    amount: u64,
}

impl Met {
    /// Nothing else was met.
    fn only(&self, by_streams: &str, by_datagrams: &str) {
        assert_eq!(self.during, BTreeSet::from([by_streams.to_owned()]));
        assert_eq!(self.by_datagrams, BTreeSet::from([by_datagrams.to_owned()]));
    }
}

fn meet(kind: Value) -> Met {
    run_test(move || async move {
        let mut nemesis = Nemesis::new(&Desk::new(), |_, _| {});
        let nodes = ["server", "other", "client"].map(rt::world::add_node);
        for (name, node) in ["server", "other", "client"].into_iter().zip(nodes) {
            nemesis = nemesis.node(name, node, || {});
        }
        for (node, mark) in [(nodes[0], 1), (nodes[1], 2)] {
            drop(rt::world::spawn_on(node, serve(mark)));
        }
        let fault = json!({"fault": kind, "start": {"at": "2s"}, "lasts": "5s"});
        let schedule: [Fault; 1] = [serde_json::from_value(fault).expect("as in a case file")];
        let loose = nemesis.release(&schedule).expect("the nodes are known");
        let mut met = Met { during: BTreeSet::new(), by_datagrams: BTreeSet::new(), amount: 0 };
        while rt::world::elapsed() < Duration::from_secs(12) {
            let start = rt::world::elapsed().as_secs();
            let asking = async move { (ask().await, ask_by_datagrams(nodes[0]).await) };
            let asked = rt::world::spawn_on(nodes[2], asking).await;
            let (stream, datagrams) = asked.expect("the client's node has no fault of its own");
            match (start, rt::world::elapsed().as_secs()) {
                (2.., ..7) => {
                    met.during.insert(stream);
                    met.by_datagrams.insert(datagrams);
                }
                (_, ..2) | (9.., _) => assert_eq!((&*stream, &*datagrams), ("answer", "all in order")),
                // It met a part of the fault.
                _ => {}
            }
            sleep(Duration::from_millis(10)).await;
        }
        met.amount = loose.ended().await[0].amount;
        met
    })
}

#[test]
fn a_firewall_that_drops_costs_a_time_out_and_leaves_other_ports_alone() {
    let met = meet(json!({"firewall_drop": {"from": "client", "to": "server", "port": STREAMS}}));
    met.only("silence", "all in order");
    assert!(met.amount > 3, "{}", met.amount);
    let met = meet(json!({"firewall_drop": {"from": "server", "to": "client"}}));
    met.only("silence", "silence");
    assert_eq!(meet(json!({"firewall_drop": {"from": "other", "to": "client"}})).amount, 0, "nobody meets it");
}

#[test]
fn a_firewall_that_rejects_refuses_at_once() {
    let met = meet(json!({"firewall_reject": {"from": "client", "to": "server", "port": STREAMS}}));
    met.only("ConnectionRefused", "all in order");
    assert!(met.amount > 3, "{}", met.amount);
}

#[test]
fn swizzled_links_stop_and_open_one_by_one() {
    let met = meet(json!({"swizzle_clog": {"nodes": ["client", "server", "other"], "order": 3}}));
    assert!(met.during.contains("silence"), "{:?}", met.during);
    assert!(met.by_datagrams.contains("silence"), "{:?}", met.by_datagrams);
    assert!(met.amount > 0);
}

#[test]
fn a_narrow_link_delays_and_loses_what_it_cannot_queue() {
    let narrow = json!({"left": "server", "right": "client", "bytes_per_second": 2_000, "queue_bytes": 200});
    let met = meet(json!({"bandwidth": narrow}));
    assert!(met.during.contains("answer"), "{:?}", met.during);
    assert!(met.by_datagrams.contains("loss"), "{:?}", met.by_datagrams);
    assert!(met.amount > 20, "{}", met.amount);
}

#[test]
fn only_datagrams_show_doubles_and_disorder() {
    let met = meet(json!({"duplicate": {"left": "client", "right": "server", "percent": 40}}));
    met.only("answer", "doubles");
    assert!(met.amount > 10, "{}", met.amount);
    let met = meet(json!({"reorder": {"left": "client", "right": "server", "percent": 40, "held_max": "20ms"}}));
    met.only("answer", "disorder");
    assert!(met.amount > 10, "{}", met.amount);
}

#[test]
fn a_node_may_lose_a_name_or_be_misled_by_it() {
    let met = meet(json!({"name_failure": {"node": "client", "name": "server"}}));
    met.only("no name", "all in order");
    assert!(met.amount > 3, "{}", met.amount);
    let met = meet(json!({"name_stale": {"node": "client", "name": "server", "means": "other"}}));
    met.only("answer of another", "all in order");
    assert!(met.amount > 3, "{}", met.amount);
    assert_eq!(meet(json!({"name_failure": {"node": "other", "name": "server"}})).amount, 0, "nobody asks there");
}

/// Two faults of one kind overlap, the second within the first and once across its end: what the last one that is not over demands
/// counts. Gives how many lookups of `server` fail or mislead at each half second.
#[test]
fn overlapping_views_of_a_name_restore_what_the_others_demand() {
    let schedule: Vec<Fault> = [
        json!({"fault": {"name_stale": {"node": "a", "name": "b", "means": "c"}}, "start": {"at": "1s"}, "lasts": "4s"}),
        json!({"fault": {"name_failure": {"node": "a", "name": "b"}}, "start": {"at": "2s"}, "lasts": "1s"}),
        json!({"fault": {"name_failure": {"node": "a", "name": "b"}}, "start": {"at": "4s"}, "lasts": "2s"}),
    ]
    .into_iter()
    .map(|fault| serde_json::from_value(fault).expect("as in a case file"))
    .collect();
    let seen = run_test(move || async move {
        let mut nemesis = Nemesis::new(&Desk::new(), |_, _| {});
        let nodes = ["a", "b", "c"].map(rt::world::add_node);
        for (name, node) in ["a", "b", "c"].into_iter().zip(nodes) {
            nemesis = nemesis.node(name, node, || {});
        }
        let loose = nemesis.release(&schedule).expect("the nodes are known");
        let mut seen = String::new();
        for _ in 0..7 {
            sleep(Duration::from_millis(500)).await;
            let found = rt::world::spawn_on(nodes[0], lookup_host("b:1")).await.expect("no fault of the node");
            seen.push(match found.map(|addresses| addresses[0].ip()) {
                Err(_) => '-',
                Ok(ip) if ip == rt::world::ip(nodes[1]) => 'b',
                Ok(_) => 'c',
            });
            sleep(Duration::from_millis(500)).await;
        }
        loose.heal().await;
        seen
    });
    assert_eq!(seen, "bc-c--b");
}
