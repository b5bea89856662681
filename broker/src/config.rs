//! A configuration file as a whole: its text, then what each role reads out of it.
use crate::error::ConfigError;
use crate::raw::RawConfig;
use crate::reader::Reader;
use namesrv::NamesrvConfig;
use namesrv::config::AnswerConfig;
use protocol::filter::BloomFilter;
use replication::{DivergencePolicy, HaMasterConfig, HaSlaveConfig};
use server::{BrokerRole, ClusterConfig, FilterConfig, ServerConfig, Timing};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use store::{DamagePolicy, FlushMode, IndexConfig, RetentionConfig, StoreConfig, TimerConfig};

/// Apache's levels.
const DELAY_LEVELS: &str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

/// Settings of RocketMQ that change what a broker is. Each must have the value given here, because the other is not built.
const BROKER_NOT_BUILT: &[(&str, &str)] = &[
    ("aclEnable", "false"),
    ("authenticationEnabled", "false"),
    ("authorizationEnabled", "false"),
    ("coldDataFlowControlEnable", "false"),
    ("duplicationEnable", "false"),
    ("enableControllerMode", "false"),
    ("enableDLegerCommitLog", "false"),
    ("enableRemoteEscape", "false"),
    ("enableRocksDBStore", "false"),
    ("enableSlaveActingMaster", "false"),
    ("storeType", "default"),
    ("transientStorePoolEnable", "false"),
];

/// The same of a name server.
const NAMESRV_NOT_BUILT: &[(&str, &str)] = &[("clusterTest", "false"), ("enableControllerInNamesrv", "false")];

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Tells clients which broker has which topic.
    NameServer,
    /// Keeps messages.
    Broker,
}

/// A configuration file, or the settings of a test: text that is checked when a role reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    raw: RawConfig,
}

/// What a broker is told, typed, with what its file says besides.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// What all brokers of one name agree on.
    pub cluster: ClusterConfig,
    /// What this broker is told.
    pub node: ServerConfig,
    /// Whether `brokerIP1` was given; if not, the process has to find its address out before it starts.
    pub own_address_known: bool,
    /// Keys that have no effect here, in order.
    pub without_effect: Vec<String>,
    /// Every setting in force, `key=value` a line, by name.
    pub dump: String,
}

/// What a name server is told, typed, with what its file says besides.
#[derive(Clone, Debug)]
pub struct NamesrvSettings {
    /// What this name server is told.
    pub node: NamesrvConfig,
    /// Keys that have no effect here, in order.
    pub without_effect: Vec<String>,
    /// Every setting in force, `key=value` a line, by name.
    pub dump: String,
}

impl Config {
    /// Reads a file's text. Only its form is checked; values are when a role reads them.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        Ok(Config { raw: RawConfig::parse(text)? })
    }

    /// Sets a value over the file's, by RocketMQ's name of it.
    pub fn set(&mut self, key: &str, value: &str) {
        self.raw.set(key, value);
    }

    /// [`set`](Self::set) in one expression.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Config {
        self.set(key, value);
        self
    }

    /// Every setting that a process of that role reads, with the value in force.
    pub fn dump(&self, role: Role) -> Result<String, ConfigError> {
        match role {
            Role::NameServer => Ok(self.namesrv()?.dump),
            Role::Broker => Ok(self.broker()?.dump),
        }
    }

    /// A name server's settings.
    pub fn namesrv(&self) -> Result<NamesrvSettings, ConfigError> {
        let reader = Reader::new(&self.raw);
        for (key, only) in NAMESRV_NOT_BUILT {
            reader.must_be(key, only)?;
        }
        let bind = reader.ip("bindAddress")?.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let standard = NamesrvConfig::standard(SocketAddr::new(bind, reader.port("listenPort", 9876)?));
        let answers = standard.answers.clone();
        let waits = reader.flag("needWaitForService", answers.wait_for_service.is_some())?;
        let wait = reader.number("waitSecondsForService", 45, 0..=86_400, "seconds, 0 to 86400")?;
        let kv_config = reader.text("kvConfigPath", "");
        let node = NamesrvConfig {
            kv_config_path: (!kv_config.is_empty()).then(|| PathBuf::from(kv_config)),
            scan_interval: reader.millis("scanNotActiveBrokerInterval", standard.scan_interval)?,
            answers: AnswerConfig {
                order_message: reader.flag("orderMessageEnable", answers.order_message)?,
                order_config_to_brokers: reader
                    .flag("returnOrderTopicConfigToBroker", answers.order_config_to_brokers)?,
                all_topic_list: reader.flag("enableAllTopicList", answers.all_topic_list)?,
                topic_list: reader.flag("enableTopicList", answers.topic_list)?,
                acting_master: reader.flag("supportActingMaster", answers.acting_master)?,
                delete_missing_topics: reader
                    .flag("deleteTopicWithBrokerRegistration", answers.delete_missing_topics)?,
                wait_for_service: waits.then(|| Duration::from_secs(u64::try_from(wait).expect("not negative"))),
            },
            ..standard
        };
        Ok(NamesrvSettings { node, without_effect: reader.unknown(), dump: reader.dump() })
    }

    /// A broker's settings.
    pub fn broker(&self) -> Result<BrokerSettings, ConfigError> {
        let reader = Reader::new(&self.raw);
        for (key, only) in BROKER_NOT_BUILT {
            reader.must_be(key, only)?;
        }
        let cluster = cluster(&reader)?;
        let (node, own_address_known) = node(&reader, &cluster)?;
        Ok(BrokerSettings { cluster, node, own_address_known, without_effect: reader.unknown(), dump: reader.dump() })
    }
}

