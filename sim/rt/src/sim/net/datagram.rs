//! Datagrams: bounds are kept, nothing is repeated, nothing waits. A link that has it in it loses, doubles or overtakes them.
//!
//! A datagram that meets a full buffer is lost. One that meets no socket is answered by the node's kernel with an ICMP message, of
//! which only a socket that is connected to that address learns (RFC 1122 §4.1.3.3, Linux without `IP_RECVERR`).
use super::Net;
use super::address::{Addresses, Key, Scope, canonical, keys_of, shown};
use super::config::DATAGRAM_OVERHEAD;
use super::departure::Departure;
use super::event::{NetworkEvent, SocketId};
use super::fabric::MILLION;
use super::ports::Ports;
use super::rule::{Packet, PacketKind};
use super::waiters::Waiters;
use crate::sim::node::NodeId;
use crate::sim::rand::Rng;
use crate::sim::sight::Fate;
use crate::sim::trace::Event;
use crate::sim::world::World;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::xxh3_64;

/// The most that fits into an IPv4 packet behind its header and UDP's.
const DATAGRAM_MAX: usize = 65_507;
/// An IPv6 packet does not count its own header.
const DATAGRAM_MAX_V6: usize = 65_527;

/// A bound socket as its kernel sees it.
#[derive(Debug)]
pub(super) struct Socket {
    key: Key,
    /// Its own address and its peer's, canonical.
    address: SocketAddr,
    peer: Option<SocketAddr>,
    is_v6: bool,
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// What the queue counts for.
    queued_bytes: usize,
    /// Told to the next call, once.
    error: Option<io::ErrorKind>,
    pub(super) readers: Waiters,
    /// Its port number was drawn and is to be given back.
    holds_port: bool,
}

/// Something on its way.
#[derive(Debug)]
struct Flight {
    from: NodeId,
    to: NodeId,
    source: SocketAddr,
    destination: SocketAddr,
    /// Who sent the datagram.
    socket: SocketId,
    load: Load,
}

impl Flight {
    /// As rules see it.
    fn packet(&self) -> Packet {
        let (kind, length) = match &self.load {
            Load::Bytes(bytes) => (PacketKind::Datagram, bytes.len()),
            Load::Unreachable => (PacketKind::Unreachable, 0),
        };
        let Flight { from, to, source, destination, .. } = *self;
        Packet { from, to, source, destination, kind, length }
    }

    fn bytes(&self) -> &[u8] {
        match &self.load {
            Load::Bytes(bytes) => bytes,
            Load::Unreachable => &[],
        }
    }

    /// The answer to it that nobody is there.
    fn unreachable(&self) -> Flight {
        Flight {
            from: self.to,
            to: self.from,
            source: self.destination,
            destination: self.source,
            socket: self.socket,
            load: Load::Unreachable,
        }
    }
}

#[derive(Clone, Debug)]
enum Load {
    Bytes(Vec<u8>),
    /// The kernel at `source` has no socket there.
    Unreachable,
}

/// Every datagram socket of the world, and what is between them.
#[derive(Debug)]
pub(super) struct Datagrams {
    rng: Rng,
    ports: Ports,
    bound: BTreeMap<Key, SocketId>,
    sockets: BTreeMap<SocketId, Socket>,
    next_socket: u32,
    flying: BTreeMap<u32, Flight>,
    next_flight: u32,
    /// A link keeps the order of datagrams, but for those that it reorders.
    last_arrival: BTreeMap<(NodeId, NodeId), u64>,
}

impl Datagrams {
    pub(super) fn new(rng: Rng, ports: RangeInclusive<u16>) -> Datagrams {
        Datagrams {
            rng,
            ports: Ports::new(ports),
            bound: BTreeMap::new(),
            sockets: BTreeMap::new(),
            next_socket: 0,
            flying: BTreeMap::new(),
            next_flight: 0,
            last_arrival: BTreeMap::new(),
        }
    }

    pub(super) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    pub(super) fn get(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(&id)
    }

    /// How many sockets the node has.
    pub(super) fn count(&self, node: NodeId) -> usize {
        self.sockets.values().filter(|socket| socket.key.0 == node).count()
    }

    fn taken(&self, node: NodeId, port: u16, scope: Scope) -> bool {
        self.bound.range(keys_of(node, port)).any(|(&(_, _, other), _)| other.overlaps(scope))
    }

