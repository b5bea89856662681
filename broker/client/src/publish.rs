//! Which queue the next attempt of a send goes to, whether there is a next attempt, and what is known of a failed one.
use crate::error::{CallError, Fate};
use crate::fault::FaultTable;
use protocol::{MessageQueue, ResponseCode};
use std::time::Duration;

/// Goes round the queues of a topic. Kept over route refreshes, so that a refresh does not make a queue come twice.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    next: usize,
}

/// What to avoid when choosing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avoid<'a> {
    /// The broker of the attempt before.
    pub(crate) last_broker: Option<&'a str>,
    /// Slow and failing brokers, and the time; `None`: the strategy is off.
    pub(crate) faults: Option<(&'a FaultTable, Duration)>,
}

impl RoundRobin {
    /// Starts anywhere: `draw` is a random number.
    pub(crate) fn new(draw: usize) -> RoundRobin {
        RoundRobin { next: draw }
    }

    /// The queue for the next attempt. `None` only if there are no queues.
    pub(crate) fn select<'q>(&mut self, queues: &'q [MessageQueue], avoid: Avoid<'_>) -> Option<&'q MessageQueue> {
        let other = |queue: &MessageQueue| avoid.last_broker != Some(queue.broker_name.as_str());
        if let Some((faults, now)) = avoid.faults {
            let available = |queue: &MessageQueue| faults.is_available(&queue.broker_name, now) && other(queue);
            let reachable = |queue: &MessageQueue| faults.is_reachable(&queue.broker_name) && other(queue);
            if let Some(queue) = self.find(queues, available).or_else(|| self.find(queues, reachable)) {
                return Some(queue);
            }
        } else if let Some(queue) = self.find(queues, other) {
            return Some(queue);
        }
        self.find(queues, |_| true)
    }

    /// The first acceptable queue of one round.
    fn find<'q>(
        &mut self,
        queues: &'q [MessageQueue],
        accept: impl Fn(&MessageQueue) -> bool,
    ) -> Option<&'q MessageQueue> {
        for _ in 0..queues.len() {
            let queue = &queues[self.next % queues.len()];
            self.next = self.next.wrapping_add(1);
            if accept(queue) {
                return Some(queue);
            }
        }
        None
    }
}

/// What is known of a copy after that error. *Not stored* needs proof: the request never left, or the broker refused with a code that
/// it gives before it appends only. SYSTEM_ERROR is not among them: brokers give it for whatever else goes wrong, at any point.
pub(crate) fn fate(error: &CallError) -> Fate {
    match error {
        CallError::NoNameServer
        | CallError::NoRoute { .. }
        | CallError::NoBroker { .. }
        | CallError::StaticTopic { .. }
        | CallError::RecallHandle
        | CallError::Deadline { .. } => Fate::NotStored,
        CallError::Remoting(error) => match error.fate() {
            remoting::Fate::NotSent => Fate::NotStored,
            remoting::Fate::MaybeSent => Fate::Unknown,
        },
        CallError::Refused { .. } if error.code().is_some_and(is_before_append) => Fate::NotStored,
        CallError::Refused { .. }
        | CallError::Header(_)
        | CallError::Json(_)
        | CallError::MessageId(_)
        | CallError::Record(_)
        | CallError::Batch(_) => Fate::Unknown,
    }
}

fn is_before_append(code: ResponseCode) -> bool {
    matches!(
        code,
        ResponseCode::SystemBusy
            | ResponseCode::RequestCodeNotSupported
            | ResponseCode::MessageIllegal
            | ResponseCode::ServiceNotAvailable
            | ResponseCode::VersionNotSupported
            | ResponseCode::NoPermission
            | ResponseCode::TopicNotExist
            | ResponseCode::SubscriptionGroupNotExist
            | ResponseCode::InvalidParameter
            | ResponseCode::NoBuyerId
            | ResponseCode::NotInCurrentUnit
            | ResponseCode::FlowControl
            | ResponseCode::NotLeaderForQueue
            | ResponseCode::GoAway
    )
}

/// Whether another broker may do better.
pub(crate) fn may_retry(error: &CallError) -> bool {
    match error {
        CallError::Refused { .. } => error.code().is_some_and(|code| {
            matches!(
                code,
                ResponseCode::TopicNotExist
                    | ResponseCode::ServiceNotAvailable
                    | ResponseCode::SystemError
                    | ResponseCode::SystemBusy
                    | ResponseCode::NoPermission
                    | ResponseCode::NoBuyerId
                    | ResponseCode::NotInCurrentUnit
                    | ResponseCode::GoAway
            )
        }),
        CallError::Deadline { .. } => false,
        _ => true,
    }
}

