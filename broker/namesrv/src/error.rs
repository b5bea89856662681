//! Errors of the name server.

use std::io;
use std::path::PathBuf;

use protocol::JsonError;
use remoting::BindError;

/// A name server could not start.
#[derive(Debug, thiserror::Error)]
pub enum NamesrvError {
    /// It could not listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Its key-value configuration could not be read.
    #[error("key-value configuration {path} cannot be read: {source}", path = path.display())]
    KvConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KvConfigError,
    },
}

/// The key-value configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KvConfigError {
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is damaged.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// Why a registration was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegisterRefused {
    /// A single topic came before all topics of the broker did: routes to the others would be missing.
    #[error("register broker failed")]
    SingleTopicFirst,
}
