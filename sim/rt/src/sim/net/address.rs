//! Which node an address means, seen from another node.
use crate::sim::node::NodeId;
use crate::sim::world::World;
use std::net::{IpAddr, SocketAddr};

/// What part of a node's addresses a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// 0.0.0.0
    Any,
    /// 127.0.0.0/8
    Loopback,
    /// The node's own address.
    Own,
}

impl Scope {
    /// Two listeners of one port exclude each other if one of them serves every address, or both serve the same.
    pub(super) fn overlaps(self, other: Scope) -> bool {
        self == other || self == Scope::Any || other == Scope::Any
    }
}

/// What `ip` means on `node`; `None`: it is not an address of that node.
pub(super) fn scope_on(node: NodeId, ip: IpAddr) -> Option<Scope> {
    if ip.is_unspecified() && ip.is_ipv4() {
        Some(Scope::Any)
    } else if ip.is_loopback() && ip.is_ipv4() {
        Some(Scope::Loopback)
    } else {
        (ip == node.ip()).then_some(Scope::Own)
    }
}

/// Where a connection from `here` to an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `None`: no machine has that address, nothing answers.
    pub(super) node: Option<NodeId>,
    /// Through 127.0.0.1: the client's own address is 127.0.0.1 too.
    pub(super) loopback: bool,
}

pub(super) fn target(world: &World, here: NodeId, to: SocketAddr) -> Target {
    match scope_on(here, to.ip()) {
        Some(Scope::Any | Scope::Loopback) => Target { node: Some(here), loopback: true },
        Some(Scope::Own) => Target { node: Some(here), loopback: false },
        None => Target { node: node_with(world, to.ip()), loopback: false },
    }
}

/// The node that has this address.
fn node_with(world: &World, ip: IpAddr) -> Option<NodeId> {
    let IpAddr::V4(ip) = ip else { return None };
    let [10, 0, 0, last] = ip.octets() else { return None };
    let index = usize::from(last).checked_sub(1)?;
    (index < world.node_count()).then(|| NodeId::new(index))
}
