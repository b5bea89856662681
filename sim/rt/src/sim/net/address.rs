//! Which node an address means, seen from another node.
use crate::sim::node::NodeId;
use crate::sim::world::World;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What part of a node's addresses a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// 0.0.0.0
    Any,
    /// One of 127.0.0.0/8
    Loopback(Ipv4Addr),
    /// One of the node's own addresses.
    Own(Ipv4Addr),
}

impl Scope {
    /// The greatest in their order.
    const LAST: Scope = Scope::Own(Ipv4Addr::BROADCAST);

    /// Two sockets of one port exclude each other if one of them serves every address, or both serve the same.
    pub(super) fn overlaps(self, other: Scope) -> bool {
        self == other || self == Scope::Any || other == Scope::Any
    }
}

/// A port on a part of a node's addresses.
pub(super) type Key = (NodeId, u16, Scope);

/// Every key of a port.
pub(super) fn keys_of(node: NodeId, port: u16) -> std::ops::RangeInclusive<Key> {
    (node, port, Scope::Any)..=(node, port, Scope::LAST)
}

/// Where something sent from `here` to an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `None`: no machine has that address, nothing answers.
    pub(super) node: Option<NodeId>,
    /// The sender's own address on the way there.
    pub(super) source: IpAddr,
}

/// Addresses beyond the first of each node.
#[derive(Debug, Default)]
pub(super) struct Addresses(BTreeMap<Ipv4Addr, NodeId>);

impl Addresses {
    /// Gives a node another address.
    ///
    /// # Panics
    /// If it is not an ordinary address, or another node has it.
    pub(super) fn add(&mut self, world: &World, node: NodeId, ip: Ipv4Addr) {
        let ordinary = !(ip.is_unspecified() || ip.is_loopback() || ip.is_broadcast() || ip.is_multicast());
        assert!(ordinary, "{ip} cannot be a node's address");
        let owner = self.node_with(world, ip.into());
        assert!(owner.is_none_or(|owner| owner == node), "{ip} is the address of another node");
        self.0.insert(ip, node);
    }

    /// What `ip` means on `node`; `None`: it is not an address of that node.
    pub(super) fn scope_on(&self, node: NodeId, ip: IpAddr) -> Option<Scope> {
        let IpAddr::V4(v4) = ip else { return None };
        if v4.is_unspecified() {
            Some(Scope::Any)
        } else if v4.is_loopback() {
            Some(Scope::Loopback(v4))
        } else {
            (ip == node.ip() || self.0.get(&v4) == Some(&node)).then_some(Scope::Own(v4))
        }
    }

    /// Where `to` leads from `here`.
    pub(super) fn target(&self, world: &World, here: NodeId, to: SocketAddr) -> Target {
        match self.scope_on(here, to.ip()) {
            Some(Scope::Any | Scope::Loopback(_)) => {
                Target { node: Some(here), source: IpAddr::V4(Ipv4Addr::LOCALHOST) }
            }
            Some(Scope::Own(_)) => Target { node: Some(here), source: to.ip() },
            None => Target { node: self.node_with(world, to.ip()), source: here.ip() },
        }
    }

    /// The node that has this address.
    fn node_with(&self, world: &World, ip: IpAddr) -> Option<NodeId> {
        let IpAddr::V4(ip) = ip else { return None };
        if let Some(node) = self.0.get(&ip) {
            return Some(*node);
        }
        NodeId::index_of(ip).filter(|index| *index < world.node_count()).map(NodeId::new)
    }
}
