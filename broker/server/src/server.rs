//! The life of a broker: what starts before what, and what ends before what.
use crate::broker::{Broker, Files, Parts, Tables, WakeHeld};
use crate::config::{ClusterConfig, ServerConfig};
use crate::delay::{DelayTable, DelayTableText};
use crate::dispatch::Dispatch;
use crate::error::ServerError;
use crate::groups::{GroupTable, GroupTableText};
use crate::offsets::{OffsetTable, OffsetTableText};
use crate::persist::TableFile;
use crate::replicas::Replicas;
use crate::topics::{TopicTable, TopicTableText};
use crate::{registration, schedule, slave_sync};
use remoting::{Client, Server};
use rt::sync::{CancellationToken, DropGuard};
use rt::task::TaskGroup;
use rt::time::timeout;
use std::net::SocketAddr;
use std::sync::Arc;
use store::{Store, UnrecoveredStore};
use tracing::{error, info, warn};

/// A running broker.
pub struct BrokerServer {
    broker: Arc<Broker>,
    sockets: Server,
    periodic: TaskGroup,
    /// Ends what is left, at once, when this is dropped.
    _life: DropGuard,
    shutdown: CancellationToken,
}

impl BrokerServer {
    /// Opens and recovers the store, loads the tables, listens, registers with the name servers, and starts what runs by the clock.
    /// Serving begins only when the tables are whole; a master that returns has its slaves' progress by then.
    pub async fn start(
        cluster: ClusterConfig,
        config: ServerConfig,
        shutdown: &CancellationToken,
    ) -> Result<BrokerServer, ServerError> {
        let config_dir = config.root.join("config");
        rt::fs::create_dir_durably(&config_dir)
            .await
            .map_err(|source| ServerError::Directory { path: config_dir.clone(), source })?;
        let files = Files {
            topics: TableFile::new(&config.root, "topics.json"),
            groups: TableFile::new(&config.root, "subscriptionGroup.json"),
            offsets: TableFile::new(&config.root, "consumerOffset.json"),
            delays: TableFile::new(&config.root, "delayOffset.json"),
        };
        let tables = load(&cluster, &files).await?;
        let store = UnrecoveredStore::open(config.store.clone()).await?.recover().await?;
        // The broker's own token, not the caller's: on the caller's wish it ends in order, with everything still running.
        let life = CancellationToken::new();
        let guard = life.clone().drop_guard();
        store.start(&life);
        let client = Client::new(config.remoting_client.clone(), None, &life);
        let begun = async {
            let replicas = Replicas::start(&cluster, &config, &store, &client, &life).await?;
            let parts = Parts { cluster, config, store: Arc::clone(&store), replicas, client, files, tables };
            serve(Arc::new(Broker::new(parts, &life)), &life).await
        };
        match begun.await {
            Ok((broker, sockets, periodic)) => {
                Ok(BrokerServer { broker, sockets, periodic, _life: guard, shutdown: shutdown.clone() })
            }
            Err(refused) => {
                // A store that is left open counts as crashed; the next start need not pay for a taken port.
                if let Err(error) = store.shutdown().await {
                    warn!(%error, "store not closed in order");
                }
                Err(refused)
            }
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.sockets.local_addr()
    }

    /// What clients are told.
    pub fn advertised_addr(&self) -> SocketAddr {
        self.broker.advertised()
    }

    /// The store underneath, for checkers.
    pub fn store(&self) -> &Arc<Store> {
        &self.broker.store
    }

    /// Serves until the token given to [`start`](Self::start) is cancelled, then ends in order; or until the store fails, then ends at
    /// once without another answer.
    pub async fn run(self) -> Result<(), ServerError> {
        let poisoned = rt::select! {
            cause = self.broker.store.wait_poisoned() => Some(cause),
            () = self.shutdown.cancelled() => None,
        };
        match poisoned {
            None => self.stop().await,
            Some(cause) => {
                error!(%cause, "store poisoned, broker ends");
                Err(ServerError::Poisoned(cause))
            }
        }
    }

    /// Ends in order: no new clients, held pulls answered, periodic work stopped, tables saved, replication stopped, store last.
    pub async fn stop(self) -> Result<(), ServerError> {
        let limit = self.broker.config.timing.shutdown_timeout;
        let step = |what: &'static str, done: Result<(), rt::time::Elapsed>| {
            if done.is_err() {
                warn!(what, after = ?limit, "shutdown step not finished, going on");
            }
        };
        step("unregister", timeout(limit, registration::unregister(&self.broker)).await);
        self.broker.closing.cancel();
        step("connections", timeout(limit, self.sockets.shutdown()).await);
        step("periodic work", timeout(limit, self.periodic.shutdown()).await);
        step("notices", timeout(limit, self.broker.background.shutdown()).await);
        step("tables", timeout(limit, self.broker.save_all()).await);
        step("replication", timeout(limit, self.broker.replicas.shutdown()).await);
        step("client", timeout(limit, self.broker.client.shutdown()).await);
        // The store is not cut short: it would have to recover instead.
        let stored = self.broker.store.shutdown().await;
        info!(broker = %self.broker.cluster.broker_name, "broker stopped");
        stored.map_err(ServerError::from)
    }
}