fn cluster(reader: &Reader<'_>) -> Result<ClusterConfig, ConfigError> {
    let trace_topic = reader.text("msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC");
    let replicas = reader.number("inSyncReplicas", 1, 1..=64, "a number of copies, 1 to 64")?;
    let queues = reader.number("defaultTopicQueueNums", 8, 1..=1024, "a number of queues, 1 to 1024")?;
    Ok(ClusterConfig {
        cluster_name: name(reader, "brokerClusterName", "DefaultCluster")?,
        broker_name: name(reader, "brokerName", "DEFAULT_BROKER")?,
        in_sync_replicas: usize::try_from(replicas).expect("1 to 64"),
        default_topic_queue_nums: i32::try_from(queues).expect("1 to 1024"),
        auto_create_topic: reader.flag("autoCreateTopicEnable", true)?,
        auto_create_group: reader.flag("autoCreateSubscriptionGroup", true)?,
        cluster_topic: reader.flag("clusterTopicEnable", true)?,
        broker_topic: reader.flag("brokerTopicEnable", true)?,
        trace_topic: reader.flag("traceTopicEnable", false)?.then_some(trace_topic),
        delay_levels: reader.delay_levels("messageDelayLevel", DELAY_LEVELS)?,
        region_id: reader.text("regionId", "DefaultRegion"),
        trace_on: reader.flag("traceOn", true)?,
        recover_from_slave: reader.flag("hotfireRecoverFromSlave", true)?,
    })
}

/// Names become topics and folders, so they obey the rule of topic names.
fn name(reader: &Reader<'_>, key: &'static str, absent: &str) -> Result<String, ConfigError> {
    let name = reader.text(key, absent);
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '|' | '-' | '_');
    if name.len() <= 100 && name.chars().all(legal) {
        Ok(name)
    } else {
        Err(reader.refuse(key, "letters, digits, - _ % |, at most 100"))
    }
}

