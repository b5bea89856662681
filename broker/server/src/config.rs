//! Settings of a broker, typed and complete. Nothing has a default here: whoever builds one decides (the `broker` package by
//! RocketMQ's keys, a test by hand).
use protocol::filter::BloomFilter;
use replication::{HaMasterConfig, HaSlaveConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use store::StoreConfig;

/// What a broker is to the others of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerRole {
    /// Takes messages and does not wait for slaves.
    AsyncMaster,
    /// Takes messages and waits until `in_sync_replicas` brokers, itself included, hold one before it is acknowledged.
    SyncMaster,
    /// Takes the master's log and nothing else.
    Slave,
}

impl BrokerRole {
    /// The name in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            BrokerRole::AsyncMaster => "ASYNC_MASTER",
            BrokerRole::SyncMaster => "SYNC_MASTER",
            BrokerRole::Slave => "SLAVE",
        }
    }
}

/// What all brokers of one name must agree on, or clients see different clusters behind one name.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// `brokerClusterName`.
    pub cluster_name: String,
    /// `brokerName`: a master and its slaves share it.
    pub broker_name: String,
    /// `inSyncReplicas`: copies, the master's included, before a SYNC_MASTER acknowledges. 1 waits for none.
    pub in_sync_replicas: usize,
    /// `defaultTopicQueueNums`: queues of the template topic, the most an auto-created topic gets.
    pub default_topic_queue_nums: i32,
    /// `autoCreateTopicEnable`: a send may create its topic from the template TBW102.
    pub auto_create_topic: bool,
    /// `autoCreateSubscriptionGroup`: a consumer may create its group.
    pub auto_create_group: bool,
    /// `clusterTopicEnable`: the topic named as the cluster can be used.
    pub cluster_topic: bool,
    /// `brokerTopicEnable`: the topic named as the broker can be used.
    pub broker_topic: bool,
    /// `msgTraceTopicName`, if `traceTopicEnable`.
    pub trace_topic: Option<String>,
    /// `messageDelayLevel`: how long a message of level 1, 2, … is held back.
    pub delay_levels: Vec<Duration>,
    /// `regionId`, told to producers.
    pub region_id: String,
    /// `traceOn`, told to producers.
    pub trace_on: bool,
    /// Hotfire: a master that starts takes from its slaves what they have and it lost, the end of the log and progress, and a slave keeps
    /// the greater progress when it copies (`hotfireRecoverFromSlave`). Off: Apache's rule, the slave takes the master's table as it is,
    /// and what only it had is lost.
    pub recover_from_slave: bool,
}

/// What one broker process is told.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// `brokerId`: 0 for a master, above for its slaves.
    pub broker_id: i64,
    /// `brokerRole`.
    pub role: BrokerRole,
    /// Where requests are taken: `bindAddress:listenPort`.
    pub listen: SocketAddr,
    /// Where clients are told to connect: `brokerIP1:listenPort`. Port 0 = the port that was bound.
    pub advertised: SocketAddr,
    /// Replication as a master; its port is `haListenPort`.
    pub as_master: HaMasterConfig,
    /// Replication as a slave.
    pub as_slave: HaSlaveConfig,
    /// Where slaves are told to connect: `brokerIP2:haListenPort`. Port 0 = the port that was bound.
    pub ha_advertised: SocketAddr,
    /// `haMasterAddress`: a slave's fixed master (`host:port`) instead of the one the name servers tell.
    pub ha_master: Option<String>,
    /// `namesrvAddr`: `host:port` of every name server.
    pub name_servers: Vec<String>,
    /// `storePathRootDir`: the tables' files are in its `config` folder.
    pub root: PathBuf,
    /// `flushDiskType` is SYNC_FLUSH: an acknowledged message is on the disk.
    pub flush_sync: bool,
    /// The store's own settings.
    pub store: StoreConfig,
    /// `brokerPermission`: 4 read, 2 write.
    pub permission: i32,
    /// `slaveReadEnable`: a slave answers pulls, and a master sends readers that are far behind to its slave.
    pub slave_read: bool,
    /// `longPollingEnable`; if off, a held pull waits `short_polling` only.
    pub long_polling: bool,
    /// `enableLmq`: topics and groups of light queues need not be created, and progress is kept in `lmqConsumerOffset.json`.
    pub light_queues: bool,
    /// `recallMessageEnable`: a producer may take back a message that waits for its moment.
    pub recall: bool,
    /// `storeReplyMessageEnable`: replies are kept in the reply topic as well.
    pub store_replies: bool,
    /// `rejectTransactionMessage`: half messages are refused.
    pub reject_transactions: bool,
    /// `transactionCheckMax`: how often the producer of a half message is asked, 1 at least.
    pub transaction_checks_max: u32,
    /// `notifyConsumerIdsChangedEnable`: tell a group's members when one joins or leaves.
    pub notify_consumer_change: bool,
    /// Filters over properties.
    pub filter: FilterConfig,
    /// Pulls held at a time; one more is answered at once.
    pub held_pulls_max: usize,
    /// Limits of the listening sockets.
    pub remoting_server: remoting::ServerConfig,
    /// Limits of the connections to name servers and to the master.
    pub remoting_client: remoting::ClientConfig,
    /// Periods and time-outs.
    pub timing: Timing,
}

