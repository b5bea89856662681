//! What operators and monitoring ask a broker about itself.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use protocol::body::{DataVersion, KvTable};
use protocol::frame::Command;
use protocol::header::{GetBrokerConfigResponse, QueryMessageRequest, QueryMessageResponse, ViewMessageRequest};
use protocol::{VERSION, version_name};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// GET_BROKER_RUNTIME_INFO. mqadmin reads these keys; figures that are not measured are zero.
pub(crate) async fn runtime_info(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let stats = &broker.stats;
    let uptime = broker.now();
    let (puts, gets) = (stats.puts.get(), stats.messages_got.get());
    let earliest = broker.store.earliest_log_store_time().await?.unwrap_or(-1);
    let mut table = BTreeMap::new();
    let mut set = |key: &str, value: String| table.insert(key.to_owned(), value);
    set("bootTimestamp", broker.booted_ms.to_string());
    set("brokerActive", (!broker.is_slave()).to_string());
    set("brokerVersion", VERSION.to_string());
    set("brokerVersionDesc", version_name(VERSION).unwrap_or_default());
    set("commitLogMaxOffset", broker.store.log_end().to_string());
    set("commitLogMinOffset", broker.store.log_min().to_string());
    set("dispatchBehindBytes", broker.store.dispatch_behind_bytes().to_string());
    set("earliestMessageTimeStamp", earliest.to_string());
    set("getMessageEntireTimeMax", "0".to_owned());
    set("heldPulls", broker.held().len().to_string());
    set("putMessageAverageSize", average(stats.put_bytes.get(), puts));
    set("putMessageFailedTimes", stats.puts_failed.get().to_string());
    set("putMessageSizeTotal", stats.put_bytes.get().to_string());
    set("putMessageTimesTotal", puts.to_string());
    set("runtime", format!("[ {} ]", uptime_text(uptime)));
    set("startAcceptSendRequestTimeStamp", "0".to_owned());
    for (key, total) in [
        ("putTps", puts),
        ("getTransferredTps", gets),
        ("getFoundTps", stats.gets_found.get()),
        ("getMissTps", stats.gets_missed.get()),
        ("getTotalTps", stats.gets.get()),
    ] {
        set(key, rate_text(total, uptime));
    }
    for (prefix, now) in [("msgPutTotal", puts), ("msgGetTotal", gets)] {
        set(&format!("{prefix}YesterdayMorning"), "0".to_owned());
        set(&format!("{prefix}TodayMorning"), "0".to_owned());
        set(&format!("{prefix}TodayNow"), now.to_string());
    }
    for key in [
        "sendThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "pullThreadPoolQueueSize",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "pageCacheLockTimeMills",
        "timerReadBehind",
        "timerOffsetBehind",
        "timerCongestNum",
    ] {
        set(key, "0".to_owned());
    }
    for key in ["timerEnqueueTps", "timerDequeueTps"] {
        set(key, "0.0".to_owned());
    }
    let [log, queues] = broker.store.disk_used_percent()?.map(ratio_text);
    set("commitLogDiskRatio", log.clone());
    set(&format!("commitLogDiskRatio_{}", broker.config.store.commit_log_dir().display()), log);
    set("consumeQueueDiskRatio", queues);
    Ok(call.json(&KvTable { table }))
}

fn average(sum: u64, count: u64) -> String {
    format!("{}.0", sum.checked_div(count).unwrap_or(0))
}

/// Percent as a fraction, in Java's form of a number.
fn ratio_text(percent: u32) -> String {
    let digits = format!("{}.{:02}", percent / 100, percent % 100);
    digits.strip_suffix('0').map(str::to_owned).unwrap_or(digits)
}

/// Apache's three averages (10 s, 60 s, 600 s) are one here: since the start.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate_text(total: u64, uptime: Duration) -> String {
    let rate = total as f64 / uptime.as_secs_f64().max(1.0);
    format!("{rate:.1} {rate:.1} {rate:.1}")
}

