//! What a program holds of an established connection.
use super::connection::{CLIENT, Connection, End, SERVER};
use super::event::ConnectionId;
use super::halves::{OwnedReadHalf, OwnedWriteHalf};
use super::pipe::Fin;
use super::{Net, connection::Connections};
use crate::sim::node::NodeId;
use crate::sim::world::{World, try_world, world};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
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
fn void() -> io::Error {
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
    /// `AddrNotAvailable`: the node has no free port.
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

    fn connection<'a>(&self, connections: &'a mut Connections) -> Option<&'a mut Connection> {
        connections.get(self.id)
    }

    /// Its own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.with(|_, net, side| net.connections.at(self.id).address[side]).ok_or_else(void)
    }

    /// The address of the other end; `NotConnected` after a reset or a time-out.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = self.with(|_, net, side| {
            let connection = net.connections.at(self.id);
            (connection.end[side] == End::Open).then_some(connection.address[1 - side])
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

    pub(super) fn poll_write_shared(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|world, net, side| net.poll_write(world, self.id, side, cx, bytes))
            .unwrap_or_else(|| self.void_poll())
    }

    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        // tokio turns the NotConnected of a connection that is over into success.
        self.with(|world, net, side| net.end_stream(world, self.id, side));
        Ok(())
    }
}

impl Net {
    fn poll_read(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        peek: bool,
    ) -> Poll<io::Result<()>> {
        let connection = self.connections.at(id);
        let pipe = &mut connection.pipe[1 - side];
        if pipe.visible() == 0 {
            return match &mut connection.end[side] {
                _ if out.remaining() == 0 || pipe.fin == Fin::Arrived => Poll::Ready(Ok(())),
                End::Failed(error) => Poll::Ready(error.take().map_or(Ok(()), |kind| Err(kind.into()))),
                End::Open => {
                    match &mut pipe.reader {
                        Some(reader) if reader.will_wake(cx.waker()) => {}
                        reader => *reader = Some(cx.waker().clone()),
                    }
                    Poll::Pending
                }
                End::Connecting | End::SynReceived | End::Closed | End::Gone => Poll::Ready(Err(void())),
            };
        }
        if peek {
            let (head, tail) = pipe.peek();
            for part in [head, tail] {
                out.put_slice(&part[..part.len().min(out.remaining())]);
            }
            return Poll::Ready(Ok(()));
        }
        pipe.read(out.remaining(), world.now.get(), |part| out.put_slice(part));
        // Without a writer that waits, nobody needs an event for it.
        if pipe.writer.is_some() || pipe.unsent() > 0 {
            self.tell_window(world, id, 1 - side);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let send_buffer = self.config.send_buffer;
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        match &mut connection.end[side] {
            End::Open => {}
            End::Failed(error) => return Poll::Ready(Err(error.take().unwrap_or(io::ErrorKind::BrokenPipe).into())),
            End::Connecting | End::SynReceived | End::Closed | End::Gone => return Poll::Ready(Err(void())),
        }
        let pipe = &connection.pipe[side];
        if pipe.fin != Fin::Open {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        // What happened at least one latency ago is known to the sender; no event is needed for it unless the writer waits.
        let known =
            pipe.lags() && !pipe.window_pending && world.now.get() >= pipe.changed_at + self.travel_min(to, from);
        let known = known && !self.fabric.blocked(to, from);
        let pipe = &mut self.connections.at(id).pipe[side];
        if known {
            pipe.settle();
        }
        let length = bytes.len().min(pipe.room(send_buffer));
        if length == 0 {
            pipe.writer = Some(cx.waker().clone());
            if pipe.lags() {
                self.tell_window(world, id, side);
            }
            return Poll::Pending;
        }
        if !world.count_packet() {
            return Poll::Pending; // its node ends at this very packet
        }
        pipe.push(&bytes[..length]);
        self.transmit(world, id, side);
        Poll::Ready(Ok(length))
    }

    /// The application writes no more.
    fn end_stream(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        if connection.end[side] == End::Open && connection.pipe[side].fin == Fin::Open && world.count_packet() {
            connection.pipe[side].fin = Fin::Asked;
            self.transmit(world, id, side);
        }
    }

    /// The application drops its handle. Bytes that it never read make the kernel reset the peer; else the stream ends in order.
    fn close(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        connection.pipe[side].writer = None;
        connection.pipe[1 - side].reader = None;
        match connection.end[side] {
            End::Open if connection.pipe[1 - side].visible() > 0 => {
                connection.end[side] = End::Gone;
                connection.pipe[side].forget_unsent();
                self.reset_towards(world, id, 1 - side);
            }
            End::Open => {
                self.end_stream(world, id, side);
                let connection = self.connections.at(id);
                if connection.pipe[side].fin == Fin::Open {
                    return; // its node ends at this very packet, and its kernel will reset the stream
                }
                connection.end[side] = End::Closed;
            }
            End::Connecting | End::Failed(_) => {
                connection.end[side] = End::Gone;
                if side == CLIENT && matches!(connection.end[SERVER], End::Connecting | End::SynReceived) {
                    connection.end[SERVER] = End::Gone;
                }
            }
            End::SynReceived | End::Closed | End::Gone => {}
        }
        self.collect(id);
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_shared(cx, out, false)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_shared(cx, bytes)
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
