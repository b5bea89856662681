//! What groups have finished by now, read on from look to look.

use crate::operation::{Ask, History, Queue, Told};
use sim::history::{OperationId, What};
use std::collections::BTreeMap;

/// Offsets that each group has consumed or handed back, as the history tells so far.
#[derive(Debug, Default)]
pub struct Consumed {
    /// By group and queue.
    pub offsets: BTreeMap<String, BTreeMap<Queue, Vec<i64>>>,
    /// Deliveries whose listener is not done, with the place of their event.
    begun: BTreeMap<OperationId, usize>,
    events_read: usize,
}

impl Consumed {
    /// Takes in the events that came since the last look.
    pub fn read_on(&mut self, history: &History) {
        for (place, event) in history.events.iter().enumerate().skip(self.events_read) {
            match &event.what {
                What::Invoke { operation, input: Ask::Consume { .. }, .. } => {
                    self.begun.insert(*operation, place);
                }
                What::Ok { operation, output: Told::Consumed | Told::Later } => {
                    let begun = self.begun.remove(operation).map(|place| &history.events[place].what);
                    if let Some(What::Invoke { input: Ask::Consume { group, queue, offset, .. }, .. }) = begun {
                        let queues = self.offsets.entry(group.clone()).or_default();
                        queues.entry(queue.clone()).or_default().push(*offset);
                    }
                }
                _ => {}
            }
        }
        self.events_read = history.events.len();
    }
}
