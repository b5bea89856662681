//! What a node's programs hold of the network: a leak shows here.
use super::Net;
use super::connection::{CLIENT, End};
use crate::sim::node::NodeId;
use crate::sim::world::world;

/// Sockets that the programs of one node have open, by sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sockets {
    /// Listening ones.
    pub listeners: usize,
    /// Ends of connections: connecting, open or failed, and those that wait to be accepted. What a program has closed is its
    /// kernel's.
    pub streams: usize,
    /// Bound for datagrams.
    pub datagram_sockets: usize,
}

/// The sockets that the node's programs have open.
pub fn sockets(node: NodeId) -> Sockets {
    world().net.borrow_mut().sockets(node)
}

impl Net {
    fn sockets(&mut self, node: NodeId) -> Sockets {
        let mut streams = 0;
        for id in self.connections.ids() {
            let connection = self.connections.at(id);
            for side in (0..2).filter(|side| connection.node[*side] == node) {
                let held = match connection.end[side] {
                    End::Open | End::Failed(_) => true,
                    End::Connecting => side == CLIENT,
                    End::SynReceived | End::Closed | End::Gone => false,
                };
                streams += usize::from(held);
            }
        }
        Sockets { listeners: self.listeners.count(node), streams, datagram_sockets: self.datagrams.count(node) }
    }
}
