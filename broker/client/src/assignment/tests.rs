use super::{Assignment, PullGate, PullPoint, Ticket};
use crate::process_queue::FlowLimits;
use crate::process_queue::tests::message;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use protocol::{MessageQueue, QueueOffset, StoredMessage};
use rt::sync::CancellationToken;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);
const LIMITS: FlowLimits = FlowLimits { messages: 4, mib: 1, span: 10 };

fn queue(queue_id: i32) -> MessageQueue {
    MessageQueue::new("T", "b", queue_id)
}

fn at(offset: i64) -> QueueOffset {
    QueueOffset(offset)
}

fn messages(offsets: &[i64]) -> Vec<Arc<StoredMessage>> {
    offsets.iter().map(|offset| message(*offset, 1)).collect()
}

fn owning(from: i64, progress: Option<i64>) -> (Assignment, Ticket) {
    let mut assignment = Assignment::new(CancellationToken::new());
    let ticket = assignment.take(&queue(0), at(from), progress.map(at), NOW).unwrap();
    (assignment, ticket)
}

fn progress(assignment: &Assignment) -> Option<i64> {
    assignment.progress().first().map(|(_, offset)| offset.0)
}

fn point(assignment: &mut Assignment, ticket: &Ticket) -> PullPoint {
    match assignment.consider_pull(ticket, LIMITS, NOW) {
        PullGate::Open(point) => point,
        other => panic!("{other:?}"),
    }
}

#[test]
fn progress_is_the_lowest_unfinished_offset() {
    let (mut assignment, ticket) = owning(5, Some(5));
    assert_eq!(assignment.received(&ticket, messages(&[5, 6, 7]), at(8)).len(), 3);
    assignment.finish(&ticket, &[at(6)]);
    assert_eq!(progress(&assignment), Some(5));
    assignment.finish(&ticket, &[at(5)]);
    assert_eq!(progress(&assignment), Some(7));
    assignment.finish(&ticket, &[at(7)]);
    assert_eq!(progress(&assignment), Some(8));
}

#[test]
fn nothing_is_known_before_anything_is_done() {
    let (mut assignment, ticket) = owning(0, None);
    assert_eq!(point(&mut assignment, &ticket), PullPoint { from: at(0), progress: None, replica: 0 });
    assignment.received(&ticket, messages(&[0]), at(1));
    assert_eq!(progress(&assignment), None);
}

#[test]
fn unwanted_messages_move_progress_only_if_nothing_is_held() {
    let (mut assignment, ticket) = owning(0, None);
    assignment.received(&ticket, messages(&[0]), at(1));
    assignment.nothing_found(&ticket, at(9));
    assert_eq!(progress(&assignment), None);
    assignment.finish(&ticket, &[at(0)]);
    assert_eq!(progress(&assignment), Some(1));
    assignment.received(&ticket, Vec::new(), at(12));
    assert_eq!(progress(&assignment), Some(12));
    assert_eq!(point(&mut assignment, &ticket).from, at(12));
}

#[test]
fn a_slave_that_is_behind_does_not_send_the_reader_back() {
    let (mut assignment, ticket) = owning(50, Some(50));
    assignment.nothing_found(&ticket, at(20));
    assert_eq!(point(&mut assignment, &ticket), PullPoint { from: at(50), progress: Some(at(50)), replica: 0 });
}

#[test]
fn an_ended_ownership_changes_nothing() {
    let (mut assignment, old) = owning(0, Some(0));
    assignment.received(&old, messages(&[0, 1]), at(2));
    assert_eq!(assignment.give_up(&queue(0)), Some(at(0)));
    assert!(old.ended.is_cancelled());
    assert_eq!(assignment.give_up(&queue(0)), None);
    let new = assignment.take(&queue(0), at(0), Some(at(0)), NOW).unwrap();
    // Late results of the former ownership, whose queue is owned again.
    assignment.finish(&old, &[at(0), at(1)]);
    assignment.suggest(&old, 1);
    assert!(assignment.received(&old, messages(&[7]), at(8)).is_empty());
    assert!(!assignment.begin_consume(&old, &[at(0)], NOW));
    assert!(!assignment.keep_for_retry(&old, &[at(0)]));
    assert!(!assignment.is_held(&old, at(0)));
    assert_eq!(assignment.consider_pull(&old, LIMITS, NOW), PullGate::Ended);
    assert_eq!(point(&mut assignment, &new), PullPoint { from: at(0), progress: Some(at(0)), replica: 0 });
}

#[test]
fn an_owned_queue_is_not_taken_twice() {
    let (mut assignment, ticket) = owning(3, None);
    assert!(assignment.take(&queue(0), at(9), None, NOW).is_none());
    assert_eq!(point(&mut assignment, &ticket).from, at(3));
    assert_eq!(assignment.queues(), [queue(0)]);
    assert_eq!(assignment.queues_of("T"), BTreeSet::from([queue(0)]));
    assert!(assignment.queues_of("U").is_empty());
}

