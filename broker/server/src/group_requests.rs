//! Requests about subscription groups and their progress.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::groups::GroupTableText;
use crate::names::check_group;
use crate::offset_requests::bounds;
use crate::refusal::Refusal;
use crate::topic_requests::Page;
use protocol::MessageQueue;
use protocol::body::{
    ConsumeStats, GroupList, OffsetWrapper, QuerySubscriptionResponseBody, SubscriptionGroupConfig, TopicList,
};
use protocol::frame::Command;
use protocol::header::{
    ConsumeStatsRequest, DeleteSubscriptionGroupRequest, GetAllSubscriptionGroupRequest,
    GetAllSubscriptionGroupResponse, GetSubscriptionGroupConfigRequest, QuerySubscriptionByConsumerRequest,
    QueryTopicConsumeByWhoRequest, QueryTopicsByConsumerRequest,
};
use rt::time::unix_ms;
use std::collections::{BTreeMap, BTreeSet};
use tracing::info;

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.
pub(crate) async fn update(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let config: SubscriptionGroupConfig = call.body()?;
    check_group(&config.group_name)?;
    broker.require_master()?;
    info!(group = %config.group_name, "subscription group updated");
    broker.groups().update(config, unix_ms());
    broker.save_groups().await;
    Ok(call.ok())
}

/// DELETE_SUBSCRIPTIONGROUP, with its progress if asked for.
pub(crate) async fn delete(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: DeleteSubscriptionGroupRequest = call.request.header()?;
    broker.require_master()?;
    info!(group = %header.group_name, "subscription group deleted");
    broker.groups().delete(&header.group_name, unix_ms());
    broker.save_groups().await;
    if header.clean_offset {
        broker.offsets().remove_group(&header.group_name, unix_ms());
        broker.save_offsets().await;
    }
    Ok(call.ok())
}

/// GET_SUBSCRIPTIONGROUP_CONFIG.
pub(crate) async fn get(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetSubscriptionGroupConfigRequest = call.request.header()?;
    let config = broker.find_group(&header.group).await.ok_or(Refusal::OffsetGroup(header.group))?;
    Ok(call.json(&config))
}

/// GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the whole table, or the page that is asked for.
pub(crate) fn all(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetAllSubscriptionGroupRequest = call.request.header()?;
    let mut text: GroupTableText = broker.groups().text();
    let page = Page { from: header.group_seq, count: header.max_group_num, version: header.data_version };
    let total = page.cut(&mut text.subscription_group_table, &text.data_version);
    Ok(call.json(&text).with_header(&GetAllSubscriptionGroupResponse { total_group_num: total }))
}

/// GET_CONSUME_STATS: how far a group is in each queue of its topics.
pub(crate) async fn consume_stats(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ConsumeStatsRequest = call.request.header()?;
    let mut offset_table = BTreeMap::new();
    for topic in topics_to_show(broker, &header) {
        let Some(config) = broker.topic(&topic) else { continue };
        for queue_id in 0..config.read_queue_nums {
            let (_, max) = bounds(broker, &topic, queue_id);
            let (committed, pulled) = {
                let offsets = broker.offsets();
                (
                    offsets.query(&topic, &header.consumer_group, queue_id).unwrap_or(0),
                    offsets.pulled(&topic, &header.consumer_group, queue_id).unwrap_or(0),
                )
            };
            let last_timestamp = if committed > 0 {
                broker
                    .store
                    .store_time_at(&topic, queue_id, protocol::QueueOffset(committed - 1))
                    .await
                    .ok()
                    .flatten()
                    .unwrap_or(0)
            } else {
                0
            };
            let queue =
                MessageQueue { topic: topic.clone(), broker_name: broker.cluster.broker_name.clone(), queue_id };
            let progress = OffsetWrapper {
                broker_offset: max.get(),
                consumer_offset: committed,
                last_timestamp,
                pull_offset: committed.max(pulled),
            };
            offset_table.insert(queue, progress);
        }
    }
    Ok(call.json(&ConsumeStats { consume_tps: 0.0, offset_table }))
}

/// The topics named in the request, else all in which the group has progress; of a live group only those it still subscribes to.
fn topics_to_show(broker: &Broker, header: &ConsumeStatsRequest) -> BTreeSet<String> {
    let list = header.topic_list.as_deref().unwrap_or("");
    let named: BTreeSet<String> = list.split(';').filter(|topic| !topic.is_empty()).map(str::to_owned).collect();
    if !named.is_empty() {
        return named;
    }
    if let Some(topic) = header.topic.as_ref().filter(|topic| !topic.is_empty()) {
        return BTreeSet::from([topic.clone()]);
    }
    let progressed = broker.offsets().topics_of(&header.consumer_group);
    let consumers = broker.consumers();
    match consumers.group(&header.consumer_group) {
        Some(live) => progressed.into_iter().filter(|topic| live.subscriptions.contains_key(topic)).collect(),
        None => progressed,
    }
}

/// QUERY_TOPIC_CONSUME_BY_WHO: groups that subscribe to the topic or have progress in it.
pub(crate) fn groups_of_topic(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: QueryTopicConsumeByWhoRequest = call.request.header()?;
    let mut groups = broker.consumers().groups_of(&header.topic);
    groups.extend(broker.offsets().groups_of(&header.topic));
    Ok(call.json(&GroupList { group_list: groups.into_iter().collect() }))
}

/// QUERY_SUBSCRIPTION_BY_CONSUMER: what the group reads of a topic, by its heartbeats or its pulls.
pub(crate) fn subscription(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: QuerySubscriptionByConsumerRequest = call.request.header()?;
    let topic = header.topic.unwrap_or_default();
    let subscription_data = broker.consumers().subscription(&header.group, &topic).cloned();
    Ok(call.json(&QuerySubscriptionResponseBody { group: header.group, subscription_data, topic }))
}

/// QUERY_TOPICS_BY_CONSUMER: topics in which the group has progress.
pub(crate) fn topics_of_group(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: QueryTopicsByConsumerRequest = call.request.header()?;
    let topics = broker.offsets().topics_of(&header.group);
    Ok(call.json(&TopicList {
        broker_addr: Some(broker.advertised().to_string()),
        topic_list: topics.into_iter().collect(),
    }))
}
