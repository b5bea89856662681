//! Connecting: a SYN and its answer take a round trip; a SYN that nothing answers is sent again, 1, 2, 4, … seconds apart.
use super::address::canonical;
use super::connection::{CLIENT, Connection, End, SERVER};
use super::departure::Departure;
use super::event::{ConnectionId, NetworkEvent};
use super::pipe::Pipe;
use super::rule::PacketKind;
use super::{Net, Seen};
use crate::sim::node::NodeId;
use crate::sim::world::World;
use std::io;
use std::net::SocketAddr;
use std::task::Waker;

const SECOND: u64 = 1_000_000_000;

/// Linux's `ip_default_ttl`.
pub(super) const TTL: u8 = 64;

/// How often a server repeats its answer to a SYN (Linux's `tcp_synack_retries`).
const ANSWERS: u8 = 5;

impl Net {
    /// Begins to connect `here` to `to`.
    pub(super) fn connect(&mut self, world: &World, here: NodeId, to: SocketAddr) -> io::Result<ConnectionId> {
        let target = self.addresses.target(world, here, to.ip())?;
        let ip = target.source;
        let peer = if to.ip().is_unspecified() { SocketAddr::new(ip, to.port()) } else { canonical(to) };
        let port = self.ports.take(here, Some(peer), world.now.get(), |_| false);
        let port = port.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let id = self.connections.insert(Connection {
            node: [here, target.node.unwrap_or(here)],
            address: [SocketAddr::new(ip, port), peer],
            is_v6: [to.is_ipv6(), peer.is_ipv6()],
            end: [End::Connecting, End::Connecting],
            pipe: [Pipe::new(), Pipe::new()],
            nodelay: [false, false],
            zero_linger: [false, false],
            ttl: [TTL, TTL],
            closed_first: [false, false],
            heard_at: [0, 0],
            keep_alive: [None, None],
            connector: None,
            nowhere: target.node.is_none(),
            holds_port: true,
            syn_attempt: 0,
            syn_sent_at: 0,
        });
        self.send_syn(world, id, 0);
        Ok(id)
    }

    fn send_syn(&mut self, world: &World, id: ConnectionId, attempt: u8) {
        let now = world.now.get();
        let connection = self.connections.at(id);
        connection.syn_attempt = attempt;
        connection.syn_sent_at = now;
        let (from, to) = connection.route(CLIENT);
        if connection.nowhere {
            return self.syn_lost(world, id);
        }
        let later = match self.leave(world, id, CLIENT, PacketKind::Syn, 0) {
            Departure::Travels(later) => later,
            Departure::Lost => return self.syn_lost(world, id),
            Departure::Rejected => return self.refuse_by_firewall(world, id),
        };
        let at = now + self.travel(from, to) + later;
        Net::schedule(world, at, NetworkEvent::Syn { connection: id });
    }

    /// The SYN or its answer was lost: the client's timer sends it again.
    fn syn_lost(&mut self, world: &World, id: ConnectionId) {
        let connection = self.connections.at(id);
        let attempt = connection.syn_attempt;
        let at = connection.syn_sent_at + (SECOND << attempt);
        // A latency beyond the timer: the loss was known only afterwards.
        let at = at.max(world.now.get());
        Net::schedule(world, at, NetworkEvent::SynRetry { connection: id, attempt: attempt + 1 });
    }

    pub(super) fn syn_again(&mut self, world: &World, id: ConnectionId, attempt: u8) {
        if self.connections.at(id).end[CLIENT] != End::Connecting {
            return;
        }
        if attempt >= self.config.syn_attempts {
            self.effects.connections_timed_out += 1;
            return self.fail(world, id, CLIENT, io::ErrorKind::TimedOut);
        }
        self.send_syn(world, id, attempt);
    }

    pub(super) fn syn_arrives(&mut self, world: &World, id: ConnectionId) {
        Net::record(world, id, Seen::Syn);
        let connection = self.connections.at(id);
        let (from, to) = connection.route(CLIENT);
        if connection.end[CLIENT] != End::Connecting {
            return;
        }
        let address = connection.address[SERVER];
        if self.blocked(from, to) {
            return self.syn_lost(world, id);
        }
        if !world.at(to).up.get() {
            self.effects.dropped_by_silence += 1;
            return self.syn_lost(world, id);
        }
        Net::show_arrival(world, id, CLIENT, PacketKind::Syn);
        let backlog = self.config.backlog;
        let refused = match self.listeners.serving(&self.addresses, to, address) {
            None => true,
            Some(listener) if listener.waiting() >= backlog => {
                self.effects.dropped_by_backlog += 1;
                return self.syn_lost(world, id);
            }
            Some(_) => false,
        };
        if !refused {
            self.connections.at(id).end[SERVER] = End::SynReceived;
        }
        let Departure::Travels(later) = self.leave(world, id, SERVER, PacketKind::SynAck, 0) else {
            return self.syn_lost(world, id);
        };
        let at = world.now.get() + self.travel(to, from) + later;
        Net::schedule(world, at, NetworkEvent::SynAck { connection: id, refused });
    }

