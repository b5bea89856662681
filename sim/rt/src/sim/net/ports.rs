//! Local port numbers in use, and those that a closed connection keeps.
//!
//! A client's port is taken by its four-tuple: two connections may share it if they lead to different addresses, as on Linux. The
//! side that closed first keeps the four-tuple for the TIME_WAIT of RFC 9293. No event ends that: times are compared when a port is
//! asked for.
use crate::sim::node::NodeId;
use crate::sim::world::NEVER;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Whose port it is, and to which peer; `None`: to any, it is a listener's or a datagram socket's.
type Tuple = (NodeId, u16, Option<SocketAddr>);

/// Ephemeral ports per node, handed out in turn so that a number is not reused soon.
#[derive(Debug)]
pub(super) struct Ports {
    range: RangeInclusive<u16>,
    next: BTreeMap<NodeId, u16>,
    /// Until when each is taken.
    used: BTreeMap<Tuple, u64>,
    /// Those in TIME_WAIT, roughly in the order of their ends.
    waiting: VecDeque<(u64, Tuple)>,
}

impl Ports {
    /// Hands out ports of that range.
    pub(super) fn new(range: RangeInclusive<u16>) -> Ports {
        assert!(!range.is_empty(), "a node needs ports");
        Ports { range, next: BTreeMap::new(), used: BTreeMap::new(), waiting: VecDeque::new() }
    }

    /// A port for a connection to `peer` (`None`: for a socket that serves anybody) that is not `taken` otherwise, now in use;
    /// `None`: there is none.
    pub(super) fn take(
        &mut self,
        node: NodeId,
        peer: Option<SocketAddr>,
        now: u64,
        taken: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        self.forget_ended(now);
        let (first, last) = (*self.range.start(), *self.range.end());
        let mut port = *self.next.entry(node).or_insert(first);
        for _ in first..=last {
            let candidate = port;
            port = if port == last { first } else { port + 1 };
            if !taken(candidate) && self.is_free(node, candidate, peer, now) {
                self.next.insert(node, port);
                self.used.insert((node, candidate, peer), NEVER);
                return Some(candidate);
            }
        }
        None
    }

    /// Whether a client's connection has the port, or keeps it: nobody can listen on it then. (An accepted connection does not
    /// count: it shares its listener's `SO_REUSEADDR`.)
    pub(super) fn is_a_clients(&self, node: NodeId, port: u16, now: u64) -> bool {
        self.range.contains(&port) && self.users(node, port, now).any(|peer| peer.is_some())
    }

    /// To which peers the port is in use, or kept.
    fn users(&self, node: NodeId, port: u16, now: u64) -> impl Iterator<Item = Option<SocketAddr>> {
        let of_port = self.used.range((node, port, None)..).take_while(move |((n, p, _), _)| (*n, *p) == (node, port));
        of_port.filter(move |(_, until)| **until > now).map(|((_, _, peer), _)| *peer)
    }

    fn is_free(&self, node: NodeId, port: u16, peer: Option<SocketAddr>, now: u64) -> bool {
        let live = |until: Option<&u64>| until.is_some_and(|until| *until > now);
        match peer {
            Some(_) => !live(self.used.get(&(node, port, None))) && !live(self.used.get(&(node, port, peer))),
            None => self.users(node, port, now).next().is_none(),
        }
    }

    /// Gives a port back, at once or after a TIME_WAIT that lasts `until`.
    pub(super) fn release(&mut self, node: NodeId, port: u16, peer: Option<SocketAddr>, until: Option<u64>) {
        let tuple = (node, port, peer);
        match until {
            Some(until) => {
                self.used.insert(tuple, until);
                self.waiting.push_back((until, tuple));
            }
            None => {
                self.used.remove(&tuple);
            }
        }
    }

    /// The node's kernel forgot everything.
    pub(super) fn forget_waiting(&mut self, node: NodeId) {
        self.used.retain(|(owner, _, _), until| *owner != node || *until == NEVER);
    }

    fn forget_ended(&mut self, now: u64) {
        while let Some((until, tuple)) = self.waiting.front().copied().filter(|(until, _)| *until <= now) {
            self.waiting.pop_front();
            // The tuple may have been taken again and be waiting anew.
            if self.used.get(&tuple) == Some(&until) {
                self.used.remove(&tuple);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeId, Ports, SocketAddr};

    const NODE: NodeId = NodeId::WORLD;

    fn peer(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([10, 0, 0, 2], port)))
    }

    #[test]
    fn ports_run_out_and_come_back() {
        let mut ports = Ports::new(100..=103);
        assert_eq!(ports.take(NODE, None, 0, |port| port == 100), Some(101));
        assert_eq!(ports.take(NODE, None, 0, |_| false), Some(102));
        assert_eq!(ports.take(NODE, peer(1), 0, |_| false), Some(103));
        assert_eq!(ports.take(NODE, None, 0, |port| port == 100), None);
        ports.release(NODE, 102, None, None);
        assert_eq!(ports.take(NODE, None, 0, |port| port == 100), Some(102));
    }

    #[test]
    fn one_port_leads_to_many_peers_but_once_to_each() {
        let mut ports = Ports::new(100..=100);
        assert_eq!(ports.take(NODE, peer(1), 0, |_| false), Some(100));
        assert_eq!(ports.take(NODE, peer(2), 0, |_| false), Some(100));
        assert_eq!(ports.take(NODE, peer(1), 0, |_| false), None);
        assert_eq!(ports.take(NODE, None, 0, |_| false), None, "a socket for anybody needs the port alone");
        assert!(ports.is_a_clients(NODE, 100, 0) && !ports.is_a_clients(NODE, 99, 0));
    }

    #[test]
    fn a_port_in_time_wait_is_free_when_it_is_over_and_not_before() {
        let mut ports = Ports::new(100..=100);
        assert_eq!(ports.take(NODE, peer(1), 0, |_| false), Some(100));
        ports.release(NODE, 100, peer(1), Some(60));
        assert_eq!(ports.take(NODE, peer(1), 59, |_| false), None);
        assert_eq!(ports.take(NODE, peer(1), 60, |_| false), Some(100));
        assert_eq!(ports.take(NODE, peer(1), 61, |_| false), None, "the old wait does not end the new use");
        ports.release(NODE, 100, peer(1), Some(90));
        ports.forget_waiting(NODE);
        assert_eq!(ports.take(NODE, peer(1), 61, |_| false), Some(100));
    }
}
