//! Where progress is kept, how it gets there, and where a queue starts.
use crate::concurrently;
use crate::config::{ConsumeFrom, ConsumerConfig, MessageModel};
use crate::consumer::core::Core;
use crate::error::{CallError, LocalOffsetsError};
use crate::instance::ClientInstance;
use crate::local_offsets::LocalOffsets;
use protocol::message::is_retry_topic;
use protocol::{MessageQueue, QueueOffset};
use rt::sync::Mutex;
use std::collections::BTreeMap;
use tracing::{debug, warn};

/// Where progress is kept. Each has a lock that is held while progress is on its way, so that an older one never overtakes a newer.
pub(crate) enum ProgressStore {
    /// At the brokers (clustering).
    Remote(Mutex<()>),
    /// In a file of this machine (broadcasting).
    Local(Mutex<LocalOffsets>),
}

/// Where a queue starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) from: QueueOffset,
    /// What is stored, if anything.
    pub(crate) progress: Option<QueueOffset>,
}

impl ProgressStore {
    pub(crate) async fn open(config: &ConsumerConfig, client_id: &str) -> Result<ProgressStore, LocalOffsetsError> {
        Ok(match config.model {
            MessageModel::Clustering => ProgressStore::Remote(Mutex::new(())),
            MessageModel::Broadcasting => {
                let local = LocalOffsets::load(&config.local_offset_dir, client_id, &config.group).await?;
                ProgressStore::Local(Mutex::new(local))
            }
        })
    }
}

/// How a broker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    /// Without an answer: the periodic way; the next round makes up for a loss.
    Tell,
    /// With an answer: nobody will make up for a loss, and the next owner must not ask before it has arrived.
    Ask,
}

impl Core {
    /// Stores the progress of all owned queues: also of those where it has not moved, because the broker may have lost it.
    pub(crate) async fn store_all(&self) {
        match &self.store {
            ProgressStore::Remote(on_the_way) => {
                let _alone = on_the_way.lock().await;
                let progress = self.assignment().progress();
                self.update_brokers(&progress, Update::Tell).await;
            }
            ProgressStore::Local(local) => {
                let mut local = local.lock().await;
                let progress = self.assignment().progress();
                save(&mut local, &progress).await;
            }
        }
    }

    /// Stores this progress, of queues that are given up or were reset, and waits until it is stored or that has failed.
    pub(crate) async fn store_now(&self, progress: &[(MessageQueue, QueueOffset)]) {
        if progress.is_empty() {
            return;
        }
        match &self.store {
            ProgressStore::Remote(on_the_way) => {
                let _alone = on_the_way.lock().await;
                self.update_brokers(progress, Update::Ask).await;
            }
            ProgressStore::Local(local) => save(&mut *local.lock().await, progress).await,
        }
    }

    /// All brokers at the same time; one after the other to each, and no further to one that cannot be reached.
    async fn update_brokers(&self, progress: &[(MessageQueue, QueueOffset)], update: Update) {
        let mut by_broker: BTreeMap<&str, Vec<&(MessageQueue, QueueOffset)>> = BTreeMap::new();
        for entry in progress {
            by_broker.entry(&entry.0.broker_name).or_default().push(entry);
        }
        let rounds = by_broker.into_iter().map(|(broker, entries)| async move {
            for (queue, offset) in entries {
                if let Err(error) = self.update_broker(queue, *offset, update).await {
                    warn!(group = %self.config.group, ?queue, %offset, %error, "progress not stored");
                    if !matches!(error, CallError::Refused { .. }) {
                        debug!(%broker, "left out for this round");
                        return;
                    }
                }
            }
        });
        concurrently::all(rounds).await;
    }

    async fn update_broker(&self, queue: &MessageQueue, offset: QueueOffset, update: Update) -> Result<(), CallError> {
        // The master; a slave takes progress only while there is no master.
        let replica = self.client.replica_of(queue, crate::routes::MASTER_ID).await?;
        match update {
            Update::Tell => self.client.tell_update_offset(&replica.addr, &self.config.group, queue, offset).await,
            Update::Ask => self.client.call_update_offset(&replica.addr, &self.config.group, queue, offset).await,
        }
    }

    /// Where a queue starts that was just allocated. An error means that this is not known now, never that there is no progress.
    pub(crate) async fn start_of(&self, queue: &MessageQueue) -> Result<Start, CallError> {
        let stored = match &self.store {
            ProgressStore::Remote(_) => stored_at_broker(&self.client, &self.config.group, queue).await?,
            ProgressStore::Local(local) => local.lock().await.get(queue),
        };
        if let Some(offset) = stored {
            return Ok(Start { from: offset, progress: Some(offset) });
        }
        let from = self.start_without_progress(queue).await?;
        if from == QueueOffset::ZERO {
            return Ok(Start { from, progress: None });
        }
        // Without this, an owner that comes before anything is consumed would choose anew, further on, and skip what lies between.
        self.claim_start(queue, from).await?;
        Ok(Start { from, progress: Some(from) })
    }

    async fn start_without_progress(&self, queue: &MessageQueue) -> Result<QueueOffset, CallError> {
        // What was handed back for retry was accepted from this group: none of it is skipped.
        if is_retry_topic(&queue.topic) {
            return Ok(QueueOffset::ZERO);
        }
        let offset = match self.config.consume_from {
            ConsumeFrom::FirstOffset => QueueOffset::ZERO,
            ConsumeFrom::LastOffset => self.client.call_max_offset(&self.client.master_of(queue).await?, queue).await?,
            ConsumeFrom::Timestamp(at) => {
                self.client.call_search_offset(&self.client.master_of(queue).await?, queue, at).await?
            }
        };
        Ok(offset.max(QueueOffset::ZERO))
    }

    async fn claim_start(&self, queue: &MessageQueue, from: QueueOffset) -> Result<(), CallError> {
        if let ProgressStore::Local(local) = &self.store {
            save(&mut *local.lock().await, &[(queue.clone(), from)]).await;
            return Ok(());
        }
        match self.update_broker(queue, from, Update::Ask).await {
            // A broker that refuses to keep it may still serve the queue.
            Err(CallError::Refused { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

async fn save(local: &mut LocalOffsets, progress: &[(MessageQueue, QueueOffset)]) {
    if let Err(error) = local.save(progress).await {
        warn!(%error, "local progress not stored");
    }
}

/// Asks the master; another replica only if the newest route has no master.
pub(crate) async fn stored_at_broker(
    client: &ClientInstance,
    group: &str,
    queue: &MessageQueue,
) -> Result<Option<QueueOffset>, CallError> {
    let addr = match client.master_of(queue).await {
        Ok(addr) => addr,
        Err(CallError::NoBroker { .. }) => client.replica_of(queue, crate::routes::MASTER_ID).await?.addr,
        Err(error) => return Err(error),
    };
    client.call_query_offset(&addr, group, queue).await
}
