//! One direction of a connection: a ring that holds `[visible to the reader][in flight][not yet sent]`, so a byte is copied in
//! once and out once, and an arrival only moves a mark.
use super::waiters::Waiters;
use std::collections::VecDeque;
use std::task::Waker;

/// Where the end of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fin {
    /// The writer may write.
    Open,
    /// To be sent behind the last byte.
    Asked,
    /// In flight.
    Sent,
    /// The reader sees the end after the last byte.
    Arrived,
}

#[derive(Debug)]
pub(super) struct Pipe {
    ring: VecDeque<u8>,
    visible: usize,
    flying: usize,
    /// Arrived, but the sender does not know yet.
    unacknowledged: usize,
    /// Read by the application, but the sender does not know yet.
    consumed: usize,
    /// When one of the two last grew.
    pub(super) changed_at: u64,
    pub(super) fin: Fin,
    /// Bumped when segments are lost: those behind them are void (go back N).
    pub(super) epoch: u16,
    /// No segment overtakes another.
    pub(super) last_arrival: u64,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Tasks that wait until there is something to read, or room to write, besides the one that reads or writes.
    pub(super) for_bytes: Waiters,
    pub(super) for_room: Waiters,
    /// A `Window` event is on its way.
    pub(super) window_pending: bool,
    pub(super) retry: Retry,
}

/// The retransmission timer of a pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    /// When it fires; an event of another time is void.
    pub(super) at: Option<u64>,
    /// How often the time-out has doubled.
    pub(super) doublings: u32,
    /// Since when nothing was acknowledged.
    pub(super) stalled_since: Option<u64>,
    /// Nothing is to be sent again: the reader has no room, and is asked for some.
    pub(super) for_window: bool,
}

impl Pipe {
    pub(super) fn new() -> Pipe {
        Pipe {
            ring: VecDeque::new(),
            visible: 0,
            flying: 0,
            unacknowledged: 0,
            consumed: 0,
            changed_at: 0,
            fin: Fin::Open,
            epoch: 0,
            last_arrival: 0,
            reader: None,
            writer: None,
            for_bytes: Waiters::default(),
            for_room: Waiters::default(),
            window_pending: false,
            retry: Retry::default(),
        }
    }

    pub(super) fn visible(&self) -> usize {
        self.visible
    }

    pub(super) fn flying(&self) -> usize {
        self.flying
    }

    pub(super) fn unsent(&self) -> usize {
        self.ring.len() - self.visible - self.flying
    }

    /// Something is received or read that the sender does not know of.
    pub(super) fn lags(&self) -> bool {
        self.unacknowledged > 0 || self.consumed > 0
    }

    pub(super) fn unacknowledged(&self) -> usize {
        self.unacknowledged
    }

    /// Whether the sender waits for news of what was received and read.
    pub(super) fn sender_waits(&self) -> bool {
        self.writer.is_some() || self.unsent() > 0 || !self.for_room.is_empty()
    }

    /// Bytes that the writer may hand over now.
    pub(super) fn room(&self, send_buffer: usize) -> usize {
        send_buffer.saturating_sub(self.unsent() + self.flying + self.unacknowledged)
    }

    /// Bytes that may leave now without overrunning the reader's kernel.
    pub(super) fn sendable(&self, receive_buffer: usize) -> usize {
        receive_buffer.saturating_sub(self.visible + self.flying + self.consumed).min(self.unsent())
    }

    /// Something is to be sent, the sender knows all that was read, and there is no room: only the reader can change it.
    pub(super) fn is_at_zero_window(&self, receive_buffer: usize) -> bool {
        let news = self.flying > 0 || self.lags() || self.window_pending;
        !news && self.unsent() > 0 && self.sendable(receive_buffer) == 0
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.ring.extend(bytes);
    }

    pub(super) fn depart(&mut self, length: usize) {
        self.flying += length;
        assert!(self.visible + self.flying <= self.ring.len());
    }

    /// The bytes of the next segment in flight, in at most two parts.
    pub(super) fn in_flight(&self, length: usize) -> (&[u8], &[u8]) {
        self.between(self.visible, self.visible + length)
    }

    /// The bytes of the next segment that leaves, in at most two parts.
    pub(super) fn about_to_leave(&self, length: usize) -> (&[u8], &[u8]) {
        let from = self.visible + self.flying;
        self.between(from, from + length)
    }

