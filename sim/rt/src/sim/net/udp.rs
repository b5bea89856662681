//! What a program holds of a datagram socket.
use super::Net;
use super::datagram::Socket;
use super::event::SocketId;
use super::stream::void;
use crate::sim::node::NodeId;
use crate::sim::world::{World, try_world, world};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// A UDP socket. Any number of tasks may send and receive.
#[derive(Debug)]
pub struct UdpSocket {
    id: SocketId,
    node: NodeId,
    incarnation: u32,
}

impl UdpSocket {
    /// Binds to `address`: one of the node's own, 0.0.0.0, `::` (which serves IPv4 too), `::1` or of 127.0.0.0/8; port 0 means any
    /// free one.
    ///
    /// # Errors
    /// `AddrNotAvailable`: not an address of this node. `AddrInUse`: a socket on this node has it, or no port is free.
    #[expect(clippy::unused_async, reason = "the name and shape are tokio's")]
    pub async fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
        let world = world();
        let here = world.here();
        let incarnation = here.incarnation.get();
        if !here.serves(incarnation) {
            return Err(void());
        }
        let id = world.net.borrow_mut().bind_datagram(world.now.get(), here.id, address)?;
        Ok(UdpSocket { id, node: here.id, incarnation })
    }

    /// Runs `work` on the socket, unless this handle is void.
    fn with<T>(&self, work: impl FnOnce(&World, &mut Net) -> T) -> Option<T> {
        let world = world();
        let serves = world.at(self.node).serves(self.incarnation);
        serves.then(|| work(world, &mut world.net.borrow_mut()))
    }

    fn with_socket<T>(&self, work: impl FnOnce(&mut Socket) -> T) -> io::Result<T> {
        self.with(|_, net| net.datagrams.get(self.id).map(work)).flatten().ok_or_else(void)
    }

    /// Its own address; after [`connect`](Self::connect) the one that leads to the peer.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.with_socket(|socket| socket.local())
    }

    /// The address that it was connected to; `NotConnected` if none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.with_socket(|socket| socket.peer())?.ok_or_else(void)
    }

    /// Fixes the peer: only its datagrams are received from now on, and [`send`](Self::send) sends to it. Nothing is sent.
    ///
    /// # Errors
    /// `InvalidInput`: a socket of 127.0.0.0/8 cannot reach another machine.
    #[expect(clippy::unused_async, reason = "the name and shape are tokio's")]
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.with(|world, net| net.connect_datagram(world, self.id, peer)).unwrap_or_else(|| Err(void()))
    }

    /// Sends to the peer; see [`send_to`](Self::send_to).
    ///
    /// # Errors
    /// EDESTADDRREQ: it was never connected.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_or_end(|| self.try_send(bytes)).await
    }

    /// Sends a datagram. That it is lost on the way, or that no machine has the address, is no error.
    ///
    /// # Errors
    /// EMSGSIZE: longer than 65,507 bytes (65,527 to an IPv6 address). EAFNOSUPPORT: the socket is one of IPv4 and the address is not.
    /// `NetworkUnreachable`: the node has no address of that family. `ConnectionRefused`: the peer of a connected socket answered an *earlier* datagram that
    /// nobody is there; this one was not sent. `InvalidInput`: port 0.
    pub async fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.send_or_end(|| self.try_send_to(bytes, to)).await
    }

    /// A process that ends at this very packet gets no answer any more.
    async fn send_or_end(&self, send: impl Fn() -> io::Result<usize>) -> io::Result<usize> {
        std::future::poll_fn(|_| match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            sent => Poll::Ready(sent),
        })
        .await
    }

    /// As [`send`](Self::send). It never has to wait.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let peer = self.with_socket(|socket| socket.peer())?;
        self.try_send_to(bytes, peer.ok_or_else(|| io::Error::from_raw_os_error(libc::EDESTADDRREQ))?)
    }

    /// As [`send_to`](Self::send_to). It never has to wait.
    pub fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        let sent = self.with(|world, net| match world.count_packet() {
            true => net.send_datagram(world, self.id, to, bytes),
            false => Err(io::ErrorKind::WouldBlock.into()),
        });
        sent.unwrap_or_else(|| Err(void()))
    }

    /// Receives a datagram: its length and the sender. What does not fit into `out` is lost.
    ///
    /// # Errors
    /// `ConnectionRefused`: the peer of a connected socket answered that nobody is there.
    pub async fn recv_from(&self, out: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_receive(cx, out, false)).await
    }

    /// As [`recv_from`](Self::recv_from), without the sender.
    pub async fn recv(&self, out: &mut [u8]) -> io::Result<usize> {
        self.recv_from(out).await.map(|(length, _)| length)
    }

    /// As [`recv_from`](Self::recv_from), and the datagram stays.
    pub async fn peek_from(&self, out: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_receive(cx, out, true)).await
    }

    /// As [`recv_from`](Self::recv_from), for a hand-written future.
    pub fn poll_recv_from(&self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<SocketAddr>> {
        let received = self.poll_receive(cx, out.initialize_unfilled(), false);
        received.map_ok(|(length, source)| {
            out.advance(length);
            source
        })
    }

    /// As [`recv_from`](Self::recv_from); `WouldBlock` if nothing is there.
    pub fn try_recv_from(&self, out: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let received = self.with_socket(|socket| match socket.is_readable() {
            true => socket.receive(out, false),
            false => None,
        });
        received?.ok_or(io::ErrorKind::WouldBlock)?
    }

    /// As [`try_recv_from`](Self::try_recv_from), without the sender.
    pub fn try_recv(&self, out: &mut [u8]) -> io::Result<usize> {
        self.try_recv_from(out).map(|(length, _)| length)
    }

    /// Waits until a datagram is there.
    pub async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let ready = self.with_socket(|socket| {
                let ready = socket.is_readable();
                if !ready {
                    socket.readers.add(cx);
                }
                ready
            });
            match ready {
                Ok(false) => Poll::Pending,
                other => Poll::Ready(other.map(|_| ())),
            }
        })
        .await
    }

    /// Sending never has to wait here.
    #[expect(clippy::unused_async, reason = "the name and shape are tokio's")]
    pub async fn writable(&self) -> io::Result<()> {
        self.with_socket(|_| ())
    }

    fn poll_receive(&self, cx: &Context<'_>, out: &mut [u8], peek: bool) -> Poll<io::Result<(usize, SocketAddr)>> {
        let received = self.with_socket(|socket| {
            let received = socket.receive(out, peek);
            if received.is_none() {
                socket.readers.add(cx);
            }
            received
        });
        match received {
            Ok(None) => Poll::Pending,
            Ok(Some(received)) => Poll::Ready(received),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if world.at(self.node).serves(self.incarnation) {
            world.net.borrow_mut().datagrams.close(self.id);
        }
    }
}