fn node(reader: &Reader<'_>, cluster: &ClusterConfig) -> Result<(ServerConfig, bool), ConfigError> {
    let roles = [BrokerRole::AsyncMaster, BrokerRole::SyncMaster, BrokerRole::Slave].map(|role| (role.name(), role));
    let role = reader.one_of("brokerRole", &roles, BrokerRole::AsyncMaster, "ASYNC_MASTER, SYNC_MASTER or SLAVE")?;
    let broker_id = reader.number("brokerId", 0, 0..=i64::MAX, "0 for a master, 1 or more for a slave")?;
    if (role == BrokerRole::Slave) != (broker_id > 0) {
        return Err(reader.refuse("brokerId", "0 for a master, 1 or more for a slave"));
    }
    let flushes = [("ASYNC_FLUSH", FlushMode::Async), ("SYNC_FLUSH", FlushMode::Sync)];
    let flush_mode = reader.one_of("flushDiskType", &flushes, FlushMode::Async, "ASYNC_FLUSH or SYNC_FLUSH")?;
    let own = reader.ip("brokerIP1")?;
    let advertised_ip = own.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let ha_ip = reader.ip("brokerIP2")?.unwrap_or(advertised_ip);
    let bind = reader.ip("bindAddress")?.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let port = reader.port("listenPort", 10_911)?;
    let ha_port = match reader.port("haListenPort", 0)? {
        0 if port == 0 => 0,
        0 => port
            .checked_add(1)
            .ok_or_else(|| reader.refuse("listenPort", "a port below 65535, or haListenPort as well"))?,
        given => given,
    };
    let root = PathBuf::from(reader.text("storePathRootDir", "store"));
    let timing = timing(reader)?;
    let node = ServerConfig {
        broker_id,
        role,
        listen: SocketAddr::new(bind, port),
        advertised: SocketAddr::new(advertised_ip, port),
        as_master: as_master(reader, SocketAddr::new(bind, ha_port))?,
        as_slave: as_slave(reader, format!("{}:{broker_id}", cluster.broker_name))?,
        ha_advertised: SocketAddr::new(ha_ip, ha_port),
        ha_master: reader.address("haMasterAddress")?,
        name_servers: reader.addresses("namesrvAddr")?,
        flush_sync: flush_mode == FlushMode::Sync,
        store: store(reader, &root, flush_mode, cluster, &timing)?,
        root,
        permission: i32::try_from(reader.number("brokerPermission", 6, 0..=7, "6 read and write, 4 read, 2 write")?)
            .expect("0 to 7"),
        slave_read: reader.flag("slaveReadEnable", false)?,
        light_queues: reader.flag("enableLmq", false)?,
        recall: reader.flag("recallMessageEnable", false)?,
        store_replies: reader.flag("storeReplyMessageEnable", true)?,
        reject_transactions: reader.flag("rejectTransactionMessage", false)?,
        transaction_checks_max: u32::try_from(reader.number(
            "transactionCheckMax",
            15,
            1..=i64::from(i32::MAX),
            "how often, 1 or more",
        )?)
        .expect("in range"),
        long_polling: reader.flag("longPollingEnable", true)?,
        notify_consumer_change: reader.flag("notifyConsumerIdsChangedEnable", true)?,
        filter: filter(reader)?,
        held_pulls_max: usize::try_from(reader.number(
            "hotfireHeldPullsMax",
            100_000,
            1..=10_000_000,
            "a number of pulls, 1 or more",
        )?)
        .expect("positive"),
        remoting_server: remoting::ServerConfig::standard(),
        remoting_client: remoting::ClientConfig::standard(),
        timing,
    };
    Ok((node, own.is_some()))
}

fn filter(reader: &Reader<'_>) -> Result<FilterConfig, ConfigError> {
    let number = |key, absent, range, expected| -> Result<i32, ConfigError> {
        Ok(i32::try_from(reader.number(key, absent, range, expected)?).expect("in range"))
    };
    let error_percent = number("maxErrorRateOfBloomFilter", 20, 1..=99, "percent, 1 to 99")?;
    let entries = number("expectConsumerNumUseFilter", 32, 1..=100_000, "a number of groups, 1 to 100000")?;
    Ok(FilterConfig {
        by_properties: reader.flag("enablePropertyFilter", false)?,
        of_retries: reader.flag("filterSupportRetry", false)?,
        in_bits: reader.flag("enableCalcFilterBitMap", false)?,
        bloom: BloomFilter::new(error_percent, entries).expect("in range"),
        keep_dead: reader.millis("filterDataCleanTimeSpan", Duration::from_secs(86_400))?,
    })
}

