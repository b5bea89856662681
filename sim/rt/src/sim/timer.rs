//! A node's timers: a 4-ary heap whose entries know their position, so that a cancelled timer is really removed.
//!
//! Why not std's heap with lazy removal: most timers are time-outs that never fire, and a heap of dead ones costs twice the
//! memory and hides a deadlock until the last of them is due.
use std::task::Waker;

/// Children of an entry. Four keep the heap half as deep as two, and lie in one cache line.
const ARITY: usize = 4;
const NONE: u32 = u32::MAX;

/// A registered timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: u64,
    /// Timers of one deadline fire in the order of registration.
    sequence: u64,
    slot: u32,
}

impl Entry {
    #[inline]
    fn before(&self, other: &Entry) -> bool {
        (self.deadline, self.sequence) < (other.deadline, other.sequence)
    }
}

#[derive(Debug)]
struct Slot {
    /// Bumped when the slot is freed: keys of the past find nothing.
    generation: u32,
    /// Place in the heap; of a free slot, the next free one.
    position: u32,
    waker: Option<Waker>,
}

/// Timers by deadline.
#[derive(Debug)]
pub(crate) struct TimerHeap {
    heap: Vec<Entry>,
    slots: Vec<Slot>,
    free: u32,
    sequence: u64,
}

impl Default for TimerHeap {
    fn default() -> TimerHeap {
        TimerHeap { heap: Vec::new(), slots: Vec::new(), free: NONE, sequence: 0 }
    }
}

impl TimerHeap {
    /// Registers a timer.
    pub(crate) fn insert(&mut self, deadline: u64, waker: Waker) -> TimerKey {
        let slot = self.take_slot(waker);
        let entry = Entry { deadline, sequence: self.sequence, slot };
        self.sequence += 1;
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
        TimerKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Makes the timer wake `waker`. False: it has fired or was cancelled.
    #[inline]
    pub(crate) fn touch(&mut self, key: TimerKey, waker: &Waker) -> bool {
        let Some(slot) = self.slots.get_mut(key.slot as usize) else { return false };
        if slot.generation != key.generation {
            return false;
        }
        match &mut slot.waker {
            Some(present) if present.will_wake(waker) => true,
            Some(present) => {
                present.clone_from(waker);
                true
            }
            None => false,
        }
    }

    /// Removes the timer. False: it has fired or was cancelled.
    pub(crate) fn cancel(&mut self, key: TimerKey) -> bool {
        let Some(slot) = self.slots.get(key.slot as usize) else { return false };
        if slot.generation != key.generation || slot.waker.is_none() {
            return false;
        }
        self.remove_at(slot.position as usize);
        true
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// Removes the earliest timer if its deadline is at most `local`.
    pub(crate) fn pop_due(&mut self, local: u64) -> Option<(u64, Waker)> {
        let first = self.heap.first().filter(|entry| entry.deadline <= local)?;
        let deadline = first.deadline;
        Some((deadline, self.remove_at(0)))
    }

    /// Registered timers.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    fn take_slot(&mut self, waker: Waker) -> u32 {
        if self.free == NONE {
            self.slots.push(Slot { generation: 0, position: 0, waker: Some(waker) });
            return u32::try_from(self.slots.len() - 1).expect("timers are fewer than 2^32");
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        self.free = slot.position;
        slot.waker = Some(waker);
        index
    }

    #[inline]
    fn place(&mut self, index: usize, entry: Entry) {
        self.heap[index] = entry;
        self.slots[entry.slot as usize].position = index as u32;
    }

    fn sift_up(&mut self, mut index: usize, entry: Entry) {
        while index > 0 {
            let parent = (index - 1) / ARITY;
            let other = self.heap[parent];
            if !entry.before(&other) {
                break;
            }
            self.place(index, other);
            index = parent;
        }
        self.place(index, entry);
    }

    fn sift_down(&mut self, mut index: usize, entry: Entry) {
        let len = self.heap.len();
        loop {
            let first = index * ARITY + 1;
            if first >= len {
                break;
            }
            let mut best = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child].before(&self.heap[best]) {
                    best = child;
                }
            }
            let other = self.heap[best];
            if !other.before(&entry) {
                break;
            }
            self.place(index, other);
            index = best;
        }
        self.place(index, entry);
    }

