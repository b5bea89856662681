//! Taking and giving up queues as the group's members and the topics' queues change.
use crate::concurrently;
use crate::config::MessageModel;
use crate::consumer::core::Core;
use crate::consumer::pull_loop::{self, Begin};
use crate::error::CallError;
use crate::rebalance::Change;
use protocol::{MessageQueue, QueueOffset};
use rt::time::{Duration, Instant, sleep, sleep_until};
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::{debug, info, warn};

/// Rebalances when asked and at intervals; soon again when a round could not do all it should; never more often than the floor.
pub(crate) async fn run(core: Arc<Core>) {
    let ended = core.tasks.token().clone();
    rt::select! {
        () = ended.cancelled() => {}
        () = rounds(&core) => {}
    }
}

async fn rounds(core: &Arc<Core>) {
    let config = core.client.config();
    let mut wait = config.rebalance_interval;
    let mut not_before = Instant::now();
    loop {
        rt::select! {
            () = core.rebalance_wanted.notified() => {}
            () = sleep(if rt::buggify!("client.rebalance_early") { config.rebalance_interval_min } else { wait }) => {}
        }
        sleep_until(not_before).await;
        rt::dawdle!("client.rebalance_late", Duration::from_millis(200));
        let balanced = core.rebalance().await;
        not_before = Instant::now() + config.rebalance_interval_min;
        wait = if balanced { config.rebalance_interval } else { config.rebalance_interval_min };
    }
}

impl Core {
    /// One round over all topics. Returns whether this member now has exactly what it should have.
    async fn rebalance(self: &Arc<Self>) -> bool {
        self.give_up_unsubscribed().await;
        let mut balanced = true;
        for topic in self.topics() {
            balanced &= self.rebalance_topic(&topic).await;
        }
        balanced
    }

    /// Progress of queues whose topic is no longer wanted is stored like that of any other queue given up.
    async fn give_up_unsubscribed(&self) {
        let topics: BTreeSet<String> = self.topics().into_iter().collect();
        let mut unwanted = self.assignment().queues();
        unwanted.retain(|queue| !topics.contains(&queue.topic));
        self.give_up(unwanted).await;
    }

    async fn rebalance_topic(self: &Arc<Self>, topic: &str) -> bool {
        // A retry topic has no route before the first message was handed back.
        let Some(all) = self.client.routes(|routes| routes.subscribe_queues(topic)) else { return true };
        let allocated: BTreeSet<MessageQueue> = match self.config.model {
            MessageModel::Broadcasting => all.into_iter().collect(),
            MessageModel::Clustering => match self.my_share(topic, &all).await {
                Ok(mine) => mine.into_iter().collect(),
                Err(error) => {
                    debug!(group = %self.config.group, %topic, %error, "members not known, queues stay as they are");
                    return false;
                }
            },
        };
        let idle = self.assignment().idle(self.client.now(), self.config.pull_idle_max);
        for queue in &idle {
            // The pull loop should have ended the ownership itself.
            warn!(?queue, "no pull for too long, the queue is taken anew");
        }
        let change = {
            let mut owned = self.assignment().queues_of(topic);
            owned.retain(|queue| !idle.contains(queue));
            Change::between(&owned, &allocated)
        };
        let given_up =
            change.to_drop.into_iter().chain(idle.into_iter().filter(|queue| queue.topic == topic)).collect();
        self.give_up(given_up).await;
        self.take(change.to_take).await;
        self.assignment().queues_of(topic) == allocated
    }

    /// This member's queues, as the members that a broker knows share them out.
    async fn my_share(&self, topic: &str, all: &[MessageQueue]) -> Result<Vec<MessageQueue>, CallError> {
        let me = self.client.client_id();
        let mut members = self.client.consumer_ids(topic, &self.config.group).await;
        let known = match &members {
            Ok(ids) => ids.iter().any(|id| id == me),
            Err(CallError::Refused { .. }) => false,
            Err(_) => true,
        };
        if !known {
            // A broker that was just restarted has not heard of us. To give everything up for that would be rash. Reached by the test
            // a_member_that_the_broker_has_forgotten_tells_it_before_it_gives_up.
            rt::probe!("client.rebalance.not_a_member");
            self.client.heartbeat_all().await;
            members = self.client.consumer_ids(topic, &self.config.group).await;
        }
        Ok(self.config.strategy.allocate(me, &members?, all))
    }

    /// Ends ownerships, then stores their progress.
    pub(crate) async fn give_up(&self, queues: Vec<MessageQueue>) {
        let mut progress: Vec<(MessageQueue, QueueOffset)> = Vec::new();
        for queue in queues {
            info!(group = %self.config.group, ?queue, "queue given up");
            let reached = self.assignment().give_up(&queue);
            progress.extend(reached.map(|offset| (queue, offset)));
        }
        self.store_now(&progress).await;
    }

    async fn take(self: &Arc<Self>, queues: Vec<MessageQueue>) {
        let starts = concurrently::all(queues.iter().map(|queue| self.start_of(queue))).await;
        for (queue, start) in queues.into_iter().zip(starts) {
            match start {
                Ok(start) => {
                    let taken = self.assignment().take(&queue, start.from, start.progress, self.client.now());
                    if let Some(ticket) = taken {
                        info!(group = %self.config.group, ?queue, from = %start.from, "queue taken");
                        pull_loop::spawn(self, ticket, Begin::Taken);
                    }
                }
                Err(error) => {
                    warn!(group = %self.config.group, ?queue, %error, "start of the queue not known, it is not taken now")
                }
            }
        }
    }
}