fn as_master(reader: &Reader<'_>, listen: SocketAddr) -> Result<HaMasterConfig, ConfigError> {
    let standard = HaMasterConfig::standard(listen);
    let batch =
        reader.number("haTransferBatchSize", i64::from(standard.batch_bytes), 1..=4_194_292, "bytes, 1 to 4194292")?;
    let gap = reader.number(
        "haMaxGapNotInSync",
        i64::try_from(standard.gap_not_in_sync).expect("small"),
        1..=i64::MAX,
        "bytes, 1 or more",
    )?;
    Ok(HaMasterConfig {
        heartbeat_interval: reader.millis("haSendHeartbeatInterval", standard.heartbeat_interval)?,
        housekeeping: reader.millis("haHousekeepingInterval", standard.housekeeping)?,
        batch_bytes: u32::try_from(batch).expect("in range"),
        gap_not_in_sync: u64::try_from(gap).expect("positive"),
        away_max: reader.millis("hotfireSlaveRetainTime", standard.away_max)?,
        ..standard
    })
}

fn as_slave(reader: &Reader<'_>, slave_id: String) -> Result<HaSlaveConfig, ConfigError> {
    let standard = HaSlaveConfig::standard(slave_id);
    let mut divergence = standard.divergence;
    if let DivergencePolicy::Truncate { bytes_max, .. } = &mut divergence {
        let absent = i64::try_from(*bytes_max).expect("small");
        *bytes_max =
            u64::try_from(reader.number("hotfireSlaveTruncateMax", absent, 0..=i64::MAX, "bytes, 0 to refuse")?)
                .expect("not negative");
        if *bytes_max == 0 {
            divergence = DivergencePolicy::Refuse;
        }
    }
    Ok(HaSlaveConfig {
        report_interval: reader.millis("haSendHeartbeatInterval", standard.report_interval)?,
        housekeeping: reader.millis("haHousekeepingInterval", standard.housekeeping)?,
        divergence,
        ..standard
    })
}

fn timing(reader: &Reader<'_>) -> Result<Timing, ConfigError> {
    let standard = Timing::standard();
    let register = reader.millis("registerNameServerPeriod", standard.register_period)?;
    Ok(Timing {
        sync_flush_timeout: reader.millis("syncFlushTimeout", standard.sync_flush_timeout)?,
        slave_timeout: reader.millis("slaveTimeout", standard.slave_timeout)?,
        short_polling: reader.millis("shortPollingTimeMills", standard.short_polling)?,
        hold_max: reader.millis("hotfireHoldTimeMax", standard.hold_max)?,
        register_period: register.clamp(Duration::from_secs(10), Duration::from_secs(60)),
        register_timeout: reader.millis("registerBrokerTimeoutMills", standard.register_timeout)?,
        start_register_wait: standard.start_register_wait,
        unregister_timeout: standard.unregister_timeout,
        offset_persist_period: reader.millis("flushConsumerOffsetInterval", standard.offset_persist_period)?,
        client_expiry: reader.millis("channelExpiredTimeout", standard.client_expiry)?,
        client_scan_period: standard.client_scan_period,
        slave_sync_period: reader.millis("hotfireSlaveSyncPeriod", standard.slave_sync_period)?,
        slave_sync_timeout: standard.slave_sync_timeout,
        recover_timeout: reader.millis("hotfireRecoverFromSlaveTimeout", standard.recover_timeout)?,
        delay_persist_period: reader.millis("flushDelayOffsetInterval", standard.delay_persist_period)?,
        delay_scan_period: standard.delay_scan_period,
        transaction_timeout: reader.millis("transactionTimeOut", standard.transaction_timeout)?,
        transaction_check_period: reader.millis("transactionCheckInterval", standard.transaction_check_period)?,
        lock_expiry: standard.lock_expiry,
        shutdown_timeout: standard.shutdown_timeout,
    })
}

/// Offsets in light queues are given if the queues are kept, and the other way round: a log has both or neither.
fn multi_dispatch(reader: &Reader<'_>) -> Result<bool, ConfigError> {
    let (light_queues, multi_dispatch) = (reader.flag("enableLmq", false)?, reader.flag("enableMultiDispatch", false)?);
    Ok(light_queues && multi_dispatch)
}

