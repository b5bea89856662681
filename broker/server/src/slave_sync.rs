//! A slave's copy of its master's tables, and a returning master's copy of its slaves' progress.
use crate::broker::Broker;
use crate::delay::DelayTableText;
use crate::groups::GroupTableText;
use crate::offset_requests::bounds;
use crate::offsets::OffsetTableText;
use crate::topic_requests::is_batch;
use crate::topics::TopicTableText;
use protocol::body::ClusterInfo;
use protocol::frame::Command;
use protocol::header::{
    Empty, GetAllSubscriptionGroupRequest, GetAllSubscriptionGroupResponse, GetAllTopicConfigRequest,
    GetAllTopicConfigResponse,
};
use protocol::{Header, HeaderError, JsonError, PhysicalOffset, QueueOffset, RequestCode, ResponseCode};
use remoting::RemotingError;
use rt::time::{Instant, timeout, unix_ms};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{TimerCheckpoint, TimerError};
use thiserror::Error;
use tracing::{debug, info, warn};

/// Most pages of one table; more means that the other side does not end.
const PAGES_MAX: usize = 1000;
/// Entries asked for in one page.
const PAGE: i32 = 2000;

/// Our own field of answers that tell a slave how far its master has delivered: the end of the log that they speak of.
const LOG_END_FIELD: &str = "hotfireLogEnd";
/// How long a copy waits for the log that it speaks of: more than replication is behind when all is well.
const LOG_PATIENCE: Duration = Duration::from_secs(2);

/// Adds that field to an answer. What is told must have been read before.
pub(crate) fn speaks_of_the_log(broker: &Broker, answer: Command) -> Command {
    answer.with_ext(LOG_END_FIELD, broker.store.log_end().to_string())
}

