//! What the extensions of queues hold.
use super::{InspectError, failed, numbered};
use crate::layout::{self, UNIT_MAX, Unit};
use rt::fs::File;
use std::path::{Path, PathBuf};

struct UnitFile {
    /// Place in the extension.
    start: u64,
    length: u64,
    path: PathBuf,
    file: File,
}

/// The extension of one queue.
#[derive(Default)]
pub(super) struct UnitFiles {
    dir: PathBuf,
    files: Vec<UnitFile>,
    /// Some of it in memory: place, bytes.
    chunk: (u64, Vec<u8>),
}

impl UnitFiles {
    pub(super) fn open(dir: &Path) -> Result<UnitFiles, InspectError> {
        let mut files = Vec::new();
        for (start, path) in numbered(dir, layout::parse_file_name)? {
            let file = File::open(&path).map_err(failed(&path))?;
            let length = file.len().map_err(failed(&path))?;
            files.push(UnitFile { start, length, path, file });
        }
        Ok(UnitFiles { dir: dir.to_owned(), files, ..UnitFiles::default() })
    }

    /// The unit at a place, if there is a whole one; and where that is.
    pub(super) async fn at(&mut self, place: u64) -> Result<(Option<Unit>, PathBuf, u64), InspectError> {
        let holds = |file: &&UnitFile| file.start <= place && place < file.start.saturating_add(file.length);
        let Some(file) = self.files.iter().find(holds) else { return Ok((None, self.dir.clone(), 0)) };
        let in_file = place - file.start;
        if let Some(unit) = in_chunk(&self.chunk, place) {
            return Ok((Some(unit), file.path.clone(), in_file));
        }
        let rest = file.length - in_file;
        let mut bytes = vec![0; usize::try_from(rest).map_or(UNIT_MAX, |rest| rest.min(UNIT_MAX))];
        file.file.read_exact_at(&mut bytes, in_file).await.map_err(failed(&file.path))?;
        self.chunk = (place, bytes);
        Ok((in_chunk(&self.chunk, place), file.path.clone(), in_file))
    }
}

fn in_chunk((start, bytes): &(u64, Vec<u8>), place: u64) -> Option<Unit> {
    Unit::decode(bytes.get(usize::try_from(place.checked_sub(*start)?).ok()?..)?)
}
