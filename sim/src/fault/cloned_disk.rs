//! The machine is replaced by one whose disk was copied from a peer, with the peer's identity and all it believes of itself.

use super::damage::losable_disk;
use super::{Act, stage::Stage};
use rt::world::disk;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends a node, gives it every file of another as that one's programs see them now (its page cache: a copy by `cp -r` while the other
/// goes on; empty directories are not copied), and starts it again at the end of the fault. What was on its own disk is gone, so the
/// atlas must let its copies of everything be lost. They count as damaged until the scenario says that its system has repaired them: the
/// other may have less than the node had.
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
        if losable_disk(stage, &self.node).is_none() {
            return 0;
        }
        let (node, from) = (stage.node(&self.node), stage.node(&self.from));
        stage.take_down(&self.node, rt::world::power_loss);
        disk::wipe(node);
        let mut copied = 0;
        for path in disk::files(from) {
            let bytes = disk::read_file(from, &path).expect("the file was just seen");
            // A disk that is full takes no more: the copy stays what it is, and the program must cope.
            copied += u64::from(disk::write_file(node, &path, &bytes).is_ok());
        }
        stage.hold(lasts).await;
        stage.bring_up(&self.node);
        copied
    }
}
