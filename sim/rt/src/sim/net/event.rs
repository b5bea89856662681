//! What the network has put into the world's queue of things to come.

/// One connection of the slab; a reused slot has another generation, so a late event finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// One datagram socket; numbers are not used again in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SocketId(pub(super) u32);

/// Arrivals and timers. `side` names the pipe by its writer: 0 is the end that connected, 1 the end that accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A SYN reaches the listener's node.
    Syn { connection: ConnectionId },
    /// The client's SYN timer fires.
    SynRetry { connection: ConnectionId, attempt: u8 },
    /// The answer to a SYN reaches the client: an acceptance, or a reset.
    SynAck { connection: ConnectionId, refused: bool },
    /// The client's first acknowledgement reaches the listener: the connection may be accepted.
    HandshakeAck { connection: ConnectionId, attempt: u8 },
    /// The next `length` bytes in flight arrive.
    Segment { connection: ConnectionId, side: u8, epoch: u16, length: u32 },
    /// The end of the stream arrives.
    Fin { connection: ConnectionId, side: u8, epoch: u16 },
    /// A reset reaches the end `side`.
    Reset { connection: ConnectionId, side: u8 },
    /// The writer of the pipe learns what was received and read.
    Window { connection: ConnectionId, side: u8 },
    /// The retransmission timer of the pipe fires.
    Retransmit { connection: ConnectionId, side: u8 },
    /// The keep-alive timer of the end `side` fires.
    KeepAlive { connection: ConnectionId, side: u8 },
    /// A datagram, or the message that it met no socket, arrives.
    Datagram { flight: u32 },
}

const _: () = assert!(size_of::<NetworkEvent>() <= 20, "an event is copied through the heap");

impl NetworkEvent {
    /// Whose event it is; `None`: of no connection.
    #[inline]
    pub(super) fn connection(self) -> Option<ConnectionId> {
        match self {
            NetworkEvent::Syn { connection }
            | NetworkEvent::SynRetry { connection, .. }
            | NetworkEvent::SynAck { connection, .. }
            | NetworkEvent::HandshakeAck { connection, .. }
            | NetworkEvent::Segment { connection, .. }
            | NetworkEvent::Fin { connection, .. }
            | NetworkEvent::Reset { connection, .. }
            | NetworkEvent::Window { connection, .. }
            | NetworkEvent::Retransmit { connection, .. }
            | NetworkEvent::KeepAlive { connection, .. } => Some(connection),
            NetworkEvent::Datagram { .. } => None,
        }
    }
}