    fn remove_at(&mut self, index: usize) -> Waker {
        let removed = self.heap[index];
        let last = self.heap.pop().expect("an entry is removed from it");
        if index < self.heap.len() {
            if index > 0 && last.before(&self.heap[(index - 1) / ARITY]) {
                self.sift_up(index, last);
            } else {
                self.sift_down(index, last);
            }
        }
        let slot = &mut self.slots[removed.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.position = self.free;
        self.free = removed.slot;
        slot.waker.take().expect("a slot in the heap has a waker")
    }

    /// Each entry is not before its parent, and each slot in use knows its place.
    #[cfg(test)]
    fn check_invariants(&self) {
        for (index, entry) in self.heap.iter().enumerate() {
            assert_eq!(self.slots[entry.slot as usize].position as usize, index);
            assert!(self.slots[entry.slot as usize].waker.is_some());
            assert!(index == 0 || !entry.before(&self.heap[(index - 1) / ARITY]), "entry {index} is before its parent");
        }
        let used = self.slots.iter().filter(|slot| slot.waker.is_some()).count();
        assert_eq!(used, self.heap.len());
    }
}

#[cfg(test)]
mod tests {
    use super::{TimerHeap, TimerKey};
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use std::collections::BTreeMap;
    use std::task::Waker;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Cancel(usize),
        Touch(usize),
        PopDue(u64),
        Reset,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u64..50).prop_map(Step::Insert),
            4 => any::<usize>().prop_map(Step::Cancel),
            2 => any::<usize>().prop_map(Step::Touch),
            3 => (0u64..60).prop_map(Step::PopDue),
            1 => Just(Step::Reset),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_an_ordered_map(steps in proptest::collection::vec(step(), 0..400)) {
            let mut heap = TimerHeap::default();
            let mut model: BTreeMap<(u64, u64), TimerKey> = BTreeMap::new();
            // Every key ever given out with its place in the model: dead ones must stay dead.
            let mut keys: Vec<((u64, u64), TimerKey)> = Vec::new();
            let mut sequence = 0;
            for step in steps {
                match step {
                    Step::Insert(deadline) => {
                        let key = heap.insert(deadline, Waker::noop().clone());
                        model.insert((deadline, sequence), key);
                        keys.push(((deadline, sequence), key));
                        sequence += 1;
                    }
                    Step::Cancel(nth) if !keys.is_empty() => {
                        let (place, key) = keys[nth % keys.len()];
                        assert_eq!(heap.cancel(key), model.remove(&place).is_some());
                    }
                    Step::Touch(nth) if !keys.is_empty() => {
                        let (place, key) = keys[nth % keys.len()];
                        assert_eq!(heap.touch(key, Waker::noop()), model.contains_key(&place));
                    }
                    Step::PopDue(local) => {
                        let expected = model.first_key_value().map(|(place, _)| *place).filter(|(deadline, _)| *deadline <= local);
                        assert_eq!(heap.pop_due(local).map(|(deadline, _)| deadline), expected.map(|(deadline, _)| deadline));
                        expected.map(|place| model.remove(&place));
                    }
                    Step::Reset => {
                        heap = TimerHeap::default();
                        model.clear();
                        keys.clear();
                    }
                    Step::Cancel(_) | Step::Touch(_) => {}
                }
                heap.check_invariants();
                assert_eq!(heap.len(), model.len());
                assert_eq!(heap.next_deadline(), model.keys().next().map(|(deadline, _)| *deadline));
            }
        }
    }

    #[test]
    fn equal_deadlines_fire_in_the_order_of_registration() {
        let mut heap = TimerHeap::default();
        let keys: Vec<_> = (0..20).map(|_| heap.insert(5, Waker::noop().clone())).collect();
        heap.cancel(keys[3]);
        let mut fired = Vec::new();
        while let Some(first) = heap.heap.first().map(|entry| entry.sequence) {
            heap.pop_due(5);
            fired.push(first);
        }
        assert_eq!(fired, (0..20).filter(|n| *n != 3).collect::<Vec<_>>());
    }
}
