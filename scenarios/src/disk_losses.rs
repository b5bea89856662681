//! What happened to the disks of nodes beside crashes: damage at rest, and new disks.

use crate::operation::History;
use sim::history::What;
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

fn losses<'a>(history: &'a History, node: &'a str) -> impl Iterator<Item = (Duration, Loss)> + 'a {
    history.events.iter().filter_map(move |event| match &event.what {
        What::Node { node: name, event: what } if name == node => match what.as_str() {
            WIPED | STORE_REPLACED => Some((event.at, Loss::Replaced)),
            what if DAMAGES.contains(&what) => Some((event.at, Loss::Damaged)),
            _ => None,
        },
        _ => None,
    })
}

/// Whether the node's disk is damaged at that time. A fault that damages single operations may strike as long as nobody has replaced the disk.
pub fn is_damaged(history: &History, node: &str, at: Duration) -> bool {
    losses(history, node).take_while(|(when, _)| *when <= at).last().is_some_and(|(_, loss)| loss == Loss::Damaged)
}

/// Since when the node has had its present disk, as of `by`; `None`: from the start.
pub fn replaced(history: &History, node: &str, by: Duration) -> Option<Duration> {
    losses(history, node).filter(|(when, loss)| *when <= by && *loss == Loss::Replaced).map(|(when, _)| when).last()
}

/// Whether the node still has at `until` what it was given at `from`, as far as these losses go.
pub fn keeps(history: &History, node: &str, from: Duration, until: Duration) -> bool {
    !is_damaged(history, node, from) && losses(history, node).all(|(when, _)| when < from || when > until)
}
