//! The state that the handlers of one broker share.
use crate::config::{BrokerRole, ClusterConfig, ServerConfig};
use crate::consumer_filters::FilterTable;
use crate::consumers::{Change, ConsumerTable, Peer};
use crate::delay::DelayTable;
use crate::groups::GroupTable;
use crate::hold::{HoldTable, QueueKey};
use crate::locks::LockTable;
use crate::offsets::OffsetTable;
use crate::persist::TableFile;
use crate::producers::ProducerTable;
use crate::refusal::Refusal;
use crate::replicas::Replicas;
use crate::stats::Stats;
use crate::timer_state::TimerState;
use crate::topics::{SCHEDULE_TOPIC, TopicTable, perm, plain};
use crate::transaction::halves::Halves;
use protocol::RequestCode;
use protocol::body::{SubscriptionGroupConfig, TopicConfig};
use protocol::frame::Command;
use protocol::header::NotifyConsumerIdsChangedRequest;
use protocol::message::UniqueKeyMaker;
use remoting::Connection;
use rt::sync::{CancellationToken, Notify, oneshot};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, unix_ms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use store::{Arrival, Arrivals, Store};
use tracing::{debug, error, info, warn};

/// The addresses a broker really has, once its sockets are bound.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    advertised: SocketAddr,
    ha_advertised: SocketAddr,
}

/// The files of the tables.
#[derive(Debug)]
pub(crate) struct Files {
    pub topics: TableFile,
    pub groups: TableFile,
    pub offsets: TableFile,
    pub delays: TableFile,
    pub timer_metrics: TableFile,
    pub filters: TableFile,
    pub slaves: TableFile,
}

/// Everything that requests, arrivals and periodic work share. No lock here is held across a wait.
pub(crate) struct Broker {
    pub cluster: ClusterConfig,
    pub config: ServerConfig,
    pub store: Arc<Store>,
    pub replicas: Replicas,
    pub client: remoting::Client,
    pub files: Files,
    pub stats: Stats,
    /// Wakes the registration: the topics have changed.
    pub topics_changed: Notify,
    /// Wakes a slave's copying: there is a master to copy from.
    pub master_found: Notify,
    /// Wakes the delivery of a delay level whose queue was empty.
    pub level_arrivals: Vec<Notify>,
    /// Wakes the removal of old messages: an operator has asked for it.
    pub removal_asked: Notify,
    /// Wakes the timer.
    pub timer_arrivals: Notify,
    /// Cancelled when it is known which halves of transactions are open.
    pub halves_known: CancellationToken,
    /// Work that a request leaves behind: notices to clients.
    pub background: TaskGroup,
    /// Cancelled when the broker shuts down; held pulls end.
    pub closing: CancellationToken,
    /// Cancelled when the broker begins to serve; requests wait for it.
    pub serving: CancellationToken,
    /// Cancelled when this broker's log is known to lack nothing that was acknowledged: see [`crate::regain`].
    whole: CancellationToken,
    addresses: OnceLock<Addresses>,
    booted: Instant,
    pub booted_ms: i64,
    /// The master's address, as the name servers or the configuration tell a slave.
    master: Mutex<Option<String>>,
    topics: Mutex<TopicTable>,
    groups: Mutex<GroupTable>,
    offsets: Mutex<OffsetTable>,
    delays: Mutex<DelayTable>,
    timer: Mutex<TimerState>,
    halves: Mutex<Halves>,
    consumers: Mutex<ConsumerTable>,
    /// Shared with the store's dispatch.
    filters: Arc<Mutex<FilterTable>>,
    producers: Mutex<ProducerTable>,
    locks: Mutex<LockTable>,
    held: Mutex<HoldTable<oneshot::Sender<()>>>,
    connections: Mutex<BTreeMap<Peer, Connection>>,
    random: Mutex<rt::rand::Stream>,
}

/// What a broker has loaded before it serves.
pub(crate) struct Tables {
    pub topics: TopicTable,
    pub groups: GroupTable,
    pub offsets: OffsetTable,
    pub delays: DelayTable,
    pub filters: Arc<Mutex<FilterTable>>,
}

