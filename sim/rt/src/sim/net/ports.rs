//! Local port numbers in use.
use crate::sim::node::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Linux's default `ip_local_port_range`.
const FIRST: u16 = 32_768;
const LAST: u16 = 60_999;

/// Ephemeral ports per node, handed out in turn so that a number is not reused soon.
#[derive(Debug, Default)]
pub(super) struct Ports {
    next: BTreeMap<NodeId, u16>,
    used: BTreeSet<(NodeId, u16)>,
}

impl Ports {
    /// A port that nobody on the node uses and that is not `taken` otherwise, now in use; `None`: there is none.
    pub(super) fn take(&mut self, node: NodeId, taken: impl Fn(u16) -> bool) -> Option<u16> {
        let next = self.next.entry(node).or_insert(FIRST);
        for _ in FIRST..=LAST {
            let port = *next;
            *next = if port == LAST { FIRST } else { port + 1 };
            if !taken(port) && self.used.insert((node, port)) {
                return Some(port);
            }
        }
        None
    }

    pub(super) fn release(&mut self, node: NodeId, port: u16) {
        self.used.remove(&(node, port));
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LAST, NodeId, Ports};

    #[test]
    fn ports_run_out_and_come_back() {
        let mut ports = Ports::default();
        let node = NodeId::WORLD;
        let mut take = |taken: u16| ports.take(node, |port| port == taken);
        assert_eq!(take(FIRST), Some(FIRST + 1));
        for _ in FIRST + 1..=LAST {
            assert!(take(0).is_some());
        }
        assert_eq!(take(0), None);
        ports.release(node, 40_000);
        assert_eq!(ports.take(node, |_| false), Some(40_000));
    }
}
