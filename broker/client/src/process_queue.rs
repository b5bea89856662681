//! The messages of one queue that were pulled and are not done yet (RocketMQ's `ProcessQueue`). `now` is the time since any fixed
//! origin.
use protocol::{QueueOffset, StoredMessage};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
struct Held {
    message: Arc<StoredMessage>,
    /// When the listener got it, if it did.
    started: Option<Duration>,
}

/// Thresholds beyond which a queue is not pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowLimits {
    pub(crate) messages: usize,
    pub(crate) mib: usize,
    pub(crate) span: i64,
}

/// What is held of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessQueue {
    held: BTreeMap<QueueOffset, Held>,
    /// Sum of the held bodies.
    bytes: usize,
    /// One above the highest offset ever put.
    end: Option<QueueOffset>,
}

impl ProcessQueue {
    /// Takes in pulled messages. Must be called before a listener can get them, else the lowest unfinished offset would pass over
    /// them. Returns those that were not held yet: only these may be given to a listener.
    pub(crate) fn put(&mut self, messages: Vec<Arc<StoredMessage>>) -> Vec<Arc<StoredMessage>> {
        let mut fresh = Vec::with_capacity(messages.len());
        for message in messages {
            let offset = message.queue_offset;
            if self.held.contains_key(&offset) {
                continue;
            }
            self.bytes += message.body.len();
            self.end = self.end.max(Some(offset + 1));
            self.held.insert(offset, Held { message: Arc::clone(&message), started: None });
            fresh.push(message);
        }
        self.check_invariants();
        fresh
    }

    /// The messages are done (consumed, or safely handed back). Returns the lowest unfinished offset, which is the progress; `None`
    /// if nothing was held.
    pub(crate) fn remove(&mut self, offsets: &[QueueOffset]) -> Option<QueueOffset> {
        if self.held.is_empty() {
            return None;
        }
        for offset in offsets {
            if let Some(held) = self.held.remove(offset) {
                self.bytes -= held.message.body.len();
            }
        }
        self.check_invariants();
        self.lowest_unfinished()
    }

    /// The lowest held offset, or the end of what was ever held.
    fn lowest_unfinished(&self) -> Option<QueueOffset> {
        self.held.keys().next().copied().or(self.end)
    }

    /// One above the highest offset ever held.
    pub(crate) fn end(&self) -> Option<QueueOffset> {
        self.end
    }

    /// Whether the message is still unfinished.
    pub(crate) fn contains(&self, offset: QueueOffset) -> bool {
        self.held.contains_key(&offset)
    }

    /// A listener got the messages now.
    pub(crate) fn mark_started(&mut self, offsets: &[QueueOffset], now: Duration) {
        for offset in offsets {
            if let Some(held) = self.held.get_mut(offset) {
                held.started = Some(now);
            }
        }
    }

    /// The listener's call for the messages ended without success; they wait to be consumed again here.
    pub(crate) fn mark_waiting(&mut self, offsets: &[QueueOffset]) {
        for offset in offsets {
            if let Some(held) = self.held.get_mut(offset) {
                held.started = None;
            }
        }
    }

    /// The lowest unfinished message, if a listener has had it for longer than `timeout`. Only the lowest pins the progress.
    pub(crate) fn expired_head(&self, now: Duration, timeout: Duration) -> Option<Arc<StoredMessage>> {
        let head = self.held.values().next()?;
        let started = head.started?;
        (now.saturating_sub(started) > timeout).then(|| Arc::clone(&head.message))
    }

    /// Whether pulling has to wait until more of what is held is done. The limits are strict and looked at before a pull, so one
    /// batch above them is normal.
    pub(crate) fn is_over(&self, limits: FlowLimits) -> bool {
        self.held.len() > limits.messages || self.bytes >> 20 > limits.mib || self.span() > limits.span
    }

    /// Number of messages held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Highest minus lowest held offset.
    fn span(&self) -> i64 {
        match (self.held.keys().next(), self.held.keys().next_back()) {
            (Some(first), Some(last)) => last.0 - first.0,
            _ => 0,
        }
    }

    fn check_invariants(&self) {
        debug_assert_eq!(self.bytes, self.held.values().map(|held| held.message.body.len()).sum::<usize>());
        if let Some(last) = self.held.keys().next_back() {
            assert!(Some(*last + 1) <= self.end);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{FlowLimits, ProcessQueue};
    use bytes::Bytes;
    use protocol::{PhysicalOffset, Properties, QueueOffset, StoredMessage, SysFlag};
    use std::net::SocketAddr;
    use std::sync::Arc;

    pub(crate) fn message(offset: i64, bytes: usize) -> Arc<StoredMessage> {
        let host: SocketAddr = "10.0.0.1:1".parse().unwrap();
        Arc::new(StoredMessage {
            topic: "T".into(),
            queue_id: 0,
            queue_offset: QueueOffset(offset),
            physical_offset: PhysicalOffset(offset * 100),
            store_size: 100,
            flag: 0,
            sys_flag: SysFlag(0),
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            properties: Properties::new(),
            body: Bytes::from(vec![0; bytes]),
        })
    }

    fn with(offsets: &[i64], bytes: usize) -> ProcessQueue {
        let mut queue = ProcessQueue::default();
        queue.put(offsets.iter().map(|offset| message(*offset, bytes)).collect());
        queue
    }

    #[test]
    fn lowest_unfinished_is_the_end_when_all_is_done() {
        let mut queue = with(&[3, 5, 9], 1);
        let done = |queue: &mut ProcessQueue, offsets: &[i64]| {
            queue.remove(&offsets.iter().map(|o| QueueOffset(*o)).collect::<Vec<_>>()).map(|o| o.0)
        };
        assert_eq!(done(&mut queue, &[5]), Some(3));
        assert_eq!(done(&mut queue, &[3, 4]), Some(9));
        assert_eq!(done(&mut queue, &[9]), Some(10));
        // Nothing is held: a late result says nothing.
        assert_eq!(done(&mut queue, &[9]), None);
        assert_eq!((queue.len(), queue.is_empty()), (0, true));
    }

    #[test]
    fn limits_are_strict() {
        let limits = FlowLimits { messages: 3, mib: 2, span: 10 };
        let cases: [(&[i64], usize, bool); 6] = [
            (&[0, 1, 2], 1, false),
            (&[0, 1, 2, 3], 1, true),
            (&[0, 10], 1, false),
            (&[0, 11], 1, true),
            (&[0, 1], (3 << 20) / 2 - 1, false),
            (&[0, 1], (3 << 20) / 2, true),
        ];
        for (offsets, bytes, expected) in cases {
            assert_eq!(with(offsets, bytes).is_over(limits), expected, "{offsets:?} of {bytes} bytes");
        }
    }
}
