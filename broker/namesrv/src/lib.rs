//! The name server: who serves which topic.
//!
//! **Owns** the route table that brokers fill by registering and clients read, and the key-value configuration.
//!
//! **Must never know** a message, an offset, a store, or another name server: each one is filled by the brokers alone.
//!
//! | module | what it gives |
//! |---|---|
//! | [`route_table`] | [`RouteTable`]: the pure core; time is an argument, what is to be done outside is returned |
//! | [`kv_config`] | [`KvConfig`]: namespaces of keys and values, and their file's text (pure) |
//! | `handler` | requests to calls of the core, results to answers |
//! | `server` | [`NameServer`]: socket, file, clock, expiry scan |
//! | [`config`] | [`NamesrvConfig`] with RocketMQ's figures |
//! | [`error`] | [`NamesrvError`] |
//!
//! Invariants (of the core, checked by [`RouteTable::check_invariants`]):
//! - A topic row names a broker that has at least one address; a broker without addresses is in no table.
//! - An address has one id within its broker name.
//! - A registration is removed by the connection it came over, by its silence, or by its broker; never by what an older connection
//!   says.

pub mod config;
pub mod error;
mod handler;
pub mod kv_config;
pub mod route_table;
mod server;

pub use config::NamesrvConfig;
pub use error::NamesrvError;
pub use kv_config::KvConfig;
pub use route_table::RouteTable;
pub use server::NameServer;
