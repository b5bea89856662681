//! Tables as small files under `config/`, replaced as a whole: a crash leaves the old or the new content.
use crate::error::{ServerError, TableError};
use protocol::JsonError;
use rt::sync::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// One table's file. At most one write at a time, and only if the table differs from what was written last.
#[derive(Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    /// The change number that is on disk.
    written: Mutex<Option<u64>>,
}

impl TableFile {
    pub fn new(root: &Path, name: &str) -> TableFile {
        TableFile { path: root.join("config").join(name), written: Mutex::new(None) }
    }

    /// Reads the file, or its backup. `None` if there is neither.
    pub async fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, ServerError> {
        let accept = |bytes: &[u8]| protocol::json::from_slice::<T>(bytes).map_err(TableError::from);
        rt::fs::read_or_backup(&self.path, accept)
            .await
            .map_err(|source| ServerError::Table { path: self.path.clone(), source })
    }

    /// Writes what `snapshot` gives, unless its change number is on disk already. The snapshot is taken under the file's lock, so
    /// of two writers the later one writes the newer table.
    pub async fn save<T: Serialize>(&self, snapshot: impl FnOnce() -> (u64, T)) -> io::Result<()> {
        self.save_as(snapshot, protocol::json::to_vec_pretty).await
    }

    /// As [`save`](Self::save), on one line without spaces.
    pub async fn save_compact<T: Serialize>(&self, snapshot: impl FnOnce() -> (u64, T)) -> io::Result<()> {
        self.save_as(snapshot, protocol::json::to_vec).await
    }

    async fn save_as<T: Serialize>(
        &self,
        snapshot: impl FnOnce() -> (u64, T),
        write: impl FnOnce(&T) -> Result<Vec<u8>, JsonError>,
    ) -> io::Result<()> {
        let mut written = self.written.lock().await;
        let (change, table) = snapshot();
        if *written == Some(change) {
            return Ok(());
        }
        let bytes = write(&table).expect("tables have text keys and plain values");
        rt::fs::replace(&self.path, &bytes).await?;
        *written = Some(change);
        Ok(())
    }
}
