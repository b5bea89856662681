//! What an onlooker of a run is told: packets, disk syncs, the life of nodes. Nobody looks on unless asked, and whoever does changes
//! nothing: no draw, no event, no word of the hash.
use super::net::Packet;
use super::node::NodeId;
use super::world::{World, world};

/// One direction of a connection, or one datagram, as long as the run lasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flow(pub(super) u64);

impl Flow {
    /// The other direction of the same connection.
    #[must_use]
    pub fn back(self) -> Flow {
        Flow(self.0 ^ 1)
    }
}

/// What becomes of a packet when it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is on its way.
    Travels,
    /// It is lost: a block, a loss, a rule, a full queue.
    Lost,
    /// It is lost, and the sender is told.
    Rejected,
}

/// Something that an onlooker sees.
#[derive(Debug)]
pub enum Sight<'a> {
    /// A packet of the kinds `Syn`, `Data`, `Fin`, `Reset` or `Datagram` leaves for another node.
    Departs {
        /// Those of one flow and kind arrive in the order of their departure.
        flow: Flow,
        /// Who to whom.
        packet: Packet,
        /// Its payload, in two parts.
        bytes: [&'a [u8]; 2],
        /// Whether it travels.
        fate: Fate,
    },
    /// The oldest packet of this kind that travels reaches its kernel.
    Arrives {
        /// Of this flow.
        flow: Flow,
        /// Of this kind.
        kind: super::net::PacketKind,
    },
    /// What travels on this flow will not arrive. Bytes of a stream leave again.
    Lost {
        /// The flow.
        flow: Flow,
    },
    /// A program waits for its disk to make something durable.
    SyncBegins {
        /// Whose disk.
        node: NodeId,
        /// Names the sync until it ends.
        ticket: u32,
        /// The file or directory.
        path: &'a str,
    },
    /// The disk answers. Of a node that lost its power it never does.
    SyncEnds {
        /// Whose disk.
        node: NodeId,
        /// Which sync.
        ticket: u32,
        /// Whether it is durable.
        ok: bool,
    },
    /// A node that had no task has one.
    Starts {
        /// The node.
        node: NodeId,
    },
}

/// Learns of sights.
pub(super) type Onlooker = Box<dyn FnMut(&Sight<'_>)>;

impl World {
    /// Whether anybody looks on: what is only for the onlooker is done only then.
    #[inline]
    pub(super) fn is_looked_at(&self) -> bool {
        self.looked_at.get()
    }

    pub(super) fn show(&self, sight: &Sight<'_>) {
        if let Some(onlooker) = &mut *self.onlooker.borrow_mut() {
            onlooker(sight);
        }
    }
}

/// Shows `onlooker` what happens from now on; it replaces an earlier one. It may ask for the time and for names of nodes, and must not
/// touch the world in any other way.
pub fn look_on(onlooker: impl FnMut(&Sight<'_>) + 'static) {
    let world = world();
    world.onlooker.replace(Some(Box::new(onlooker)));
    world.looked_at.set(true);
}