    /// Who is given a datagram from `source` to `destination` on `node`.
    fn serving(
        &mut self,
        addresses: &Addresses,
        node: NodeId,
        destination: SocketAddr,
        source: SocketAddr,
    ) -> Option<&mut Socket> {
        let scope = addresses.scope_on(node, destination.ip())?;
        let id = scope.servers().find_map(|scope| self.bound.get(&(node, destination.port(), scope)))?;
        self.sockets.get_mut(id).filter(|socket| socket.peer.is_none_or(|peer| peer == source))
    }

    /// What must hold between two events.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.bound.len(), self.sockets.len(), "every socket is bound once");
        for (id, socket) in &self.sockets {
            assert_eq!(self.bound.get(&socket.key), Some(id), "a socket is found where it is bound");
            let counted: usize = socket.queue.iter().map(|(_, bytes)| bytes.len() + DATAGRAM_OVERHEAD).sum();
            assert_eq!(socket.queued_bytes, counted, "a receive buffer counts what it keeps");
        }
    }

    pub(super) fn close(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.remove(&id) else { return };
        self.bound.remove(&socket.key);
        if socket.holds_port {
            self.ports.release(socket.key.0, socket.key.1, None, None);
        }
    }

    /// The node's process or its power is gone, and its sockets with it.
    pub(super) fn remove_node(&mut self, node: NodeId) {
        let ended: Vec<SocketId> =
            self.sockets.iter().filter(|(_, socket)| socket.key.0 == node).map(|(id, _)| *id).collect();
        ended.into_iter().for_each(|id| self.close(id));
    }
}

impl Socket {
    /// Its own address, as it shows it.
    pub(super) fn local(&self) -> SocketAddr {
        shown(self.address, self.is_v6)
    }

    /// Its peer, if it was connected.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer.map(|peer| shown(peer, self.is_v6))
    }

    /// Whether it can send there at all: the address of what is sent, canonical.
    fn check_family(&self, to: SocketAddr) -> io::Result<SocketAddr> {
        if to.is_ipv6() && !self.is_v6 {
            return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
        }
        let to = canonical(to);
        let (_, _, scope) = self.key;
        if scope.reaches_v4(to.is_ipv4()) { Ok(to) } else { Err(io::ErrorKind::NetworkUnreachable.into()) }
    }

    /// Keeps a datagram for the application; false: there is no room.
    fn push(&mut self, source: SocketAddr, bytes: Vec<u8>, buffer: usize) -> bool {
        // As Linux: what makes the buffer overflow is still taken, the next is not.
        if self.queued_bytes > buffer {
            return false;
        }
        self.queued_bytes += bytes.len() + DATAGRAM_OVERHEAD;
        self.queue.push_back((source, bytes));
        self.readers.wake();
        true
    }

    /// The error that is to be told now.
    pub(super) fn take_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Whether a datagram is there. An error alone makes no socket readable (epoll tells it as `EPOLLERR` only).
    pub(super) fn is_readable(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Copies the first datagram, and takes it unless only peeked at. What does not fit into `out` is lost.
    pub(super) fn receive(&mut self, out: &mut [u8], peek: bool) -> Option<io::Result<(usize, SocketAddr)>> {
        if let Err(error) = self.take_error() {
            return Some(Err(error));
        }
        let (source, bytes) = self.queue.front()?;
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        let received = (length, shown(*source, self.is_v6));
        if !peek && let Some((_, bytes)) = self.queue.pop_front() {
            self.queued_bytes -= bytes.len() + DATAGRAM_OVERHEAD;
        }
        Some(Ok(received))
    }
}