    fn between(&self, from: usize, to: usize) -> (&[u8], &[u8]) {
        let (a, b) = self.ring.as_slices();
        (&a[from.min(a.len())..to.min(a.len())], &b[from.saturating_sub(a.len())..to.saturating_sub(a.len())])
    }

    pub(super) fn arrive(&mut self, length: usize, now: u64) {
        assert!(length <= self.flying, "only what is in flight arrives");
        self.flying -= length;
        self.visible += length;
        self.unacknowledged += length;
        self.changed_at = now;
    }

    /// What is in flight will never arrive; it counts as unsent again.
    pub(super) fn lose_flight(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.flying = 0;
        if self.fin == Fin::Sent {
            self.fin = Fin::Asked;
        }
    }

    /// The writer's kernel is gone: what has not left never leaves.
    pub(super) fn forget_unsent(&mut self) {
        self.ring.truncate(self.visible + self.flying);
        if self.fin == Fin::Asked {
            self.fin = Fin::Open;
        }
        self.retry = Retry::default();
    }

    /// Copies out what the reader may see, up to `limit` bytes, and hands the parts to `sink`.
    pub(super) fn read(&mut self, limit: usize, now: u64, mut sink: impl FnMut(&[u8])) -> usize {
        let n = self.visible.min(limit);
        let (a, b) = self.ring.as_slices();
        let head = n.min(a.len());
        sink(&a[..head]);
        sink(&b[..n - head]);
        self.ring.drain(..n);
        self.visible -= n;
        self.consumed += n;
        self.changed_at = now;
        n
    }

    /// The visible bytes, in at most two parts, without taking them.
    pub(super) fn peek(&self) -> (&[u8], &[u8]) {
        let (a, b) = self.ring.as_slices();
        let head = self.visible.min(a.len());
        (&a[..head], &b[..self.visible - head])
    }

    /// The sender learns all that was received and read.
    pub(super) fn settle(&mut self) {
        self.unacknowledged = 0;
        self.consumed = 0;
    }

    pub(super) fn wake_all(&mut self) {
        self.wake_reader();
        self.wake_writer();
    }

    pub(super) fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
        self.for_bytes.wake();
    }

    pub(super) fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
        self.for_room.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::{Fin, Pipe};

    fn taken(pipe: &mut Pipe, limit: usize) -> Vec<u8> {
        let mut out = Vec::new();
        pipe.read(limit, 0, |part| out.extend_from_slice(part));
        out
    }

    #[test]
    fn bytes_keep_their_order_across_the_marks_and_the_ring_end() {
        let mut pipe = Pipe::new();
        let mut next = 0_u8;
        let mut expected = 0_u8;
        for round in 1..200_usize {
            let bytes: Vec<u8> = (0..round % 17)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            pipe.push(&bytes);
            pipe.depart(pipe.unsent());
            let (a, b) = pipe.in_flight(pipe.flying());
            assert_eq!(a.len() + b.len(), pipe.flying());
            pipe.arrive(pipe.flying(), 0);
            for byte in taken(&mut pipe, round % 13) {
                expected = expected.wrapping_add(1);
                assert_eq!(byte, expected);
            }
            pipe.settle();
        }
    }

    #[test]
    fn buffers_are_bounded_on_both_sides() {
        let mut pipe = Pipe::new();
        pipe.push(&[1; 10]);
        assert_eq!(pipe.room(16), 6);
        assert_eq!(pipe.sendable(4), 4);
        pipe.depart(4);
        pipe.arrive(4, 7);
        assert_eq!(pipe.sendable(4), 0, "the reader's buffer is full");
        assert_eq!(pipe.room(16), 6, "not acknowledged yet");
        assert_eq!(taken(&mut pipe, 4).len(), 4);
        assert_eq!(pipe.sendable(4), 0, "the sender does not know yet");
        pipe.settle();
        assert_eq!(pipe.sendable(4), 4);
        assert_eq!(pipe.room(16), 10);
    }

    #[test]
    fn a_lost_flight_is_sent_again() {
        let mut pipe = Pipe::new();
        pipe.push(b"abc");
        pipe.depart(3);
        pipe.fin = Fin::Sent;
        let old = pipe.epoch;
        pipe.lose_flight();
        assert_ne!(pipe.epoch, old);
        assert_eq!(pipe.unsent(), 3);
        assert_eq!(pipe.fin, Fin::Asked);
    }
}