/// Filters over properties.
#[derive(Clone, Copy, Debug)]
pub struct FilterConfig {
    /// `enablePropertyFilter`: consumers may subscribe by an SQL92 expression.
    pub by_properties: bool,
    /// `filterSupportRetry`: if a group subscribes to its retry topic by an expression, each message is judged by the expression for the
    /// topic that it was sent to.
    pub of_retries: bool,
    /// `enableCalcFilterBitMap`: queues with an extension say of each message which filters it passes, so that the others need not be read.
    pub in_bits: bool,
    /// `maxErrorRateOfBloomFilter`, `expectConsumerNumUseFilter`: the bits that each filter gets.
    pub bloom: BloomFilter,
    /// `filterDataCleanTimeSpan`: how long the filter of a group without consumers is kept.
    pub keep_dead: Duration,
}

/// Every period and time-out of a broker.
#[derive(Clone, Debug)]
pub struct Timing {
    /// `syncFlushTimeout`: how long an acknowledgement waits for the disk.
    pub sync_flush_timeout: Duration,
    /// `slaveTimeout`: how long an acknowledgement waits for slaves.
    pub slave_timeout: Duration,
    /// `shortPollingTimeMills`.
    pub short_polling: Duration,
    /// The longest a pull is held, whatever its client asks.
    pub hold_max: Duration,
    /// `registerNameServerPeriod`, 10 s to 60 s.
    pub register_period: Duration,
    /// How long one name server may take to answer a registration (`registerBrokerTimeoutMills`).
    pub register_timeout: Duration,
    /// How long the start waits for the name servers before it goes on without them.
    pub start_register_wait: Duration,
    /// How long the shutdown waits for each name server to answer the unregistration.
    pub unregister_timeout: Duration,
    /// `flushConsumerOffsetInterval`.
    pub offset_persist_period: Duration,
    /// `channelExpiredTimeout`: a client without a heartbeat for so long is forgotten and its connection closed.
    pub client_expiry: Duration,
    /// Period of the scan for such clients.
    pub client_scan_period: Duration,
    /// How often a slave copies its master's tables.
    pub slave_sync_period: Duration,
    /// How long the master may take to answer one of those copies.
    pub slave_sync_timeout: Duration,
    /// How long a master that starts asks slaves that do not answer, before it goes on without them or, if it must hear from them,
    /// serves reads only.
    pub recover_timeout: Duration,
    /// `flushDelayOffsetInterval`.
    pub delay_persist_period: Duration,
    /// Pause between two looks at a delay queue whose head is not due.
    pub delay_scan_period: Duration,
    /// `transactionTimeOut`: how old a half message is before its producer is asked, unless it says how long it wants not to be.
    pub transaction_timeout: Duration,
    /// `transactionCheckInterval`: pause between two looks at the half messages.
    pub transaction_check_period: Duration,
    /// `rocketmq.broker.rebalance.lockMaxLiveTime`: a queue lock not renewed for so long is free.
    pub lock_expiry: Duration,
    /// How long the shutdown waits for each service to end.
    pub shutdown_timeout: Duration,
}

impl Timing {
    /// Apache's figures, except the slave's copy period: 10 s instead of about 63.
    pub fn standard() -> Timing {
        Timing {
            sync_flush_timeout: Duration::from_secs(5),
            slave_timeout: Duration::from_secs(3),
            short_polling: Duration::from_secs(1),
            hold_max: Duration::from_secs(60),
            register_period: Duration::from_secs(30),
            register_timeout: Duration::from_secs(24),
            start_register_wait: Duration::from_secs(3),
            unregister_timeout: Duration::from_secs(3),
            offset_persist_period: Duration::from_secs(5),
            client_expiry: Duration::from_secs(120),
            client_scan_period: Duration::from_secs(10),
            slave_sync_period: Duration::from_secs(10),
            slave_sync_timeout: Duration::from_secs(3),
            recover_timeout: Duration::from_secs(3),
            delay_persist_period: Duration::from_secs(10),
            delay_scan_period: Duration::from_millis(100),
            transaction_timeout: Duration::from_secs(6),
            transaction_check_period: Duration::from_secs(30),
            lock_expiry: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
