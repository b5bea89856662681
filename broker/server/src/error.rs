//! Why a broker cannot start, or ends without being asked to.
use remoting::BindError;
use replication::HaError;
use std::io;
use std::path::PathBuf;
use store::{PoisonCause, StoreError};
use thiserror::Error;

/// Why a broker cannot start, or ends without being asked to.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The folder of the tables cannot be made or written.
    #[error("cannot use store directory {}: {source}", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table's file and its backup cannot be used.
    #[error("cannot read {}: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: TableError,
    },
    /// The store cannot be opened or recovered.
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// The clients' address is taken or not ours.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The replication service cannot start.
    #[error("replication: {0}")]
    Replication(#[from] HaError),
    /// The disk failed while the broker ran: nothing that it said since may be believed, so it ends.
    #[error("the store is poisoned: {0}")]
    Poisoned(PoisonCause),
}

/// Why a table's file cannot be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its text is no such table.
    #[error("damaged: {0}")]
    Damaged(#[from] protocol::JsonError),
}
