//! Names to addresses: node names, and what the run's table says instead.
use crate::sim::node::NodeId;
use crate::sim::world::world;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What a name means instead of the node of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Addresses(Vec<IpAddr>),
    Fails,
}

/// Changed names of a run: for everybody, and as one node sees them (a cache, a resolver of its own), which counts more.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<(Option<NodeId>, String), Answer>);

impl Names {
    pub(super) fn set(&mut self, seen_by: Option<NodeId>, name: &str, answer: Answer) {
        self.0.insert((seen_by, name.to_owned()), answer);
    }
    pub(super) fn forget(&mut self, seen_by: Option<NodeId>, name: &str) {
        self.0.remove(&(seen_by, name.to_owned()));
    }
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    fn answer(&self, seen_by: NodeId, name: &str) -> Option<Answer> {
        if self.0.is_empty() {
            return None;
        }
        let answer = |seen_by| self.0.get(&(seen_by, name.to_owned())).cloned();
        answer(Some(seen_by)).or_else(|| answer(None))
    }
}

/// Addresses of `host` (`name:port` or `address:port`): a node's name gives its first address, and those of IPv6 behind it, unless the
/// run says otherwise.
///
/// # Errors
/// `InvalidInput`: no port. Any other: no such name.
pub async fn lookup_host(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let Some((name, port)) = host.rsplit_once(':') else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid socket address"));
    };
    let Ok(port) = port.parse::<u16>() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid port value"));
    };
    let world = world();
    let mut net = world.net.borrow_mut();
    if let Some(answer) = net.names.answer(world.node.get(), name) {
        net.effects.names_changed += 1;
        return match answer {
            Answer::Addresses(ips) => Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()),
            Answer::Fails => Err(io::Error::other(format!("failed to look up {name}"))),
        };
    }
    if name == "localhost" {
        return Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)]);
    }
    let node = (0..world.node_count()).map(NodeId::new).find(|node| *world.at(*node).name == *name);
    match node {
        Some(node) => Ok(net.addresses.named(node).map(|ip| SocketAddr::new(ip, port)).collect()),
        None => Err(io::Error::other(format!("failed to look up {name}"))),
    }
}
