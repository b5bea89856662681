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
//! | `transmission.rs` | segments, FIN, RST, windows, retransmission, time-outs |
//! | `fabric.rs` | links: blocked, slow, lossy |
//! | `listener.rs`, `stream.rs`, `halves.rs` | what the program holds |
//! | `address.rs`, `ports.rs`, `names.rs` | who is meant |
//! | `config.rs`, `control.rs`, `effects.rs` | knobs, faults, and whether they did anything |
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
mod effects;
mod event;
mod fabric;
mod halves;
mod handshake;
mod listener;
mod names;
mod pipe;
mod ports;
mod stream;
mod transmission;

pub use config::{Latency, NetworkConfig};
pub use effects::NetworkEffects;
pub use event::NetworkEvent;
pub use halves::{OwnedReadHalf, OwnedWriteHalf};
pub use listener::TcpListener;
pub use names::lookup_host;
pub use stream::TcpStream;

use crate::sim::node::NodeId;
use crate::sim::rand::Rng;
use crate::sim::trace::Event;
use crate::sim::world::{Coming, World};
use connection::{CLIENT, Connections, End, SERVER};
use event::ConnectionId;
use fabric::{Fabric, MILLION};
use listener::Listeners;
use names::Names;
use ports::Ports;

/// Every kernel's network and the wires between them.
#[derive(Debug)]
pub(crate) struct Net {
    config: NetworkConfig,
    rng: Rng,
    connections: Connections,
    listeners: Listeners,
    fabric: Fabric,
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
            connections: Connections::default(),
            listeners: Listeners::default(),
            fabric: Fabric::new(config.latency),
            ports: Ports::default(),
            names: Names::default(),
            effects: NetworkEffects::default(),
            config,
        }
    }

    /// Lets happen what was scheduled.
    pub(crate) fn deliver(world: &World, event: NetworkEvent) {
        let mut net = world.net.borrow_mut();
        let net = &mut *net;
        let id = event.connection();
        if net.connections.get(id).is_none() {
            return;
        }
        match event {
            NetworkEvent::Segment { side, epoch, length, .. } => {
                net.arrive(world, id, side.into(), epoch, length as usize)
            }
            NetworkEvent::Fin { side, epoch, .. } => net.fin_arrives(world, id, side.into(), epoch),
            NetworkEvent::Reset { side, .. } => net.reset_arrives(world, id, side.into()),
            NetworkEvent::Window { side, .. } => net.window_arrives(world, id, side.into()),
            NetworkEvent::Retransmit { side, .. } => net.retransmit(world, id, side.into()),
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
            net.ports.release(node, port);
        }
        for id in net.connections.ids() {
            for side in 0..2 {
                net.end_down(world, id, side, node, power);
            }
        }
        if cfg!(debug_assertions) {
            net.check_invariants();
        }
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
        self.collect(id);
    }

    /// Frees the connection if nobody can see it any more: the last thing of an event or call.
    fn collect(&mut self, id: ConnectionId) {
        let connection = self.connections.at(id);
        let (node, port, held) = (connection.node[CLIENT], connection.address[CLIENT].port(), connection.holds_port);
        let gone = connection.end[CLIENT] == End::Gone;
        connection.holds_port &= !gone;
        let over = self.connections.collect(id);
        if held && (gone || over) {
            self.ports.release(node, port);
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
        if latency.tail_one_in > 0 && self.rng.below(latency.tail_one_in) == 0 {
            return latency.min_ns + self.rng.below(latency.tail_max_ns.saturating_sub(latency.min_ns) + 1);
        }
        match latency.max_ns.saturating_sub(latency.min_ns) {
            0 => latency.min_ns,
            width => latency.min_ns + self.rng.below(width + 1),
        }
    }

    /// The shortest travel time: what a sender knows is at least that old.
    #[inline]
    fn travel_min(&self, from: NodeId, to: NodeId) -> u64 {
        if from == to { self.config.loopback_ns } else { self.fabric.latency(from, to).0.min_ns }
    }

    /// Whether a segment that leaves now gets lost at once, and counts why.
    fn lost_at_departure(&mut self, from: NodeId, to: NodeId) -> bool {
        if self.blocked(from, to) {
            return true;
        }
        let ppm = u64::from(self.fabric.loss_ppm(from, to));
        let lost = ppm > 0 && self.rng.below(MILLION) < ppm;
        self.effects.dropped_by_loss += u64::from(lost);
        lost
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

    fn record(world: &World, id: ConnectionId, what: Packet) {
        let (kind, side, length) = match what {
            Packet::Segment { side, length } => (0, side, length),
            Packet::Fin { side } => (1, side, 0),
            Packet::Reset { side } => (2, side, 0),
            Packet::Syn => (3, 0, 0),
            Packet::SynAck => (4, 0, 0),
        };
        world.record(Event::Packet, u64::from(id.slot) << 36 | kind << 33 | (side as u64) << 32 | length as u64);
    }

    /// What must hold between two events.
    fn check_invariants(&mut self) {
        self.connections.check_invariants();
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
        }
    }
}

/// What the trace says of a packet.
enum Packet {
    Segment { side: usize, length: usize },
    Fin { side: usize },
    Reset { side: usize },
    Syn,
    SynAck,
}
