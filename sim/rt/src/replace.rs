//! Replacing a small file as a whole so that a crash leaves the old or the new content, never none or a mixture.
use crate::fs::{OpenOptions, read, rename, sync_dir};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Writes `bytes` as the new content of `path`: a temporary file is written and synced, the present content becomes `path.bak`,
/// the temporary file takes the name, and the directory is synced. Whoever reads with [`read_or_backup`] finds the old or the
/// new content at every moment.
pub async fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    let temporary = with_suffix(path, ".tmp");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    file.write_at(bytes, 0)?;
    file.sync_data().await?;
    match rename(path, with_suffix(path, ".bak")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    rename(&temporary, path)?;
    sync_dir(path.parent().unwrap_or(Path::new("."))).await
}

/// Reads `path`, and `path.bak` if `path` is missing, empty, or refused by `accept` (damaged). `None`: neither can be used and
/// neither exists. A file that exists and cannot be used in either form is the error of `accept` on the newest.
pub async fn read_or_backup<T, E: From<io::Error>>(
    path: impl AsRef<Path>,
    accept: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let path = path.as_ref();
    let mut first_error = None;
    for candidate in [path.to_owned(), with_suffix(path, ".bak")] {
        match read(&candidate).await {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => match accept(&bytes) {
                Ok(value) => return Ok(Some(value)),
                Err(error) => first_error = first_error.or(Some(error)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => first_error = first_error.or(Some(error.into())),
        }
    }
    first_error.map_or(Ok(None), Err)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
