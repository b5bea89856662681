//! The response table of one connection: what was asked and not answered yet. Pure.
use crate::error::Fate;
use protocol::Command;
use rt::sync::oneshot;
use std::collections::BTreeMap;

/// How a call ended without a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lost(pub(crate) Fate);

#[derive(Debug)]
struct Call {
    fate: Fate,
    answer: oneshot::Sender<Result<Command, Lost>>,
}

/// Calls of this side on one connection, by opaque.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    calls: BTreeMap<i32, Call>,
    next_opaque: i32,
    closed: bool,
    late_responses: u64,
}

impl Pending {
    /// Enters a call and names its opaque. `None`: the connection is closed.
    pub(crate) fn open(&mut self) -> Option<(i32, oneshot::Receiver<Result<Command, Lost>>)> {
        if self.closed {
            return None;
        }
        let opaque = self.take_opaque();
        let (answer, receiver) = oneshot::channel();
        let before = self.calls.insert(opaque, Call { fate: Fate::NotSent, answer });
        assert!(before.is_none());
        Some((opaque, receiver))
    }

    /// An opaque that no call in flight has. The counter wraps, as every RocketMQ client's does.
    pub(crate) fn take_opaque(&mut self) -> i32 {
        loop {
            let opaque = self.next_opaque;
            self.next_opaque = self.next_opaque.wrapping_add(1);
            // Ends: the number of calls is limited far below 2^32.
            if !self.calls.contains_key(&opaque) {
                return opaque;
            }
        }
    }

    /// The frame is about to be written. False: its caller has given up, and the frame must not be written.
    pub(crate) fn written(&mut self, opaque: i32) -> bool {
        match self.calls.get_mut(&opaque) {
            Some(call) => {
                call.fate = Fate::MaybeSent;
                true
            }
            None => false,
        }
    }

    /// A response came. A response that nobody waits for is counted and dropped.
    pub(crate) fn answer(&mut self, response: Command) {
        match self.calls.remove(&response.opaque) {
            // A response to a frame that was not written is a peer's invention, but it ends the call all the same: the frame is skipped.
            Some(call) => {
                // The caller may have been dropped in this moment.
                let _ = call.answer.send(Ok(response));
            }
            None => self.late_responses += 1,
        }
    }

    /// The caller gives up: the call's fate, or `None` if it has ended.
    pub(crate) fn forget(&mut self, opaque: i32) -> Option<Fate> {
        self.calls.remove(&opaque).map(|call| call.fate)
    }

    /// The connection has ended: all calls fail, new ones are refused.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        for call in std::mem::take(&mut self.calls).into_values() {
            let _ = call.answer.send(Err(Lost(call.fate)));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn late_responses(&self) -> u64 {
        self.late_responses
    }

    pub(crate) fn check_invariants(&self) {
        assert!(!self.closed || self.calls.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::{Lost, Pending};
    use crate::error::Fate;
    use protocol::header::HeartbeatRequest;
    use protocol::{Command, RequestCode, ResponseCode};

    fn response(opaque: i32) -> Command {
        let mut request = Command::request(RequestCode::HeartBeat, &HeartbeatRequest {});
        request.opaque = opaque;
        Command::reply(&request, ResponseCode::Success)
    }

    #[test]
    fn a_call_that_ends_unwritten_is_proven_unsent() {
        let mut pending = Pending::default();
        let (first, _answer) = pending.open().unwrap();
        let (second, _answer) = pending.open().unwrap();
        assert!(pending.written(second));
        assert_eq!(pending.forget(first), Some(Fate::NotSent));
        assert!(!pending.written(first), "a frame whose caller has gone is not written");
        assert_eq!(pending.forget(second), Some(Fate::MaybeSent));
        assert_eq!(pending.forget(second), None);
    }

    #[test]
    fn only_the_call_with_that_opaque_is_answered_and_only_once() {
        let mut pending = Pending::default();
        let (first, mut first_answer) = pending.open().unwrap();
        let (second, mut second_answer) = pending.open().unwrap();
        assert!(pending.written(first) && pending.written(second));
        pending.answer(response(second));
        pending.answer(response(second));
        pending.answer(response(77));
        assert_eq!(second_answer.try_recv().unwrap().unwrap().opaque, second);
        assert!(first_answer.try_recv().is_err());
        assert_eq!((pending.late_responses(), pending.len()), (2, 1));
    }

    #[test]
    fn the_end_of_the_connection_fails_every_call_with_its_own_fate() {
        let mut pending = Pending::default();
        let (_, mut unsent) = pending.open().unwrap();
        let (written, mut sent) = pending.open().unwrap();
        assert!(pending.written(written));
        pending.close();
        assert_eq!(unsent.try_recv().unwrap().unwrap_err(), Lost(Fate::NotSent));
        assert_eq!(sent.try_recv().unwrap().unwrap_err(), Lost(Fate::MaybeSent));
        assert!(pending.open().is_none());
        pending.check_invariants();
    }

    #[test]
    fn the_opaque_wraps_and_skips_those_in_flight() {
        let mut pending = Pending { next_opaque: i32::MAX, ..Pending::default() };
        let (last, _kept) = pending.open().unwrap();
        let (first, _kept_too) = pending.open().unwrap();
        assert_eq!((last, first), (i32::MAX, i32::MIN));
        pending.next_opaque = i32::MAX;
        let (next, _) = pending.open().unwrap();
        assert_eq!(next, i32::MIN + 1);
    }
}
