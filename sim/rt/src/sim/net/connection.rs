//! The slab of connections: two ends, two pipes.
use super::event::ConnectionId;
use super::pipe::Pipe;
use crate::sim::node::NodeId;
use std::io;
use std::net::SocketAddr;
use std::task::Waker;

/// The side that connected, and the side that accepted.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// What one kernel knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client waits for the answer to its SYN; on the server's side: no SYN has come.
    Connecting,
    /// The server has answered a SYN and waits for the acknowledgement.
    SynReceived,
    /// Usable.
    Open,
    /// The application has dropped it; its kernel still delivers what was written, and the end of the stream.
    Closed,
    /// A reset or a time-out ended it. The error is told once; then reads end and writes fail with `BrokenPipe`.
    Failed(Option<io::ErrorKind>),
    /// The kernel knows nothing of it: it was reset by this side, its process crashed, or its node lost power. What still arrives
    /// is answered with a reset, if the node answers at all. Handles of it are void.
    Gone,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) generation: u32,
    pub(super) node: [NodeId; 2],
    pub(super) address: [SocketAddr; 2],
    pub(super) end: [End; 2],
    /// `pipe[side]` carries what that side writes.
    pub(super) pipe: [Pipe; 2],
    pub(super) nodelay: [bool; 2],
    pub(super) connector: Option<Waker>,
    /// No machine has the address that the client asked for.
    pub(super) nowhere: bool,
    pub(super) holds_port: bool,
    pub(super) syn_attempt: u8,
    pub(super) syn_sent_at: u64,
}

impl Connection {
    /// From the writer of the pipe `side` to its reader.
    #[inline]
    pub(super) fn route(&self, side: usize) -> (NodeId, NodeId) {
        (self.node[side], self.node[1 - side])
    }

    pub(super) fn wake_all(&mut self) {
        if let Some(waker) = self.connector.take() {
            waker.wake();
        }
        self.pipe.iter_mut().for_each(Pipe::wake_all);
    }

    fn over(&self) -> bool {
        self.end.iter().all(|end| matches!(end, End::Closed | End::Gone))
    }
}

/// Slots of connections, reused with another generation.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Connection>,
    free: Vec<u32>,
}

impl Connections {
    /// Takes a slot; `build` gets its generation.
    pub(super) fn insert(&mut self, build: impl FnOnce(u32) -> Connection) -> ConnectionId {
        match self.free.pop() {
            Some(slot) => {
                let generation = self.slots[slot as usize].generation;
                self.slots[slot as usize] = build(generation);
                ConnectionId { slot, generation }
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("connections are fewer than 2^32");
                self.slots.push(build(0));
                ConnectionId { slot, generation: 0 }
            }
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.slot as usize).filter(|connection| connection.generation == id.generation)
    }

    /// The connection of an id that was found to be alive in this event or call.
    #[inline]
    pub(super) fn at(&mut self, id: ConnectionId) -> &mut Connection {
        let connection = &mut self.slots[id.slot as usize];
        debug_assert_eq!(connection.generation, id.generation);
        connection
    }

    /// Every id that may be alive, in slot order.
    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        let id = |(slot, connection): (usize, &Connection)| ConnectionId {
            slot: slot as u32,
            generation: connection.generation,
        };
        self.slots.iter().enumerate().map(id).collect()
    }

    /// Frees the slot if neither application can see the connection any more; true if so.
    pub(super) fn collect(&mut self, id: ConnectionId) -> bool {
        let connection = &mut self.slots[id.slot as usize];
        if connection.generation != id.generation || !connection.over() {
            return false;
        }
        connection.generation = connection.generation.wrapping_add(1);
        connection.pipe = [Pipe::new(), Pipe::new()];
        self.free.push(id.slot);
        true
    }

    /// Connections that an application can still see.
    pub(super) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
