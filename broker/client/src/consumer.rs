//! The push consumer: pulls by itself and gives messages to a listener, several at a time, in no promised order.
use crate::config::{ConsumerConfig, MessageModel, ProducerConfig};
use crate::consumer::core::Core;
use crate::consumer::progress::ProgressStore;
use crate::error::{CallError, ConfigError, StartError};
use crate::instance::{ClientInstance, INNER_PRODUCER_GROUP};
use crate::producer::Sender;
use crate::subscription::MessageSelector;
use crate::validate;
use protocol::body::SubscriptionData;
use protocol::message::retry_topic;
use protocol::{MessageQueue, QueueOffset, StoredMessage};
use remoting::BoxFuture;
use rt::time::{sleep, unix_ms};
use std::sync::Arc;
use tracing::warn;

pub(crate) mod core;
pub(crate) mod progress;
pub(crate) mod pull_loop;
mod rebalance_loop;
mod send_back;
pub(crate) mod work;

/// What became of the messages of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumeOutcome {
    /// All are done.
    Success,
    /// None is done: all come again after a delay. In broadcasting they do not come again.
    Later {
        /// 0: the broker decides, longer each time; above 0: this delay level; below 0: to the dead letter queue at once.
        delay_level: i32,
    },
    /// The first `accepted` are done, the others come again as with [`Later`](Self::Later).
    Partly {
        /// How many are done.
        accepted: usize,
        /// As above.
        delay_level: i32,
    },
}

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumeContext {
    /// The queue from which the messages were pulled (of the retry topic, if they come again).
    pub queue: MessageQueue,
}

/// The program's side of a push consumer.
pub trait Listener: Send + Sync + 'static {
    /// Consumes messages of one queue, in order of their offsets. Called from several tasks at a time. The future is dropped when the consumer
    /// is shut down; its messages then come again. It must not panic: say [`ConsumeOutcome::Later`].
    fn consume(&self, messages: Vec<StoredMessage>, context: ConsumeContext) -> BoxFuture<'static, ConsumeOutcome>;
}

/// A member of a consumer group. Dropping it ends it at once, as a crash would, with progress not stored; shut it down instead.
pub struct PushConsumer {
    core: Arc<Core>,
}

impl PushConsumer {
    /// Joins the group and begins to consume.
    ///
    /// # Errors
    /// The configuration is wrong, the group has a member in this instance already, the local offsets cannot be read, or a broker
    /// refuses an SQL92 expression. That brokers or name servers cannot be reached is no error: the consumer goes on trying.
    pub async fn start(
        instance: &ClientInstance,
        config: ConsumerConfig,
        subscriptions: Vec<(String, MessageSelector)>,
        listener: Arc<dyn Listener>,
    ) -> Result<PushConsumer, StartError> {
        validate::consumer(&config)?;
        for (topic, selector) in &subscriptions {
            validate::topic(topic).map_err(ConfigError::Topic)?;
            selector.check(topic)?;
        }
        let store = ProgressStore::open(&config, instance.client_id()).await?;
        let sender = Sender::new(instance, ProducerConfig::new(INNER_PRODUCER_GROUP));
        let core = Arc::new(Core::new(instance.clone(), config, listener, sender, store));
        let version = unix_ms();
        for (topic, selector) in &subscriptions {
            core.subscribe(selector.subscribe(topic, version));
        }
        if core.config.model == MessageModel::Clustering {
            let retry = retry_topic(&core.config.group);
            core.subscribe(MessageSelector::all().subscribe(&retry, version));
        }
        instance.register_consumer(&core.config.group, &core)?;
        let consumer = PushConsumer { core };
        consumer.refresh_routes().await;
        for (topic, selector) in &subscriptions {
            consumer.ask_broker(&selector.subscribe(topic, version)).await?;
        }
        // Before the first pull: a broker serves only members it knows.
        instance.heartbeat_all().await;
        consumer.spawn_tasks();
        Ok(consumer)
    }

