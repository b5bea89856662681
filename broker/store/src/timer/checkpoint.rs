//! The file `config/timercheck`: how far the timer has come.
use crate::layout::{self, PAGE, TimerCheckpoint};
use rt::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The file and what it says. It is made by the first write.
#[derive(Debug)]
pub(crate) struct CheckpointFile {
    path: PathBuf,
    said: TimerCheckpoint,
}

impl CheckpointFile {
    /// Reads the file of a store's root. A file that is missing or too short says nothing.
    pub(crate) async fn load(root: &Path) -> io::Result<CheckpointFile> {
        let path = root.join(layout::CONFIG_DIR).join(layout::TIMER_CHECKPOINT_FILE);
        let said = match rt::fs::read(&path).await {
            Ok(bytes) => TimerCheckpoint::decode(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => TimerCheckpoint::default(),
            Err(error) => return Err(error),
        };
        Ok(CheckpointFile { path, said })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says.
    pub(crate) fn said(&self) -> TimerCheckpoint {
        self.said
    }

    /// Replaces what it says; it survives a power loss. The 56 bytes lie in one sector: they are the old ones or the new ones.
    pub(crate) async fn write(&mut self, checkpoint: TimerCheckpoint) -> io::Result<()> {
        let directory = self.path.parent().expect("it lies in a directory");
        let open = || OpenOptions::new().write(true).create(true).open(&self.path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                rt::fs::create_dir_durably(directory).await?;
                open()?
            }
            opened => opened?,
        };
        let is_new = file.len()? < PAGE;
        if is_new {
            file.set_len(PAGE)?;
        }
        file.write_at(&checkpoint.encode(), 0)?;
        file.sync_data().await?;
        if is_new {
            rt::fs::sync_dir(directory).await?;
        }
        self.said = checkpoint;
        Ok(())
    }
}
