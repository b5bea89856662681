use crate::connection::Connection;
use protocol::Command;
use std::future::Future;
use std::pin::Pin;

/// An owned future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which in-flight limit a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Answered as fast as the broker can. At the limit the connection is not read until one is answered. The handler's future runs to its end
    /// even if the connection closes meanwhile.
    Prompt,
    /// May wait for an event (a long-polling pull). At the limit the request is answered with SYSTEM_BUSY, so that held requests never
    /// stop a heartbeat behind them. The handler's future is dropped at its next wait when the connection closes.
    Held,
}

/// What the program does with the requests of its peers. One object per [`Server`](crate::Server) or [`Client`](crate::Client).
///
/// Each request runs in its own task; answers may go out in another order than the requests came in.
pub trait Handler: Send + Sync + 'static {
    /// Serves one request. `None`: no answer is written (the answer, if any, goes out another way). The answer to a one-way request is
    /// discarded. The opaque and the response flag of the answer are set by this package.
    fn handle(&self, connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>>;

    /// Which limit the request counts against, decided before [`handle`](Self::handle) is called. Must not block.
    fn lane(&self, request: &Command) -> Lane {
        let _ = request;
        Lane::Prompt
    }

    /// A peer has connected (server), or a connection to a peer stands (client). Called before its first request. Must not block.
    fn connection_opened(&self, connection: &Connection) {
        let _ = connection;
    }

    /// The connection has ended, for whatever reason. Called exactly once, after every call on it fails. Must not block.
    fn connection_closed(&self, connection: &Connection) {
        let _ = connection;
    }
}
