//! The parts of a push consumer, and what the client instance asks of it.
use crate::assignment::{Assignment, Ticket};
use crate::config::{ConsumeFrom, ConsumerConfig, MessageModel};
use crate::consumer::Listener;
use crate::consumer::progress::ProgressStore;
use crate::consumer::pull_loop::{self, Begin};
use crate::consumer::work::Jobs;
use crate::instance::ClientInstance;
use crate::producer::Sender;
use protocol::body::{self, ConsumeFromWhere, ConsumeType, ConsumerData, SubscriptionData};
use protocol::{MessageQueue, QueueOffset};
use rt::sync::Notify;
use rt::task::TaskGroup;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::warn;

/// One push consumer. Its tasks hold it; it ends when they are cancelled.
pub(crate) struct Core {
    pub(crate) client: ClientInstance,
    pub(crate) config: ConsumerConfig,
    pub(crate) listener: Arc<dyn Listener>,
    /// Sends what cannot be handed back.
    pub(crate) sender: Sender,
    pub(crate) jobs: Jobs,
    pub(crate) store: ProgressStore,
    pub(crate) rebalance_wanted: Notify,
    pub(crate) tasks: TaskGroup,
    subscriptions: Mutex<BTreeMap<String, SubscriptionData>>,
    assignment: Mutex<Assignment>,
}

impl Core {
    pub(crate) fn new(
        client: ClientInstance,
        config: ConsumerConfig,
        listener: Arc<dyn Listener>,
        sender: Sender,
        store: ProgressStore,
    ) -> Core {
        let tasks = TaskGroup::child_of(client.ended());
        Core {
            listener,
            sender,
            jobs: Jobs::default(),
            store,
            rebalance_wanted: Notify::new(),
            subscriptions: Mutex::default(),
            assignment: Mutex::new(Assignment::new(tasks.token().clone())),
            tasks,
            client,
            config,
        }
    }

    /// The owned queues. Never held over a wait.
    pub(crate) fn assignment(&self) -> MutexGuard<'_, Assignment> {
        self.assignment.lock().expect("a panic under this lock ends the consumer")
    }

    fn subscriptions(&self) -> MutexGuard<'_, BTreeMap<String, SubscriptionData>> {
        self.subscriptions.lock().expect("no code that can panic runs under this lock")
    }

    pub(crate) fn subscribe(&self, data: SubscriptionData) {
        self.subscriptions().insert(data.topic.clone(), data);
    }

    pub(crate) fn unsubscribe(&self, topic: &str) {
        self.subscriptions().remove(topic);
    }

    pub(crate) fn subscription(&self, topic: &str) -> Option<SubscriptionData> {
        self.subscriptions().get(topic).cloned()
    }

    /// Subscribed topics, the retry topic too, in order.
    pub(crate) fn topics(&self) -> Vec<String> {
        self.subscriptions().keys().cloned().collect()
    }

    /// What heartbeats say of this consumer.
    pub(crate) fn heartbeat(&self) -> ConsumerData {
        ConsumerData {
            consume_from_where: match self.config.consume_from {
                ConsumeFrom::LastOffset => ConsumeFromWhere::LastOffset,
                ConsumeFrom::FirstOffset => ConsumeFromWhere::FirstOffset,
                ConsumeFrom::Timestamp(_) => ConsumeFromWhere::Timestamp,
            },
            consume_type: ConsumeType::Passively,
            group_name: self.config.group.clone(),
            message_model: match self.config.model {
                MessageModel::Clustering => body::MessageModel::Clustering,
                MessageModel::Broadcasting => body::MessageModel::Broadcasting,
            },
            subscription_data_set: self.subscriptions().values().cloned().collect(),
            unit_mode: false,
        }
    }

    /// Asks for a rebalance soon. Many wishes before it are one.
    pub(crate) fn wake_rebalance(&self) {
        self.rebalance_wanted.notify_one();
    }

    /// The route of a topic is another one.
    pub(crate) fn route_changed(&self, topic: &str) {
        if self.subscriptions().contains_key(topic) {
            self.wake_rebalance();
        }
    }

    /// An explicit reset by an operator. Queues that are not owned here are others' business.
    pub(crate) fn reset(self: &Arc<Self>, topic: &str, offsets: BTreeMap<MessageQueue, i64>) {
        for (queue, offset) in offsets.into_iter().filter(|(queue, _)| queue.topic == topic) {
            let ticket = self.assignment().ticket(&queue);
            match ticket {
                Some(ticket) if offset >= 0 => self.restart(&ticket, QueueOffset(offset)),
                Some(_) => warn!(?queue, offset, "reset to a negative offset is ignored"),
                None => {}
            }
        }
    }

    /// Goes on at another offset, forward or back, and makes everything void that was begun before.
    pub(crate) fn restart(self: &Arc<Self>, ticket: &Ticket, at: QueueOffset) {
        let next = self.assignment().restart(ticket, at, self.client.now());
        if let Some(next) = next {
            pull_loop::spawn(self, next, Begin::AfterReset(at));
        }
    }
}
