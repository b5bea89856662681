//! Packet rules: the one extension point between the departure of a packet and the wire.
use crate::sim::node::NodeId;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A client asks for a connection.
    Syn,
    /// A server answers a [`Syn`](PacketKind::Syn), or a kernel refuses it.
    SynAck,
    /// The client's acknowledgement of the [`SynAck`](PacketKind::SynAck).
    Ack,
    /// Bytes of a stream.
    Data,
    /// The end of a stream.
    Fin,
    /// The end of a connection at once.
    Reset,
    /// A kernel asks the peer of an idle stream for a sign of life, or for room where there was none. It carries no bytes and takes no
    /// time; its answer is an acknowledgement. [`Verdict::Later`] does nothing to it.
    Probe,
    /// A datagram.
    Datagram,
    /// The ICMP message that a datagram met no socket.
    Unreachable,
}

/// A packet that is about to leave. Acknowledgements of data are not packets here: no rule sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The node that sends it.
    pub from: NodeId,
    /// The node that it is meant for.
    pub to: NodeId,
    /// The sender's address and port.
    pub source: SocketAddr,
    /// The receiver's address and port.
    pub destination: SocketAddr,
    /// What it is for.
    pub kind: PacketKind,
    /// Bytes of payload.
    pub length: usize,
}

/// What a rule does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: the next rule is asked.
    Pass,
    /// It travels that much longer. Later rules are asked too, and delays add up; a stream keeps its order.
    Later(Duration),
    /// It is lost. A stream sends it again.
    Drop,
    /// It is lost, and the sender is told as by a firewall: a stream is reset, a connecting client refused, a connected datagram
    /// socket told that the port is unreachable. Of an answer to a SYN, a reset and an unreachable message it is only lost.
    Reject,
}

/// A rule of the experimenter's. It may keep state of its own, and must not call `rt::world::network`, which is in use while it is
/// asked.
pub type Rule = Box<dyn FnMut(&Packet) -> Verdict>;

/// The rules of a run, in the order of their setting.
#[derive(Default)]
pub(super) struct Rules(Vec<(String, Rule)>);

impl fmt::Debug for Rules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a rule, or replaces the one of that name in its place.
    pub(super) fn set(&mut self, name: &str, rule: Rule) {
        match self.0.iter_mut().find(|(other, _)| other == name) {
            Some((_, place)) => *place = rule,
            None => self.0.push((name.to_owned(), rule)),
        }
    }

    /// Removes the rule of that name.
    pub(super) fn clear(&mut self, name: &str) {
        self.0.retain(|(other, _)| other != name);
    }

    pub(super) fn clear_all(&mut self) {
        self.0.clear();
    }

    /// The first rule that drops or rejects decides; else all delays together.
    pub(super) fn judge(&mut self, packet: &Packet) -> Verdict {
        let mut later = Duration::ZERO;
        for (_, rule) in &mut self.0 {
            match rule(packet) {
                Verdict::Pass => {}
                Verdict::Later(more) => later = later.saturating_add(more),
                last @ (Verdict::Drop | Verdict::Reject) => return last,
            }
        }
        if later.is_zero() { Verdict::Pass } else { Verdict::Later(later) }
    }
}
