//! Requests about topics.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::names::check_topic;
use crate::offset_requests::bounds;
use crate::refusal::Refusal;
use crate::topics::TopicTableText;
use protocol::MessageQueue;
use protocol::body::{DataVersion, TopicConfig, TopicList, TopicOffset, TopicStatsTable};
use protocol::frame::Command;
use protocol::header::{
    CreateTopicRequest, DeleteTopicRequest, GetAllTopicConfigRequest, GetAllTopicConfigResponse, GetTopicConfigRequest,
    TopicStatsRequest,
};
use rt::time::unix_ms;
use std::collections::BTreeMap;
use tracing::info;

/// Most entries of one page of a table (`splitMetadataSize`).
pub(crate) const PAGE_MAX: usize = 2000;
/// Most queues an operator may give a topic: each is a folder and an open file.
const QUEUES_MAX: i32 = 65_535;

/// UPDATE_AND_CREATE_TOPIC: on disk and told to the name servers before the answer.
pub(crate) async fn update(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: CreateTopicRequest = call.request.header()?;
    check_topic(&header.topic)?;
    broker.require_master()?;
    if broker.topics().is_system(&header.topic) {
        return Err(Refusal::SystemTopic(header.topic));
    }
    for (name, queues) in [("readQueueNums", header.read_queue_nums), ("writeQueueNums", header.write_queue_nums)] {
        if !(0..=QUEUES_MAX).contains(&queues) {
            return Err(Refusal::Parameter { name, value: queues.to_string() });
        }
    }
    let known = broker.topics().get(&header.topic).map(|known| known.attributes.clone());
    let is_new = known.is_none();
    let mut attributes = known.unwrap_or_default();
    alter(&mut attributes, header.attributes.as_deref().unwrap_or(""), is_new)?;
    if is_new {
        choose_kind(broker, &header.topic, is_batch(&attributes)).await?;
    }
    let config = TopicConfig {
        attributes,
        order: header.order,
        perm: header.perm,
        read_queue_nums: header.read_queue_nums,
        topic_filter_type: header.topic_filter_type,
        topic_name: header.topic.clone(),
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        write_queue_nums: header.write_queue_nums,
    };
    if broker.topics().update(config, unix_ms()) {
        info!(topic = %header.topic, "topic updated");
        broker.save_topics().await;
        crate::registration::register(broker).await;
    }
    Ok(call.ok())
}

/// The attribute that says of which kind a topic's queues are.
const QUEUE_TYPE: &str = "queue.type";

/// Whether the topic's queues hold batches as they were sent.
pub(crate) fn is_batch(attributes: &BTreeMap<String, String>) -> bool {
    attributes.get(QUEUE_TYPE).is_some_and(|kind| kind == "BatchCQ")
}

/// A new topic's queues are of that kind, durably. Queues of the other kind that a former topic of the name has left are in the way.
async fn choose_kind(broker: &Broker, topic: &str, is_batch: bool) -> Result<(), Refusal> {
    let is_chosen = match is_batch {
        true => broker.store.make_batch_topic(topic).await?,
        false => !broker.store.is_batch_topic(topic),
    };
    if is_chosen {
        Ok(())
    } else {
        Err(Refusal::Parameter { name: "attributes", value: format!("{QUEUE_TYPE}: delete the topic first") })
    }
}

/// Reads RocketMQ's `+key=value,-key`. The message type can be set, and of a new topic the kind of its queues: everything else would need
/// what is not built.
fn alter(attributes: &mut BTreeMap<String, String>, text: &str, is_new: bool) -> Result<(), Refusal> {
    let refuse = |part: &str| Refusal::Parameter { name: "attributes", value: part.to_owned() };
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (sign, rest) = part.split_at_checked(1).ok_or_else(|| refuse(part))?;
        match (sign, rest.split_once('=')) {
            ("+", Some(("message.type", kind @ ("UNSPECIFIED" | "NORMAL" | "FIFO" | "DELAY" | "TRANSACTION")))) => {
                attributes.insert("message.type".to_owned(), kind.to_owned());
            }
            ("+", Some((QUEUE_TYPE, kind @ ("BatchCQ" | "SimpleCQ")))) if is_new => {
                attributes.insert(QUEUE_TYPE.to_owned(), kind.to_owned());
            }
            ("-", None) if rest != QUEUE_TYPE && attributes.remove(rest).is_some() => {}
            _ => return Err(refuse(part)),
        }
    }
    Ok(())
}

/// DELETE_TOPIC_IN_BROKER: the topic, its progress and its queues; its records stay in the log until they expire.
pub(crate) async fn delete(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: DeleteTopicRequest = call.request.header()?;
    check_topic(&header.topic)?;
    broker.require_master()?;
    if broker.topics().is_system(&header.topic) {
        return Err(Refusal::SystemTopic(header.topic));
    }
    if broker.topics().delete(&header.topic, unix_ms()) {
        info!(topic = %header.topic, "topic deleted");
        broker.offsets().remove_topic(&header.topic, unix_ms());
        broker.save_topics().await;
        broker.save_offsets().await;
        crate::registration::register(broker).await;
    }
    // Even if the table does not know it: a former deletion may not have come so far.
    broker.store.remove_topic(&header.topic).await?;
    Ok(call.ok())
}