    /// Wants messages of one more topic, or other messages of it.
    ///
    /// # Errors
    /// The topic is no topic name, or a broker refuses an SQL92 expression; nothing has changed then.
    pub async fn subscribe(&self, topic: &str, selector: &MessageSelector) -> Result<(), StartError> {
        validate::topic(topic).map_err(ConfigError::Topic)?;
        selector.check(topic)?;
        if let Err(error) = self.core.client.refresh_route(topic).await {
            warn!(%topic, %error, "route of a new subscription not fetched yet");
        }
        let subscription = selector.subscribe(topic, unix_ms());
        self.ask_broker(&subscription).await?;
        self.core.subscribe(subscription);
        self.core.client.heartbeat_all().await;
        self.core.wake_rebalance();
        Ok(())
    }

    /// Wants no more messages of a topic. Its queues are given up, with their progress stored, at the next rebalance.
    pub fn unsubscribe(&self, topic: &str) {
        self.core.unsubscribe(topic);
        self.core.wake_rebalance();
    }

    /// The queues that this member owns now.
    pub fn assigned(&self) -> Vec<MessageQueue> {
        self.core.assignment().queues()
    }

    /// Progress in memory of each owned queue that has any: the lowest offset that is not done yet.
    pub fn progress(&self) -> Vec<(MessageQueue, QueueOffset)> {
        self.core.assignment().progress()
    }

    /// Messages pulled and not done yet.
    pub fn held(&self) -> usize {
        self.core.assignment().held()
    }

    /// Stops pulling and consuming, stores the progress, and leaves the group.
    pub async fn shutdown(self) {
        let core = &self.core;
        core.tasks.shutdown().await;
        let owned = core.assignment().queues();
        core.give_up(owned).await;
        core.client.unregister_consumer(core).await;
    }

    /// Asks one broker of the topic whether it can filter so; all of a cluster are taken to be alike. One that cannot be asked is no
    /// reason to stay away.
    async fn ask_broker(&self, subscription: &SubscriptionData) -> Result<(), StartError> {
        if subscription.is_tag_type() {
            return Ok(());
        }
        let client = &self.core.client;
        for addr in client.routes(|routes| routes.group_addrs(&subscription.topic, 0)) {
            match client.call_check_subscription(&addr, &self.core.config.group, subscription).await {
                Ok(()) => return Ok(()),
                Err(cause @ CallError::Refused { .. }) => {
                    return Err(StartError::Subscription { topic: subscription.topic.clone(), cause });
                }
                Err(error) => {
                    warn!(topic = %subscription.topic, %addr, %error, "broker not asked about the expression")
                }
            }
        }
        Ok(())
    }

    async fn refresh_routes(&self) {
        for topic in self.core.topics() {
            if let Err(error) = self.core.client.refresh_route(&topic).await {
                warn!(%topic, %error, "route of a subscription not fetched yet");
            }
        }
    }

    fn spawn_tasks(&self) {
        let core = &self.core;
        for _ in 0..core.config.consume_concurrency {
            core.tasks.spawn(work::worker(Arc::clone(core)));
        }
        core.tasks.spawn(store_at_intervals(Arc::clone(core)));
        if core.config.model == MessageModel::Clustering {
            core.tasks.spawn(work::expire(Arc::clone(core)));
        }
        core.tasks.spawn(rebalance_loop::run(Arc::clone(core)));
        core.wake_rebalance();
    }
}

impl Drop for PushConsumer {
    fn drop(&mut self) {
        self.core.tasks.token().cancel();
        self.core.client.forget_consumer(&self.core);
    }
}

async fn store_at_intervals(core: Arc<Core>) {
    let ended = core.tasks.token().clone();
    loop {
        rt::select! {
            () = ended.cancelled() => return,
            () = sleep(core.client.config().persist_consumer_offset_interval) => {}
        }
        rt::select! {
            () = ended.cancelled() => return,
            () = core.store_all() => {}
        }
    }
}
