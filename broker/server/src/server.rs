//! The life of a broker: what starts before what, and what ends before what.
use crate::broker::{Broker, Files, Parts, Tables, WakeHeld};
use crate::config::{ClusterConfig, ServerConfig};
use crate::consumer_filters::{FilterTable, FilterTableText, FiltersInBits};
use crate::delay::{DelayTable, DelayTableText};
use crate::dispatch::Dispatch;
use crate::error::ServerError;
use crate::groups::{GroupTable, GroupTableText};
use crate::offsets::{OffsetTable, OffsetTableText};
use crate::persist::TableFile;
use crate::replicas::Replicas;
use crate::topics::{TopicTable, TopicTableText};
use crate::{known_slaves, regain, registration, schedule};
use remoting::{Client, Server};
use rt::sync::{CancellationToken, DropGuard};
use rt::task::TaskGroup;
use rt::time::{timeout, unix_ms};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
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

/// The file of committed offsets, and the one that takes its place where light queues are served.
const OFFSETS: &str = "consumerOffset.json";
const LIGHT_OFFSETS: &str = "lmqConsumerOffset.json";

impl BrokerServer {
    /// Opens and recovers the store, loads the tables, listens, learns from its slaves what it lost (a master, see [`crate::regain`]),
    /// registers with the name servers, and starts what runs by the clock. A master whose slaves do not answer takes messages later
    /// than this returns, if they may hold acknowledged ones that it lost.
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
            offsets: TableFile::new(&config.root, if config.light_queues { LIGHT_OFFSETS } else { OFFSETS }),
            delays: TableFile::new(&config.root, "delayOffset.json"),
            timer_metrics: TableFile::new(&config.root, "timermetrics"),
            filters: TableFile::new(&config.root, "consumerFilter.json"),
            slaves: TableFile::new(&config.root, "hotfireSlaves.json"),
        };
        let tables = load(&cluster, &config, &files).await?;
        let mut store = UnrecoveredStore::open(config.store.clone()).await?;
        for topic in tables.topics.batch_topics() {
            store.make_batch_topic(topic).await?;
        }
        if config.filter.in_bits {
            store.set_bit_maps(Arc::new(FiltersInBits(Arc::clone(&tables.filters))));
        }
        let store = store.recover().await?;
        tables.filters.lock().expect("no code that can panic runs under this lock").bits_begin_at(store.log_end());
        // The broker's own token, not the caller's: on the caller's wish it ends in order, with everything still running.
        let life = CancellationToken::new();
        let guard = life.clone().drop_guard();
        store.start(&life);
        let must_ask = regain::must_ask(&cluster, &config, store.recovery_report());
        let client = Client::new(config.remoting_client.clone(), None, &life);
        let begun = async {
            let replicas = Replicas::start(&cluster, &config, &store, &client, &life).await?;
            if let Some(master) = replicas.master() {
                master.remember_slaves(known_slaves::load(&files).await?);
            }
            let parts = Parts { cluster, config, store: Arc::clone(&store), replicas, client, files, tables };
            serve(Arc::new(Broker::new(parts, &life)), must_ask, &life).await
        };
        match begun.await {
            Ok((broker, sockets, periodic)) => {
                Ok(BrokerServer { broker, sockets, periodic, _life: guard, shutdown: shutdown.clone() })
            }
            Err(refused) => {
                // A store that is left open counts as crashed; the next start need not pay for a taken port. But it must still ask.
                if must_ask {
                    warn!("store left as after a crash: slaves may have what it lost");
                } else if let Err(error) = store.shutdown().await {
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
        // Whoever stops us may lose patience: no progress must be older on the disk than its period says.
        step("tables", timeout(limit, self.broker.save_all()).await);
        step("unregister", timeout(limit, registration::unregister(&self.broker)).await);
        self.broker.closing.cancel();
        step("connections", timeout(limit, self.sockets.shutdown()).await);
        step("periodic work", timeout(limit, self.periodic.shutdown()).await);
        step("notices", timeout(limit, self.broker.background.shutdown()).await);
        step("tables", timeout(limit, self.broker.save_all()).await);
        step("replication", timeout(limit, self.broker.replicas.shutdown()).await);
        step("client", timeout(limit, self.broker.client.shutdown()).await);
        if !self.broker.is_slave() && !self.broker.is_whole() {
            // The next start must ask the slaves as this one did, so it must not look like one after an orderly end.
            warn!(broker = %self.broker.cluster.broker_name, "broker stopped before its slaves were heard, store left as after a crash");
            return Ok(());
        }
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
        self.save_timer_metrics().await;
        self.save_filters().await;
    }
}

/// Listens, and goes on once a master is whole or that takes too long: requests served, name servers told, periodic work begun.
async fn serve(
    broker: Arc<Broker>,
    must_ask: bool,
    life: &CancellationToken,
) -> Result<(Arc<Broker>, Server, TaskGroup), ServerError> {
    let config = &broker.config;
    broker.store.set_arrivals(Arc::new(WakeHeld(Arc::downgrade(&broker))));
    // Bound early, so that a taken port is found before anything else takes time; requests wait until the broker serves.
    let handler = Arc::new(Dispatch(Arc::clone(&broker)));
    let sockets = Server::bind(config.listen, config.remoting_server.clone(), handler).await?;
    broker.set_addresses(sockets.local_addr());
    let periodic = TaskGroup::child_of(life);
    if !broker.is_slave() {
        periodic.spawn(regain::run(Arc::clone(&broker), must_ask));
        if timeout(regain::patience(&broker, must_ask), broker.wait_whole()).await.is_err() {
            rt::probe!("server.regain.reads_only");
            warn!("reads are served, messages are taken once the slaves were heard");
        }
    }
    broker.serving.cancel();

    if let (Some(ha), true) = (config.ha_master.clone(), config.name_servers.is_empty()) {
        broker.replicas.follow(&ha, None).await;
    }
    // The first registration is waited for, so that a started broker is one that clients can find; but not for long.
    let registered = timeout(config.timing.start_register_wait, registration::register(&broker)).await;
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

async fn load(cluster: &ClusterConfig, config: &ServerConfig, files: &Files) -> Result<Tables, ServerError> {
    let mut topics = TopicTable::new(cluster);
    if let Some(text) = files.topics.load::<TopicTableText>().await? {
        topics.load(text);
    }
    let mut groups = GroupTable::new(cluster.auto_create_group);
    if let Some(text) = files.groups.load::<GroupTableText>().await? {
        groups.load(text);
    }
    let mut text = files.offsets.load::<OffsetTableText>().await?;
    if config.light_queues && text.is_none() {
        // Until now the broker had no light queues.
        text = TableFile::new(&config.root, OFFSETS).load::<OffsetTableText>().await?;
    }
    let mut offsets = text.map(|text| OffsetTable::from_text(&text)).unwrap_or_default();
    if config.light_queues {
        offsets.keep_light_apart();
    }
    let delays =
        files.delays.load::<DelayTableText>().await?.map(|text| DelayTable::from_text(&text)).unwrap_or_default();
    let mut filters = FilterTable::new(config.filter.bloom);
    if let Some(text) = files.filters.load::<FilterTableText>().await? {
        filters.load(text, unix_ms());
    }
    let filters = Arc::new(Mutex::new(filters));
    Ok(Tables { topics, groups, offsets, delays, filters })
}