/// Why a table could not be copied.
#[derive(Debug, Error)]
enum CopyError {
    #[error(transparent)]
    Remoting(#[from] RemotingError),
    #[error("refused with code {code}: {remark}")]
    Refused { code: i32, remark: String },
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Body(#[from] JsonError),
    #[error("a timer checkpoint of {bytes} bytes")]
    Checkpoint { bytes: usize },
    #[error(transparent)]
    Timer(#[from] TimerError),
    #[error("the table does not end")]
    Endless,
}

/// Copies every table from the master, one after the other; one that fails does not stop the next.
pub(crate) async fn copy_all(broker: &Broker) {
    let Some(master) = broker.master().filter(|master| *master != broker.advertised().to_string()) else { return };
    let report = |what: &'static str, copied: Result<bool, CopyError>| match copied {
        Ok(true) => info!(%master, what, "copied from the master"),
        Ok(false) => debug!(%master, what, "copied from the master"),
        Err(error) => warn!(%master, what, %error, "not copied from the master"),
    };
    report("topics", copy_topics(broker, &master).await);
    report("consumer offsets", copy_offsets(broker, &master).await);
    report("delay offsets", copy_delays(broker, &master).await);
    report("subscription groups", copy_groups(broker, &master).await);
    // Asked only if there are timer messages: most brokers have none.
    if broker.config.store.timer.is_some() && bounds(broker, store::TIMER_TOPIC, 0).1 > QueueOffset(0) {
        report("timer checkpoint", copy_timer(broker, &master).await);
    }
}

async fn copy_topics(broker: &Broker, master: &str) -> Result<bool, CopyError> {
    let mut all = TopicTableText::default();
    for _ in 0..PAGES_MAX {
        let header = GetAllTopicConfigRequest {
            topic_seq: Some(i32::try_from(all.topic_config_table.len()).unwrap_or(i32::MAX)),
            max_topic_num: Some(PAGE),
            data_version: Some(version_text(&all.data_version)),
        };
        let (reply, page): (_, TopicTableText) = ask(broker, master, RequestCode::GetAllTopicConfig, &header).await?;
        let total = reply.header::<GetAllTopicConfigResponse>()?.total_topic_num;
        if page.data_version != all.data_version {
            // The table changed between two pages: this one is the first of the new table.
            all = TopicTableText::default();
        }
        all.data_version = page.data_version;
        let came = page.topic_config_table.len();
        all.topic_config_table.extend(page.topic_config_table);
        if is_last(total, all.topic_config_table.len(), came) {
            choose_kinds(broker, &all).await;
            let changed = broker.topics().become_copy(all);
            if changed {
                broker.topics_changed.notify_one();
                broker.save_topics().await;
            }
            return Ok(changed);
        }
    }
    Err(CopyError::Endless)
}

/// The queues of batch topics are of that kind from the first record on. One that came before its master told of the topic makes others;
/// the next start makes them anew.
async fn choose_kinds(broker: &Broker, text: &TopicTableText) {
    for (topic, _) in text.topic_config_table.iter().filter(|(_, topic)| is_batch(&topic.attributes)) {
        match broker.store.make_batch_topic(topic).await {
            Ok(true) => {}
            Ok(false) => warn!(topic, "its queues are of the wrong kind until the next start"),
            Err(error) => warn!(topic, %error, "the kind of its queues is not known to the disk"),
        }
    }
}

async fn copy_groups(broker: &Broker, master: &str) -> Result<bool, CopyError> {
    let mut all = GroupTableText::default();
    for _ in 0..PAGES_MAX {
        let header = GetAllSubscriptionGroupRequest {
            group_seq: Some(i32::try_from(all.subscription_group_table.len()).unwrap_or(i32::MAX)),
            max_group_num: Some(PAGE),
            data_version: Some(version_text(&all.data_version)),
        };
        let (reply, page): (_, GroupTableText) =
            ask(broker, master, RequestCode::GetAllSubscriptiongroupConfig, &header).await?;
        let total = reply.header::<GetAllSubscriptionGroupResponse>()?.total_group_num;
        if page.data_version != all.data_version {
            all = GroupTableText::default();
        }
        all.data_version = page.data_version;
        all.forbidden_table = page.forbidden_table;
        let came = page.subscription_group_table.len();
        all.subscription_group_table.extend(page.subscription_group_table);
        if is_last(total, all.subscription_group_table.len(), came) {
            let changed = broker.groups().become_copy(all);
            if changed {
                broker.save_groups().await;
            }
            return Ok(changed);
        }
    }
    Err(CopyError::Endless)
}

/// A peer without pages tells no total and sends everything at once.
fn is_last(total: Option<i32>, have: usize, came: usize) -> bool {
    total.is_none_or(|total| have >= usize::try_from(total).unwrap_or(0)) || came == 0
}

async fn copy_offsets(broker: &Broker, master: &str) -> Result<bool, CopyError> {
    let mut text = offsets_of(broker, master, broker.config.timing.slave_sync_timeout).await?;
    if !broker.cluster.recover_from_slave {
        text.lowered_table = None;
    }
    {
        let mut offsets = broker.offsets();
        offsets.merge(&text);
        offsets.adopt_version(text.data_version);
    }
    broker.save_offsets().await;
    Ok(false)
}

async fn copy_delays(broker: &Broker, master: &str) -> Result<bool, CopyError> {
    let (reply, text): (_, DelayTableText) = ask(broker, master, RequestCode::GetAllDelayOffset, &Empty {}).await?;
    if broker.delays().is_copy_of(&text) || !has_what_it_speaks_of(broker, &reply).await {
        return Ok(false);
    }
    broker.delays().become_copy(&text);
    broker.save_delays().await;
    Ok(false)
}

/// Whether this log has, on the disk, all that the master's had when it told how far it has delivered: what was delivered at the master alone
/// would pass for delivered here on the day on which this broker delivers. If not, the next copy may find it so.
async fn has_what_it_speaks_of(broker: &Broker, reply: &Command) -> bool {
    let told = reply.ext_fields.get(LOG_END_FIELD).and_then(|text| text.parse().ok()).map(PhysicalOffset);
    // A master that does not tell its log's end is taken at its word, as Apache's slaves do.
    let end = told.unwrap_or_else(|| broker.store.log_end());
    let mut ends = broker.store.ends();
    if !matches!(timeout(LOG_PATIENCE, ends.wait_for(|reached| *reached >= end)).await, Ok(Ok(_))) {
        rt::probe!("server.slave.waits_for_the_log");
        return false;
    }
    match broker.store.flushed(end, broker.config.timing.sync_flush_timeout).await {
        Ok(()) => true,
        Err(error) => {
            debug!(%end, %error, "not taken over from the master, what it speaks of is not on the disk");
            false
        }
    }
}

/// Copies how far the master's timer has come, for the day on which this broker delivers.
async fn copy_timer(broker: &Broker, master: &str) -> Result<bool, CopyError> {
    let request = Command::request(RequestCode::GetTimerCheckPoint, &Empty {});
    let reply = broker.client.request(master, request, broker.config.timing.slave_sync_timeout).await?;
    if reply.response_code() != Some(ResponseCode::Success) {
        return Err(CopyError::Refused { code: reply.code, remark: reply.remark.unwrap_or_default() });
    }
    let checkpoint = TimerCheckpoint::decode(&reply.body).ok_or(CopyError::Checkpoint { bytes: reply.body.len() })?;
    let known = broker.timer().reached;
    if checkpoint.master_next == 0 || known == Some(checkpoint) || !has_what_it_speaks_of(broker, &reply).await {
        return Ok(false);
    }
    store::take_over_timer_checkpoint(&broker.config.root, checkpoint).await?;
    broker.timer().reached = Some(checkpoint);
    Ok(true)
}

async fn offsets_of(broker: &Broker, address: &str, wait: Duration) -> Result<OffsetTableText, CopyError> {
    let (_, text) = ask_within(broker, address, RequestCode::GetAllConsumerOffset, &Empty {}, wait).await?;
    Ok(text)
}

/// A master that starts takes in the progress its slaves hold: readers may have gone on there while it was away. Bounded as a whole by
/// the time-out; a slave that cannot be asked is passed over, and its readers' clients tell their progress themselves.
pub(crate) async fn regain(broker: &Broker, slaves: &[String]) {
    let deadline = Instant::now() + broker.config.timing.recover_timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    for slave in slaves {
        let asked = timeout(left(), offsets_of(broker, slave, left().max(Duration::from_millis(1)))).await;
        match asked {
            // Only a peer that keeps the counters can be merged with; Apache's table does not say what was lowered on purpose.
            Ok(Ok(text)) if text.lowered_table.is_some() => {
                rt::probe!("server.regain.merged");
                broker.offsets().merge(&text);
                info!(%slave, "progress regained from the slave");
            }
            Ok(Ok(_)) => info!(%slave, "the slave cannot tell its progress apart from old copies, not merged"),
            Ok(Err(error)) => warn!(%slave, %error, "the slave was not asked for its progress"),
            Err(_) => warn!(%slave, "the slave did not tell its progress in time"),
        }
    }
    lower_to_ends(broker);
    broker.save_offsets().await;
}

/// After a lost suffix no offset may stay above the end of its queue: what is written there next is new to every group.
pub(crate) fn lower_to_ends(broker: &Broker) {
    let end = |topic: &str, queue_id| crate::offset_requests::bounds(broker, topic, queue_id).1.get();
    let lowered = broker.offsets().lower_to_ends(end, unix_ms());
    for (key, queue_id, before, end) in lowered {
        rt::probe!("server.offsets.lowered_to_end");
        warn!(%key, queue_id, before, end, "committed offset above the end of the queue, lowered to it");
    }
}

/// The slaves of this broker that the name servers know, by broker id; `None` if no name server answered. All are asked: one that has
/// just started may not know every slave.
pub(crate) async fn slaves(broker: &Broker, limit: Duration) -> Option<Vec<String>> {
    let per_server = limit / u32::try_from(broker.config.name_servers.len().max(1)).expect("few name servers");
    let mut known: Option<BTreeMap<i64, String>> = None;
    for name_server in &broker.config.name_servers {
        let asked = ask_within(broker, name_server, RequestCode::GetBrokerClusterInfo, &Empty {}, per_server);
        let asked: Result<Result<(Command, ClusterInfo), _>, _> = timeout(per_server, asked).await;
        match asked {
            Ok(Ok((_, info))) => {
                let known = known.get_or_insert_default();
                let own = info.broker_addr_table.get(&broker.cluster.broker_name);
                for (id, address) in own.into_iter().flat_map(|data| data.broker_addrs.range(1..)) {
                    known.entry(*id).or_insert_with(|| address.clone());
                }
            }
            Ok(Err(error)) => debug!(%name_server, %error, "name server not asked for the slaves"),
            Err(_) => debug!(%name_server, "name server did not tell the slaves in time"),
        }
    }
    known.map(|known| known.into_values().collect())
}

async fn ask<T: DeserializeOwned>(
    broker: &Broker,
    address: &str,
    code: RequestCode,
    header: &impl Header,
) -> Result<(Command, T), CopyError> {
    ask_within(broker, address, code, header, broker.config.timing.slave_sync_timeout).await
}

async fn ask_within<T: DeserializeOwned>(
    broker: &Broker,
    address: &str,
    code: RequestCode,
    header: &impl Header,
    wait: Duration,
) -> Result<(Command, T), CopyError> {
    let reply = broker.client.request(address, Command::request(code, header), wait).await?;
    if reply.response_code() != Some(ResponseCode::Success) {
        return Err(CopyError::Refused { code: reply.code, remark: reply.remark.unwrap_or_default() });
    }
    let body = protocol::json::from_slice(&reply.body)?;
    Ok((reply, body))
}

fn version_text(version: &protocol::body::DataVersion) -> String {
    if *version == protocol::body::DataVersion::default() {
        return String::new();
    }
    String::from_utf8(protocol::json::to_vec(version).expect("three numbers")).expect("JSON is UTF-8")
}
