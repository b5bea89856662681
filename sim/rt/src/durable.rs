//! Idioms for what must survive a power loss: replacing a small file as a whole, and creating directories.
use crate::fs::{OpenOptions, create_dir, read, rename, sync_dir};
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

/// Creates a directory and its missing parents so that no power loss takes them, with all that is in them. A directory that is there
/// already may not be durable yet (its creator may have crashed), so each name on the way is synced. A parent that exists and may
/// not be read cannot be synced, and was not made by us: it is passed over.
pub async fn create_dir_durably(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let ancestors = path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()).collect::<Vec<_>>();
    for directory in ancestors.into_iter().rev() {
        let Some(parent) = directory.parent() else { continue };
        let existed = match create_dir(directory) {
            Ok(()) => false,
            Err(_) if crate::fs::metadata(directory).is_ok_and(|metadata| metadata.is_dir) => true,
            Err(error) => return Err(error),
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match sync_dir(parent).await {
            Err(error) if existed && error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
