//! The one-way state after a failed sync or an unclear write: nothing is appended or confirmed any more.
use rt::sync::watch;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What went wrong first. Later failures do not replace it.
#[derive(Clone, Debug)]
pub struct PoisonCause(Arc<Cause>);

#[derive(Debug)]
struct Cause {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl PoisonCause {
    /// What was tried.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.0.action
    }
    /// On which file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }
    /// The system's answer.
    #[must_use]
    pub fn source(&self) -> &io::Error {
        &self.0.source
    }
}

impl fmt::Display for PoisonCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.0.action, self.0.path.display(), self.0.source)
    }
}

/// Set once, seen by all.
#[derive(Debug)]
pub(crate) struct Poison {
    cause: OnceLock<PoisonCause>,
    seen: watch::Sender<bool>,
}

impl Poison {
    pub(crate) fn new() -> Poison {
        Poison { cause: OnceLock::new(), seen: watch::Sender::new(false) }
    }

    /// The first cause stays.
    pub(crate) fn set(&self, action: &'static str, path: &Path, source: io::Error) -> PoisonCause {
        rt::probe!("store.poisoned");
        tracing::error!(action, path = %path.display(), %source, "store poisoned");
        let cause = self.cause.get_or_init(|| PoisonCause(Arc::new(Cause { action, path: path.to_owned(), source })));
        self.seen.send_replace(true);
        cause.clone()
    }

    pub(crate) fn get(&self) -> Option<PoisonCause> {
        self.cause.get().cloned()
    }

    pub(crate) fn check(&self) -> Result<(), PoisonCause> {
        self.get().map_or(Ok(()), Err)
    }

    /// Changes to `true` once.
    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.seen.subscribe()
    }
}
