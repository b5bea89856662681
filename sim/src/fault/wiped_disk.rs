//! The machine is replaced by one with an empty disk.

use super::{Act, stage::Stage};
use rt::world::{NodeId, disk};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ends a node, empties its disk, and starts it again at the end of the fault. What was on the disk does not come back: let it loose
/// on no more nodes than the program promises to survive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WipedDisk {
    /// Whose.
    pub node: String,
}

impl Act for WipedDisk {
    const UNIT: &'static str = "files lost";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let lost = files(node).len() as u64;
        stage.take_down(&self.node, rt::world::power_loss);
        disk::wipe(node);
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        lost
    }
}

/// Every file of the node with its path, as its programs see it.
pub(super) fn files(node: NodeId) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut directories = vec![Path::new("/").to_owned()];
    while let Some(directory) = directories.pop() {
        for path in disk::list(node, &directory).expect("the directory was just listed") {
            match disk::read_file(node, &path) {
                Ok(bytes) => files.push((path, bytes)),
                // Not a file.
                Err(_) => directories.push(path),
            }
        }
    }
    files
}
