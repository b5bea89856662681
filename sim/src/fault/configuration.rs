//! With which version of its configuration a node is started, and with which it was.

use super::layers::{Layer, Layers};
use super::stage::Stage;
use rt::world::NodeId;
use std::collections::BTreeMap;

/// The place of a configuration among those of its node; 0 is the first one, which counts without faults.
type Version = usize;

/// What counts for which node, and what has counted.
#[derive(Debug, Default)]
pub(super) struct Configurations {
    laid: Layers<NodeId, Version>,
    running: BTreeMap<NodeId, Version>,
    starts: BTreeMap<(NodeId, Version), u64>,
}

/// A configuration that a fault lays over the others of a node.
pub(super) struct Configured {
    version: Version,
    layer: Layer,
    starts_before: u64,
}

impl Configurations {
    /// The node's program is being started: with what.
    pub(super) fn start(&mut self, node: NodeId) -> Version {
        let version = self.counts(node);
        self.running.insert(node, version);
        *self.starts.entry((node, version)).or_default() += 1;
        version
    }

    fn counts(&self, node: NodeId) -> Version {
        self.laid.top(&node).unwrap_or_default()
    }

    fn starts(&self, node: NodeId, version: Version) -> u64 {
        self.starts.get(&(node, version)).copied().unwrap_or_default()
    }
}

impl Stage {
    /// Lets the configuration of that name count for the node, from its next start on.
    pub(super) fn configure(&self, name: &str, configuration: &str) -> Configured {
        let node = self.node(name);
        let version = self.version(name, configuration).expect("the nemesis has checked every name of the schedule");
        self.held(|holds| {
            let configurations = &mut holds.configurations;
            let layer = configurations.laid.lay(node, version);
            Configured { version, layer, starts_before: configurations.starts(node, version) }
        })
    }

    /// Takes that back: how often the node was started with it, and whether what runs now is what counts.
    pub(super) fn restore(&self, name: &str, Configured { version, layer, starts_before }: Configured) -> (u64, bool) {
        let node = self.node(name);
        self.held(|holds| {
            let configurations = &mut holds.configurations;
            configurations.laid.lift(node, layer);
            let starts = configurations.starts(node, version) - starts_before;
            let running = configurations.running.get(&node).copied().unwrap_or_default();
            (starts, running == configurations.counts(node))
        })
    }
}
