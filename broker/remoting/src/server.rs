use crate::config::ServerConfig;
use crate::connection::{CallLimits, Connection, ConnectionId};
use crate::driver::Driver;
use crate::error::BindError;
use crate::handler::Handler;
use rt::net::{TcpListener, TcpStream};
use rt::sync::CancellationToken;
use rt::task::TaskGroup;
use rt::time::{Duration, sleep};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::{debug, warn};

/// After a failed accept (no file descriptors, for instance): long enough not to spin, short enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens, and serves every connection until [`shutdown`](Self::shutdown). Dropping it ends everything at once, without callbacks.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    registry: Arc<Registry>,
    acceptor: TaskGroup,
    connections: Arc<TaskGroup>,
    _requests: Arc<TaskGroup>,
}

/// The connections that stand.
#[derive(Debug, Default)]
struct Registry(Mutex<BTreeMap<ConnectionId, Connection>>);

impl Registry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Connection>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

impl Server {
    /// Listens on `addr` (port 0: one the system chooses) and starts to serve.
    ///
    /// # Errors
    /// The address is taken or not ours.
    pub async fn bind(addr: SocketAddr, config: ServerConfig, handler: Arc<dyn Handler>) -> Result<Server, BindError> {
        config.connection.check();
        assert!(config.connections_max > 0);
        let listener = TcpListener::bind(addr).await.map_err(|source| BindError { addr, source })?;
        let local_addr = listener.local_addr().map_err(|source| BindError { addr, source })?;
        let root = CancellationToken::new();
        let (connections, requests) = (Arc::new(TaskGroup::child_of(&root)), Arc::new(TaskGroup::child_of(&root)));
        let acceptor = TaskGroup::child_of(&root);
        let registry = Arc::new(Registry::default());
        let accept = Accept {
            local_addr,
            calls: CallLimits::new(config.requests_max, config.oneways_max, config.oneway_wait_max),
            config,
            handler,
            registry: Arc::clone(&registry),
            connections: Arc::clone(&connections),
            requests: Arc::clone(&requests),
            accepted: 0,
        };
        acceptor.spawn(accept.run(listener, acceptor.token().clone()));
        Ok(Server { local_addr, registry, acceptor, connections, _requests: requests })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The connections that stand, oldest first.
    pub fn connections(&self) -> Vec<Connection> {
        self.registry.lock().values().cloned().collect()
    }

    /// Stops accepting, reads no more requests, answers those being served, writes what is queued, and closes every connection: at most
    /// the configured drain time. Held requests are waited for as well; whoever holds them should let go first.
    pub async fn shutdown(&self) {
        self.acceptor.shutdown().await;
        self.connections.shutdown().await;
    }
}

/// The accepting task.
struct Accept {
    local_addr: SocketAddr,
    config: ServerConfig,
    calls: Arc<CallLimits>,
    handler: Arc<dyn Handler>,
    registry: Arc<Registry>,
    connections: Arc<TaskGroup>,
    requests: Arc<TaskGroup>,
    accepted: u64,
}

impl Accept {
    async fn run(mut self, listener: TcpListener, stop: CancellationToken) {
        loop {
            let accepted = rt::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.serve(stream, peer),
                Err(error) => {
                    warn!(addr = %self.local_addr, %error, "accept failed");
                    rt::select! { () = stop.cancelled() => return, () = sleep(ACCEPT_PAUSE) => {} }
                }
            }
        }
    }

    fn serve(&mut self, stream: TcpStream, peer: SocketAddr) {
        if self.registry.lock().len() >= self.config.connections_max {
            warn!(%peer, limit = self.config.connections_max, "connection refused: too many");
            return;
        }
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "connection lost before it was served");
            return;
        }
        let local = stream.local_addr().unwrap_or(self.local_addr);
        self.accepted += 1;
        let id = ConnectionId::new(self.local_addr.port(), self.accepted);
        let (connection, frames) = Connection::new(
            id,
            (local, peer),
            self.config.connection.clone(),
            Arc::clone(&self.calls),
            self.connections.token().child_token(),
        );
        self.registry.lock().insert(id, connection.clone());
        let driver = Driver::new(connection, frames, Some(Arc::clone(&self.handler)), Arc::clone(&self.requests));
        let registry = Arc::clone(&self.registry);
        self.connections.spawn(async move {
            driver.run(stream).await;
            registry.lock().remove(&id);
        });
    }
}
