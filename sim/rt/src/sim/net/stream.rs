//! What a program holds of an established connection.
use super::Net;
use super::connection::{CLIENT, Connection, Connections, End};
use super::event::ConnectionId;
use super::halves::{OwnedReadHalf, OwnedWriteHalf};
use crate::sim::node::NodeId;
use crate::sim::world::{World, try_world, world};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A TCP stream between two nodes, or within one.
#[derive(Debug)]
pub struct TcpStream {
    id: ConnectionId,
    side: u8,
    node: NodeId,
    incarnation: u32,
}

/// Work on a handle whose node has been ended: void.
pub(super) fn void() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl TcpStream {
    pub(super) fn new(id: ConnectionId, side: usize, node: NodeId, incarnation: u32) -> TcpStream {
        TcpStream { id, side: side as u8, node, incarnation }
    }

    /// Connects to `to`: at least one round trip.
    ///
    /// # Errors
    /// `ConnectionRefused`: nobody listens there. `TimedOut`: nothing answered any SYN (63 seconds by default).
    /// `AddrNotAvailable`: the node has no free port. `NetworkUnreachable`: it has no address of that family.
    pub async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
        // `&World` is not Send: it must not live across an await.
        let stream = {
            let world = world();
            let here = world.here();
            let incarnation = here.incarnation.get();
            if !here.serves(incarnation) || !world.count_packet() {
                return Err(void());
            }
            let id = world.net.borrow_mut().connect(world, here.id, to)?;
            TcpStream::new(id, CLIENT, here.id, incarnation)
        };
        std::future::poll_fn(|cx| stream.poll_connected(cx)).await?;
        Ok(stream)
    }

    fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|_, net, side| {
            let connection = net.connections.at(self.id);
            match &mut connection.end[side] {
                End::Connecting => {
                    connection.connector = Some(cx.waker().clone());
                    Poll::Pending
                }
                // A reset that came right behind the answer is told by the first read or write.
                End::Open | End::Failed(None) => Poll::Ready(Ok(())),
                End::Failed(Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)) => Poll::Ready(Ok(())),
                End::Failed(kind) => Poll::Ready(Err(kind.take().map_or_else(void, io::Error::from))),
                End::SynReceived | End::Closed | End::Gone => Poll::Ready(Err(void())),
            }
        })
        .unwrap_or_else(|| self.void_poll())
    }

    /// The answer to a void call: a process that is ending in this very poll gets none any more.
    fn void_poll<T>(&self) -> Poll<io::Result<T>> {
        let node = world().at(self.node);
        let ending = node.doomed.get().is_some() && node.incarnation.get() == self.incarnation;
        if ending { Poll::Pending } else { Poll::Ready(Err(void())) }
    }

    /// Runs `work` on the connection, unless this handle is void.
    #[inline]
    fn with<T>(&self, work: impl FnOnce(&World, &mut Net, usize) -> T) -> Option<T> {
        let world = world();
        if !world.at(self.node).serves(self.incarnation) {
            return None;
        }
        let mut net = world.net.borrow_mut();
        self.connection(&mut net.connections)?;
        Some(work(world, &mut net, usize::from(self.side)))
    }

    /// As [`with`](Self::with), for what is set and read besides the bytes.
    pub(super) fn with_connection<T>(
        &self,
        work: impl FnOnce(&World, &mut Net, ConnectionId, usize) -> T,
    ) -> io::Result<T> {
        self.with(|world, net, side| work(world, net, self.id, side)).ok_or_else(void)
    }

    fn connection<'a>(&self, connections: &'a mut Connections) -> Option<&'a mut Connection> {
        connections.get(self.id)
    }

    /// Its own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.with(|_, net, side| net.connections.at(self.id).shown(side, side)).ok_or_else(void)
    }

    /// The address of the other end; `NotConnected` after a reset or a time-out.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = self.with(|_, net, side| {
            let connection = net.connections.at(self.id);
            (connection.end[side] == End::Open).then(|| connection.shown(1 - side, side))
        });
        peer.flatten().ok_or_else(void)
    }

    /// Remembered, without effect: every write leaves at once here.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.with(|_, net, side| net.connections.at(self.id).nodelay[side] = nodelay).ok_or_else(void)
    }

    /// As [`set_nodelay`](Self::set_nodelay) left it.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.with(|_, net, side| net.connections.at(self.id).nodelay[side]).ok_or_else(void)
    }

    /// Lets dropping the stream reset it: the peer meets `ConnectionReset`, what has not left is lost, and no TIME_WAIT is kept.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.with(|_, net, side| net.connections.at(self.id).zero_linger[side] = true).ok_or_else(void)
    }

    /// Zero after [`set_zero_linger`](Self::set_zero_linger), else none. (No other time can be set: it would block the thread.)
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        let zero = self.with(|_, net, side| net.connections.at(self.id).zero_linger[side]).ok_or_else(void)?;
        Ok(zero.then_some(Duration::ZERO))
    }

    /// Remembered, without effect: no way here is that long.
    ///
    /// # Errors
    /// `InvalidInput`: not in 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let ttl = u8::try_from(ttl).ok().filter(|ttl| *ttl > 0).ok_or(io::ErrorKind::InvalidInput)?;
        self.with(|_, net, side| net.connections.at(self.id).ttl[side] = ttl).ok_or_else(void)
    }

    /// As [`set_ttl`](Self::set_ttl) left it; 64 before.
    pub fn ttl(&self) -> io::Result<u32> {
        self.with(|_, net, side| net.connections.at(self.id).ttl[side].into()).ok_or_else(void)
    }

    /// Waits until reading gives something: bytes, the end, or an error. Any number of tasks may wait.
    pub async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let ready = self.with(|_, net, side| net.poll_readable(self.id, side, cx)).map(|ready| ready.map(Ok));
            ready.unwrap_or_else(|| self.void_poll())
        })
        .await
    }

    /// Waits until writing takes something or fails. Any number of tasks may wait.
    pub async fn writable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let ready = self.with(|world, net, side| net.poll_writable(world, self.id, side, cx));
            ready.map(|ready| ready.map(Ok)).unwrap_or_else(|| self.void_poll())
        })
        .await
    }

    /// Reads what is there; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock`: nothing is there yet. Else as reading.
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(out);
        let read = self.with(|world, net, side| net.read_now(world, self.id, side, &mut buffer, false));
        read.ok_or_else(void)?.ok_or(io::ErrorKind::WouldBlock)??;
        Ok(buffer.filled().len())
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// `WouldBlock`: there is no room. Else as writing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write_vectored(&[IoSlice::new(bytes)])
    }

    /// As [`try_write`](Self::try_write), of several parts in their order.
    pub fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.with(|world, net, side| net.write_now(world, self.id, side, parts));
        written.ok_or_else(void)?.ok_or(io::ErrorKind::WouldBlock)?
    }

    /// Waits for bytes and copies them without taking them; 0 at the end of the stream.
    pub async fn peek(&self, out: &mut [u8]) -> io::Result<usize> {
        std::future::poll_fn(|cx| {
            let mut buffer = ReadBuf::new(out);
            self.poll_read_shared(cx, &mut buffer, true).map_ok(|()| buffer.filled().len())
        })
        .await
    }

    /// Two owned halves. Dropping the write half ends the stream towards the peer.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        super::halves::split(self)
    }

    pub(super) fn poll_read_shared(
        &self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        peek: bool,
    ) -> Poll<io::Result<()>> {
        self.with(|world, net, side| net.poll_read(world, self.id, side, cx, out, peek))
            .unwrap_or_else(|| self.void_poll())
    }

    pub(super) fn poll_write_shared(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.with(|world, net, side| net.poll_write(world, self.id, side, cx, parts))
            .unwrap_or_else(|| self.void_poll())
    }

    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        // tokio turns the NotConnected of a connection that is over into success.
        self.with(|world, net, side| net.end_stream(world, self.id, side));
        Ok(())
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_shared(cx, out, false)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_shared(cx, &[IoSlice::new(bytes)])
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_shared(cx, parts)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown_write())
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if !world.at(self.node).serves(self.incarnation) {
            return; // a dying process says nothing
        }
        let mut net = world.net.borrow_mut();
        if net.connections.get(self.id).is_some() {
            net.close(world, self.id, usize::from(self.side));
        }
    }
}
