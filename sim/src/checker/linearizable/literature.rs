//! Histories whose verdict others have published.

use super::queue::{Queue, QueueInput, QueueOutput};
use super::{Call, Model, Register, RegisterInput, RegisterOutput, Verdict, check};
use crate::verdict::EventId;

/// An operation with the times of its ends, in any order; the end of an unknown one is `None`.
type Timed<I, O> = (I, Option<O>, u64, Option<u64>);

fn verdict<M: Model>(model: &M, operations: Vec<Timed<M::Input, M::Output>>) -> Verdict {
    let event = |time: u64| EventId(usize::try_from(time).expect("small"));
    let call = |(input, output, invoked, returned): Timed<M::Input, M::Output>| Call {
        input,
        output,
        invoked: event(invoked),
        returned: returned.map(event),
    };
    let mut calls: Vec<_> = operations.into_iter().map(call).collect();
    calls.sort_by_key(|call| call.invoked);
    check(model, &calls, 100_000)
}

fn is_possible(verdict: &Verdict) -> bool {
    assert_ne!(*verdict, Verdict::Undecided);
    *verdict == Verdict::Linearizable
}

/// The two register histories in the tests of Porcupine (`TestRegisterModel`).
#[test]
fn porcupines_registers() {
    let write = |value, from, to| (RegisterInput::Write(value), Some(RegisterOutput::Written), from, Some(to));
    let read = |value, from, to| (RegisterInput::Read, Some(RegisterOutput::Value(value)), from, Some(to));
    let register = Register { initial: 0 };
    assert!(is_possible(&verdict(&register, vec![write(100, 0, 100), read(100, 25, 75), read(0, 30, 60)])));
    assert!(!is_possible(&verdict(&register, vec![write(200, 0, 100), read(200, 10, 30), read(0, 40, 90)])));
}

/// The introduction of Knossos: a compare-and-set register, with a process that crashed in the middle of a write.
#[test]
fn a_crashed_write_may_be_seen_late_but_not_undone() {
    let write = |value, from, to| (RegisterInput::Write(value), Some(RegisterOutput::Written), from, Some(to));
    let crashed = |value, from| (RegisterInput::Write(value), None, from, None);
    let read = |value, from, to| (RegisterInput::Read, Some(RegisterOutput::Value(value)), from, Some(to));
    let swap = |before, after, from, to| {
        let input = RegisterInput::CompareAndSet { from: before, to: after };
        (input, Some(RegisterOutput::Swapped(true)), from, Some(to))
    };
    let register = Register { initial: 0 };
    let late = vec![crashed(3, 0), write(1, 1, 2), read(1, 3, 4), read(3, 5, 6), swap(3, 4, 7, 8), read(4, 9, 10)];
    assert!(is_possible(&verdict(&register, late)));
    let undone = vec![crashed(3, 0), write(1, 1, 2), read(3, 3, 4), read(1, 5, 6)];
    assert!(!is_possible(&verdict(&register, undone)));
}

fn enqueue(value: char, from: u64, to: u64) -> Timed<QueueInput<char>, QueueOutput<char>> {
    (QueueInput::Enqueue(value), Some(QueueOutput::Enqueued), from, Some(to))
}

fn dequeue(value: char, from: u64, to: u64) -> Timed<QueueInput<char>, QueueOutput<char>> {
    (QueueInput::Dequeue, Some(QueueOutput::Dequeued(Some(value))), from, Some(to))
}

/// The four queue histories of Herlihy and Wing, figure 1.
#[test]
fn herlihy_and_wings_queues() {
    let queue = Queue::new();
    // (a) Two enqueues overlap, so either element may come first.
    let overlapping =
        vec![enqueue('x', 0, 3), enqueue('y', 1, 2), dequeue('x', 4, 6), dequeue('y', 5, 7), enqueue('z', 8, 9)];
    assert!(is_possible(&verdict(&queue, overlapping)));
    // (b) x was in before y was asked for, and y comes out first.
    assert!(!is_possible(&verdict(&queue, vec![enqueue('x', 0, 1), enqueue('y', 2, 4), dequeue('y', 3, 5)])));
    // (c) An element comes out before its enqueue has returned.
    assert!(is_possible(&verdict(&queue, vec![enqueue('x', 0, 3), dequeue('x', 1, 2)])));
    // (d) One element comes out twice.
    let twice = vec![enqueue('x', 0, 2), enqueue('y', 1, 3), dequeue('y', 4, 6), dequeue('y', 5, 7)];
    assert!(!is_possible(&verdict(&queue, twice)));
}

#[test]
fn an_unknown_dequeue_may_have_taken_an_element() {
    let queue = Queue::new();
    let lost = (QueueInput::Dequeue, None, 4, None);
    let two = || vec![enqueue('x', 0, 1), enqueue('y', 2, 3)];
    for taken in ['x', 'y'] {
        let history = [two(), vec![lost, dequeue(taken, 5, 6)]].concat();
        assert!(is_possible(&verdict(&queue, history)), "{taken}");
    }
    assert!(!is_possible(&verdict(&queue, [two(), vec![dequeue('y', 5, 6)]].concat())), "nobody took x");
    let empty = (QueueInput::Dequeue, Some(QueueOutput::Dequeued(None)), 5, Some(6));
    assert!(!is_possible(&verdict(&queue, [two(), vec![lost, empty]].concat())), "it took one at most");
}