/// GET_TOPIC_CONFIG.
pub(crate) fn get(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetTopicConfigRequest = call.request.header()?;
    let config = broker.topic(&header.topic).ok_or(Refusal::NoTopicConfig(header.topic))?;
    Ok(call.json(&config))
}

/// GET_ALL_TOPIC_CONFIG: the whole table, or the page that is asked for.
pub(crate) fn all(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetAllTopicConfigRequest = call.request.header()?;
    let mut text: TopicTableText = broker.topics().text();
    let page = Page { from: header.topic_seq, count: header.max_topic_num, version: header.data_version };
    let total = page.cut(&mut text.topic_config_table, &text.data_version);
    Ok(call.json(&text).with_header(&GetAllTopicConfigResponse { total_topic_num: total }))
}

/// The part of a table that a peer asks for.
pub(crate) struct Page {
    pub from: Option<i32>,
    pub count: Option<i32>,
    /// The version the peer's earlier pages had; another one starts again.
    pub version: Option<String>,
}

impl Page {
    /// Leaves the page in `table` and answers how many entries there are in all; a peer that asks for no page gets all, and no total.
    pub fn cut<T>(&self, table: &mut BTreeMap<String, T>, version: &DataVersion) -> Option<i32> {
        if self.from.is_none() && self.count.is_none() && self.version.is_none() {
            return None;
        }
        let total = table.len();
        let known = self.version.as_deref().and_then(|text| protocol::json::from_str::<DataVersion>(text).ok());
        let from =
            if known.as_ref() == Some(version) { usize::try_from(self.from.unwrap_or(0)).unwrap_or(0) } else { 0 };
        let count = self.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        *table = std::mem::take(table).into_iter().skip(from).take(count).collect();
        Some(i32::try_from(total).unwrap_or(i32::MAX))
    }
}

/// GET_SYSTEM_TOPIC_LIST_FROM_BROKER.
pub(crate) fn system_list(broker: &Broker, call: &Call) -> Command {
    let topic_list = broker.topics().system_topics().iter().cloned().collect();
    call.json(&TopicList { broker_addr: None, topic_list })
}

/// GET_TOPIC_STATS_INFO: ends and last store time of each queue.
pub(crate) async fn stats(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: TopicStatsRequest = call.request.header()?;
    let topic = broker.topic(&header.topic).ok_or_else(|| Refusal::NoTopic(header.topic.clone()))?;
    let mut offset_table = BTreeMap::new();
    for queue_id in 0..topic.write_queue_nums {
        let (min, max) = bounds(broker, &header.topic, queue_id);
        let last_update_timestamp = if max > min {
            broker.store.store_time_at(&header.topic, queue_id, max - 1).await?.unwrap_or(0)
        } else {
            0
        };
        let queue =
            MessageQueue { topic: header.topic.clone(), broker_name: broker.cluster.broker_name.clone(), queue_id };
        offset_table.insert(queue, TopicOffset { last_update_timestamp, max_offset: max.get(), min_offset: min.get() });
    }
    Ok(call.json(&TopicStatsTable { offset_table, topic_put_tps: 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::{Page, alter, is_batch};
    use protocol::body::DataVersion;
    use std::collections::BTreeMap;

    #[test]
    fn pages() {
        let version = DataVersion { counter: 3, state_version: 0, timestamp: 1 };
        let same = r#"{"counter":3,"stateVersion":0,"timestamp":1}"#;
        let check = |from, count, told: Option<&str>, expected: (&str, Option<i32>)| {
            let mut table: BTreeMap<String, ()> = ["a", "b", "c", "d"].map(|name| (name.to_owned(), ())).into();
            let total = Page { from, count, version: told.map(str::to_owned) }.cut(&mut table, &version);
            assert_eq!((table.into_keys().collect::<String>().as_str(), total), expected);
        };
        check(None, None, None, ("abcd", None));
        check(Some(0), Some(2), Some(""), ("ab", Some(4)));
        check(Some(2), Some(2), Some(same), ("cd", Some(4)));
        check(Some(2), Some(2), Some(r#"{"counter":2}"#), ("ab", Some(4)));
        check(Some(9), Some(2), Some(same), ("", Some(4)));
        check(Some(-1), Some(-1), Some(same), ("abcd", Some(4)));
    }

    #[test]
    fn attributes() {
        let mut attributes = BTreeMap::new();
        assert!(alter(&mut attributes, "+message.type=FIFO", false).is_ok());
        assert_eq!(attributes.get("message.type").map(String::as_str), Some("FIFO"));
        assert!(alter(&mut attributes, "+queue.type=BatchCQ", false).is_err());
        assert!(alter(&mut attributes, "+queue.type=RocksDBCQ", true).is_err());
        assert!(alter(&mut attributes, "-message.type, ", false).is_ok());
        assert!(alter(&mut attributes, "-message.type", false).is_err());
        assert!(alter(&mut attributes, "+queue.type=BatchCQ", true).is_ok());
        assert!(is_batch(&attributes));
        assert!(alter(&mut attributes, "-queue.type", false).is_err());
    }
}
