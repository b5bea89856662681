//! What can be wrong before and while a process runs.
use namesrv::NamesrvError;
use server::ServerError;
use std::path::PathBuf;
use thiserror::Error;

/// A configuration that cannot be used. Each error names the key and its line, so that one line of output is enough to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A line without `=`.
    #[error("line {line}: {text:?} is no key=value")]
    NoSeparator {
        /// From 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// A line that begins with its separator.
    #[error("line {line}: a value without a key")]
    NoKey {
        /// From 1.
        line: usize,
    },
    /// A backslash that escapes nothing known.
    #[error("line {line}: damaged \\ escape")]
    BadEscape {
        /// From 1.
        line: usize,
    },
    /// A byte that no text file has.
    #[error("line {line}: control character {code:#x}")]
    ControlCharacter {
        /// From 1.
        line: usize,
        /// The character.
        code: u32,
    },
    /// The last line ends in a backslash.
    #[error("line {line}: the file ends in a continued line")]
    EndsInContinuation {
        /// Where that line begins, from 1.
        line: usize,
    },
    /// A value that its key does not allow.
    #[error("{key}={value}{}: expected {expected}", at(*line))]
    Value {
        /// RocketMQ's name of the setting.
        key: String,
        /// As written.
        value: String,
        /// From 1; `None` if given on the command line.
        line: Option<usize>,
        /// What would be right.
        expected: &'static str,
    },
    /// A setting of RocketMQ that asks for something Hotfire does not have.
    #[error("{key}={value}{}: not built", at(*line))]
    NotBuilt {
        /// RocketMQ's name of the setting.
        key: String,
        /// As written.
        value: String,
        /// From 1; `None` if given on the command line.
        line: Option<usize>,
    },
}

fn at(line: Option<usize>) -> String {
    line.map_or(String::new(), |line| format!(" (line {line})"))
}

/// Why a process ended that was not asked to.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address that clients shall be told could not be found out.
    #[error("brokerIP1 is not set, and the address under which {namesrv} sees this host is not known: {source}")]
    OwnAddress {
        /// The name server asked.
        namesrv: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The broker could not start, or ended by an error.
    #[error(transparent)]
    Broker(#[from] ServerError),
    /// The name server could not start, or ended by an error.
    #[error(transparent)]
    NameServer(#[from] NamesrvError),
}

/// Why the file of `-c` could not be used. Belongs to the command line, not to `run`.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// As given.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is damaged.
    #[error("{}: {source}", path.display())]
    Parse {
        /// As given.
        path: PathBuf,
        /// What is wrong with it.
        source: ConfigError,
    },
}