impl Net {
    pub(super) fn bind_datagram(&mut self, now: u64, node: NodeId, address: SocketAddr) -> io::Result<SocketId> {
        let scope = self.addresses.scope_on(node, address.ip()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let datagrams = &mut self.datagrams;
        let holds_port = address.port() == 0;
        let port = match address.port() {
            0 => {
                let taken = |port| datagrams.bound.range(keys_of(node, port)).next().is_some();
                datagrams.ports.take(node, None, now, taken).ok_or(io::ErrorKind::AddrInUse)?
            }
            port if datagrams.taken(node, port, scope) => return Err(io::ErrorKind::AddrInUse.into()),
            port => port,
        };
        let id = SocketId(datagrams.next_socket);
        datagrams.next_socket += 1;
        let key = (node, port, scope);
        datagrams.bound.insert(key, id);
        let socket = Socket {
            key,
            address: SocketAddr::new(address.ip().to_canonical(), port),
            peer: None,
            is_v6: address.is_ipv6(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            error: None,
            readers: Waiters::default(),
            holds_port,
        };
        datagrams.sockets.insert(id, socket);
        Ok(id)
    }

    /// Fixes the peer, and the local address that leads to it if none was bound.
    pub(super) fn connect_datagram(&mut self, world: &World, id: SocketId, peer: SocketAddr) -> io::Result<()> {
        let Some(socket) = self.datagrams.sockets.get_mut(&id) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (node, port, scope) = socket.key;
        let peer = socket.check_family(peer)?;
        let target = self.addresses.target(world, node, peer.ip())?;
        check_route(scope, node, target.node)?;
        let peer = if peer.ip().is_unspecified() { SocketAddr::new(target.source, peer.port()) } else { peer };
        socket.peer = Some(peer);
        if matches!(scope, Scope::Any | Scope::AnyV4) {
            let own = self.addresses.scope_on(node, target.source).expect("a source is an address of its node");
            self.datagrams.bound.remove(&socket.key);
            socket.key = (node, port, own);
            socket.address = SocketAddr::new(target.source, port);
            self.datagrams.bound.insert(socket.key, id);
        }
        Ok(())
    }

    /// Sends a datagram. It is lost in silence wherever it may get lost.
    pub(super) fn send_datagram(
        &mut self,
        world: &World,
        id: SocketId,
        to: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let Some(socket) = self.datagrams.sockets.get_mut(&id) else { return Err(io::ErrorKind::NotConnected.into()) };
        let to = socket.check_family(to)?;
        let longest = if to.is_ipv6() { DATAGRAM_MAX_V6 } else { DATAGRAM_MAX };
        if bytes.len() > longest {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if to.port() == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        socket.take_error()?;
        let (here, _, scope) = socket.key;
        let local = socket.address;
        let target = self.addresses.target(world, here, to.ip())?;
        check_route(scope, here, target.node)?;
        let Some(node) = target.node else { return Ok(bytes.len()) };
        if matches!(scope, Scope::Loopback(IpAddr::V6(_))) && node != here {
            return Ok(bytes.len()); // Linux sends it, and nobody takes a packet from `::1`
        }
        let destination = if to.ip().is_unspecified() { SocketAddr::new(target.source, to.port()) } else { to };
        let ip = if local.ip().is_unspecified() { target.source } else { local.ip() };
        let source = SocketAddr::new(ip, local.port());
        let load = Load::Bytes(bytes.to_vec());
        self.fly(world, Flight { from: here, to: node, source, destination, socket: id, load });
        Ok(bytes.len())
    }

    /// Lets something leave, once or, where the link doubles it, twice.
    fn fly(&mut self, world: &World, flight: Flight) {
        let (from, to) = (flight.from, flight.to);
        if from == to {
            return self.land_later(world, self.config.loopback_ns, true, flight);
        }
        let later = match self.face(world, &flight.packet()) {
            Departure::Travels(later) => later,
            Departure::Lost => {
                return Net::show_datagram(world, u32::MAX, &flight.packet(), flight.bytes(), Fate::Lost);
            }
            Departure::Rejected => {
                Net::show_datagram(world, u32::MAX, &flight.packet(), flight.bytes(), Fate::Rejected);
                return self.answer_by_firewall(world, &flight);
            }
        };
        let duplicate_ppm = u64::from(self.fabric.duplicate_ppm(from, to));
        if duplicate_ppm > 0 && self.datagrams.rng.below(MILLION) < duplicate_ppm {
            self.effects.duplicated += 1;
            let copy = Flight { load: flight.load.clone(), ..flight };
            self.travel_by(world, later, copy);
        }
        self.travel_by(world, later, flight);
    }

    /// A firewall on the way tells the sender of a datagram that its port is unreachable, one shortest round trip later.
    fn answer_by_firewall(&mut self, world: &World, rejected: &Flight) {
        if matches!(rejected.load, Load::Bytes(_)) {
            let round_trip = self.travel_min(rejected.from, rejected.to) + self.travel_min(rejected.to, rejected.from);
            self.land_later(world, round_trip, false, rejected.unreachable());
        }
    }

    /// Draws how long a datagram travels, and whether others may overtake it.
    fn travel_by(&mut self, world: &World, later: u64, flight: Flight) {
        let (from, to) = (flight.from, flight.to);
        let (latency, changed) = self.fabric.latency(from, to);
        self.effects.delayed += u64::from(changed);
        let travel = latency.draw(&mut self.datagrams.rng) + later;
        let held = self.fabric.reordering(from, to).and_then(|reordering| {
            let rng = &mut self.datagrams.rng;
            let held = reordering.ppm > 0 && rng.below(MILLION) < u64::from(reordering.ppm);
            held.then(|| rng.below(reordering.held_ns_max.saturating_add(1)))
        });
        match held {
            Some(held) => {
                self.effects.reordered += 1;
                self.land_later(world, travel + held, false, flight);
            }
            None => self.land_later(world, travel, true, flight),
        }
    }

    /// Schedules an arrival, behind what left before on the same way if it is `in_order`.
    fn land_later(&mut self, world: &World, travel: u64, in_order: bool, flight: Flight) {
        let mut at = world.now.get() + travel;
        if in_order {
            let last = self.datagrams.last_arrival.entry((flight.from, flight.to)).or_default();
            at = at.max(*last);
            *last = at;
        }
        let number = self.datagrams.next_flight;
        self.datagrams.next_flight = number.wrapping_add(1);
        if world.is_looked_at() {
            Net::show_datagram(world, number, &flight.packet(), flight.bytes(), Fate::Travels);
        }
        self.datagrams.flying.insert(number, flight);
        Net::schedule(world, at, NetworkEvent::Datagram { flight: number });
    }

    /// A datagram, or the answer to one, arrives.
    pub(super) fn datagram_arrives(&mut self, world: &World, number: u32) {
        let Some(mut flight) = self.datagrams.flying.remove(&number) else { return };
        let what = match &flight.load {
            Load::Bytes(bytes) => bytes.len() as u64,
            Load::Unreachable => 1 << 32,
        };
        world.record(Event::Packet, 5 << 33 | what | u64::from(number) << 36);
        if self.blocked(flight.from, flight.to) {
            return;
        }
        if !world.at(flight.to).up.get() {
            self.effects.dropped_by_silence += 1;
            return;
        }
        Net::show_datagram_arrival(world, number);
        match std::mem::replace(&mut flight.load, Load::Unreachable) {
            Load::Bytes(bytes) => self.hand_over(world, &flight, bytes),
            Load::Unreachable => self.unreachable_arrives(flight.socket, flight.source),
        }
    }

    /// Gives a datagram to the socket that serves it; if there is none, the kernel says so.
    fn hand_over(&mut self, world: &World, flight: &Flight, bytes: Vec<u8>) {
        if world.config.hash_payload {
            world.record(Event::Packet, xxh3_64(&bytes));
        }
        let buffer = self.config.datagram_buffer;
        let serving = self.datagrams.serving(&self.addresses, flight.to, flight.destination, flight.source);
        match serving.map(|socket| socket.push(flight.source, bytes, buffer)) {
            Some(true) => self.effects.datagrams_delivered += 1,
            Some(false) => self.effects.dropped_by_buffer += 1,
            None => {
                self.effects.datagrams_unreachable += 1;
                self.fly(world, flight.unreachable());
            }
        }
    }

    fn unreachable_arrives(&mut self, socket: SocketId, peer: SocketAddr) {
        if let Some(socket) = self.datagrams.get(socket)
            && socket.peer == Some(peer)
        {
            socket.error = Some(io::ErrorKind::ConnectionRefused);
            socket.readers.wake();
        }
    }
}

/// A socket of 127.0.0.0/8 sends nothing to another machine (Linux: EINVAL; one of `::1` is not told).
fn check_route(scope: Scope, here: NodeId, to: Option<NodeId>) -> io::Result<()> {
    let leaves = to != Some(here);
    if leaves && matches!(scope, Scope::Loopback(IpAddr::V4(_))) {
        Err(io::ErrorKind::InvalidInput.into())
    } else {
        Ok(())
    }
}
