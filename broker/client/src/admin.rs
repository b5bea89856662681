//! The few administrative calls that programs and tests need: create a topic, look at and set progress, bounds of queues.
use crate::consumer::progress::stored_at_broker;
use crate::error::CallError;
use crate::instance::ClientInstance;
use protocol::header::{CreateTopicRequest, TopicFilterType};
use protocol::{MessageQueue, QueueOffset};

/// Read and write.
const PERM_READ_WRITE: i32 = 6;

/// Administration through a client instance. All calls go to the master of the queue's broker.
#[derive(Clone)]
pub struct Admin {
    client: ClientInstance,
}

impl Admin {
    /// Uses the connections and routes of that instance.
    pub fn new(instance: &ClientInstance) -> Admin {
        Admin { client: instance.clone() }
    }

    /// Creates the topic, or changes its number of queues, at the broker that listens on `addr`. Clients learn of it from the name
    /// servers, once the broker has registered it there.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses; on a time-out the topic may have been created.
    pub async fn create_topic_at(&self, addr: &str, topic: &str, queues: i32) -> Result<(), CallError> {
        let header = CreateTopicRequest {
            topic: topic.into(),
            default_topic: Some("TBW102".into()),
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm: PERM_READ_WRITE,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_sys_flag: Some(0),
            order: false,
            attributes: None,
            force: false,
        };
        self.client.call_create_topic(addr, &header).await
    }

    /// As [`create_topic_at`](Self::create_topic_at), at every master that serves `template`, a topic that all brokers have (`TBW102`).
    ///
    /// # Errors
    /// There is no such master, or one of them failed: then the others may have the topic.
    pub async fn create_topic(&self, template: &str, topic: &str, queues: i32) -> Result<(), CallError> {
        self.client.refresh_route(template).await?;
        let masters = self.client.routes(|routes| routes.masters_of(template));
        if masters.is_empty() {
            return Err(CallError::NoRoute { topic: template.into() });
        }
        for addr in masters {
            self.create_topic_at(&addr, topic, queues).await?;
        }
        Ok(())
    }

    /// The queues that consumers of the topic read, by the newest route.
    ///
    /// # Errors
    /// No name server can be reached, or none knows the topic.
    pub async fn subscribe_queues(&self, topic: &str) -> Result<Vec<MessageQueue>, CallError> {
        self.client.refresh_route(topic).await?;
        self.client
            .routes(|routes| routes.subscribe_queues(topic))
            .ok_or_else(|| CallError::NoRoute { topic: topic.into() })
    }

    /// A group's stored progress. `None`: the broker has none.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses.
    pub async fn consumer_offset(&self, group: &str, queue: &MessageQueue) -> Result<Option<QueueOffset>, CallError> {
        stored_at_broker(&self.client, group, queue).await
    }

    /// Puts a group's stored progress there, forward or back. Members that own the queue put it elsewhere again: stop them before.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses.
    pub async fn update_consumer_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
        to: QueueOffset,
    ) -> Result<(), CallError> {
        let addr = self.client.master_of(queue).await?;
        self.client.call_update_offset(&addr, group, queue, to).await
    }

    /// The offset behind the queue's last message.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses.
    pub async fn max_offset(&self, queue: &MessageQueue) -> Result<QueueOffset, CallError> {
        self.client.call_max_offset(&self.client.master_of(queue).await?, queue).await
    }

    /// The offset of the queue's first message.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses.
    pub async fn min_offset(&self, queue: &MessageQueue) -> Result<QueueOffset, CallError> {
        self.client.call_min_offset(&self.client.master_of(queue).await?, queue).await
    }

    /// The offset of the first message stored at or after a wall time in milliseconds since 1970.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses.
    pub async fn search_offset(&self, queue: &MessageQueue, timestamp: i64) -> Result<QueueOffset, CallError> {
        self.client.call_search_offset(&self.client.master_of(queue).await?, queue, timestamp).await
    }
}
