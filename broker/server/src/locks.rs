//! Queue locks of orderly consumers: which client of a group owns which queue, and until when.
use protocol::MessageQueue;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug)]
struct Lock {
    client_id: String,
    /// Since the broker's start.
    renewed: Duration,
}

/// All queue locks. Time is counted from the broker's start. A lock not renewed for `expiry` is free to others; its owner may renew it as long as nobody took it.
#[derive(Debug)]
pub(crate) struct LockTable {
    groups: BTreeMap<String, BTreeMap<MessageQueue, Lock>>,
    expiry: Duration,
}

impl LockTable {
    pub fn new(expiry: Duration) -> LockTable {
        LockTable { groups: BTreeMap::new(), expiry }
    }

    /// Locks what is free, expired or already the client's; answers what the client holds now.
    pub fn lock(
        &mut self,
        group: &str,
        client_id: &str,
        queues: Vec<MessageQueue>,
        now: Duration,
    ) -> Vec<MessageQueue> {
        let expiry = self.expiry;
        let locks = self.groups.entry(group.to_owned()).or_default();
        let mut held = Vec::new();
        for queue in queues {
            let taken = locks
                .get(&queue)
                .is_some_and(|lock| lock.client_id != client_id && now.saturating_sub(lock.renewed) <= expiry);
            if !taken {
                locks.insert(queue.clone(), Lock { client_id: client_id.to_owned(), renewed: now });
                held.push(queue);
            }
        }
        held
    }

    /// Frees those of the queues that the client holds.
    pub fn unlock(&mut self, group: &str, client_id: &str, queues: &[MessageQueue]) {
        let Some(locks) = self.groups.get_mut(group) else { return };
        locks.retain(|queue, lock| lock.client_id != client_id || !queues.contains(queue));
        if locks.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Forgets what has expired, so that vanished groups cost nothing.
    pub fn expire(&mut self, now: Duration) {
        let expiry = self.expiry;
        self.groups.retain(|_, locks| {
            locks.retain(|_, lock| now.saturating_sub(lock.renewed) <= expiry);
            !locks.is_empty()
        });
    }

    /// Whether some member of the group holds a lock: its retries must not overtake, so they are not retried.
    pub fn holds_any(&self, group: &str, now: Duration) -> bool {
        self.groups
            .get(group)
            .is_some_and(|locks| locks.values().any(|lock| now.saturating_sub(lock.renewed) <= self.expiry))
    }
}

#[cfg(test)]
mod tests {
    use super::LockTable;
    use protocol::MessageQueue;
    use std::time::Duration;

    fn queue(queue_id: i32) -> MessageQueue {
        MessageQueue { topic: "T".to_owned(), broker_name: "b".to_owned(), queue_id }
    }

    #[test]
    fn a_queue_has_one_owner_until_its_lock_expires_or_is_given_back() {
        let mut table = LockTable::new(Duration::from_secs(60));
        let at = Duration::from_secs;
        assert_eq!(table.lock("G", "a", vec![queue(0), queue(1)], at(0)), [queue(0), queue(1)]);
        assert_eq!(table.lock("G", "b", vec![queue(0), queue(2)], at(60)), [queue(2)]);
        assert_eq!(table.lock("other", "b", vec![queue(0)], at(60)), [queue(0)]);
        assert_eq!(table.lock("G", "a", vec![queue(0)], at(60)), [queue(0)], "the owner renews");
        assert_eq!(table.lock("G", "b", vec![queue(0), queue(1)], at(61)), [queue(1)], "not renewed for over 60 s");
        table.unlock("G", "b", &[queue(0), queue(1)]);
        assert_eq!(table.lock("G", "c", vec![queue(0), queue(1)], at(62)), [queue(1)], "only the owner unlocks");
        assert!(table.holds_any("G", at(62)));
        table.expire(at(500));
        assert!(!table.holds_any("G", at(62)));
    }
}
