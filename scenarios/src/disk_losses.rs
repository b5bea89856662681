//! What happened to the disks of nodes beside crashes: damage at rest, and new disks.

use crate::operation::History;
use sim::history::What;
use std::collections::BTreeSet;
use std::time::Duration;

/// Node event: an operator has emptied the store of a slave that refused to start, for it to be copied anew.
pub const STORE_REPLACED: &str = "store replaced";

/// Begins of faults that damage what was synced, as the nemesis tells them.
const DAMAGES: [&str; 4] =
    ["bit_rot begins", "latent_sector_error begins", "misdirected_write begins", "stale_read begins"];
const WIPED: &str = "wiped_disk begins";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Anything on it may be wrong from now on.
    Damaged,
    /// All of it is gone, the damage too.
    Replaced,
}

/// What happened to the disks of all nodes, in order of time.
fn all_losses(history: &History) -> impl Iterator<Item = (Duration, &str, Loss)> {
    history.events.iter().filter_map(|event| match &event.what {
        What::Node { node, event: what } => match what.as_str() {
            WIPED | STORE_REPLACED => Some((event.at, node.as_str(), Loss::Replaced)),
            what if DAMAGES.contains(&what) => Some((event.at, node.as_str(), Loss::Damaged)),
            _ => None,
        },
        _ => None,
    })
}

fn losses<'a>(history: &'a History, node: &'a str) -> impl Iterator<Item = (Duration, Loss)> + 'a {
    all_losses(history).filter(move |(_, name, _)| *name == node).map(|(when, _, loss)| (when, loss))
}

/// The nodes whose disk is damaged at that time. A fault that damages single operations may strike as long as nobody has replaced the disk.
pub fn damaged(history: &History, at: Duration) -> BTreeSet<String> {
    let mut damaged = BTreeSet::new();
    for (_, node, loss) in all_losses(history).take_while(|(when, ..)| *when <= at) {
        match loss {
            Loss::Damaged => damaged.insert(node.to_owned()),
            Loss::Replaced => damaged.remove(node),
        };
    }
    damaged
}

/// Whether the node's disk is damaged at that time, as [`damaged`] says.
pub fn is_damaged(history: &History, node: &str, at: Duration) -> bool {
    damaged(history, at).contains(node)
}

/// Since when the node has had its present disk, as of `by`; `None`: from the start.
pub fn replaced(history: &History, node: &str, by: Duration) -> Option<Duration> {
    losses(history, node).filter(|(when, loss)| *when <= by && *loss == Loss::Replaced).map(|(when, _)| when).last()
}

/// Whether the node still has at `until` what it was given at `from`, as far as these losses go.
pub fn keeps(history: &History, node: &str, from: Duration, until: Duration) -> bool {
    !is_damaged(history, node, from) && losses(history, node).all(|(when, _)| when < from || when > until)
}
