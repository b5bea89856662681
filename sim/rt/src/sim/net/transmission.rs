//! Segments on their way: departure, arrival, loss, retransmission, reset.
use super::connection::{End, SERVER};
use super::departure::Departure;
use super::event::{ConnectionId, NetworkEvent};
use super::pipe::{Fin, Retry};
use super::rule::PacketKind;
use super::{Net, SEGMENT_BYTES, Seen};
use crate::sim::node::NodeId;
use crate::sim::trace::Event;
use crate::sim::world::World;
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

impl Net {
    /// Sends what the windows allow of the pipe `side`, unless it waits for its retransmission timer.
    pub(super) fn transmit(&mut self, world: &World, id: ConnectionId, side: usize) {
        let receive_buffer = self.config.receive_buffer;
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let pipe = &mut connection.pipe[side];
        if pipe.retry.at.is_some() && !pipe.retry.for_window {
            return;
        }
        let length = pipe.sendable(receive_buffer);
        if length > 0 && pipe.retry.for_window {
            // There is room again.
            pipe.retry = Retry::default();
        }
        let held_back = length < pipe.unsent();
        let held_back_by_old_news = held_back && pipe.lags();
        let fin = pipe.fin == Fin::Asked && length == pipe.unsent();
        if held_back_by_old_news {
            // The reader has made room, and no later read may come to say so.
            self.tell_window(world, id, side);
        }
        let mut parts = [length, 0];
        if length > 1 && self.config.split_one_in > 0 && self.rng.below(self.config.split_one_in) == 0 {
            parts[0] = 1 + self.rng.below(length as u64 - 1) as usize;
            parts[1] = length - parts[0];
        }
        let longest = if self.fabric.counts_segments(from, to) { SEGMENT_BYTES } else { usize::MAX };
        for mut left in parts {
            while left > 0 {
                let length = left.min(longest);
                if !self.depart(world, id, side, (from, to), Some(length)) {
                    return;
                }
                left -= length;
            }
        }
        if fin {
            self.depart(world, id, side, (from, to), None);
        } else if held_back {
            self.watch_zero_window(world, id, side);
        }
    }

    /// Sends one segment, or the end of the stream. False: it was lost, and the timer will send it again.
    fn depart(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        route: (NodeId, NodeId),
        length: Option<usize>,
    ) -> bool {
        let (from, to) = route;
        let now = world.now.get();
        let kind = if length.is_some() { PacketKind::Data } else { PacketKind::Fin };
        let later = match self.leave(world, id, side, kind, length.unwrap_or(0)) {
            Departure::Travels(later) => later,
            lost => {
                self.retry_later(world, id, side);
                if lost == Departure::Rejected {
                    self.reset_by_firewall(world, id, side);
                }
                return false;
            }
        };
        let travel = self.travel(from, to) + later;
        let pipe = &mut self.connections.at(id).pipe[side];
        let at = pipe.last_arrival.max(now + travel);
        pipe.last_arrival = at;
        let epoch = pipe.epoch;
        match length {
            Some(length) => {
                pipe.depart(length);
                Net::schedule(
                    world,
                    at,
                    NetworkEvent::Segment { connection: id, side: side as u8, epoch, length: length as u32 },
                );
            }
            None => {
                pipe.fin = Fin::Sent;
                Net::schedule(world, at, NetworkEvent::Fin { connection: id, side: side as u8, epoch });
            }
        }
        true
    }

    /// A segment arrives.
    pub(super) fn arrive(&mut self, world: &World, id: ConnectionId, side: usize, epoch: u16, length: usize) {
        Net::record(world, id, Seen::Segment { side, length });
        if !self.reaches(world, id, side, epoch, true) {
            return;
        }
        Net::show_arrival(world, id, side, PacketKind::Data);
        let now = world.now.get();
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let pipe = &mut connection.pipe[side];
        if world.config.hash_payload {
            let (head, tail) = pipe.in_flight(length);
            world.record(Event::Packet, xxh3_64_with_seed(tail, xxh3_64_with_seed(head, length as u64)));
        }
        pipe.arrive(length, now);
        pipe.wake_reader();
        connection.heard_at[1 - side] = now;
        let pipe = &connection.pipe[side];
        let sender_waits = pipe.sender_waits();
        self.effects.segments_delivered += 1;
        self.acknowledge(world, id, side, (from, to));
        if sender_waits {
            self.tell_window(world, id, side);
        }
    }

