//! Which node an address means, seen from another node.
//!
//! Inside the network an address is canonical: IPv4 mapped into IPv6 (`::ffff:10.0.0.2`) is IPv4. Only what a program is shown depends on the
//! family of its socket: see [`shown`].
use crate::sim::node::NodeId;
use crate::sim::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What part of a node's addresses a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// 0.0.0.0
    AnyV4,
    /// `::`, which serves IPv4 as well (Linux's `bindv6only` = 0).
    Any,
    /// One of 127.0.0.0/8, or `::1`
    Loopback(IpAddr),
    /// One of the node's own addresses.
    Own(IpAddr),
}

impl Scope {
    /// The greatest in their order.
    const LAST: Scope = Scope::Own(IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)));

    /// Two sockets of one port exclude each other if they serve an address in common.
    pub(super) fn overlaps(self, other: Scope) -> bool {
        let within = |wide, narrow: Scope| match wide {
            Scope::Any => true,
            Scope::AnyV4 => narrow.is_v4(),
            Scope::Loopback(_) | Scope::Own(_) => false,
        };
        self == other || within(self, other) || within(other, self)
    }

    /// Which sockets serve what is sent to an address of this scope, the closest first.
    pub(super) fn servers(self) -> impl Iterator<Item = Scope> {
        let v4 = self.is_v4().then_some(Scope::AnyV4);
        std::iter::once(self).chain(v4).chain([Scope::Any])
    }

    fn is_v4(self) -> bool {
        match self {
            Scope::AnyV4 => true,
            Scope::Any => false,
            Scope::Loopback(ip) | Scope::Own(ip) => ip.is_ipv4(),
        }
    }

    /// Whether a socket that is bound to it can be the source of what goes to an address of the family.
    pub(super) fn reaches_v4(self, v4: bool) -> bool {
        self == Scope::Any || self.is_v4() == v4
    }
}

/// A port on a part of a node's addresses.
pub(super) type Key = (NodeId, u16, Scope);

/// Every key of a port.
pub(super) fn keys_of(node: NodeId, port: u16) -> std::ops::RangeInclusive<Key> {
    (node, port, Scope::AnyV4)..=(node, port, Scope::LAST)
}

/// An address inside the network: IPv4 where it is IPv4, without flow and zone.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address as a socket shows it: one of IPv6 shows IPv4 mapped.
pub(super) fn shown(address: SocketAddr, by_v6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if by_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}

/// Where something sent from `here` to an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `None`: no machine has that address, nothing answers.
    pub(super) node: Option<NodeId>,
    /// The sender's own address on the way there.
    pub(super) source: IpAddr,
}

/// Addresses beyond the first of each node, and nodes without their first.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    owner: BTreeMap<IpAddr, NodeId>,
    /// In the order of adding.
    of_node: BTreeMap<NodeId, Vec<IpAddr>>,
    without_first: BTreeSet<NodeId>,
}

impl Addresses {
    /// Gives a node another address.
    ///
    /// # Panics
    /// If it is not an ordinary address, or another node has it.
    pub(super) fn add(&mut self, world: &World, node: NodeId, ip: IpAddr) {
        let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        let ordinary = !(ip.is_unspecified() || ip.is_loopback() || broadcast || ip.is_multicast());
        assert!(ordinary && ip == ip.to_canonical(), "{ip} cannot be a node's address");
        let owner = self.node_with(world, ip);
        assert!(owner.is_none_or(|owner| owner == node), "{ip} is the address of another node");
        if ip == node.ip() {
            self.without_first.remove(&node);
        } else if self.owner.insert(ip, node).is_none() {
            self.of_node.entry(node).or_default().push(ip);
        }
    }

    /// Takes an address from a node.
    ///
    /// # Panics
    /// If the node does not have it.
    pub(super) fn remove(&mut self, node: NodeId, ip: IpAddr) {
        assert!(self.is_own(node, ip), "{ip} is not the address of that node");
        if ip == node.ip() {
            self.without_first.insert(node);
            return;
        }
        self.owner.remove(&ip);
        if let Some(others) = self.of_node.get_mut(&node) {
            others.retain(|other| *other != ip);
        }
    }

    /// Every address of the node: its first, if it has that, and others in the order of adding.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = IpAddr> {
        let first = (!self.without_first.contains(&node)).then(|| node.ip());
        first.into_iter().chain(self.of_node.get(&node).into_iter().flatten().copied())
    }

    /// Those that the node's name means: of IPv4 the first one only, which is what a name meant before there was IPv6.
    pub(super) fn named(&self, node: NodeId) -> impl Iterator<Item = IpAddr> {
        let v4 = self.of(node).find(IpAddr::is_ipv4);
        v4.into_iter().chain(self.of(node).filter(IpAddr::is_ipv6))
    }

    /// What `ip` means on `node`; `None`: it is not an address of that node.
    pub(super) fn scope_on(&self, node: NodeId, ip: IpAddr) -> Option<Scope> {
        let ip = ip.to_canonical();
        match ip {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Some(Scope::AnyV4),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some(Scope::Any),
            _ if ip.is_loopback() => Some(Scope::Loopback(ip)),
            _ => self.is_own(node, ip).then_some(Scope::Own(ip)),
        }
    }

    /// Where `to` leads from `here`.
    ///
    /// # Errors
    /// `NetworkUnreachable`: `here` has no address of that family.
    pub(super) fn target(&self, world: &World, here: NodeId, to: IpAddr) -> io::Result<Target> {
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let to = to.to_canonical();
        let source = match self.scope_on(here, to) {
            Some(Scope::AnyV4 | Scope::Loopback(IpAddr::V4(_))) => v4,
            Some(Scope::Any | Scope::Loopback(IpAddr::V6(_))) => v6,
            Some(Scope::Own(ip)) => ip,
            None => {
                let source = self.of(here).find(|own| own.is_ipv4() == to.is_ipv4());
                let source = source.ok_or(io::ErrorKind::NetworkUnreachable)?;
                return Ok(Target { node: self.node_with(world, to), source });
            }
        };
        Ok(Target { node: Some(here), source })
    }

    fn is_own(&self, node: NodeId, ip: IpAddr) -> bool {
        if ip == node.ip() { !self.without_first.contains(&node) } else { self.owner.get(&ip) == Some(&node) }
    }

    /// The node that has this address.
    fn node_with(&self, world: &World, ip: IpAddr) -> Option<NodeId> {
        if let Some(node) = self.owner.get(&ip) {
            return Some(*node);
        }
        let IpAddr::V4(ip) = ip else { return None };
        let node = NodeId::index_of(ip).filter(|index| *index < world.node_count()).map(NodeId::new)?;
        (!self.without_first.contains(&node)).then_some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::{IpAddr, Scope};

    #[test]
    fn sockets_exclude_each_other_if_they_serve_an_address_in_common() {
        let loopback = |text: &str| Scope::Loopback(text.parse::<IpAddr>().unwrap());
        let own = |text: &str| Scope::Own(text.parse::<IpAddr>().unwrap());
        let all = [Scope::AnyV4, Scope::Any, loopback("127.0.0.1"), loopback("::1"), own("10.0.0.2"), own("fd00::2")];
        let common = |a: Scope, b: Scope| {
            all[2..].iter().any(|to| to.servers().any(|server| server == a) && to.servers().any(|server| server == b))
        };
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            assert_eq!(a.overlaps(b), common(a, b), "{a:?} {b:?}");
        }
    }
}
