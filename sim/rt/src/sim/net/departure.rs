//! What a packet meets when it leaves: blocks, loss, rules, and the queue of a narrow link, in this order.
use super::Net;
use super::connection::CLIENT;
use super::event::ConnectionId;
use super::fabric::{MILLION, Queue};
use super::rule::{Packet, PacketKind, Verdict};
use crate::sim::world::World;

/// Ethernet's share of a segment is not counted; IPv4 and TCP headers are 40 bytes, those of IPv6 are 20 longer.
const HEADER_BYTES: usize = 40;
const HEADER_BYTES_V6: usize = 60;

/// What becomes of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// It travels, by that many nanoseconds longer than its link's latency.
    Travels(u64),
    /// Nobody will ever hear of it.
    Lost,
    /// It is lost, and the sender is told.
    Rejected,
}

impl Net {
    /// Lets a packet of a connection leave the end `side`.
    #[inline]
    pub(super) fn leave(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        kind: PacketKind,
        length: usize,
    ) -> Departure {
        let departure = self.departure(world, id, side, kind, length);
        if world.is_looked_at() {
            self.show_departure(world, id, side, (kind, length), departure);
        }
        departure
    }

    #[inline]
    fn departure(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        kind: PacketKind,
        length: usize,
    ) -> Departure {
        if self.fabric.quiet() && self.rules.is_empty() {
            return Departure::Travels(0);
        }
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let (source, destination) = (connection.address[side], connection.address[1 - side]);
        if from == to {
            return Departure::Travels(0);
        }
        self.face(world, &Packet { from, to, source, destination, kind, length })
    }

    /// Lets a packet between two nodes face what stands between them.
    pub(super) fn face(&mut self, world: &World, packet: &Packet) -> Departure {
        let (from, to) = (packet.from, packet.to);
        if self.blocked(from, to) {
            return Departure::Lost;
        }
        let ppm = u64::from(self.fabric.loss_ppm(from, to));
        // Each component draws from its own stream: datagrams change nothing for streams.
        let datagram = matches!(packet.kind, PacketKind::Datagram | PacketKind::Unreachable);
        let rng = if datagram { self.datagrams.rng() } else { &mut self.rng };
        if ppm > 0 && rng.below(MILLION) < ppm {
            self.effects.dropped_by_loss += 1;
            return Departure::Lost;
        }
        let by_rules = match self.rules.judge(packet) {
            Verdict::Pass => 0,
            Verdict::Later(by) => {
                self.effects.delayed_by_rule += 1;
                u64::try_from(by.as_nanos()).unwrap_or(u64::MAX >> 1)
            }
            Verdict::Drop => {
                self.effects.dropped_by_rule += 1;
                return Departure::Lost;
            }
            Verdict::Reject => {
                self.effects.rejected_by_rule += 1;
                return Departure::Rejected;
            }
        };
        let header = if packet.destination.is_ipv6() { HEADER_BYTES_V6 } else { HEADER_BYTES };
        match self.fabric.queue(from, to, packet.length + header, world.now.get()) {
            Queue::None => Departure::Travels(by_rules),
            Queue::Waits(nanos) => {
                self.effects.queued += 1;
                Departure::Travels(by_rules + nanos)
            }
            Queue::Full => {
                self.effects.dropped_by_queue += 1;
                Departure::Lost
            }
        }
    }

    /// A firewall on the way answers what the end `side` sent with a reset, one shortest round trip later.
    pub(super) fn reset_by_firewall(&mut self, world: &World, id: ConnectionId, side: usize) {
        let at = world.now.get() + self.round_trip_min(id, side);
        Net::schedule(world, at, super::NetworkEvent::Reset { connection: id, side: side as u8 });
    }

    /// A firewall on the way refuses the client's SYN, one shortest round trip later.
    pub(super) fn refuse_by_firewall(&mut self, world: &World, id: ConnectionId) {
        let at = world.now.get() + self.round_trip_min(id, CLIENT);
        Net::schedule(world, at, super::NetworkEvent::SynAck { connection: id, refused: true });
    }

    fn round_trip_min(&mut self, id: ConnectionId, side: usize) -> u64 {
        let (from, to) = self.connections.at(id).route(side);
        self.travel_min(from, to) + self.travel_min(to, from)
    }
}