    pub(super) fn syn_answered(&mut self, world: &World, id: ConnectionId, refused: bool) {
        Net::record(world, id, Seen::SynAck);
        let connection = self.connections.at(id);
        let (from, to) = connection.route(CLIENT);
        match connection.end[CLIENT] {
            End::Connecting => {}
            // The client has gone meanwhile: its kernel does not know the answer and resets.
            End::Gone => return self.client_left(id),
            // A repeated answer to a SYN that was sent twice.
            _ => return,
        }
        if self.blocked(to, from) {
            return self.syn_lost(world, id);
        }
        if refused {
            self.effects.connections_refused += 1;
            return self.fail(world, id, CLIENT, io::ErrorKind::ConnectionRefused);
        }
        connection_opened(self.connections.at(id));
        self.acknowledge_handshake(world, id, 0);
    }

    fn client_left(&mut self, id: ConnectionId) {
        let connection = self.connections.at(id);
        if matches!(connection.end[SERVER], End::SynReceived | End::Connecting) {
            connection.end[SERVER] = End::Gone;
        }
        self.collect(id);
    }

    /// The client's acknowledgement leaves; lost, the server's repeated answer draws another out.
    fn acknowledge_handshake(&mut self, world: &World, id: ConnectionId, attempt: u8) {
        let (from, to) = self.connections.at(id).route(CLIENT);
        let (lost, wait) = match self.leave(world, id, CLIENT, PacketKind::Ack, 0) {
            Departure::Travels(later) => (false, self.travel(from, to) + later),
            Departure::Lost => (true, SECOND << attempt),
            Departure::Rejected => {
                // The server repeats its answer and learns from the client's kernel that there is no such connection.
                self.connections.at(id).end[SERVER] = End::Gone;
                return self.reset_by_firewall(world, id, CLIENT);
            }
        };
        let pipe = &mut self.connections.at(id).pipe[CLIENT];
        let at = world.now.get() + wait;
        if !lost {
            // The client's data does not overtake it.
            pipe.last_arrival = pipe.last_arrival.max(at);
        }
        // A lost one is scheduled as one that meets the block again: see `handshake_ends`.
        Net::schedule(world, at, NetworkEvent::HandshakeAck { connection: id, attempt: attempt + u8::from(lost) });
    }

    pub(super) fn handshake_ends(&mut self, world: &World, id: ConnectionId, attempt: u8) {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(CLIENT);
        let end = connection.end[SERVER];
        match end {
            End::SynReceived => {}
            // The server's process or node went down behind its answer. A later attempt stands for a repeated answer, and a
            // kernel that knows nothing repeats none.
            End::Gone if attempt == 0 && world.at(to).up.get() && !self.blocked(from, to) => {
                return self.reset_towards(world, id, CLIENT);
            }
            _ => return,
        }
        if self.blocked(from, to) {
            if attempt >= ANSWERS {
                self.connections.at(id).end[SERVER] = End::Gone;
                return self.collect(id);
            }
            return self.acknowledge_handshake(world, id, attempt + 1);
        }
        self.establish(world, id);
    }

    /// The handshake is over at the server too: the connection waits for `accept`.
    pub(super) fn establish(&mut self, world: &World, id: ConnectionId) {
        let connection = self.connections.at(id);
        assert_eq!(connection.end[SERVER], End::SynReceived);
        let (node, address) = (connection.node[SERVER], connection.address[SERVER]);
        match self.listeners.serving(&self.addresses, node, address) {
            Some(listener) => {
                listener.push(id);
                let connection = self.connections.at(id);
                connection.is_v6[SERVER] = listener.is_v6;
                connection.end[SERVER] = End::Open;
            }
            None => {
                self.connections.at(id).end[SERVER] = End::Gone;
                self.reset_towards(world, id, CLIENT);
                self.collect(id);
            }
        }
    }
}

fn connection_opened(connection: &mut Connection) {
    connection.end[CLIENT] = End::Open;
    connection.connector.take().into_iter().for_each(Waker::wake);
}
