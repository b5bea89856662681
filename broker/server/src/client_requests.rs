//! Requests of clients about themselves: heartbeats, leaving, who else is in a group, queue locks.
use crate::broker::Broker;
use crate::consumers::{Joining, Member};
use crate::dispatch::Call;
use crate::filter::expression;
use crate::refusal::Refusal;
use crate::topics::{perm, plain, retry_topic};
use protocol::body::{
    CheckClientRequestBody, Connection as ConnectionBody, ConsumerConnection, ConsumerData, ConsumerListBody,
    HeartbeatData, LockBatchRequestBody, LockBatchResponseBody, ProducerConnection, UnlockBatchRequestBody,
};
use protocol::frame::Command;
use protocol::header::{
    ConsumerConnectionRequest, GetConsumerListByGroupRequest, HeartbeatResponse, ProducerConnectionRequest,
    UnregisterClientRequest,
};
use rt::time::unix_ms;

/// Most groups one heartbeat may name: a hostile client must not fill the tables with one request.
const GROUPS_MAX: usize = 4096;

/// HEART_BEAT: the client is there, with these groups and subscriptions.
pub(crate) async fn heartbeat(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let data: HeartbeatData = call.body()?;
    if data.client_id.is_empty() {
        return Err(Refusal::Parameter { name: "clientID", value: data.client_id });
    }
    if data.consumer_data_set.len() + data.producer_data_set.len() > GROUPS_MAX {
        return Err(Refusal::Parameter { name: "consumerDataSet", value: "too many groups".to_owned() });
    }
    let member = Member {
        client_id: data.client_id,
        address: call.connection.peer_addr(),
        language: call.request.language,
        version: call.request.version,
        last_heartbeat: broker.now(),
    };
    for consumer in data.consumer_data_set {
        join(broker, call, member.clone(), consumer, data.without_sub).await;
    }
    for producer in data.producer_data_set {
        broker.producers().join(call.peer(), member.clone(), &producer.group_name);
    }
    // The connection may have ended while topics were saved; what it joined after that would stay for ever.
    if call.connection.is_closed() {
        broker.forget(call.peer());
    }
    // "Changed" makes a client of the second heartbeat form send its subscriptions in full the next time.
    let reply = HeartbeatResponse { support_heartbeat_v2: Some(true), subscription_changed: Some(true) };
    Ok(call.ok().with_header(&reply))
}

/// A consumer's part of a heartbeat. A group that may not exist is passed over, as clients expect.
async fn join(broker: &Broker, call: &Call, member: Member, consumer: ConsumerData, without_subscriptions: bool) {
    let Some(group) = broker.find_group(&consumer.group_name).await else { return };
    let unit = if consumer.unit_mode { 2 } else { 0 };
    let mut retry = plain(&retry_topic(&consumer.group_name), group.retry_queue_nums, perm::READ_WRITE);
    retry.topic_sys_flag = unit;
    broker.ensure_topic(retry).await;
    let joining = Joining {
        group: consumer.group_name,
        consume_type: consumer.consume_type,
        message_model: consumer.message_model,
        consume_from: consumer.consume_from_where,
        subscriptions: (!without_subscriptions).then_some(consumer.subscription_data_set),
    };
    let change = {
        let mut consumers = broker.consumers();
        // Before the group is seen to have such a subscription: a pull in between would miss its filter.
        if let Some(subscriptions) = &joining.subscriptions {
            let mut filters = broker.filters();
            filters.register(&joining.group, subscriptions, unix_ms(), broker.store.log_end());
        }
        consumers.join(call.peer(), member, joining)
    };
    if let Some(change) = change.filter(|_| group.notify_consumer_ids_changed_enable) {
        broker.notify(change);
    }
}

/// UNREGISTER_CLIENT: the client leaves a group in order.
pub(crate) fn unregister(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: UnregisterClientRequest = call.request.header()?;
    if let Some(group) = header.producer_group {
        broker.producers().leave(call.peer(), &group);
    }
    if let Some(group) = header.consumer_group {
        let change = broker.consumers().leave(call.peer(), &group);
        broker.end_filters();
        if let Some(change) = change {
            broker.notify(change);
        }
    }
    Ok(call.ok())
}

/// CHECK_CLIENT_CONFIG: whether this broker can filter as the client wants.
pub(crate) fn check_config(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let body: CheckClientRequestBody = call.body()?;
    let subscription = body.subscription_data;
    if !subscription.is_tag_type() {
        if !broker.config.filter.by_properties {
            return Err(Refusal::FilterType(subscription.expression_type));
        }
        expression(&subscription).map_err(Refusal::FilterText)?;
    }
    Ok(call.ok())
}

/// GET_CONSUMER_LIST_BY_GROUP: the client ids among which a group's queues are shared out.
pub(crate) fn consumer_list(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: GetConsumerListByGroupRequest = call.request.header()?;
    let ids = broker.consumers().client_ids(&header.consumer_group);
    if ids.is_empty() {
        return Err(Refusal::NoConsumer(header.consumer_group));
    }
    Ok(call.json(&ConsumerListBody { consumer_id_list: ids.into_iter().collect() }))
}

/// LOCK_BATCH_MQ: answers which of the queues the client owns now.
pub(crate) fn lock(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let body: LockBatchRequestBody = call.body()?;
    let held = broker.locks().lock(&body.consumer_group, &body.client_id, body.mq_set, broker.now());
    Ok(call.json(&LockBatchResponseBody { lock_ok_mq_set: held }))
}

/// UNLOCK_BATCH_MQ.
pub(crate) fn unlock(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let body: UnlockBatchRequestBody = call.body()?;
    broker.locks().unlock(&body.consumer_group, &body.client_id, &body.mq_set);
    Ok(call.ok())
}

/// GET_CONSUMER_CONNECTION_LIST.
pub(crate) fn consumer_connections(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ConsumerConnectionRequest = call.request.header()?;
    let consumers = broker.consumers();
    let group = consumers.group(&header.consumer_group).ok_or(Refusal::GroupOffline(header.consumer_group))?;
    Ok(call.json(&ConsumerConnection {
        connection_set: group.members.values().map(connection).collect(),
        consume_from_where: group.consume_from,
        consume_type: group.consume_type,
        message_model: group.message_model,
        subscription_table: group.subscriptions.clone(),
    }))
}

/// GET_PRODUCER_CONNECTION_LIST.
pub(crate) fn producer_connections(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let header: ProducerConnectionRequest = call.request.header()?;
    let producers = broker.producers();
    let members = producers.members(&header.producer_group).ok_or(Refusal::NoProducer(header.producer_group))?;
    Ok(call.json(&ProducerConnection { connection_set: members.values().map(connection).collect() }))
}

fn connection(member: &Member) -> ConnectionBody {
    ConnectionBody {
        client_addr: member.address.to_string(),
        client_id: member.client_id.clone(),
        language: member.language,
        version: member.version,
    }
}
