//! Reading, writing, ending and closing one end of a connection, as its kernel does them.
use super::Net;
use super::connection::{CLIENT, End, SERVER};
use super::event::ConnectionId;
use super::pipe::Fin;
use super::stream::void;
use crate::sim::world::World;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

impl Net {
    pub(super) fn poll_read(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        peek: bool,
    ) -> Poll<io::Result<()>> {
        if let Some(read) = self.read_now(world, id, side, out, peek) {
            return Poll::Ready(read);
        }
        match &mut self.connections.at(id).pipe[1 - side].reader {
            Some(reader) if reader.will_wake(cx.waker()) => {}
            reader => *reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Reads what is there; `None`: nothing yet.
    pub(super) fn read_now(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        out: &mut ReadBuf<'_>,
        peek: bool,
    ) -> Option<io::Result<()>> {
        let connection = self.connections.at(id);
        let pipe = &mut connection.pipe[1 - side];
        if pipe.visible() == 0 {
            return match &mut connection.end[side] {
                _ if pipe.fin == Fin::Arrived => Some(Ok(())),
                End::Failed(error) => Some(error.take().map_or(Ok(()), |kind| Err(kind.into()))),
                End::Open => None,
                End::Connecting | End::SynReceived | End::Closed | End::Gone => Some(Err(void())),
            };
        }
        if peek {
            let (head, tail) = pipe.peek();
            for part in [head, tail] {
                out.put_slice(&part[..part.len().min(out.remaining())]);
            }
            return Some(Ok(()));
        }
        pipe.read(out.remaining(), world.now.get(), |part| out.put_slice(part));
        // Without a sender that waits, nobody needs an event for it.
        if pipe.sender_waits() {
            self.tell_window(world, id, 1 - side);
        }
        Some(Ok(()))
    }

    pub(super) fn poll_readable(&mut self, id: ConnectionId, side: usize, cx: &Context<'_>) -> Poll<()> {
        let connection = self.connections.at(id);
        let open = connection.end[side] == End::Open;
        let pipe = &mut connection.pipe[1 - side];
        if !open || pipe.visible() > 0 || pipe.fin == Fin::Arrived {
            return Poll::Ready(());
        }
        pipe.for_bytes.add(cx);
        Poll::Pending
    }

    pub(super) fn poll_writable(&mut self, world: &World, id: ConnectionId, side: usize, cx: &Context<'_>) -> Poll<()> {
        let connection = self.connections.at(id);
        if connection.end[side] != End::Open || connection.pipe[side].fin != Fin::Open {
            return Poll::Ready(());
        }
        if self.room(world, id, side) > 0 {
            return Poll::Ready(());
        }
        let pipe = &mut self.connections.at(id).pipe[side];
        pipe.for_room.add(cx);
        if pipe.lags() {
            self.tell_window(world, id, side);
        }
        Poll::Pending
    }

    /// Bytes that the writer may hand over now, by what it knows.
    fn room(&mut self, world: &World, id: ConnectionId, side: usize) -> usize {
        let send_buffer = self.config.send_buffer;
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let pipe = &connection.pipe[side];
        // What happened at least one latency ago is known to the sender; no event is needed for it unless the writer waits.
        let known =
            pipe.lags() && !pipe.window_pending && world.now.get() >= pipe.changed_at + self.travel_min(to, from);
        let known = known && !self.fabric.blocked(to, from);
        let pipe = &mut self.connections.at(id).pipe[side];
        if known {
            pipe.settle();
        }
        pipe.room(send_buffer)
    }

    pub(super) fn poll_write(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.write_now(world, id, side, parts) {
            return Poll::Ready(written);
        }
        if world.here().doomed.get().is_some() {
            return Poll::Pending; // its node ends at this very packet
        }
        let pipe = &mut self.connections.at(id).pipe[side];
        pipe.writer = Some(cx.waker().clone());
        if pipe.lags() {
            self.tell_window(world, id, side);
        }
        Poll::Pending
    }

    /// Hands over what there is room for, as one transmission; `None`: there is no room, or the node ends at this very packet.
    pub(super) fn write_now(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        parts: &[IoSlice<'_>],
    ) -> Option<io::Result<usize>> {
        let connection = self.connections.at(id);
        match &mut connection.end[side] {
            End::Open => {}
            End::Failed(error) => return Some(Err(error.take().unwrap_or(io::ErrorKind::BrokenPipe).into())),
            End::Connecting | End::SynReceived | End::Closed | End::Gone => return Some(Err(void())),
        }
        if connection.pipe[side].fin != Fin::Open {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Some(Ok(0));
        }
        let room = self.room(world, id, side);
        if room == 0 || !world.count_packet() {
            return None;
        }
        let pipe = &mut self.connections.at(id).pipe[side];
        let mut left = room;
        for part in parts {
            let length = part.len().min(left);
            pipe.push(&part[..length]);
            left -= length;
        }
        self.transmit(world, id, side);
        Some(Ok(room - left))
    }

    /// The application writes no more.
    pub(super) fn end_stream(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        if connection.end[side] == End::Open && connection.pipe[side].fin == Fin::Open && world.count_packet() {
            connection.pipe[side].fin = Fin::Asked;
            connection.closed_first[side] = connection.pipe[1 - side].fin != Fin::Arrived;
            self.transmit(world, id, side);
        }
    }

    /// The application drops its handle. Bytes that it never read, or a linger time of zero, make the kernel reset the peer; else the stream ends in order.
    pub(super) fn close(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        connection.pipe[side].writer = None;
        connection.pipe[1 - side].reader = None;
        match connection.end[side] {
            End::Open if connection.pipe[1 - side].visible() > 0 || connection.zero_linger[side] => {
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