/// `messageIndexEnable`, `maxHashSlotNum`, `maxIndexNum`.
fn index(reader: &Reader<'_>) -> Result<Option<IndexConfig>, ConfigError> {
    let standard = IndexConfig::default();
    let number = |key, absent: u32| {
        let value = reader.number(key, i64::from(absent), 2..=i64::from(i32::MAX), "a number, 2 or more")?;
        Ok(u32::try_from(value).expect("in range"))
    };
    let hash_slots = number("maxHashSlotNum", standard.hash_slots)?;
    let entries = number("maxIndexNum", standard.entries)?;
    Ok(reader.flag("messageIndexEnable", true)?.then_some(IndexConfig { hash_slots, entries }))
}

/// `deleteWhen` and what else says when messages are removed. Levels outside of RocketMQ's ranges are taken to be the nearest inside.
fn retention(reader: &Reader<'_>) -> Result<RetentionConfig, ConfigError> {
    let standard = RetentionConfig::default();
    let percent = |key, absent: u32, range: RangeInclusive<u32>| {
        let given = reader.number(key, i64::from(absent), 0..=100, "percent, 0 to 100")?;
        Ok(u32::try_from(given).expect("in range").clamp(*range.start(), *range.end()))
    };
    let hours = reader.number("fileReservedTime", 72, 0..=1_000_000, "hours, 0 to 1000000")?;
    let reserved = Duration::from_secs(u64::try_from(hours).expect("not negative") * 3600);
    let offset = reader.number("hotfireDeleteWhenUtcOffset", 0, -1439..=1439, "minutes, -1439 to 1439")?;
    let batch = reader.number("deleteFileBatchMax", i64::from(standard.batch_max), 1..=10_000, "1 to 10000")?;
    Ok(RetentionConfig {
        delete_hours: reader.hours("deleteWhen", "04")?,
        utc_offset_minutes: i16::try_from(offset).expect("in range"),
        reserved: reader.millis("hotfireFileReservedTime", reserved)?,
        interval: reader.millis("cleanResourceInterval", standard.interval)?,
        batch_max: u32::try_from(batch).expect("in range"),
        log_pause: reader.millis("deleteCommitLogFilesInterval", standard.log_pause)?,
        queue_pause: reader.millis("deleteConsumeQueueFilesInterval", standard.queue_pause)?,
        used_max_percent: percent("diskMaxUsedSpaceRatio", standard.used_max_percent, 10..=95)?,
        warning_percent: percent("diskSpaceWarningLevelRatio", standard.warning_percent, 35..=90)?,
        forcible_percent: percent("diskSpaceCleanForciblyRatio", standard.forcible_percent, 30..=85)?,
        is_forcible: reader.flag("cleanFileForciblyEnable", standard.is_forcible)?,
    })
}

/// `timerWheelEnable` and how the timer divides time and its files.
fn timer(reader: &Reader<'_>) -> Result<Option<TimerConfig>, ConfigError> {
    let standard = TimerConfig::default();
    let precisions = [("100", 100), ("200", 200), ("500", 500), ("1000", 1000)];
    let precision_ms =
        reader.one_of("timerPrecisionMs", &precisions, standard.precision_ms, "100, 200, 500 or 1000 milliseconds")?;
    let delay_max = i64::try_from(standard.delay_max.as_secs()).expect("small");
    let delay_max = reader.number("timerMaxDelaySec", delay_max, 1..=i64::from(i32::MAX), "seconds, 1 or more")?;
    let roll_window = reader.number(
        "timerRollWindowSlot",
        i64::from(standard.roll_window_slots),
        2..=604_740,
        "slots, 2 to 604740",
    )?;
    let log_file = i64::try_from(standard.log_file_bytes).expect("small");
    let log_file =
        reader.number("mappedFileSizeTimerLog", log_file, 1024..=i64::from(i32::MAX), "bytes, 1024 or more")?;
    let timer = TimerConfig {
        precision_ms,
        roll_window_slots: u32::try_from(roll_window).expect("in range"),
        log_file_bytes: u64::try_from(log_file).expect("positive"),
        delay_max: Duration::from_secs(u64::try_from(delay_max).expect("positive")),
        flush_interval: reader.millis("timerFlushIntervalMs", standard.flush_interval)?,
    };
    Ok(reader.flag("timerWheelEnable", true)?.then_some(timer))
}

