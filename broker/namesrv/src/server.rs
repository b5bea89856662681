//! The process around the core: socket, file, clock, and the scan for silent brokers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use remoting::Server;
use rt::sync::{CancellationToken, Mutex};
use rt::task::TaskGroup;
use rt::time::sleep;
use tracing::{info, warn};

use crate::config::NamesrvConfig;
use crate::error::{KvConfigError, NamesrvError};
use crate::handler::{Requests, Shared};
use crate::kv_config::KvConfig;

/// A running name server.
pub struct NameServer {
    server: Arc<Server>,
    tasks: TaskGroup,
    shared: Arc<Shared>,
}

impl NameServer {
    /// Reads the key-value configuration, listens, and starts to look for silent brokers. Ends its tasks when `shutdown` is
    /// cancelled; [`Self::shutdown`] ends the rest in order.
    ///
    /// # Errors
    /// The configuration file cannot be read, or the address is not to be had.
    pub async fn start(config: NamesrvConfig, shutdown: &CancellationToken) -> Result<Self, NamesrvError> {
        assert!(!config.scan_interval.is_zero(), "a scan without pause would do nothing else");
        let kv = match &config.kv_config_path {
            Some(path) => load(path).await.map_err(|source| NamesrvError::KvConfig { path: path.clone(), source })?,
            None => KvConfig::default(),
        };
        let shared = Shared::new(&config, kv);
        let handler = Arc::new(Requests(Arc::clone(&shared)));
        let server = Arc::new(Server::bind(config.listen, config.remoting, handler).await?);
        let tasks = TaskGroup::child_of(shutdown);
        let (scanned, connections) = (Arc::clone(&shared), Arc::clone(&server));
        tasks.spawn(scan(scanned, connections, config.scan_interval, tasks.token().clone()));
        info!(addr = %server.local_addr(), "name server started");
        Ok(Self { server, tasks, shared })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Panics if the route table contradicts itself.
    pub fn check_invariants(&self) {
        self.shared.routes().check_invariants();
    }

    /// Stops the scan, answers what is being served, and closes every connection.
    pub async fn shutdown(&self) {
        self.tasks.shutdown().await;
        self.server.shutdown().await;
        info!("name server stopped");
    }
}

/// Looks for silent brokers until cancelled.
async fn scan(shared: Arc<Shared>, server: Arc<Server>, interval: Duration, stop: CancellationToken) {
    loop {
        rt::select! {
            () = stop.cancelled() => return,
            () = sleep(if rt::buggify!("namesrv.scan_early") { interval / 10 } else { interval }) => {}
        }
        let expired = shared.routes().expire(shared.now());
        if expired.is_empty() {
            continue;
        }
        let connections = server.connections();
        for (key, number) in expired {
            warn!(broker = %key.name, addr = %key.addr, "broker expired");
            if let Some(connection) = connections.iter().find(|connection| connection.id().as_u64() == number) {
                connection.close();
            }
        }
        shared.routes().check_invariants();
    }
}

async fn load(path: &Path) -> Result<KvConfig, KvConfigError> {
    let read = rt::fs::read_or_backup(path, |bytes| KvConfig::from_json(bytes).map_err(KvConfigError::from)).await?;
    Ok(read.unwrap_or_default())
}

/// The file of the key-value configuration, written by one request at a time.
pub(crate) struct KvFile {
    path: Option<PathBuf>,
    writing: Mutex<()>,
}

impl KvFile {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, writing: Mutex::new(()) }
    }

    pub(crate) fn path_text(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }

    /// Writes what `text` gives once the file is ours: what a later request put is then in it too.
    pub(crate) async fn write(&self, text: impl FnOnce() -> Vec<u8>) -> Result<(), KvConfigError> {
        let Some(path) = &self.path else { return Ok(()) };
        let _only_one = self.writing.lock().await;
        if let Some(folder) = path.parent() {
            rt::fs::create_dir_durably(folder).await?;
        }
        rt::fs::replace(path, &text()).await?;
        Ok(())
    }
}