/// What a broker is made of.
pub(crate) struct Parts {
    pub cluster: ClusterConfig,
    pub config: ServerConfig,
    pub store: Arc<Store>,
    pub replicas: Replicas,
    pub client: remoting::Client,
    pub files: Files,
    pub tables: Tables,
}

impl Broker {
    pub fn new(parts: Parts, shutdown: &CancellationToken) -> Broker {
        let background = TaskGroup::child_of(shutdown);
        Broker {
            stats: Stats::default(),
            topics_changed: Notify::new(),
            master_found: Notify::new(),
            level_arrivals: parts.cluster.delay_levels.iter().map(|_| Notify::new()).collect(),
            removal_asked: Notify::new(),
            timer_arrivals: Notify::new(),
            closing: shutdown.child_token(),
            serving: CancellationToken::new(),
            whole: CancellationToken::new(),
            addresses: OnceLock::new(),
            background,
            booted: Instant::now(),
            booted_ms: unix_ms(),
            master: Mutex::new(None),
            topics: Mutex::new(parts.tables.topics),
            groups: Mutex::new(parts.tables.groups),
            offsets: Mutex::new(parts.tables.offsets),
            delays: Mutex::new(parts.tables.delays),
            timer: Mutex::default(),
            halves: Mutex::default(),
            halves_known: CancellationToken::new(),
            consumers: Mutex::default(),
            filters: parts.tables.filters,
            producers: Mutex::default(),
            locks: Mutex::new(LockTable::new(parts.config.timing.lock_expiry)),
            held: Mutex::new(HoldTable::new(parts.config.held_pulls_max)),
            connections: Mutex::default(),
            random: Mutex::new(rt::rand::stream("broker")),
            cluster: parts.cluster,
            config: parts.config,
            store: parts.store,
            replicas: parts.replicas,
            client: parts.client,
            files: parts.files,
        }
    }

    /// Time since the broker's start: the clock of clients and locks.
    pub fn now(&self) -> Duration {
        self.booted.elapsed()
    }

    pub fn is_slave(&self) -> bool {
        self.config.role == BrokerRole::Slave
    }

    /// Whether the log is known to lack nothing that was acknowledged. Never true of a slave; a master that has just started learns it
    /// from its slaves.
    pub fn is_whole(&self) -> bool {
        self.whole.is_cancelled()
    }

    /// Returns when the broker is whole.
    pub async fn wait_whole(&self) {
        self.whole.cancelled().await;
    }

    /// From now on messages are taken and slaves let in.
    pub fn set_whole(&self) {
        assert!(!self.is_slave());
        self.whole.cancel();
        if let Some(ha) = self.replicas.master() {
            ha.open();
        }
    }

    /// Fixes the addresses once the sockets are bound: a port 0 in the configuration becomes the one the system chose.
    pub fn set_addresses(&self, bound: SocketAddr) {
        let with_port =
            |told: SocketAddr, port: u16| if told.port() == 0 { SocketAddr::new(told.ip(), port) } else { told };
        let ha_port = self.replicas.ha_addr().map_or(0, |ha| ha.port());
        let addresses = Addresses {
            advertised: with_port(self.config.advertised, bound.port()),
            ha_advertised: with_port(self.config.ha_advertised, ha_port),
        };
        self.addresses.set(addresses).expect("set once, by the start");
    }

    /// What clients are told to connect to.
    pub fn advertised(&self) -> SocketAddr {
        self.addresses().advertised
    }

    /// What slaves are told to connect to.
    pub fn ha_advertised(&self) -> SocketAddr {
        self.addresses().ha_advertised
    }

    fn addresses(&self) -> &Addresses {
        self.addresses.get().expect("requests and periodic work begin after the sockets are bound")
    }

    pub fn own_ip(&self) -> String {
        self.advertised().ip().to_string()
    }