    /// The end of the stream arrives.
    pub(super) fn fin_arrives(&mut self, world: &World, id: ConnectionId, side: usize, epoch: u16) {
        Net::record(world, id, Seen::Fin { side });
        if !self.reaches(world, id, side, epoch, false) {
            return;
        }
        Net::show_arrival(world, id, side, PacketKind::Fin);
        let connection = self.connections.at(id);
        let route = connection.route(side);
        let pipe = &mut connection.pipe[side];
        pipe.fin = Fin::Arrived;
        pipe.wake_reader();
        connection.heard_at[1 - side] = world.now.get();
        self.acknowledge(world, id, side, route);
        // An orphan whose stream has ended needs its kernel no longer, whatever the peer does.
        self.collect(id);
    }

    /// Whether what travelled on the pipe `side` meets a kernel that wants it. If not, it is lost or answered with a reset.
    fn reaches(&mut self, world: &World, id: ConnectionId, side: usize, epoch: u16, data: bool) -> bool {
        let connection = self.connections.at(id);
        if connection.pipe[side].epoch != epoch {
            return false;
        }
        let (from, to) = connection.route(side);
        let end = connection.end[1 - side];
        if self.blocked(from, to) {
            self.lose(world, id, side);
            return false;
        }
        match end {
            End::Open => true,
            // The acknowledgement of the handshake was lost, and every segment carries it again.
            End::SynReceived => {
                assert_eq!(side, 0, "only the server's side waits for the handshake to end");
                self.establish(world, id);
                let open = self.connections.get(id).map(|connection| connection.end[SERVER] == End::Open);
                if open == Some(false) {
                    // Nobody listens any more, and a reset has left.
                    self.unacknowledged(world, id, side);
                }
                open == Some(true)
            }
            // The application has closed: there is nobody to read the data. A bare end is expected.
            End::Closed if !data => true,
            End::Closed => {
                self.connections.at(id).end[1 - side] = End::Gone;
                self.connections.at(id).pipe[1 - side].forget_unsent();
                self.reset_towards(world, id, side);
                self.unacknowledged(world, id, side);
                self.collect(id);
                false
            }
            End::Gone | End::Failed(_) | End::Connecting if world.at(to).up.get() => {
                self.reset_towards(world, id, side);
                self.unacknowledged(world, id, side);
                false
            }
            End::Gone | End::Failed(_) | End::Connecting => {
                self.effects.dropped_by_silence += 1;
                self.lose(world, id, side);
                false
            }
        }
    }

    /// The receiver's acknowledgement leaves. Where the way back is open the sender is taken to know it one latency later, without
    /// an event; where it is blocked the sender goes on retransmitting and gives up at last.
    fn acknowledge(&mut self, world: &World, id: ConnectionId, side: usize, (from, to): (NodeId, NodeId)) {
        if self.blocked(to, from) {
            self.retry_later(world, id, side);
        } else {
            let connection = self.connections.at(id);
            connection.heard_at[side] = world.now.get();
            let retry = &mut connection.pipe[side].retry;
            retry.doublings = 0;
            retry.stalled_since = None;
        }
    }

    /// A segment was answered with a reset. If that is lost, the sender must meet another one: it sends again what nobody
    /// acknowledged.
    fn unacknowledged(&mut self, world: &World, id: ConnectionId, side: usize) {
        if self.connections.at(id).end[side] == End::Open {
            self.lose(world, id, side);
        }
    }

    /// A segment did not arrive: everything in flight behind it is void, and the sender's timer will see to it.
    fn lose(&mut self, world: &World, id: ConnectionId, side: usize) {
        Net::show_loss(world, id, side);
        let connection = self.connections.at(id);
        connection.pipe[side].lose_flight();
        match connection.end[side] {
            End::Open | End::Closed => self.retry_later(world, id, side),
            // The sender is gone: nobody sends again.
            _ => connection.pipe[side].forget_unsent(),
        }
    }

    /// Starts the retransmission timer, if it does not run.
    pub(super) fn retry_later(&mut self, world: &World, id: ConnectionId, side: usize) {
        let (rto, longest) = (self.config.rto_ns, self.config.rto_ns_max);
        let now = world.now.get();
        let retry = &mut self.connections.at(id).pipe[side].retry;
        if retry.for_window {
            // There is more to do now than to ask for room.
            *retry = Retry::default();
        }
        retry.stalled_since.get_or_insert(now);
        if retry.at.is_some() {
            return;
        }
        let wait = rto.saturating_mul(1 << retry.doublings.min(40)).min(longest);
        retry.doublings += 1;
        let at = now + wait;
        retry.at = Some(at);
        Net::schedule(world, at, NetworkEvent::Retransmit { connection: id, side: side as u8 });
    }

