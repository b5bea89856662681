//! The slab of connections: two ends, two pipes.
use super::address::shown;
use super::event::ConnectionId;
use super::keep_alive::Watch;
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
    pub(super) node: [NodeId; 2],
    pub(super) address: [SocketAddr; 2],
    /// The side's socket is one of IPv6, which shows IPv4 addresses mapped.
    pub(super) is_v6: [bool; 2],
    pub(super) end: [End; 2],
    /// `pipe[side]` carries what that side writes.
    pub(super) pipe: [Pipe; 2],
    pub(super) nodelay: [bool; 2],
    /// Dropping the handle resets the peer.
    pub(super) zero_linger: [bool; 2],
    pub(super) ttl: [u8; 2],
    /// The side ended its stream before it saw the peer's end: it has to keep the four-tuple for a TIME_WAIT.
    pub(super) closed_first: [bool; 2],
    /// When each side last heard of the other.
    pub(super) heard_at: [u64; 2],
    /// Each side's keep-alive, if it is on.
    pub(super) keep_alive: [Option<Box<Watch>>; 2],
    pub(super) connector: Option<Waker>,
    /// No machine has the address that the client asked for.
    pub(super) nowhere: bool,
    pub(super) holds_port: bool,
    pub(super) syn_attempt: u8,
    pub(super) syn_sent_at: u64,
}

impl Connection {
    /// The address of the end `of`, as the socket of `side` shows it.
    pub(super) fn shown(&self, of: usize, side: usize) -> SocketAddr {
        shown(self.address[of], self.is_v6[side])
    }

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

#[derive(Debug)]
struct Slot {
    /// Which of its connections it holds, or will hold next.
    generation: u32,
    connection: Option<Connection>,
}

/// Slots of connections, reused with another generation.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Connections {
    /// Takes a slot.
    pub(super) fn insert(&mut self, connection: Connection) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            u32::try_from(self.slots.len() - 1).expect("connections are fewer than 2^32")
        });
        let place = &mut self.slots[slot as usize];
        assert!(place.connection.is_none(), "only a free slot is taken");
        place.connection = Some(connection);
        ConnectionId { slot, generation: place.generation }
    }

    #[inline]
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.connection.as_mut()
    }

    /// The connection of an id that was found to be alive in this event or call.
    #[inline]
    pub(super) fn at(&mut self, id: ConnectionId) -> &mut Connection {
        let slot = &mut self.slots[id.slot as usize];
        assert_eq!(slot.generation, id.generation);
        slot.connection.as_mut().expect("it was found alive, and is freed as the last thing of an event or call")
    }

    /// Every id that is alive, in slot order.
    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        let alive = self.slots.iter().zip(0..).filter(|(slot, _)| slot.connection.is_some());
        alive.map(|(place, slot)| ConnectionId { slot, generation: place.generation }).collect()
    }

    /// Frees the slot if neither application can see the connection any more; true if so.
    pub(super) fn collect(&mut self, id: ConnectionId) -> bool {
        if !self.at(id).over() {
            return false;
        }
        let slot = &mut self.slots[id.slot as usize];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        true
    }

    /// Connections that an application can still see.
    pub(super) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A slot is in use or waits for use once; else two connections would share it.
    pub(super) fn check_invariants(&self) {
        let empty = self.slots.iter().filter(|slot| slot.connection.is_none()).count();
        assert_eq!(empty, self.free.len(), "every empty slot waits for use");
        let mut free = self.free.clone();
        free.sort_unstable();
        free.dedup();
        assert_eq!(free.len(), self.free.len(), "a slot was freed twice");
    }
}
