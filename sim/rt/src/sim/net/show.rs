//! What an onlooker sees of packets.
use super::Net;
use super::departure::Departure;
use super::event::ConnectionId;
use super::rule::{Packet, PacketKind};
use crate::sim::sight::{Fate, Flow, Sight};
use crate::sim::world::World;

/// The pipe that the end `side` writes.
fn flow(id: ConnectionId, side: usize) -> Flow {
    Flow(u64::from(id.slot) << 32 | u64::from(id.generation & 0x7FFF_FFFF) << 1 | side as u64)
}

/// Above all slots of connections.
fn datagram(number: u32) -> Flow {
    Flow(1 << 63 | u64::from(number) << 1)
}

impl Net {
    #[cold]
    pub(super) fn show_departure(
        &mut self,
        world: &World,
        id: ConnectionId,
        side: usize,
        (kind, length): (PacketKind, usize),
        departure: Departure,
    ) {
        // The rest of a handshake, and probes, say nothing new.
        if matches!(kind, PacketKind::SynAck | PacketKind::Ack | PacketKind::Probe) {
            return;
        }
        let connection = self.connections.at(id);
        let (from, to) = connection.route(side);
        let (source, destination) = (connection.address[side], connection.address[1 - side]);
        let (head, tail) =
            if kind == PacketKind::Data { connection.pipe[side].about_to_leave(length) } else { Default::default() };
        let fate = match departure {
            Departure::Travels(_) => Fate::Travels,
            Departure::Lost => Fate::Lost,
            Departure::Rejected => Fate::Rejected,
        };
        let packet = Packet { from, to, source, destination, kind, length };
        world.show(&Sight::Departs { flow: flow(id, side), packet, bytes: [head, tail], fate });
    }

    /// What the end `side` sent has met a kernel that wants it.
    #[inline]
    pub(super) fn show_arrival(world: &World, id: ConnectionId, side: usize, kind: PacketKind) {
        if world.is_looked_at() {
            world.show(&Sight::Arrives { flow: flow(id, side), kind });
        }
    }

    /// What the end `side` has in flight is lost.
    #[inline]
    pub(super) fn show_loss(world: &World, id: ConnectionId, side: usize) {
        if world.is_looked_at() {
            world.show(&Sight::Lost { flow: flow(id, side) });
        }
    }

    pub(super) fn show_datagram(world: &World, number: u32, packet: &Packet, bytes: &[u8], fate: Fate) {
        if world.is_looked_at() && packet.kind == PacketKind::Datagram {
            world.show(&Sight::Departs { flow: datagram(number), packet: *packet, bytes: [bytes, &[]], fate });
        }
    }

    pub(super) fn show_datagram_arrival(world: &World, number: u32) {
        if world.is_looked_at() {
            world.show(&Sight::Arrives { flow: datagram(number), kind: PacketKind::Datagram });
        }
    }
}