impl Broker {
    async fn save_all(&self) {
        self.save_topics().await;
        self.save_groups().await;
        self.save_offsets().await;
        self.save_delays().await;
    }

    /// Before a master serves: offsets that point beyond what the log still has are lowered, and progress made on slaves comes in.
    async fn regain_progress(&self) {
        if self.is_slave() {
            return;
        }
        slave_sync::lower_to_ends(self);
        if self.cluster.offset_merge {
            slave_sync::regain(self).await;
        }
    }
}

/// Listens, and goes on once the tables are whole: progress regained, name servers told, periodic work begun.
async fn serve(broker: Arc<Broker>, life: &CancellationToken) -> Result<(Arc<Broker>, Server, TaskGroup), ServerError> {
    let config = &broker.config;
    broker.store.set_arrivals(Arc::new(WakeHeld(Arc::downgrade(&broker))));
    // Bound early, so that a taken port is found before anything else takes time; requests wait until the broker serves.
    let handler = Arc::new(Dispatch(Arc::clone(&broker)));
    let sockets = Server::bind(config.listen, config.remoting_server.clone(), handler).await?;
    broker.set_addresses(sockets.local_addr());
    broker.regain_progress().await;
    broker.serving.cancel();

    if let (Some(ha), true) = (config.ha_master.clone(), config.name_servers.is_empty()) {
        broker.replicas.follow(&ha, None).await;
    }
    // The first registration is waited for, so that a started broker is one that clients can find; but not for long.
    let registered = timeout(config.timing.start_register_wait, registration::register(&broker)).await;
    let periodic = TaskGroup::child_of(life);
    schedule::start(&broker, &periodic, registered == Ok(true));
    info!(
        broker = %broker.cluster.broker_name,
        id = config.broker_id,
        role = config.role.name(),
        address = %broker.advertised(),
        "broker started"
    );
    Ok((broker, sockets, periodic))
}

async fn load(cluster: &ClusterConfig, files: &Files) -> Result<Tables, ServerError> {
    let mut topics = TopicTable::new(cluster);
    if let Some(text) = files.topics.load::<TopicTableText>().await? {
        topics.load(text);
    }
    let mut groups = GroupTable::new(cluster.auto_create_group);
    if let Some(text) = files.groups.load::<GroupTableText>().await? {
        groups.load(text);
    }
    let offsets =
        files.offsets.load::<OffsetTableText>().await?.map(|text| OffsetTable::from_text(&text)).unwrap_or_default();
    let delays =
        files.delays.load::<DelayTableText>().await?.map(|text| DelayTable::from_text(&text)).unwrap_or_default();
    Ok(Tables { topics, groups, offsets, delays })
}
