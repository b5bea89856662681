//! Pulls that wait for a message (long polling), as a pure table: which waiting pulls does an arrival concern, and only those.
//!
//! A waiter is registered *before* the store's end is read again, so an arrival between the empty read and the registration
//! is seen by one of the two. The table knows nothing of time: a waiter's deadline belongs to the task that waits.
use crate::filter::TagFilter;
use protocol::QueueOffset;
use std::collections::BTreeMap;

/// The queue a pull waits at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub topic: String,
    pub queue_id: i32,
}

/// Names one waiter for its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaiterId(u64);

/// The table is full: this pull is answered at once instead of held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldFull;

#[derive(Debug)]
struct Waiter<W> {
    id: WaiterId,
    /// The first queue offset that would satisfy it.
    from: QueueOffset,
    filter: TagFilter,
    wake: W,
}

/// All held pulls of a broker. `W` is whatever wakes the waiting task.
#[derive(Debug)]
pub(crate) struct HoldTable<W> {
    queues: BTreeMap<QueueKey, Vec<Waiter<W>>>,
    held: usize,
    held_max: usize,
    next_id: u64,
}

impl<W> HoldTable<W> {
    pub fn new(held_max: usize) -> HoldTable<W> {
        HoldTable { queues: BTreeMap::new(), held: 0, held_max, next_id: 0 }
    }

    /// Registers a waiter for messages at `from` or above that pass `filter`.
    pub fn hold(&mut self, key: QueueKey, from: QueueOffset, filter: TagFilter, wake: W) -> Result<WaiterId, HoldFull> {
        if self.held >= self.held_max {
            return Err(HoldFull);
        }
        self.next_id += 1;
        let id = WaiterId(self.next_id);
        self.queues.entry(key).or_default().push(Waiter { id, from, filter, wake });
        self.held += 1;
        Ok(id)
    }

    /// Takes out the waiters that a message of this offset and tags code, if that is known, satisfies, in the order they came.
    pub fn arrived(&mut self, key: &QueueKey, offset: QueueOffset, tags_code: Option<i64>) -> Vec<W> {
        let Some(waiters) = self.queues.get_mut(key) else { return Vec::new() };
        let woken: Vec<W> = waiters
            .extract_if(.., |waiter| {
                offset >= waiter.from && tags_code.is_none_or(|tags_code| waiter.filter.passes(tags_code))
            })
            .map(|waiter| waiter.wake)
            .collect();
        if waiters.is_empty() {
            self.queues.remove(key);
        }
        self.held -= woken.len();
        woken
    }

    /// Forgets a waiter that ended by itself. False if it was woken before.
    pub fn remove(&mut self, key: &QueueKey, id: WaiterId) -> bool {
        let Some(waiters) = self.queues.get_mut(key) else { return false };
        let Some(at) = waiters.iter().position(|waiter| waiter.id == id) else { return false };
        waiters.remove(at);
        if waiters.is_empty() {
            self.queues.remove(key);
        }
        self.held -= 1;
        true
    }

    /// Takes out every waiter: the master is back, or the broker ends.
    pub fn drain(&mut self) -> Vec<W> {
        self.held = 0;
        std::mem::take(&mut self.queues).into_values().flatten().map(|waiter| waiter.wake).collect()
    }

    /// Number of held pulls.
    pub fn len(&self) -> usize {
        self.held
    }

    #[cfg(test)]
    fn check_invariants(&self) {
        assert_eq!(self.held, self.queues.values().map(Vec::len).sum::<usize>());
        assert!(self.queues.values().all(|waiters| !waiters.is_empty()));
        assert!(self.held <= self.held_max);
    }
}

#[cfg(test)]
mod tests {
    use super::{HoldFull, HoldTable, QueueKey};
    use crate::filter::TagFilter;
    use protocol::QueueOffset;

    fn key(queue_id: i32) -> QueueKey {
        QueueKey { topic: "T".to_owned(), queue_id }
    }

    fn tags(text: &str) -> TagFilter {
        TagFilter::parse(text).expect("valid expression")
    }

    /// Waiters `(name, queue, from, expression)`, one arrival `(queue, offset, tag)`, the names it wakes.
    fn check(waiters: &[(&'static str, i32, i64, &str)], arrival: (i32, i64, &str), woken: &[&str]) {
        let mut table = HoldTable::new(100);
        for &(name, queue, from, expression) in waiters {
            table.hold(key(queue), QueueOffset(from), tags(expression), name).expect("room");
        }
        let got = table.arrived(&key(arrival.0), QueueOffset(arrival.1), Some(protocol::message::tags_code(arrival.2)));
        assert_eq!(got, woken);
        assert_eq!(table.len(), waiters.len() - woken.len());
        table.check_invariants();
    }

    #[test]
    fn an_arrival_wakes_exactly_the_waiters_it_satisfies() {
        check(&[("a", 0, 5, "*")], (0, 5, ""), &["a"]);
        check(&[("a", 0, 5, "*")], (0, 4, ""), &[]);
        check(&[("a", 0, 5, "*")], (1, 5, ""), &[]);
        check(&[("a", 0, 5, "*"), ("b", 0, 6, "*"), ("c", 0, 2, "*")], (0, 5, ""), &["a", "c"]);
        check(&[("a", 0, 0, "x"), ("b", 0, 0, "y || x"), ("c", 0, 0, "z")], (0, 0, "x"), &["a", "b"]);
        check(&[], (0, 0, "x"), &[]);
    }

    #[test]
    fn a_removed_waiter_is_not_woken_and_a_woken_one_cannot_be_removed() {
        let mut table = HoldTable::new(2);
        let first = table.hold(key(0), QueueOffset(0), tags("*"), 1).expect("room");
        let second = table.hold(key(0), QueueOffset(0), tags("*"), 2).expect("room");
        assert_eq!(table.hold(key(1), QueueOffset(0), tags("*"), 3), Err(HoldFull));
        assert!(table.remove(&key(0), first));
        assert_eq!(table.arrived(&key(0), QueueOffset(0), Some(0)), [2]);
        assert!(!table.remove(&key(0), second));
        table.check_invariants();
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn drain_takes_all() {
        let mut table = HoldTable::new(10);
        for queue in 0..3 {
            table.hold(key(queue), QueueOffset(0), tags("*"), queue).expect("room");
        }
        assert_eq!(table.drain(), [0, 1, 2]);
        table.check_invariants();
    }
}
