//! What a fault may damage of what was synced: a file, or a disk as a whole, that the atlas of the scenario permits.

use super::stage::Stage;
use rt::rand::{Rng, Stream, stream};
use rt::world::{NodeId, disk};
use std::path::PathBuf;

/// Bytes that a device reads and writes as a whole.
pub(super) const SECTOR: u64 = 512;

/// The number of a run's summary that counts damages which did not come to pass.
const REFUSED: &str = "damages refused by the atlas";

/// Every file of the node, if the atlas lets its whole disk be lost. The node's program goes on meanwhile: take it down in this instant.
pub(super) fn losable_disk(stage: &Stage, name: &str) -> Option<Vec<PathBuf>> {
    let files = disk::files(stage.node(name));
    if !stage.atlas().permits_loss_of_disk(name, &files) {
        stage.count(REFUSED, 1);
        return None;
    }
    Some(files)
}

/// What may be damaged: a file, and draws of places in it.
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// Bytes of it that are on the platter, at least one.
    pub(super) len: u64,
    draws: Stream,
}

impl Target {
    /// A file of the node whose path contains the text. None: there is none with synced bytes, or the atlas refuses each.
    pub(super) fn choose(stage: &Stage, name: &str, path_contains: Option<&str>) -> Option<Target> {
        let node = stage.node(name);
        let matches = |path: &PathBuf| path_contains.is_none_or(|part| path.to_string_lossy().contains(part));
        let mut files: Vec<(PathBuf, u64)> =
            disk::files(node).into_iter().filter(matches).filter_map(|path| stored(node, path)).collect();
        if files.is_empty() {
            return None;
        }
        let atlas = stage.atlas();
        files.retain(|(path, _)| atlas.would_permit(name, path));
        if files.is_empty() {
            atlas.refuse();
            stage.count(REFUSED, 1);
            return None;
        }
        let mut draws = stream("damage");
        let (path, len) = files.swap_remove(draws.random_range(0..files.len()));
        let permitted = atlas.permits(name, &path);
        assert!(permitted, "it was permitted when it was chosen");
        Some(Target { path, len, draws })
    }

    /// A drawn number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.draws.random_range(0..end)
    }
}

fn stored(node: NodeId, path: PathBuf) -> Option<(PathBuf, u64)> {
    let len = disk::durable_len(node, &path).ok()?;
    (len > 0).then_some((path, len))
}
