//! Listening sockets and their accept queues.
use super::Net;
use super::address::{Addresses, Key, Scope, keys_of};
use super::connection::{CLIENT, End, SERVER};
use super::event::ConnectionId;
use super::stream::TcpStream;
use super::waiters::Waiters;
use crate::sim::node::NodeId;
use crate::sim::world::{World, try_world, world};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// A listening socket as its kernel sees it.
#[derive(Debug)]
pub(super) struct Listener {
    queue: VecDeque<ConnectionId>,
    waiters: Waiters,
    /// It is a socket of IPv6, and so are those that it accepts.
    pub(super) is_v6: bool,
    /// Its port number was drawn and is to be given back; one that was asked for may also be a connection's.
    holds_port: bool,
}

impl Listener {
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, id: ConnectionId) {
        self.queue.push_back(id);
        self.waiters.wake();
    }
}

/// Every listening socket of the world.
#[derive(Debug, Default)]
pub(super) struct Listeners(BTreeMap<Key, Listener>);

impl Listeners {
    /// Who serves a SYN to `address` on `node`.
    pub(super) fn serving(
        &mut self,
        addresses: &Addresses,
        node: NodeId,
        address: SocketAddr,
    ) -> Option<&mut Listener> {
        let scope = addresses.scope_on(node, address.ip())?;
        let key = scope.servers().map(|scope| (node, address.port(), scope)).find(|key| self.0.contains_key(key))?;
        self.0.get_mut(&key)
    }

    fn taken(&self, node: NodeId, port: u16, scope: Scope) -> bool {
        self.0.range(keys_of(node, port)).any(|(&(_, _, other), _)| other.overlaps(scope))
    }

    /// How many of them the node has.
    pub(super) fn count(&self, node: NodeId) -> usize {
        self.0.keys().filter(|(owner, _, _)| *owner == node).count()
    }

    /// Removes every socket of the node; the ports to be given back.
    pub(super) fn remove_node(&mut self, node: NodeId) -> Vec<u16> {
        let removed = self.0.extract_if(.., |&(owner, _, _), _| owner == node);
        removed.filter(|(_, listener)| listener.holds_port).map(|((_, port, _), _)| port).collect()
    }
}

impl Net {
    fn listen(&mut self, now: u64, node: NodeId, address: SocketAddr) -> io::Result<(Key, SocketAddr)> {
        let scope = self.addresses.scope_on(node, address.ip()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let holds_port = address.port() == 0;
        let port = match address.port() {
            0 => {
                let taken = |port| self.listeners.taken(node, port, scope);
                self.ports.take(node, None, now, taken).ok_or(io::ErrorKind::AddrInUse)?
            }
            port if self.listeners.taken(node, port, scope) || self.ports.is_a_clients(node, port, now) => {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            port => port,
        };
        let key = (node, port, scope);
        let (queue, is_v6) = (VecDeque::new(), address.is_ipv6());
        self.listeners.0.insert(key, Listener { queue, waiters: Waiters::default(), is_v6, holds_port });
        Ok((key, SocketAddr::new(address.ip(), port)))
    }

    /// The application closes its listening socket: what nobody accepted is reset.
    fn unlisten(&mut self, world: &World, key: Key) {
        let Some(listener) = self.listeners.0.remove(&key) else { return };
        if listener.holds_port {
            self.ports.release(key.0, key.1, None, None);
        }
        for id in listener.queue {
            if let Some(connection) = self.connections.get(id)
                && connection.end[SERVER] != End::Gone
            {
                connection.end[SERVER] = End::Gone;
                connection.pipe[SERVER].forget_unsent();
                self.reset_towards(world, id, CLIENT);
                self.collect(id);
            }
        }
    }
}

/// A TCP socket that accepts connections.
#[derive(Debug)]
pub struct TcpListener {
    key: Key,
    address: SocketAddr,
    incarnation: u32,
}

impl TcpListener {
    /// Listens on `address`: the node's own, 0.0.0.0, `::` (which serves IPv4 too), 127.0.0.1 or `::1`; port 0 means any free one.
    ///
    /// # Errors
    /// `AddrNotAvailable`: not an address of this node. `AddrInUse`: somebody on this node listens there.
    #[expect(clippy::unused_async, reason = "the name and shape are tokio's")]
    pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let world = world();
        let here = world.here();
        let incarnation = here.incarnation.get();
        if !here.serves(incarnation) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (key, address) = world.net.borrow_mut().listen(world.now.get(), here.id, address)?;
        Ok(TcpListener { key, address, incarnation })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// The next connection and its peer's address, in the order in which the handshakes ended.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// As [`accept`](Self::accept), for a hand-written future.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let world = world();
        if !world.at(self.key.0).serves(self.incarnation) {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let mut net = world.net.borrow_mut();
        let net = &mut *net;
        let listener = net.listeners.0.get_mut(&self.key).expect("it listens while this handle serves");
        while let Some(id) = listener.queue.pop_front() {
            if let Some(connection) = net.connections.get(id) {
                let peer = connection.shown(CLIENT, SERVER);
                return Poll::Ready(Ok((TcpStream::new(id, SERVER, self.key.0, self.incarnation), peer)));
            }
        }
        listener.waiters.add(cx);
        Poll::Pending
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if world.at(self.key.0).serves(self.incarnation) {
            world.net.borrow_mut().unlisten(world, self.key);
        }
    }
}
