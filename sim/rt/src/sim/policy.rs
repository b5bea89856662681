//! Which ready task is polled next.
use super::rand::Rng;
use std::collections::VecDeque;

/// How the next task is picked among the ready ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// In the order in which they became ready.
    Fifo,
    /// Uniformly.
    #[default]
    Random,
    /// Probabilistic concurrency testing: each task has a random priority and the highest runs; at each of `changes` polls, drawn
    /// from the first `polls` of the run, the task that would run falls below all others. Finds a bug that needs `changes` + 1
    /// ordering constraints with a known probability. A task that yields falls too, so waiting in a loop cannot starve the rest.
    Priority {
        /// How often the order is overturned.
        changes: u32,
        /// Length of a typical run.
        polls: u64,
    },
    /// At the n-th pick that has a choice, the task at that place (modulo the number of ready ones); after the end of the list,
    /// [`Policy::Fifo`].
    Scripted(Vec<u32>),
}

pub(super) enum Picker {
    Fifo,
    Random(Rng),
    Priority(Priorities),
    Scripted(std::vec::IntoIter<u32>),
}

pub(super) struct Priorities {
    rng: Rng,
    /// Of each slot, side by side: every pick scans those of the ready tasks.
    of_slot: Vec<u64>,
    /// Polls at which the order is overturned, last first.
    change_points: Vec<u64>,
    /// The next priority that is below all others.
    lowest: u64,
}

/// Drawn priorities are above it, lowered ones below.
const MIDDLE: u64 = 1 << 63;

impl Picker {
    pub(super) fn new(seed: u64, policy: &Policy) -> Picker {
        let mut rng = Rng::new(seed, "schedule");
        match policy {
            Policy::Fifo => Picker::Fifo,
            Policy::Random => Picker::Random(rng),
            Policy::Priority { changes, polls } => {
                let mut change_points: Vec<u64> = (0..*changes).map(|_| rng.below((*polls).max(1))).collect();
                change_points.sort_unstable_by(|a, b| b.cmp(a));
                Picker::Priority(Priorities { rng, of_slot: Vec::new(), change_points, lowest: MIDDLE - 1 })
            }
            Policy::Scripted(choices) => Picker::Scripted(choices.clone().into_iter()),
        }
    }

    /// Takes one of the ready slots.
    #[inline]
    pub(super) fn pick(&mut self, ready: &mut VecDeque<u32>, polls: u64) -> Option<u32> {
        if ready.len() < 2 {
            return ready.pop_front();
        }
        match self {
            Picker::Fifo => ready.pop_front(),
            Picker::Random(rng) => {
                let at = rng.below(ready.len() as u64) as usize;
                ready.swap_remove_back(at)
            }
            Picker::Priority(priorities) => priorities.pick(ready, polls),
            Picker::Scripted(choices) => match choices.next() {
                Some(choice) => ready.remove(choice as usize % ready.len()),
                None => ready.pop_front(),
            },
        }
    }

    /// A task starts in `slot`.
    pub(super) fn started(&mut self, slot: u32) {
        if let Picker::Priority(priorities) = self {
            let slot = slot as usize;
            if priorities.of_slot.len() <= slot {
                priorities.of_slot.resize(slot + 1, 0);
            }
            priorities.of_slot[slot] = priorities.rng.next() | MIDDLE;
        }
    }

    /// The task in `slot` lets others run first.
    pub(super) fn yielded(&mut self, slot: u32) {
        if let Picker::Priority(priorities) = self {
            priorities.lower(slot);
        }
    }
}

impl Priorities {
    fn pick(&mut self, ready: &mut VecDeque<u32>, polls: u64) -> Option<u32> {
        while self.change_points.pop_if(|point| *point <= polls).is_some() {
            let overtaken = ready[self.highest(ready)];
            self.lower(overtaken);
        }
        ready.swap_remove_back(self.highest(ready))
    }

    /// Below all others.
    fn lower(&mut self, slot: u32) {
        self.lowest -= 1;
        self.of_slot[slot as usize] = self.lowest;
    }

    /// Place of the highest among the ready.
    fn highest(&self, ready: &VecDeque<u32>) -> usize {
        let (mut best, mut place) = (0, 0);
        for (at, slot) in ready.iter().enumerate() {
            let priority = self.of_slot[*slot as usize];
            if priority > best {
                (best, place) = (priority, at);
            }
        }
        place
    }
}
