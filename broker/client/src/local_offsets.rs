//! The file in which a broadcasting consumer keeps its progress (RocketMQ's `LocalFileOffsetStore`): the same place, the same text.
use crate::error::LocalOffsetsError;
use protocol::{MessageQueue, QueueOffset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Table {
    offset_table: BTreeMap<MessageQueue, i64>,
}

/// The progress on disk. Queues that are not owned at present stay in it.
#[derive(Debug)]
pub(crate) struct LocalOffsets {
    path: PathBuf,
    table: Table,
}

impl LocalOffsets {
    /// Reads `<directory>/<client id>/<group>/offsets.json`, or its backup. A file that is there and damaged, with no good backup, is an
    /// error: to start anew would repeat or skip messages without a word.
    pub(crate) async fn load(
        directory: &Path,
        client_id: &str,
        group: &str,
    ) -> Result<LocalOffsets, LocalOffsetsError> {
        let path = directory.join(client_id).join(group).join("offsets.json");
        let accept = |bytes: &[u8]| Ok::<_, LocalOffsetsError>(protocol::json::from_slice::<Table>(bytes)?);
        let table = rt::fs::read_or_backup(&path, accept).await?.unwrap_or_default();
        Ok(LocalOffsets { path, table })
    }

    /// The stored progress of a queue.
    pub(crate) fn get(&self, queue: &MessageQueue) -> Option<QueueOffset> {
        self.table
            .offset_table
            .get(queue)
            .map(|offset| QueueOffset(*offset))
            .filter(|offset| *offset >= QueueOffset::ZERO)
    }

    /// Puts these on top of what is stored. A crash leaves the old or the new file.
    pub(crate) async fn save(&mut self, progress: &[(MessageQueue, QueueOffset)]) -> Result<(), LocalOffsetsError> {
        for (queue, offset) in progress {
            self.table.offset_table.insert(queue.clone(), offset.0);
        }
        let directory = self.path.parent().unwrap_or(Path::new("."));
        rt::fs::create_dir_durably(directory).await?;
        Ok(rt::fs::replace(&self.path, &protocol::json::to_vec_pretty(&self.table)?).await?)
    }
}
