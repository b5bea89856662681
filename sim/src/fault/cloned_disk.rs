//! The machine is replaced by one whose disk was copied from a peer, with the peer's identity and all it believes of itself.

use super::wiped_disk::files;
use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends a node, gives it every file of another as that one's programs see them now (its page cache: a copy by `cp -r` while the other
/// goes on; empty directories are not copied), and starts it again at the end of the fault. What was on its own disk is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClonedDisk {
    /// Who gets the copy.
    pub node: String,
    /// Whose files are copied.
    pub from: String,
}

impl Act for ClonedDisk {
    const UNIT: &'static str = "files copied";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node, &self.from]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        stage.take_down(&self.node, rt::world::power_loss);
        let copies = files(stage.node(&self.from));
        disk::wipe(node);
        let mut copied = 0;
        for (path, bytes) in &copies {
            // A disk that is full takes no more: the copy stays what it is, and the program must cope.
            copied += u64::from(disk::write_file(node, path, bytes).is_ok());
        }
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        copied
    }
}
