//! The network: a slab of connections with two pipes each, a fabric of links, and events that move marks.
//!
//! Faults are asked at departure *and* at arrival, by everything that travels: SYN, data, FIN, RST. TCP hides them, so a lost
//! segment shows as delay, and a long loss as `TimedOut`, exactly as it does to a program on Linux.
//!
//! | file | what it owns |
//! |---|---|
//! | `pipe.rs` | one direction: a ring with marks, buffers bounded on both sides |
//! | `connection.rs` | two ends, two pipes; the slab |
//! | `handshake.rs` | SYN, its answer, its retries; the accept queue |
//! | `endpoint.rs` | reading, writing, ending, closing |
//! | `transmission.rs` | segments, FIN, RST, windows, retransmission, time-outs |
//! | `keep_alive.rs`, `window_probe.rs` | probes of an idle peer, and of one that has no room |
//! | `datagram.rs` | datagrams and their sockets' buffers; ICMP's answer to one that met no socket |
//! | `departure.rs`, `rule.rs` | what a packet faces when it leaves; rules of the experimenter |
//! | `fabric.rs` | links: blocked, slow, lossy, narrow |
//! | `listener.rs`, `stream.rs`, `halves.rs`, `udp.rs`, `waiters.rs` | what the program holds, and who waits for it |
//! | `address.rs`, `ports.rs`, `names.rs` | who is meant; TIME_WAIT |
//! | `config.rs`, `control.rs`, `effects.rs` | knobs, faults, and whether they did anything |
//! | `show.rs` | what an onlooker sees of packets |
//! | `sockets.rs` | what a node's programs hold |
//!
//! # Invariants
//! - An end that is `Gone` belongs to no living application: whatever reaches it is answered with a reset, if its node answers.
//! - A slot is freed once, when both ends are closed or gone, and reused with another generation. Until it is reused there is no
//!   connection in it, whatever becomes of the nodes.
//! - `visible + in flight <= receive buffer`, and what the writer handed over and the peer did not acknowledge is at most the send buffer.

mod address;
mod config;
mod connection;
pub mod control;
mod datagram;
mod departure;
mod effects;
mod endpoint;
mod event;
mod fabric;
mod halves;
mod handshake;
mod keep_alive;
mod listener;
mod names;
mod pipe;
mod ports;
mod rule;
mod show;
mod sockets;
mod stream;
mod transmission;
mod udp;
mod waiters;
mod window_probe;

pub use config::{Bandwidth, DATAGRAM_OVERHEAD, Latency, NetworkConfig, Reordering};
pub use effects::NetworkEffects;
pub use event::NetworkEvent;
pub use halves::{OwnedReadHalf, OwnedWriteHalf};
pub use keep_alive::{keep_alive, set_keep_alive};
pub use listener::TcpListener;
pub use names::lookup_host;
pub use rule::{Packet, PacketKind, Rule, Verdict};
pub use sockets::Sockets;
pub use stream::TcpStream;
pub use udp::UdpSocket;

use crate::sim::node::NodeId;
use crate::sim::rand::Rng;
use crate::sim::trace::Event;
use crate::sim::world::{Coming, World, world};
use address::Addresses;
use connection::{CLIENT, Connections, End, SERVER};
use datagram::Datagrams;
use event::ConnectionId;
use fabric::Fabric;
use listener::Listeners;
use names::Names;
use ports::Ports;
use rule::Rules;

/// Every kernel's network and the wires between them.
#[derive(Debug)]
pub(crate) struct Net {
    config: NetworkConfig,
    rng: Rng,
    /// Loss of probes: they change no draw of what would travel without them.
    probe_rng: Rng,
    connections: Connections,
    listeners: Listeners,
    datagrams: Datagrams,
    fabric: Fabric,
    rules: Rules,
    addresses: Addresses,
    ports: Ports,
    names: Names,
    effects: NetworkEffects,
}

/// Linux's segment size on Ethernet. Where nothing gets lost, a transmission is one event whatever its length.
const SEGMENT_BYTES: usize = 1448;

impl Net {
    /// A network without faults.
    pub(crate) fn new(seed: u64, config: NetworkConfig) -> Net {
        Net {
            rng: Rng::new(seed, "network"),
            probe_rng: Rng::new(seed, "probe"),
            connections: Connections::default(),
            listeners: Listeners::default(),
            datagrams: Datagrams::new(Rng::new(seed, "datagram"), config.ephemeral_ports.clone()),
            fabric: Fabric::new(config.latency),
            rules: Rules::default(),
            addresses: Addresses::default(),
            ports: Ports::new(config.ephemeral_ports.clone()),
            names: Names::default(),
            effects: NetworkEffects::default(),
            config,
        }
    }

    /// Lets happen what was scheduled.
    pub(crate) fn deliver(world: &World, event: NetworkEvent) {
        let mut net = world.net.borrow_mut();
        let net = &mut *net;
        if let NetworkEvent::Datagram { flight } = event {
            return net.datagram_arrives(world, flight);
        }
        let Some(id) = event.connection().filter(|id| net.connections.get(*id).is_some()) else { return };
        match event {
            NetworkEvent::Datagram { .. } => {}
            NetworkEvent::Segment { side, epoch, length, .. } => {
                net.arrive(world, id, side.into(), epoch, length as usize)
            }
            NetworkEvent::Fin { side, epoch, .. } => net.fin_arrives(world, id, side.into(), epoch),
            NetworkEvent::Reset { side, .. } => net.reset_arrives(world, id, side.into()),
            NetworkEvent::Window { side, .. } => net.window_arrives(world, id, side.into()),
            NetworkEvent::Retransmit { side, .. } => net.retransmit(world, id, side.into()),
            NetworkEvent::KeepAlive { side, .. } => net.keep_alive_due(world, id, side.into()),
            NetworkEvent::Syn { .. } => net.syn_arrives(world, id),
            NetworkEvent::SynRetry { attempt, .. } => net.syn_again(world, id, attempt),
            NetworkEvent::SynAck { refused, .. } => net.syn_answered(world, id, refused),
            NetworkEvent::HandshakeAck { attempt, .. } => net.handshake_ends(world, id, attempt),
        }
    }

