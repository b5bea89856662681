//! Reading by physical offset and by time.
use crate::consume_queue::ConsumeQueue;
use crate::error::ReadError;
use crate::scan::{Step, examine};
use crate::store::Store;
use bytes::Bytes;
use protocol::message::record::{PEEK_BYTES, Peeked, RecordView, peek};
use protocol::{PhysicalOffset, QueueOffset};

/// Which of several messages of the same time, and which neighbour if none has the time (`BoundaryType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeBoundary {
    /// The first message not earlier than the time.
    #[default]
    Lower,
    /// The last message not later than the time.
    Upper,
}

impl Store {
    /// The stored record that starts at `at`; `None` if the readable log has no record there. The offset comes from a message id,
    /// so it may be anything.
    ///
    /// # Errors
    /// The disk failed. A damaged record is not an error here: it cannot be told from a wrong offset.
    pub async fn record_at(&self, at: PhysicalOffset) -> Result<Option<Bytes>, ReadError> {
        let Some(head) = self.log.read(at, PEEK_BYTES).await? else { return Ok(None) };
        let Ok(Peeked::Record { size, .. }) = peek(&head) else { return Ok(None) };
        let Some(bytes) = self.log.read(at, size).await? else { return Ok(None) };
        match examine(&bytes, at, at + i64::try_from(size).unwrap_or(0), self.config.check()) {
            Ok(Step::Record(facts)) if facts.end() <= self.confirm_end() => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// The newest records, at most `most`, of messages that have the key (their unique one, or one of those that their producer gave
    /// them) and were stored between the times (Unix milliseconds, both included): one, and more until they have `bytes_max` bytes. A key of
    /// the same hash may slip in: who asks compares.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn records_by_key(
        &self,
        topic: &str,
        key: &str,
        (most, bytes_max): (usize, usize),
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Bytes>, ReadError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        for at in self.index.find(topic, key, most, from_ms, until_ms).await? {
            // What is not readable yet, or deleted already, is not there.
            let Some(record) = self.record_at(at).await? else { continue };
            bytes += record.len();
            if bytes > bytes_max && !records.is_empty() {
                break;
            }
            records.push(record);
        }
        Ok(records)
    }

    /// Store time (Unix milliseconds) and place of the newest message that is found by its keys; zeros if there is none.
    #[must_use]
    pub fn newest_indexed(&self) -> (i64, PhysicalOffset) {
        self.index.newest()
    }

    /// The queue offset of the message nearest to a store time (Unix milliseconds), inside the queue's bounds; 0 for a queue that
    /// does not exist.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn offset_by_time(
        &self,
        topic: &str,
        queue_id: i32,
        timestamp_ms: i64,
        boundary: TimeBoundary,
    ) -> Result<QueueOffset, ReadError> {
        let Some(queue) = self.queues.get(topic, queue_id) else { return Ok(QueueOffset::ZERO) };
        let (min, max) = queue.bounds();
        let is_early = |time: i64| match boundary {
            TimeBoundary::Lower => time < timestamp_ms,
            TimeBoundary::Upper => time <= timestamp_ms,
        };
        // Store times never decrease in log order. An entry without a readable record counts as early.
        let (mut low, mut high) = (min.0, max.0);
        while low < high {
            let middle = low + (high - low) / 2;
            let time = self.entry_store_time(&queue, QueueOffset(middle)).await?.unwrap_or(0);
            if is_early(time) { low = middle + 1 } else { high = middle }
        }
        Ok(match boundary {
            TimeBoundary::Lower => QueueOffset(low),
            TimeBoundary::Upper => {
                let last = QueueOffset(low - 1).max(min);
                // Messages of one record have one place.
                queue.read_entry(last).await?.map_or(last, |queued| queued.offset.max(min))
            }
        })
    }

    /// Store time of one message of a queue, Unix milliseconds; `None` if there is no such message (any more).
    ///
    /// # Errors
    /// The disk failed.
    pub async fn store_time_at(
        &self,
        topic: &str,
        queue_id: i32,
        offset: QueueOffset,
    ) -> Result<Option<i64>, ReadError> {
        match self.queues.get(topic, queue_id) {
            Some(queue) if offset >= queue.bounds().0 => self.entry_store_time(&queue, offset).await,
            _ => Ok(None),
        }
    }

    /// Where the record of one entry of a queue begins, or, if the entry is a hole, what it stands behind; `None` if there is no such entry
    /// (any more).
    ///
    /// # Errors
    /// The disk failed.
    pub async fn place_of(
        &self,
        topic: &str,
        queue_id: i32,
        offset: QueueOffset,
    ) -> Result<Option<PhysicalOffset>, ReadError> {
        let Some(queue) = self.queues.get(topic, queue_id) else { return Ok(None) };
        Ok(queue.read_entry(offset).await?.map(|queued| queued.entry.physical))
    }

    /// Store time of the oldest message of a queue; `None` for an empty one.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn earliest_store_time(&self, topic: &str, queue_id: i32) -> Result<Option<i64>, ReadError> {
        match self.queues.get(topic, queue_id) {
            Some(queue) => self.entry_store_time(&queue, queue.bounds().0).await,
            None => Ok(None),
        }
    }

    /// Store time of the oldest message of all; `None` for an empty log.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn earliest_log_store_time(&self) -> Result<Option<i64>, ReadError> {
        let record = self.record_at(self.log_min()).await?;
        Ok(record.and_then(|record| RecordView::parse(&record).ok().map(|view| view.store_timestamp())))
    }

    async fn entry_store_time(&self, queue: &ConsumeQueue, offset: QueueOffset) -> Result<Option<i64>, ReadError> {
        let Some(queued) = queue.read_entry(offset).await?.filter(|queued| !queued.entry.is_hole()) else {
            return Ok(None);
        };
        let record = self.entry_record(queue, queued.offset, &queued.entry).await?;
        Ok(record.and_then(|record| RecordView::parse(&record).ok().map(|view| view.store_timestamp())))
    }
}