/// How long the next attempt may take: all that remains, but no more than the cap while another attempt may follow.
pub(crate) fn attempt_timeout(remaining: Duration, cap: Option<Duration>, is_last: bool) -> Duration {
    match cap {
        Some(cap) if !is_last => remaining.min(cap),
        _ => remaining,
    }
}

#[cfg(test)]
mod tests {
    use super::{Avoid, RoundRobin, attempt_timeout, fate, may_retry};
    use crate::error::{CallError, Fate};
    use crate::fault::{FaultTable, Sent};
    use protocol::MessageQueue;
    use remoting::{ConnectReason, RemotingError};
    use std::time::Duration;

    fn queues(brokers: &[&str]) -> Vec<MessageQueue> {
        let each = brokers.iter().flat_map(|b| (0..2).map(|id| (b.to_string(), id)));
        each.map(|(broker_name, queue_id)| MessageQueue { topic: "T".into(), broker_name, queue_id }).collect()
    }

    fn picks(round: &mut RoundRobin, queues: &[MessageQueue], avoid: Avoid<'_>, count: usize) -> Vec<String> {
        (0..count)
            .map(|_| round.select(queues, avoid).map(|q| format!("{}{}", q.broker_name, q.queue_id)).unwrap())
            .collect()
    }

    const NOTHING: Avoid<'_> = Avoid { last_broker: None, faults: None };

    #[test]
    fn goes_round_the_queues() {
        let mut round = RoundRobin::new(3);
        assert_eq!(picks(&mut round, &queues(&["a", "b"]), NOTHING, 5), ["b1", "a0", "a1", "b0", "b1"]);
    }

    #[test]
    fn a_retry_goes_to_another_broker_if_there_is_one() {
        let avoid = Avoid { last_broker: Some("a"), faults: None };
        assert_eq!(picks(&mut RoundRobin::new(0), &queues(&["a", "b"]), avoid, 3), ["b0", "b1", "b0"]);
        assert_eq!(picks(&mut RoundRobin::new(0), &queues(&["a"]), avoid, 1), ["a0"]);
        assert!(RoundRobin::new(0).select(&[], avoid).is_none());
    }

    #[test]
    fn a_faulty_broker_is_avoided_but_better_than_none() {
        let mut faults = FaultTable::default();
        faults.update("a", Duration::ZERO, Sent::Refused, Duration::ZERO);
        let avoid = Avoid { last_broker: None, faults: Some((&faults, Duration::ZERO)) };
        assert_eq!(picks(&mut RoundRobin::new(0), &queues(&["a", "b"]), avoid, 2), ["b0", "b1"]);
        assert_eq!(picks(&mut RoundRobin::new(0), &queues(&["a"]), avoid, 1), ["a0"]);
    }

    fn refused(code: i32) -> CallError {
        CallError::Refused { addr: "x".into(), code, remark: None }
    }

    #[test]
    fn only_proof_makes_an_attempt_not_stored() {
        let connect = RemotingError::Connect { addr: "x".into(), reason: ConnectReason::Timeout(Duration::ZERO) };
        let closed = |fate| RemotingError::Closed { addr: "x".into(), fate };
        let cases = [
            (CallError::from(connect), Fate::NotStored, true),
            (closed(remoting::Fate::NotSent).into(), Fate::NotStored, true),
            (closed(remoting::Fate::MaybeSent).into(), Fate::Unknown, true),
            (refused(1), Fate::Unknown, true),
            (refused(2), Fate::NotStored, true),
            (refused(13), Fate::NotStored, false),
            (refused(14), Fate::NotStored, true),
            (refused(16), Fate::NotStored, true),
            (refused(4711), Fate::Unknown, false),
            (CallError::Deadline { after: Duration::ZERO }, Fate::NotStored, false),
        ];
        for (error, expected_fate, expected_retry) in cases {
            assert_eq!(fate(&error), expected_fate, "{error}");
            assert_eq!(may_retry(&error), expected_retry, "{error}");
        }
    }

    #[test]
    fn the_last_attempt_gets_all_that_is_left() {
        let (second, cap) = (Duration::from_secs(1), Some(Duration::from_millis(300)));
        assert_eq!(attempt_timeout(second, cap, false), Duration::from_millis(300));
        assert_eq!(attempt_timeout(second, cap, true), second);
        assert_eq!(attempt_timeout(second, None, false), second);
    }
}
