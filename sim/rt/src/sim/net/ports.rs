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
    /// A port that nobody on the node uses, now in use; `None`: there is none.
    pub(super) fn take(&mut self, node: NodeId) -> Option<u16> {
        let next = self.next.entry(node).or_insert(FIRST);
        for _ in FIRST..=LAST {
            let port = *next;
            *next = if port == LAST { FIRST } else { port + 1 };
            if self.used.insert((node, port)) {
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
        assert_eq!(ports.take(node), Some(FIRST));
        for _ in FIRST + 1..=LAST {
            assert!(ports.take(node).is_some());
        }
        assert_eq!(ports.take(node), None);
        ports.release(node, 40_000);
        assert_eq!(ports.take(node), Some(40_000));
    }
}
