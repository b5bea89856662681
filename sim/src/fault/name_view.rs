//! One node's view of a name: its resolver fails, or goes on answering with the address of another machine.

use super::{Act, stage::Stage};
use rt::world::{NodeId, ip, network};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a node sees instead of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Fails,
    /// The address of that machine.
    Means(NodeId),
}

/// Lookups of a name fail on a node. Of two faults of one name on one node the last one that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameFailure {
    /// Where.
    pub node: String,
    /// Which name, without port.
    pub name: String,
}

/// A node sees a stale address of a name: another machine has it now. Of two faults of one name on one node the last one that is not
/// over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameStale {
    /// Where.
    pub node: String,
    /// Which name, without port.
    pub name: String,
    /// The node whose address it seems to mean.
    pub means: String,
}

impl Act for NameFailure {
    const UNIT: &'static str = "lookups failed";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        show(stage, stage.node(&self.node), &self.name, View::Fails, lasts).await
    }
}

impl Act for NameStale {
    const UNIT: &'static str = "lookups misled";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node, &self.means]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let means = View::Means(stage.node(&self.means));
        show(stage, stage.node(&self.node), &self.name, means, lasts).await
    }
}

async fn show(stage: &Stage, node: NodeId, name: &str, view: View, lasts: Duration) -> u64 {
    let before = network::effects().names_changed;
    let apply = |view: Option<View>| match view {
        Some(View::Fails) => network::fail_name_on(node, name),
        Some(View::Means(other)) => network::set_name_on(node, name, &[ip(other)]),
        None => network::restore_name_on(node, name),
    };
    stage.set(|holds| &mut holds.names, (node, name.to_owned()), view, lasts, apply).await;
    network::effects().names_changed - before
}