#[test]
fn a_reset_wins_over_what_is_under_way() {
    let (mut assignment, old) = owning(10, Some(10));
    assignment.suggest(&old, 1);
    assignment.received(&old, messages(&[10, 11]), at(12));
    let new = assignment.restart(&old, at(4), NOW).unwrap();
    assert!(old.ended.is_cancelled());
    assignment.finish(&old, &[at(10), at(11)]);
    assert_eq!(point(&mut assignment, &new), PullPoint { from: at(4), progress: Some(at(4)), replica: 1 });
    assert!(assignment.restart(&old, at(99), NOW).is_none());
}

#[test]
fn held_messages_are_not_given_out_again() {
    let (mut assignment, ticket) = owning(0, None);
    assignment.received(&ticket, messages(&[0, 1]), at(2));
    let fresh = assignment.received(&ticket, messages(&[1, 2]), at(3));
    assert_eq!(fresh.iter().map(|m| m.queue_offset.0).collect::<Vec<_>>(), [2]);
    assert_eq!(assignment.held(), 3);
}

#[test]
fn a_full_queue_is_not_pulled() {
    let (mut assignment, ticket) = owning(0, None);
    assignment.received(&ticket, messages(&[0, 1, 2, 3]), at(4));
    assert!(matches!(assignment.consider_pull(&ticket, LIMITS, NOW), PullGate::Open(_)));
    assignment.received(&ticket, messages(&[4]), at(5));
    assert_eq!(assignment.consider_pull(&ticket, LIMITS, NOW), PullGate::Full);
}

#[test]
fn a_queue_without_pulls_is_idle() {
    let (mut assignment, ticket) = owning(0, None);
    let max = Duration::from_secs(120);
    assert!(assignment.idle(NOW + max, max).is_empty());
    assert_eq!(assignment.idle(NOW + max + Duration::from_millis(1), max), [queue(0)]);
    assignment.consider_pull(&ticket, LIMITS, NOW + max);
    assert!(assignment.idle(NOW + max + max, max).is_empty());
}

#[test]
fn only_the_lowest_message_expires() {
    let (mut assignment, ticket) = owning(0, None);
    assignment.received(&ticket, messages(&[0, 1]), at(2));
    let timeout = Duration::from_secs(60);
    assignment.begin_consume(&ticket, &[at(1)], NOW);
    assert!(assignment.expired_heads(NOW + timeout * 2, timeout).is_empty());
    assignment.begin_consume(&ticket, &[at(0)], NOW);
    assert!(assignment.expired_heads(NOW + timeout, timeout).is_empty());
    let heads = assignment.expired_heads(NOW + timeout * 2, timeout);
    assert_eq!(heads.iter().map(|(_, m)| m.queue_offset.0).collect::<Vec<_>>(), [0]);
    assignment.keep_for_retry(&ticket, &[at(0)]);
    assert!(assignment.expired_heads(NOW + timeout * 2, timeout).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Pull { found: i64, skipped: i64 },
    Finish { nth: usize },
    Reset { to: i64 },
    Retake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_i64, 0..3_i64).prop_map(|(found, skipped)| Step::Pull { found, skipped }),
        6 => any::<u16>().prop_map(|nth| Step::Finish { nth: nth.into() }),
        1 => (0..30_i64).prop_map(|to| Step::Reset { to }),
        1 => proptest::prelude::Just(Step::Retake),
    ]
}

proptest! {
    /// Against a model that knows every message not done: progress never passes one of them, and never goes back but by a reset.
    #[test]
    fn progress_never_passes_an_unfinished_message(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut assignment, mut ticket) = owning(0, None);
        let mut unfinished: BTreeSet<i64> = BTreeSet::new();
        let mut next = 0;
        let mut before = None;
        for step in steps {
            match step {
                Step::Pull { found, skipped } => {
                    let offsets: Vec<i64> = (next..next + found).collect();
                    next += found + skipped;
                    unfinished.extend(&offsets);
                    assignment.received(&ticket, messages(&offsets), at(next));
                }
                Step::Finish { nth } => {
                    let Some(offset) = unfinished.iter().nth(nth % unfinished.len().max(1)).copied() else { continue };
                    unfinished.remove(&offset);
                    assignment.finish(&ticket, &[at(offset)]);
                }
                Step::Reset { to } => {
                    let old = ticket.clone();
                    ticket = assignment.restart(&ticket, at(to), NOW).unwrap();
                    assignment.finish(&old, &unfinished.iter().map(|o| at(*o)).collect::<Vec<_>>());
                    (next, before) = (to, None);
                    unfinished.clear();
                }
                Step::Retake => {
                    let reached = assignment.give_up(&queue(0));
                    assert_eq!(reached, before.map(at));
                    next = before.unwrap_or(0);
                    ticket = assignment.take(&queue(0), at(next), reached, NOW).unwrap();
                    unfinished.clear();
                }
            }
            let now = progress(&assignment);
            assert!(now >= before, "{now:?} after {before:?}");
            if let (Some(now), Some(lowest)) = (now, unfinished.first()) {
                assert!(now <= *lowest, "progress {now} passes {lowest}");
            }
            before = now;
        }
    }
}