    /// The retransmission timer fires.
    pub(super) fn retransmit(&mut self, world: &World, id: ConnectionId, side: usize) {
        let now = world.now.get();
        let limit = self.config.retransmit_limit_ns;
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let pipe = &mut connection.pipe[side];
        if pipe.retry.at != Some(now) {
            return;
        }
        pipe.retry.at = None;
        let for_window = std::mem::take(&mut pipe.retry.for_window);
        if !matches!(connection.end[side], End::Open | End::Closed) {
            return;
        }
        if pipe.retry.stalled_since.is_some_and(|since| now - since >= limit) {
            return self.give_up(world, id, side);
        }
        if for_window {
            // Otherwise there is news on its way.
            if pipe.is_at_zero_window(self.config.receive_buffer) {
                self.probe_window(world, id, side);
            }
            return;
        }
        let idle = pipe.unsent() == 0 && pipe.fin != Fin::Asked;
        self.effects.retransmissions += 1;
        if idle && self.blocked(from, to) {
            // Only an acknowledgement is missing; the probe for it is lost.
            return self.retry_later(world, id, side);
        }
        if self.blocked(to, from) {
            self.transmit(world, id, side);
            return self.retry_later(world, id, side);
        }
        let pipe = &mut self.connections.at(id).pipe[side];
        if idle {
            pipe.retry.stalled_since = None;
            pipe.retry.doublings = 0;
        }
        pipe.settle();
        pipe.wake_writer();
        self.transmit(world, id, side);
    }

    /// Nothing was acknowledged for too long.
    fn give_up(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        if connection.end[side] == End::Closed {
            connection.end[side] = End::Gone;
            connection.pipe[side].forget_unsent();
            self.collect(id);
        } else {
            self.effects.streams_timed_out += 1;
            self.fail(world, id, side, io::ErrorKind::TimedOut);
        }
    }

    /// Sends a reset to the end `side`. It is not repeated: lost is lost, and who still waits for room there has to ask.
    pub(super) fn reset_towards(&mut self, world: &World, id: ConnectionId, side: usize) {
        self.send_reset(world, id, side);
        self.watch_zero_window(world, id, side);
    }

    fn send_reset(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(1 - side);
        if connection.nowhere {
            return;
        }
        let Departure::Travels(later) = self.leave(world, id, 1 - side, PacketKind::Reset, 0) else { return };
        let travel = self.travel(from, to) + later;
        let pipe = &mut self.connections.at(id).pipe[1 - side];
        let at = pipe.last_arrival.max(world.now.get() + travel);
        pipe.last_arrival = at;
        Net::schedule(world, at, NetworkEvent::Reset { connection: id, side: side as u8 });
    }

    /// A reset reaches the end `side`.
    pub(super) fn reset_arrives(&mut self, world: &World, id: ConnectionId, side: usize) {
        Net::record(world, id, Seen::Reset { side });
        let connection = self.connections.at(id);
        let (from, to) = connection.route(1 - side);
        let end = connection.end[side];
        // Linux: a stream that has already ended towards the reader fails its writer with EPIPE.
        let ended = connection.pipe[1 - side].fin == Fin::Arrived;
        if self.blocked(from, to) {
            return;
        }
        Net::show_arrival(world, id, 1 - side, PacketKind::Reset);
        match end {
            End::Open => {
                self.effects.resets += 1;
                let kind = if ended { io::ErrorKind::BrokenPipe } else { io::ErrorKind::ConnectionReset };
                self.fail(world, id, side, kind);
            }
            End::SynReceived | End::Closed => {
                let connection = self.connections.at(id);
                connection.end[side] = End::Gone;
                connection.pipe[side].forget_unsent();
                self.collect(id);
            }
            End::Connecting | End::Failed(_) | End::Gone => {}
        }
    }

    /// Ends the end `side` with an error that its application is told once.
    pub(super) fn fail(&mut self, world: &World, id: ConnectionId, side: usize, kind: io::ErrorKind) {
        let connection = self.connections.at(id);
        assert!(matches!(connection.end[side], End::Open | End::Connecting));
        connection.end[side] = End::Failed(Some(kind));
        connection.pipe[side].forget_unsent();
        connection.wake_all();
        self.watch_zero_window(world, id, 1 - side);
    }

    /// Lets the writer learn, one latency from now, what was received and read: for a writer that waits for it.
    pub(super) fn tell_window(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        if connection.pipe[side].window_pending {
            return;
        }
        connection.pipe[side].window_pending = true;
        let (from, to) = connection.route(side);
        let at = world.now.get() + self.travel(to, from);
        Net::schedule(world, at, NetworkEvent::Window { connection: id, side: side as u8 });
    }

    pub(super) fn window_arrives(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        connection.pipe[side].window_pending = false;
        if !matches!(connection.end[side], End::Open | End::Closed) {
            return;
        }
        if self.blocked(to, from) {
            return self.retry_later(world, id, side);
        }
        let pipe = &mut self.connections.at(id).pipe[side];
        pipe.settle();
        pipe.wake_writer();
        self.transmit(world, id, side);
    }
}
