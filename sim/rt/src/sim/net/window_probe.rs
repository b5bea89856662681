//! A writer whose peer has no room (RFC 9293 §3.8.6.1).
//!
//! Linux asks the peer for room again and again, 200 ms to two minutes apart, as long as it takes. Here nobody asks while it is
//! certain that an answer would come and say nothing new: no event, and a run in which two programs wait for each other's reading is
//! still a deadlock. Asking begins when an answer is no longer certain (the peer's end is gone, its node is dark, the link may lose something, a
//! rule is in force), backs off like a retransmission, and ends with the first answer, or with `TimedOut` like a retransmission. (A rule
//! that changes its mind by itself later on is not noticed, before the reader has made room.)
use super::Net;
use super::connection::End;
use super::event::ConnectionId;
use super::fabric::MILLION;
use super::pipe::Retry;
use super::rule::{Packet, PacketKind, Verdict};
use crate::sim::node::NodeId;
use crate::sim::world::World;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// The peer is there and knows the connection.
    Answered,
    /// No answer came.
    Lost,
    /// A kernel that does not know the connection has sent a reset, which may get lost.
    Reset,
}

impl Net {
    /// Lets the end `side` ask its peer for an answer. Way and answer take no time; losses are drawn from a stream of their own.
    pub(super) fn probe(&mut self, world: &World, id: ConnectionId, side: usize) -> Probed {
        self.effects.probes += 1;
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let peer = connection.end[1 - side];
        if !self.probe_passes(world, id, side) {
            return Probed::Lost;
        }
        if !world.at(to).up.get() {
            self.effects.dropped_by_silence += 1;
            return Probed::Lost;
        }
        match peer {
            End::Gone | End::Failed(_) | End::Connecting => {
                self.reset_towards(world, id, side);
                Probed::Reset
            }
            End::Open | End::Closed | End::SynReceived => match self.link_loses(to, from) {
                true => Probed::Lost,
                false => Probed::Answered,
            },
        }
    }

    /// Whether links and rules let a probe of the end `side` through.
    fn probe_passes(&mut self, world: &World, id: ConnectionId, side: usize) -> bool {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let (source, destination) = (connection.address[side], connection.address[1 - side]);
        if self.link_loses(from, to) {
            return false;
        }
        if from == to || self.rules.is_empty() {
            return true;
        }
        let packet = Packet { from, to, source, destination, kind: PacketKind::Probe, length: 0 };
        match self.rules.judge(&packet) {
            Verdict::Pass | Verdict::Later(_) => true,
            Verdict::Drop => {
                self.effects.dropped_by_rule += 1;
                false
            }
            Verdict::Reject => {
                self.effects.rejected_by_rule += 1;
                self.reset_by_firewall(world, id, side);
                false
            }
        }
    }

    /// Whether a probe or its answer gets lost on a link.
    fn link_loses(&mut self, from: NodeId, to: NodeId) -> bool {
        if self.blocked(from, to) {
            return true;
        }
        let ppm = u64::from(self.fabric.loss_ppm(from, to));
        let lost = ppm > 0 && self.probe_rng.below(MILLION) < ppm;
        self.effects.dropped_by_loss += u64::from(lost);
        lost
    }

    /// Starts the timer of the pipe `side` if its writer waits for room that it might never hear of.
    #[inline]
    pub(super) fn watch_zero_window(&mut self, world: &World, id: ConnectionId, side: usize) {
        if self.connections.at(id).pipe[side].is_at_zero_window(self.config.receive_buffer) {
            self.watch_unless_certain(world, id, side);
        }
    }

    fn watch_unless_certain(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let sends = matches!(connection.end[side], End::Open | End::Closed);
        let known = !matches!(connection.end[1 - side], End::Gone | End::Failed(_));
        let passes = self.rules.is_empty() && !self.fabric.may_lose(from, to);
        let certain = known && passes && world.at(to).up.get();
        if sends && !certain {
            self.ask_later(world, id, side);
        }
    }

    /// Who waits for room at a peer that cannot answer has a timer.
    pub(super) fn check_zero_window(&mut self, world: &World, id: ConnectionId, side: usize) {
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let sends = matches!(connection.end[side], End::Open | End::Closed);
        let known = !matches!(connection.end[1 - side], End::Gone | End::Failed(_));
        let pipe = &connection.pipe[side];
        if sends && pipe.is_at_zero_window(self.config.receive_buffer) && pipe.retry.at.is_none() {
            assert!(known && world.at(to).up.get(), "waits for room at nobody: {pipe:?}");
            let blocked = self.fabric.blocked(from, to) || self.fabric.blocked(to, from);
            assert!(!blocked, "waits for room behind a block: {pipe:?}");
        }
    }

    /// A fault has begun: as [`watch_zero_window`](Self::watch_zero_window), for every connection.
    pub(super) fn watch_zero_windows(&mut self, world: &World) {
        for id in self.connections.ids() {
            for side in 0..2 {
                self.watch_zero_window(world, id, side);
            }
        }
    }

    /// The timer fires, and there is still no room.
    pub(super) fn probe_window(&mut self, world: &World, id: ConnectionId, side: usize) {
        match self.probe(world, id, side) {
            Probed::Answered => self.connections.at(id).pipe[side].retry = Retry::default(),
            Probed::Lost | Probed::Reset => self.ask_later(world, id, side),
        }
    }

    fn ask_later(&mut self, world: &World, id: ConnectionId, side: usize) {
        if self.connections.at(id).pipe[side].retry.at.is_none() {
            self.retry_later(world, id, side);
            self.connections.at(id).pipe[side].retry.for_window = true;
        }
    }
}
