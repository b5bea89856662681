//! What operators ask for when disks fill up.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use protocol::frame::Command;
use tracing::info;

/// DELETE_EXPIRED_COMMITLOG: what has expired goes now, and not at its hour.
pub(crate) fn remove_expired(broker: &Broker, call: &Call) -> Command {
    broker.store.ask_for_removal();
    broker.removal_asked.notify_one();
    call.ok()
}

/// CLEAN_EXPIRED_CONSUMEQUEUE: queues of topics that are no more, once all their messages have expired. A topic that there still is keeps
/// its queues: their offsets must not begin anew.
pub(crate) async fn remove_dead_topics(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    broker.require_master()?;
    let topics = broker.store.remove_dead_topics(|topic| is_wanted(broker, topic)).await?;
    info!(topics, "queues of expired topics removed");
    Ok(call.ok())
}

/// CLEAN_UNUSED_TOPIC: queues of topics that are no more.
pub(crate) async fn remove_unused_topics(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    broker.require_master()?;
    let topics = broker.store.remove_unwanted_topics(|topic| is_wanted(broker, topic)).await?;
    info!(topics, "queues of unused topics removed");
    Ok(call.ok())
}

fn is_wanted(broker: &Broker, topic: &str) -> bool {
    // Light queues have no topic in the table.
    let topics = broker.topics();
    store::is_light(topic) || topics.is_system(topic) || topics.get(topic).is_some()
}
