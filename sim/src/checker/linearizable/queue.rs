//! A queue as a sequential object: what went in first comes out first (Herlihy and Wing 1990, section 2).

use super::Model;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// A queue that is empty at the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queue<V>(PhantomData<V>);

impl<V> Queue<V> {
    /// The model.
    pub const fn new() -> Queue<V> {
        Queue(PhantomData)
    }
}

/// What a client asks of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueInput<V> {
    /// To take this in, at the end.
    Enqueue(V),
    /// To give its first element.
    Dequeue,
}

/// What a queue answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOutput<V> {
    /// Done.
    Enqueued,
    /// The first element; none: the queue was empty.
    Dequeued(Option<V>),
}

impl<V: Clone + Ord> Model for Queue<V> {
    type State = VecDeque<V>;
    type Input = QueueInput<V>;
    type Output = QueueOutput<V>;

    fn initial(&self) -> VecDeque<V> {
        VecDeque::new()
    }

    fn step(&self, state: &VecDeque<V>, input: &QueueInput<V>, output: Option<&QueueOutput<V>>) -> Option<VecDeque<V>> {
        let mut next = state.clone();
        let answer = match input {
            QueueInput::Enqueue(value) => {
                next.push_back(value.clone());
                QueueOutput::Enqueued
            }
            // An unknown one that takes effect takes an element, whichever that is.
            QueueInput::Dequeue => QueueOutput::Dequeued(next.pop_front()),
        };
        output.is_none_or(|told| *told == answer).then_some(next)
    }
}
