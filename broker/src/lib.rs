//! Configuration text to role to run: the one way a RocketMQ process of ours comes to life, in production and in the simulator.
//!
//! **Owns** the meaning of `broker.conf` and `namesrv.conf` (keys by RocketMQ's names), what is refused in them, and [`run`].
//! **Must never know** what a request is; it only starts and stops the packages that do.
//!
//! | module | what it holds |
//! |---|---|
//! | `raw` | the properties format: keys, values, lines |
//! | `reader` | typed values out of it, unknown keys, the dump |
//! | `config` | [`Config`]: what each role reads |
//! | `run` | [`run`]: start, serve, stop |
//! | `load` | [`load::run`]: numbered messages through our own client, each acknowledged one consumed |
//! | `store_files` | [`store_files::check`], `dump`, `repair`: the files of a store that nobody has open |
//! | `error` | [`ConfigError`], [`RunError`], [`FileError`] |
//!
//! # Invariants
//! - A value is in force or refused, never dropped: keys without effect are listed in a warning when a process starts.
//! - There is no second boot path: `main` and every scenario call [`run`].

mod config;
mod error;
pub mod load;
mod raw;
mod reader;
mod run;
pub mod store_files;

pub use config::{BrokerSettings, Config, NamesrvSettings, Role};
pub use error::{ConfigError, FileError, RunError};
pub use run::{read_config, run};
