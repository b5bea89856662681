//! Named events that occur during a run, counted, so that a fault may start after the n-th of them.

use rt::sync::oneshot;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The events of one run. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    counters: Arc<Mutex<BTreeMap<String, Counter>>>,
}

#[derive(Debug, Default)]
struct Counter {
    count: u64,
    waiters: Vec<(u64, oneshot::Sender<()>)>,
}

impl Signals {
    /// No event has occurred.
    pub fn new() -> Signals {
        Signals::default()
    }

    /// The event occurs once more.
    pub fn occurred(&self, event: &str) {
        let due: Vec<_> = {
            let mut counters = self.counters.lock().expect("no code that can panic runs under this lock");
            if !counters.contains_key(event) {
                counters.insert(event.to_owned(), Counter::default());
            }
            let counter = counters.get_mut(event).expect("it was just made sure of");
            counter.count += 1;
            let count = counter.count;
            counter.waiters.extract_if(.., |(nth, _)| *nth <= count).collect()
        };
        for (_, waiter) in due {
            // Nobody waits any more: all was healed before.
            let _ = waiter.send(());
        }
    }

    /// How often it has occurred.
    pub fn count(&self, event: &str) -> u64 {
        self.counters
            .lock()
            .expect("no code that can panic runs under this lock")
            .get(event)
            .map_or(0, |counter| counter.count)
    }

    /// Returns when the event has occurred `nth` times since the start of the run.
    pub async fn nth(&self, event: &str, nth: u64) {
        let waiting = {
            let mut counters = self.counters.lock().expect("no code that can panic runs under this lock");
            let counter = counters.entry(event.to_owned()).or_default();
            if counter.count >= nth {
                return;
            }
            let (sender, receiver) = oneshot::channel();
            counter.waiters.push((nth, sender));
            receiver
        };
        // The sender lives as long as `self` does.
        let _ = waiting.await;
    }
}
