//! How to open a file, the same in both halves; each half gives [`OpenOptions`] its `open`.

/// How to open a file: read is always allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) truncate: bool,
}

impl OpenOptions {
    /// Read only, and the file must exist.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }
    /// Allows [`write_at`](crate::fs::File::write_at) and [`set_len`](crate::fs::File::set_len).
    pub fn write(mut self, yes: bool) -> OpenOptions {
        self.write = yes;
        self
    }
    /// Creates the file if it is missing (needs `write`).
    pub fn create(mut self, yes: bool) -> OpenOptions {
        self.create = yes;
        self
    }
    /// Creates the file, and fails with `AlreadyExists` if it is there (needs `write`).
    pub fn create_new(mut self, yes: bool) -> OpenOptions {
        self.create_new = yes;
        self
    }
    /// Cuts the file to length 0 (needs `write`).
    pub fn truncate(mut self, yes: bool) -> OpenOptions {
        self.truncate = yes;
        self
    }
}
