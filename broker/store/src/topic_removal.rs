//! Removing a topic's queues for good.
//!
//! Its records stay in the log until they expire. What makes the removal last is the tombstone, one small file that is replaced as a whole: a
//! crash leaves the topic with all its queues or without any, and no recovery gives its records to the next topic of the name.
use crate::consume_queue::ConsumeQueue;
use crate::consume_queues::is_directory_name;
use crate::error::RetentionError;
use crate::store::Store;
use protocol::PhysicalOffset;
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Removes a topic's queues: its messages are found no more (but by their keys and places, until they expire), and a topic made
    /// under the name begins at offset 0. A message that is appended meanwhile belongs to the one or the other.
    ///
    /// # Errors
    /// The topic can have no queues; or the disk failed, and the topic may still have them. After a failed sync the store is poisoned.
    pub async fn remove_topic(&self, topic: &str) -> Result<(), RetentionError> {
        if !is_directory_name(topic) {
            return Err(RetentionError::TopicName { topic: topic.to_owned() });
        }
        // In this order everywhere: dispatcher, queues and checkpoint, log. No sync of a queue may find its directory gone.
        let mut dispatcher = self.dispatcher.lock().await;
        let _queue_turn = self.queue_flusher.hold().await;
        self.poison.check().map_err(RetentionError::Poisoned)?;
        let end = {
            let mut appender = self.log.lock();
            appender.remove_topic(topic);
            appender.end()
        };
        // The tombstone must not reach beyond what a power loss leaves of the log.
        self.flush_log().await.map_err(RetentionError::Poisoned)?;
        let added = self.queues.tombstones().add(topic, end, self.log_min()).await;
        added.map_err(|(path, source)| RetentionError::Io { action: "write", path, source })?;
        rt::probe!("store.topic_removed");
        dispatcher.forget_topic(topic);
        self.remove_queues(topic, &self.queues.take_topic(topic)).await
    }

    /// Makes the topic's queues hold batches as they were sent, from the first message on, durably; to be called before there is one. False if
    /// it has queues of the other kind.
    ///
    /// # Errors
    /// The topic can have no queues, or the disk failed.
    pub async fn make_batch_topic(&self, topic: &str) -> Result<bool, RetentionError> {
        if !is_directory_name(topic) {
            return Err(RetentionError::TopicName { topic: topic.to_owned() });
        }
        // No record of the topic is dispatched meanwhile.
        let _dispatcher = self.dispatcher.lock().await;
        let made = self.queues.make_batch_topic(topic).await;
        made.map_err(|(path, source)| RetentionError::Io { action: "create", path, source })
    }

    /// Whether the topic's queues hold batches as they were sent.
    #[must_use]
    pub fn is_batch_topic(&self, topic: &str) -> bool {
        self.queues.is_batch(topic)
    }

    /// Removes the queues of each topic that has no entry of a record behind the log's start, if `is_wanted` does not hold of it; returns how
    /// many topics.
    ///
    /// # Errors
    /// As [`remove_topic`](Self::remove_topic).
    pub async fn remove_dead_topics(&self, is_wanted: impl Fn(&str) -> bool) -> Result<usize, RetentionError> {
        let log_min = self.log_min();
        self.remove_topics(|topic, last_end| last_end <= log_min && !is_wanted(topic)).await
    }

    /// Removes the queues of each topic that `is_wanted` does not hold of; returns how many topics.
    ///
    /// # Errors
    /// As [`remove_topic`](Self::remove_topic).
    pub async fn remove_unwanted_topics(&self, is_wanted: impl Fn(&str) -> bool) -> Result<usize, RetentionError> {
        self.remove_topics(|topic, _| !is_wanted(topic)).await
    }

    async fn remove_topics(&self, is_chosen: impl Fn(&str, PhysicalOffset) -> bool) -> Result<usize, RetentionError> {
        let mut removed = 0;
        for (topic, last_end) in self.queues.last_end_by_topic() {
            if is_chosen(&topic, last_end) {
                self.remove_topic(&topic).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn remove_queues(&self, topic: &str, queues: &[Arc<ConsumeQueue>]) -> Result<(), RetentionError> {
        for queue in queues {
            queue.reset().map_err(|source| not_removed(queue.dir(), source))?;
            self.remove_dir(queue.dir()).await?;
            if let Some(dir) = queue.extension_dir() {
                self.remove_dir(dir).await?;
            }
        }
        for root in self.queues.roots() {
            if rt::fs::metadata(root).is_ok() {
                self.remove_dir(&root.join(topic)).await?;
                rt::fs::sync_dir(root).await.map_err(|source| self.not_synced(root, source))?;
            }
        }
        Ok(())
    }

    /// Removes a directory whose files are removed, durably as far as they are concerned. Files that are none of ours keep it.
    async fn remove_dir(&self, dir: &Path) -> Result<(), RetentionError> {
        match rt::fs::sync_dir(dir).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            synced => synced.map_err(|source| self.not_synced(dir, source))?,
        }
        match rt::fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                tracing::warn!(path = %dir.display(), "directory of a removed queue holds other files");
                Ok(())
            }
            removed => removed.map_err(|source| not_removed(dir, source)),
        }
    }

    fn not_synced(&self, dir: &Path, source: io::Error) -> RetentionError {
        RetentionError::Poisoned(self.poison.set("sync the directory", dir, source))
    }
}

fn not_removed(path: &Path, source: io::Error) -> RetentionError {
    RetentionError::Io { action: "remove", path: path.to_owned(), source }
}