fn uptime_text(uptime: Duration) -> String {
    let seconds = uptime.as_secs();
    format!(
        "{} days, {} hours, {} minutes, {} seconds",
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// GET_BROKER_CONFIG: the settings that clients and tools look at.
pub(crate) fn broker_config(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let (cluster, config) = (&broker.cluster, &broker.config);
    let mut text = String::new();
    let mut line =
        |key: &str, value: &dyn std::fmt::Display| writeln!(text, "{key}={value}").expect("writing to a string");
    line("autoCreateSubscriptionGroup", &cluster.auto_create_group);
    line("autoCreateTopicEnable", &cluster.auto_create_topic);
    line("brokerClusterName", &cluster.cluster_name);
    line("brokerId", &config.broker_id);
    line("brokerIP1", &broker.advertised().ip());
    line("brokerName", &cluster.broker_name);
    line("brokerPermission", &config.permission);
    line("brokerRole", &config.role.name());
    line("defaultTopicQueueNums", &cluster.default_topic_queue_nums);
    line("flushDiskType", &if config.flush_sync { "SYNC_FLUSH" } else { "ASYNC_FLUSH" });
    line("haListenPort", &broker.ha_advertised().port());
    line("inSyncReplicas", &cluster.in_sync_replicas);
    line("listenPort", &broker.advertised().port());
    line("namesrvAddr", &config.name_servers.join(";"));
    line("slaveReadEnable", &config.slave_read);
    line("storePathRootDir", &config.root.display());
    let version = protocol::json::to_vec(&DataVersion::default()).expect("three numbers");
    let version = String::from_utf8(version).expect("JSON is UTF-8");
    Ok(call.ok().with_header(&GetBrokerConfigResponse { version }).with_body(text))
}

/// GET_BROKER_HA_STATUS.
pub(crate) fn ha_status(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    Ok(call.json(&broker.replicas.info(broker.store.log_end())))
}

/// VIEW_MESSAGE_BY_ID: one record by its place in the log.
pub(crate) async fn view_message(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ViewMessageRequest = call.request.header()?;
    let record = broker.store.record_at(header.offset).await?.ok_or(Refusal::NoMessageToView(header.offset.get()))?;
    Ok(call.ok().with_body(record))
}

/// The most messages that one query gives (`maxMsgsNumBatch`), and that one for a unique key does (`defaultQueryMaxNum`).
const QUERY_MAX: i32 = 64;
const UNIQUE_QUERY_MAX: i32 = 32;
/// Bytes of records in one answer: 64 of the largest messages would fit no frame.
const QUERY_BYTES_MAX: usize = 8 << 20;

/// QUERY_MESSAGE: records whose keys have the hash of the one asked for, newest first; the client compares the keys.
pub(crate) async fn query_message(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: QueryMessageRequest = call.request.header()?;
    let most = if header.unique_key == Some(true) { UNIQUE_QUERY_MAX } else { header.max_num.clamp(0, QUERY_MAX) };
    let most = usize::try_from(most).expect("clamped");
    let (from, until) = (header.begin_timestamp, header.end_timestamp);
    let records = broker.store.records_by_key(&header.topic, &header.key, (most, QUERY_BYTES_MAX), from, until).await?;
    if records.is_empty() {
        return Err(Refusal::NoMessageOfKey);
    }
    let (index_last_update_timestamp, index_last_update_phyoffset) = broker.store.newest_indexed();
    let answer = QueryMessageResponse { index_last_update_timestamp, index_last_update_phyoffset };
    Ok(call.ok().with_header(&answer).with_body(records.concat()))
}

/// LOG_DIGEST: a slave compares its log with this one, or a master that returns its own. A master that is not whole says nothing: its
/// slave would cut what it is about to get back.
pub(crate) async fn log_digest(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    if !broker.is_slave() && !broker.is_whole() {
        return Err(Refusal::ServiceNotAvailable);
    }
    Ok(replication::answer_log_digest(&broker.store, broker.replicas.master(), &call.request).await)
}

/// READ_LOG: a master that returns takes back what it lost.
pub(crate) async fn read_log(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    Ok(replication::answer_read_log(&broker.store, &call.request).await)
}