    /// The node was ended (its incarnation has already grown). A process crash resets its sockets; after a power loss the node
    /// is silent, and what had not left is lost.
    pub(crate) fn down(world: &World, node: NodeId, power: bool) {
        let mut net = world.net.borrow_mut();
        let net = &mut *net;
        for port in net.listeners.remove_node(node) {
            net.ports.release(node, port, None, None);
        }
        if power {
            net.ports.forget_waiting(node);
        }
        net.datagrams.remove_node(node);
        for id in net.connections.ids() {
            for side in 0..2 {
                net.end_down(world, id, side, node, power);
            }
        }
        net.check_invariants(world);
    }

    fn end_down(&mut self, world: &World, id: ConnectionId, side: usize, node: NodeId, power: bool) {
        let Some(connection) = self.connections.get(id) else { return };
        if connection.node[side] != node {
            return;
        }
        let before = connection.end[side];
        match before {
            End::Gone => return,
            // The kernel outlives the process: it goes on delivering what the application had closed.
            End::Closed if !power => return,
            _ => {}
        }
        connection.end[side] = End::Gone;
        if before == End::Connecting
            && side == CLIENT
            && matches!(connection.end[SERVER], End::Connecting | End::SynReceived)
        {
            connection.end[SERVER] = End::Gone;
        }
        if side == CLIENT {
            // Of the server's end it is another node's: whoever connects is told by an answer or a time-out.
            connection.connector = None;
        }
        connection.pipe[side].forget_unsent();
        connection.pipe[side].writer = None;
        connection.pipe[1 - side].reader = None;
        if !power && matches!(before, End::Open | End::SynReceived) {
            self.reset_towards(world, id, 1 - side);
        }
        self.watch_zero_window(world, id, 1 - side);
        self.collect(id);
    }

    /// Frees the connection if nobody can see it any more: the last thing of an event or call.
    fn collect(&mut self, id: ConnectionId) {
        let connection = self.connections.at(id);
        let (node, port, held) = (connection.node[CLIENT], connection.address[CLIENT].port(), connection.holds_port);
        let peer = connection.address[SERVER];
        let gone = connection.end[CLIENT] == End::Gone;
        let in_order = connection.end == [End::Closed; 2];
        let waits = in_order && connection.closed_first[CLIENT];
        connection.holds_port &= !gone;
        let over = self.connections.collect(id);
        if held && (gone || over) {
            let until = waits.then(|| world().now.get() + self.config.time_wait_ns);
            self.ports.release(node, port, Some(peer), until);
        }
    }

    /// Draws how long a segment from `from` to `to` travels.
    #[inline]
    fn travel(&mut self, from: NodeId, to: NodeId) -> u64 {
        if from == to {
            return self.config.loopback_ns;
        }
        let (latency, changed) = self.fabric.latency(from, to);
        self.effects.delayed += u64::from(changed);
        latency.draw(&mut self.rng)
    }

    /// The shortest travel time: what a sender knows is at least that old.
    #[inline]
    fn travel_min(&self, from: NodeId, to: NodeId) -> u64 {
        if from == to { self.config.loopback_ns } else { self.fabric.latency(from, to).0.min_ns }
    }

    /// Whether the link is blocked, counted as an effect if so.
    #[inline]
    fn blocked(&mut self, from: NodeId, to: NodeId) -> bool {
        let blocked = self.fabric.blocked(from, to);
        self.effects.dropped_by_block += u64::from(blocked);
        blocked
    }

    fn schedule(world: &World, at: u64, event: NetworkEvent) {
        world.schedule(at, Coming::Network(event));
    }

    fn record(world: &World, id: ConnectionId, what: Seen) {
        let (kind, side, length) = match what {
            Seen::Segment { side, length } => (0, side, length),
            Seen::Fin { side } => (1, side, 0),
            Seen::Reset { side } => (2, side, 0),
            Seen::Syn => (3, 0, 0),
            Seen::SynAck => (4, 0, 0),
        };
        world.record(Event::Packet, u64::from(id.slot) << 36 | kind << 33 | (side as u64) << 32 | length as u64);
    }

    /// What must hold between two events.
    fn check_invariants(&mut self, world: &World) {
        self.connections.check_invariants();
        self.datagrams.check_invariants();
        for id in self.connections.ids() {
            let (send, receive) = (self.config.send_buffer, self.config.receive_buffer);
            let Some(connection) = self.connections.get(id) else { continue };
            for pipe in &connection.pipe {
                assert!(pipe.visible() + pipe.flying() <= receive, "receive buffer overrun: {pipe:?}");
                assert!(
                    pipe.unsent() + pipe.flying() + pipe.unacknowledged() <= send + receive,
                    "send buffer overrun: {pipe:?}"
                );
            }
            for side in 0..2 {
                self.check_zero_window(world, id, side);
            }
        }
    }
}

/// What the trace says of a packet.
enum Seen {
    Segment { side: usize, length: usize },
    Fin { side: usize },
    Reset { side: usize },
    Syn,
    SynAck,
}
