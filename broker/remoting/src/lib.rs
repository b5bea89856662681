//! Connections between clients, brokers and name servers: frames on TCP, requests paired with responses, limits, dispatch.
//!
//! **Owns** the sockets of the remoting protocol: who is connected, what was asked and not answered yet, how much may be queued, when a
//! silent connection ends, how a connection is closed.
//!
//! **Must never know** what a request means: no topic, no store, no route. A [`Handler`] decides that; this package calls it.
//!
//! | module | what it gives |
//! |---|---|
//! | `server` | [`Server`]: accepts, drives each connection, drains on shutdown |
//! | `client` | [`Client`]: one connection per address, opened on first use, shared by all callers |
//! | `connection` | [`Connection`]: the handle of one connection, either side may ask over it |
//! | `driver` | the one task that reads and writes a connection's socket and ends it |
//! | `pending` | the response table: what was asked and not answered (pure) |
//! | `queue` | the bounded write queue: frames and bytes |
//! | `handler` | [`Handler`], [`Lane`], [`BoxFuture`] |
//! | `config` | [`ServerConfig`], [`ClientConfig`], [`ConnectionLimits`] with Apache's figures |
//! | `error` | [`RemotingError`]: each failure says whether the peer may have seen the request ([`Fate`]) |
//!
//! Invariants:
//! - A call ends with exactly one of: its response, or an error. A connection that ends fails all its calls at once.
//! - [`Fate::NotSent`] is proof: no byte of the request was given to the socket, and none will be.
//! - Memory per connection is bounded by [`ConnectionLimits`] whatever the peer does: a peer that does not read stops our writers, a peer
//!   that asks too much is no longer read.
//! - [`Handler::connection_closed`] is called exactly once for each connection, after the connection refuses every call.

mod client;
mod config;
mod connection;
mod driver;
mod error;
mod handler;
mod pending;
mod queue;
mod server;

pub use client::Client;
pub use config::{ClientConfig, ConnectionLimits, ServerConfig};
pub use connection::{Connection, ConnectionId, ConnectionStats};
pub use error::{BindError, CloseReason, ConnectReason, Fate, RemotingError};
pub use handler::{BoxFuture, Handler, Lane};
pub use server::Server;