fn store(
    reader: &Reader<'_>,
    root: &std::path::Path,
    flush_mode: FlushMode,
    cluster: &ClusterConfig,
    timing: &Timing,
) -> Result<StoreConfig, ConfigError> {
    let standard = StoreConfig::new(root);
    let policies = [("REFUSE", DamagePolicy::Refuse), ("DROP_TAIL", DamagePolicy::DropTail)];
    let size = |key, absent: u64, expected| {
        reader.number(key, i64::try_from(absent).expect("small"), 1024..=i64::from(i32::MAX), expected)
    };
    let count = |key, absent: u32| {
        reader
            .number(key, i64::from(absent), 1..=i64::from(i32::MAX), "a number, 1 or more")
            .map(|value| u32::try_from(value).expect("in range"))
    };
    let segment = size("mappedFileSizeCommitLog", standard.segment_size, "bytes, 1024 or more")?;
    let queue_file = size("mappedFileSizeConsumeQueue", standard.consume_queue_file_size, "bytes, 1024 or more")?;
    let batch_file = size("mapperFileSizeBatchConsumeQueue", standard.batch_queue_file_size, "bytes, 1024 or more")?;
    let extension_file = size("mappedFileSizeConsumeQueueExt", standard.extension_file_size, "bytes, 1024 or more")?;
    let commit_log = reader.text("storePathCommitLog", "");
    Ok(StoreConfig {
        commit_log_dir: (!commit_log.is_empty()).then(|| PathBuf::from(commit_log)),
        segment_size: u64::try_from(segment).expect("positive"),
        consume_queue_file_size: u64::try_from(queue_file).expect("positive"),
        batch_queue_file_size: u64::try_from(batch_file).expect("positive"),
        extend_queues: reader.flag("enableConsumeQueueExt", false)?,
        extension_file_size: u64::try_from(extension_file).expect("positive"),
        open_queue_files_max: usize::try_from(reader.number(
            "hotfireOpenQueueFilesMax",
            i64::try_from(standard.open_queue_files_max).expect("small"),
            1..=1_000_000,
            "a number of files, 1 to 1000000",
        )?)
        .expect("positive"),
        flush_mode,
        sync_flush_timeout: timing.sync_flush_timeout,
        flush_interval: reader.millis("flushIntervalCommitLog", standard.flush_interval)?,
        flush_least_pages: count("flushCommitLogLeastPages", standard.flush_least_pages)?,
        flush_thorough_interval: reader.millis("flushCommitLogThoroughInterval", standard.flush_thorough_interval)?,
        queue_flush_interval: reader.millis("flushIntervalConsumeQueue", standard.queue_flush_interval)?,
        queue_flush_least_pages: count("flushConsumeQueueLeastPages", standard.queue_flush_least_pages)?,
        queue_flush_thorough_interval: reader
            .millis("flushConsumeQueueThoroughInterval", standard.queue_flush_thorough_interval)?,
        max_message_size: count("maxMessageSize", standard.max_message_size)?,
        delay_levels_ms: cluster
            .delay_levels
            .iter()
            .map(|level| i64::try_from(level.as_millis()).expect("bounded by the reader"))
            .collect(),
        access_in_memory_max_ratio: count("accessMessageInMemoryMaxRatio", standard.access_in_memory_max_ratio)?,
        max_transfer_bytes_memory: count("maxTransferBytesOnMessageInMemory", standard.max_transfer_bytes_memory)?,
        max_transfer_count_memory: count("maxTransferCountOnMessageInMemory", standard.max_transfer_count_memory)?,
        max_transfer_bytes_disk: count("maxTransferBytesOnMessageInDisk", standard.max_transfer_bytes_disk)?,
        max_transfer_count_disk: count("maxTransferCountOnMessageInDisk", standard.max_transfer_count_disk)?,
        max_filter_bytes: count("maxFilterMessageSize", standard.max_filter_bytes)?,
        index: index(reader)?,
        multi_dispatch: multi_dispatch(reader)?,
        seal_records: reader.flag("enabledAppendPropCRC", false)?,
        require_seals: reader.flag("forceVerifyPropCRC", false)?,
        retention: retention(reader)?,
        timer: timer(reader)?,
        damage: reader.one_of("hotfireDamagedLog", &policies, standard.damage, "REFUSE or DROP_TAIL")?,
        ..standard
    })
}

#[cfg(test)]
mod tests;
