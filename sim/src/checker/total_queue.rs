//! Total queue: what goes in comes out. Order is not its business.

use crate::verdict::EventId;
use std::collections::BTreeMap;

/// What is known of one element's way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// Acknowledged: it must come out.
    Acked,
    /// Nobody knows: it may come out.
    Unknown,
    /// It certainly did not go in: it must not come out.
    Failed,
}

/// The ways in and out of one element `K`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element {
    enqueued: Option<(Enqueued, EventId)>,
    /// It may be missing although acknowledged (say, by a loss that the durability mode permits).
    may_be_lost: bool,
    /// How often it may come out.
    copies_max: usize,
    out: Vec<EventId>,
}

impl Default for Element {
    fn default() -> Self {
        Element { enqueued: None, may_be_lost: false, copies_max: 1, out: Vec::new() }
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken<K> {
    /// It was acknowledged and did not come out.
    Lost {
        /// What.
        element: K,
        /// The acknowledgement.
        acked: EventId,
    },
    /// It came out and was never put in, or is known to have failed.
    Invented {
        /// What.
        element: K,
        /// Its failed way in, if there was one, and its way out.
        events: Vec<EventId>,
    },
    /// It came out more often than allowed.
    Repeated {
        /// What.
        element: K,
        /// How often it may come out.
        copies_max: usize,
        /// Each time it came out.
        events: Vec<EventId>,
    },
}

/// Collects the ways in and out, then judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotalQueue<K> {
    elements: BTreeMap<K, Element>,
}

impl<K> Default for TotalQueue<K> {
    fn default() -> Self {
        TotalQueue { elements: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> TotalQueue<K> {
    /// The element was put in, with that result. Of several attempts the strongest counts: acknowledged, then unknown, then failed.
    pub fn enqueued(&mut self, element: K, result: Enqueued, event: EventId) {
        let strength = |result: Enqueued| match result {
            Enqueued::Acked => 2,
            Enqueued::Unknown => 1,
            Enqueued::Failed => 0,
        };
        let entry = self.elements.entry(element).or_default();
        if entry.enqueued.is_none_or(|(before, _)| strength(before) < strength(result)) {
            entry.enqueued = Some((result, event));
        }
    }

    /// The element came out.
    pub fn delivered(&mut self, element: K, event: EventId) {
        self.elements.entry(element).or_default().out.push(event);
    }

    /// The element may be missing although it was acknowledged.
    pub fn allow_loss(&mut self, element: K) {
        self.elements.entry(element).or_default().may_be_lost = true;
    }

    /// The element may come out up to that many times (1 unless told).
    pub fn allow_copies(&mut self, element: K, copies_max: usize) {
        self.elements.entry(element).or_default().copies_max = copies_max;
    }

    /// Every broken rule, in order of elements.
    pub fn check(&self) -> Vec<Broken<K>> {
        self.elements.iter().filter_map(|(key, element)| judge(key, element)).collect()
    }
}

fn judge<K: Clone>(key: &K, element: &Element) -> Option<Broken<K>> {
    match element.enqueued {
        None | Some((Enqueued::Failed, _)) if !element.out.is_empty() => {
            let failed = element.enqueued.map(|(_, event)| event);
            let events = failed.into_iter().chain(element.out.iter().copied()).collect();
            Some(Broken::Invented { element: key.clone(), events })
        }
        Some((Enqueued::Acked, acked)) if element.out.is_empty() && !element.may_be_lost => {
            Some(Broken::Lost { element: key.clone(), acked })
        }
        _ if element.out.len() > element.copies_max => {
            Some(Broken::Repeated { element: key.clone(), copies_max: element.copies_max, events: element.out.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Broken, Enqueued, TotalQueue};
    use crate::verdict::EventId;

    /// `+a` acknowledged, `?a` unknown, `-a` failed, `a` delivered, `~a` may be lost, `2a` may come out twice.
    fn check(steps: &str) -> Vec<Broken<String>> {
        let mut queue = TotalQueue::default();
        for (index, step) in steps.split_whitespace().enumerate() {
            let (mark, name) = step.split_at(1);
            let (name, event) = (name.to_owned(), EventId(index));
            match mark {
                "+" => queue.enqueued(name, Enqueued::Acked, event),
                "?" => queue.enqueued(name, Enqueued::Unknown, event),
                "-" => queue.enqueued(name, Enqueued::Failed, event),
                "~" => queue.allow_loss(name),
                "2" => queue.allow_copies(name, 2),
                _ => queue.delivered(step.to_owned(), event),
            }
        }
        queue.check()
    }

    #[test]
    fn what_is_allowed() {
        for steps in ["", "+a a", "?a", "?a a", "-a", "-a +a a", "?a +a a", "+a ~a", "+a 2a a a", "a +a", "+a a +b b"] {
            assert_eq!(check(steps), [], "{steps}");
        }
    }

    #[test]
    fn what_is_not() {
        let (a, event) = (|| "a".to_owned(), |index: &usize| EventId(*index));
        let events = |list: &[usize]| list.iter().map(event).collect::<Vec<_>>();
        assert_eq!(check("?a +a"), [Broken::Lost { element: a(), acked: EventId(1) }]);
        assert_eq!(check("a"), [Broken::Invented { element: a(), events: events(&[0]) }]);
        assert_eq!(check("-a a"), [Broken::Invented { element: a(), events: events(&[0, 1]) }]);
        assert_eq!(check("+a a a"), [Broken::Repeated { element: a(), copies_max: 1, events: events(&[1, 2]) }]);
        assert_eq!(
            check("?a 2a a a a"),
            [Broken::Repeated { element: a(), copies_max: 2, events: events(&[2, 3, 4]) }]
        );
    }
}