    pub fn topics(&self) -> MutexGuard<'_, TopicTable> {
        lock(&self.topics)
    }

    pub fn groups(&self) -> MutexGuard<'_, GroupTable> {
        lock(&self.groups)
    }

    pub fn offsets(&self) -> MutexGuard<'_, OffsetTable> {
        lock(&self.offsets)
    }

    pub fn delays(&self) -> MutexGuard<'_, DelayTable> {
        lock(&self.delays)
    }

    pub fn timer(&self) -> MutexGuard<'_, TimerState> {
        lock(&self.timer)
    }

    pub fn halves(&self) -> MutexGuard<'_, Halves> {
        lock(&self.halves)
    }

    pub fn consumers(&self) -> MutexGuard<'_, ConsumerTable> {
        lock(&self.consumers)
    }

    /// Taken after the consumers, if both are.
    pub fn filters(&self) -> MutexGuard<'_, FilterTable> {
        lock(&self.filters)
    }

    pub fn producers(&self) -> MutexGuard<'_, ProducerTable> {
        lock(&self.producers)
    }

    pub fn locks(&self) -> MutexGuard<'_, LockTable> {
        lock(&self.locks)
    }

    pub fn held(&self) -> MutexGuard<'_, HoldTable<oneshot::Sender<()>>> {
        lock(&self.held)
    }

    pub fn connections(&self) -> MutexGuard<'_, BTreeMap<Peer, Connection>> {
        lock(&self.connections)
    }

    /// A number in `0..below`, for the choice of a queue.
    pub fn random_below(&self, below: i32) -> i32 {
        use rt::rand::Rng;
        assert!(below > 0);
        lock(&self.random).random_range(0..below)
    }

    /// A unique key for a message that has none.
    pub fn unique_key(&self) -> String {
        let salt = u32::try_from(self.random_below(i32::MAX)).expect("not negative");
        let counter = u16::try_from(self.random_below(1 << 16)).expect("16 bits");
        UniqueKeyMaker::new(self.advertised().ip(), 0, salt).make(unix_ms(), counter)
    }

    pub fn master(&self) -> Option<String> {
        lock(&self.master).clone()
    }

    pub fn set_master(&self, master: Option<String>) {
        *lock(&self.master) = master;
    }

    /// A topic's configuration. That of a light queue need not be created.
    pub fn topic(&self, topic: &str) -> Option<TopicConfig> {
        let known = self.topics().get(topic).cloned();
        known.or_else(|| self.is_light(topic).then(|| plain(topic, 1, perm::READ_WRITE)))
    }

    /// Whether a topic or group is one of a light queue, which are served.
    fn is_light(&self, name: &str) -> bool {
        self.config.light_queues && store::is_light(name)
    }

    /// The topic, created as given if need be, and known to disk and name servers when it is new.
    pub async fn ensure_topic(&self, config: TopicConfig) -> TopicConfig {
        let (config, created) = self.topics().ensure(config, unix_ms());
        if created {
            self.topic_created(&config.topic_name).await;
        }
        config
    }

    /// Saves the topics and wakes the registration.
    pub async fn topic_created(&self, topic: &str) {
        info!(topic, "topic created");
        self.topics_changed.notify_one();
        self.save_topics().await;
    }

    /// The group's configuration. That of a light queue need not be created.
    pub fn group(&self, group: &str) -> Option<SubscriptionGroupConfig> {
        let known = self.groups().get(group).cloned();
        known.or_else(|| self.is_light(group).then(|| SubscriptionGroupConfig::new(group)))
    }

    /// The same, created if groups may create themselves.
    pub async fn find_group(&self, group: &str) -> Option<SubscriptionGroupConfig> {
        if let Some(known) = self.group(group) {
            return Some(known);
        }
        let (config, created) = self.groups().find_or_create(group, unix_ms())?;
        if created {
            info!(group, "subscription group created");
            self.save_groups().await;
        }
        Some(config)
    }

    /// Saves what changed; an error is told and the next period tries again.
    pub async fn save_topics(&self) {
        let saved = self.files.topics.save(|| {
            let topics = self.topics();
            (topics.changes(), topics.text())
        });
        report("topics", saved.await);
    }

    pub async fn save_groups(&self) {
        let saved = self.files.groups.save(|| {
            let groups = self.groups();
            (groups.changes(), groups.text())
        });
        report("subscription groups", saved.await);
    }

    pub async fn save_offsets(&self) {
        let saved = self.files.offsets.save(|| {
            let offsets = self.offsets();
            (offsets.changes(), offsets.text())
        });
        report("consumer offsets", saved.await);
    }

    /// Saves how far the delay levels were delivered, as far as what was delivered survives a power loss: a table that is ahead of the log
    /// would pass over messages whose delivery was lost. If the log does not get to the disk in time, the next period tries again.
    pub async fn save_delays(&self) {
        let (changes, text) = {
            let delays = self.delays();
            (delays.changes(), delays.text())
        };
        // A slave delivers nothing; its table speaks of its master's log.
        if changes > 0 && !self.is_slave() {
            let end = self.store.log_end();
            if let Err(error) = self.store.flushed(end, self.config.timing.sync_flush_timeout).await {
                warn!(%end, %error, "delay offsets not saved, what they speak of is not on the disk");
                return;
            }
        }
        report("delay offsets", self.files.delays.save(|| (changes, text)).await);
    }

    /// Saves how much waits for its moment, once something has.
    pub async fn save_timer_metrics(&self) {
        let (changes, text) = {
            let timer = self.timer();
            (timer.changes(), timer.text())
        };
        if changes > 0 {
            report("timer metrics", self.files.timer_metrics.save_compact(|| (changes, text)).await);
        }
    }

    /// Saves the filters of consumer groups, once there are any.
    pub async fn save_filters(&self) {
        if self.filters().changes() == 0 {
            return;
        }
        let saved = self.files.filters.save(|| {
            let mut filters = self.filters();
            filters.clean(unix_ms(), self.config.filter.keep_dead);
            (filters.changes(), filters.text())
        });
        report("consumer filters", saved.await);
    }

    /// Filters of groups without members are dead from now on.
    pub fn end_filters(&self) {
        let consumers = self.consumers();
        self.filters().end(unix_ms(), |_, group| consumers.group(group).is_none());
    }

    /// Tells the members of a group that it has changed, so that they share the queues out anew.
    pub fn notify(&self, change: Change) {
        if !self.config.notify_consumer_change {
            return;
        }
        let members: BTreeSet<Peer> = change.members.into_iter().collect();
        let targets: Vec<Connection> = self
            .connections()
            .iter()
            .filter(|(peer, _)| members.contains(peer))
            .map(|(_, connection)| connection.clone())
            .collect();
        let header = NotifyConsumerIdsChangedRequest { consumer_group: change.group };
        self.background.spawn(async move {
            for connection in targets {
                // One-way: it may be lost, and a member finds out at its own next rebalance.
                if rt::buggify!("server.change_notice_lost") {
                    continue;
                }
                let mut notice = Command::request(RequestCode::NotifyConsumerIdsChanged, &header);
                notice.mark_oneway();
                // A member that cannot be told finds out at its own next rebalance.
                if let Err(error) = connection.send_oneway(notice).await {
                    debug!(group = %header.consumer_group, peer = %connection.peer_addr(), %error, "change notice not sent");
                }
            }
        });
    }

    /// Forgets what belonged to an ended connection, and tells those it leaves behind.
    pub fn forget(&self, peer: Peer) {
        self.connections().remove(&peer);
        self.producers().disconnected(peer);
        let changes = self.consumers().disconnected(peer);
        self.end_filters();
        for change in changes {
            self.notify(change);
        }
    }

    /// Refuses what only a master may do.
    pub fn require_master(&self) -> Result<(), Refusal> {
        if self.is_slave() { Err(Refusal::Slave) } else { Ok(()) }
    }
}

/// Wakes the held pulls that a new message satisfies, and its delay level or the timer. The store's dispatch calls it.
pub(crate) struct WakeHeld(pub std::sync::Weak<Broker>);

impl Arrivals for WakeHeld {
    fn arrived(&self, arrival: &Arrival) {
        let Some(broker) = self.0.upgrade() else { return };
        if &*arrival.topic == SCHEDULE_TOPIC {
            crate::delay::arrived(&broker, arrival.queue_id);
        } else if &*arrival.topic == store::TIMER_TOPIC {
            crate::timer::arrived(&broker);
        }
        if !broker.config.long_polling {
            return;
        }
        let key = QueueKey { topic: arrival.topic.to_string(), queue_id: arrival.queue_id };
        let woken = broker.held().arrived(&key, arrival.queue_offset, arrival.tags_code);
        for wake in woken {
            // A pull whose deadline came at the same time has gone already.
            let _ = wake.send(());
        }
    }
}

fn report(what: &'static str, saved: std::io::Result<()>) {
    if let Err(error) = saved {
        error!(what, %error, "table not saved");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code that can panic runs under this lock")
}
