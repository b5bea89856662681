//! What is taken down while a world runs.

use super::{Band, Call, DiskSync, Message, ReadFrame, Recording};
use rt::world::{CrashKind, Fate, Flow, NodeId, Packet, PacketKind, Sight};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Clones are the same tape.
#[derive(Debug, Clone)]
pub(crate) struct Tape(Rc<RefCell<Reels>>);

#[derive(Debug, Default)]
struct Reels {
    recording: Recording,
    read: Option<ReadFrame>,
    nodes: BTreeMap<NodeId, usize>,
    kinds: BTreeMap<String, usize>,
    files: BTreeMap<String, usize>,
    flows: BTreeMap<Flow, Travelling>,
    /// Questions without an answer yet: the way on which they went, their number, and the kind.
    asked: BTreeMap<(Flow, u64), usize>,
    /// Syncs that have not ended.
    syncing: BTreeMap<(NodeId, u32), usize>,
    /// The present band of each node.
    states: BTreeMap<NodeId, usize>,
}

/// What is on its way on one flow.
#[derive(Debug, Default)]
struct Travelling {
    packets: VecDeque<Travel>,
    place: Place,
}

/// Where in its messages a stream is.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Bytes of the last message begun that have not left yet.
    left: usize,
    /// The beginning of a message, too short to tell which.
    head: Vec<u8>,
}

/// Longest beginning that is kept: whoever cannot tell by then reads nothing of ours.
const HEAD_BYTES_MAX: usize = 2_048;

#[derive(Debug)]
struct Travel {
    kind: PacketKind,
    messages: Range<usize>,
    /// As it was before this packet left.
    before: Place,
}

impl Tape {
    /// A new tape. Call it inside of a world: it looks on from now.
    pub(crate) fn start(read: Option<ReadFrame>) -> Tape {
        let tape = Tape(Rc::new(RefCell::new(Reels { read, ..Reels::default() })));
        let (sights, ends) = (tape.clone(), tape.clone());
        rt::world::look_on(move |sight| sights.0.borrow_mut().see(sight, rt::world::elapsed()));
        rt::world::on_node_end(move |end| {
            let state = if end.kind == CrashKind::Power { "no power" } else { "down" };
            ends.0.borrow_mut().becomes(end.node, state, end.at);
        });
        tape
    }

    /// What was taken down, its nodes in the order in which the world had got them.
    pub(crate) fn take(&self) -> Recording {
        let mut reels = self.0.borrow_mut();
        let mut recording = std::mem::take(&mut reels.recording);
        let mut places = vec![0; recording.nodes.len()];
        reels.nodes.values().enumerate().for_each(|(after, before)| places[*before] = after);
        recording.nodes = reels.nodes.values().map(|before| recording.nodes[*before].clone()).collect();
        recording.bands.iter_mut().for_each(|band| band.node = places[band.node]);
        recording.syncs.iter_mut().for_each(|sync| sync.node = places[sync.node]);
        for message in &mut recording.messages {
            (message.from, message.to) = (places[message.from], places[message.to]);
        }
        recording
    }
}

/// The place of a name in a list, which gets it if it is new.
fn interned(names: &mut Vec<String>, places: &mut BTreeMap<String, usize>, name: &str) -> usize {
    if let Some(place) = places.get(name) {
        return *place;
    }
    names.push(name.to_owned());
    places.insert(name.to_owned(), names.len() - 1);
    names.len() - 1
}

impl Reels {
    fn see(&mut self, sight: &Sight<'_>, now: Duration) {
        match sight {
            Sight::Departs { flow, packet, bytes, fate } if packet.from != packet.to => {
                self.departs(*flow, packet, *bytes, *fate, now);
            }
            Sight::Departs { .. } => {}
            Sight::Arrives { flow, kind } => self.arrives(*flow, *kind, now),
            Sight::Lost { flow } => {
                if let Some(travelling) = self.flows.get_mut(flow) {
                    if let Some(first) = travelling.packets.front() {
                        travelling.place = first.before.clone();
                    }
                    travelling.packets.clear();
                }
            }
            Sight::SyncBegins { node, ticket, path } => {
                let name = path.trim_start_matches('/');
                let file = interned(&mut self.recording.files, &mut self.files, name);
                let begun = DiskSync { node: self.place(*node), file, began: now, ended: None, ok: false };
                self.syncing.insert((*node, *ticket), self.recording.syncs.len());
                self.recording.syncs.push(begun);
            }
            Sight::SyncEnds { node, ticket, ok } => {
                if let Some(place) = self.syncing.remove(&(*node, *ticket)) {
                    let sync = &mut self.recording.syncs[place];
                    (sync.ended, sync.ok) = (Some(now), *ok);
                }
            }
            Sight::Starts { node } => self.becomes(*node, "up", now),
        }
    }

    fn place(&mut self, node: NodeId) -> usize {
        let names = &mut self.recording.nodes;
        *self.nodes.entry(node).or_insert_with(|| {
            names.push(rt::world::node_name(node).to_string());
            names.len() - 1
        })
    }

    fn becomes(&mut self, node: NodeId, state: &str, now: Duration) {
        let place = self.place(node);
        let next = self.recording.bands.len();
        if let Some(before) = self.states.insert(node, next) {
            self.recording.bands[before].until = Some(now);
        }
        self.recording.bands.push(Band { node: place, from: now, until: None, state: state.to_owned() });
    }

    fn departs(&mut self, flow: Flow, packet: &Packet, bytes: [&[u8]; 2], fate: Fate, now: Duration) {
        let first = self.recording.messages.len();
        let before = self.flows.get(&flow).map(|travelling| travelling.place.clone()).unwrap_or_default();
        let mut place = before.clone();
        match packet.kind {
            PacketKind::Syn => self.sends(packet, "connect", 0, now),
            PacketKind::Fin => self.sends(packet, "end of stream", 0, now),
            PacketKind::Reset => self.sends(packet, "reset", 0, now),
            PacketKind::Data => place = self.sends_frames(flow, packet, place, &bytes.concat(), now),
            _ => {
                // A datagram is whole, or nobody reads it.
                let rest = self.sends_frames(flow, packet, Place::default(), bytes[0], now);
                if !rest.head.is_empty() {
                    self.sends(packet, "datagram", rest.head.len(), now);
                }
            }
        }
        if fate == Fate::Travels {
            let messages = first..self.recording.messages.len();
            let travelling = self.flows.entry(flow).or_default();
            travelling.packets.push_back(Travel { kind: packet.kind, messages, before });
            travelling.place = place;
        }
    }

    /// Takes down the messages that begin in these bytes, or in those kept at `place`; where the stream is afterwards.
    fn sends_frames(&mut self, flow: Flow, packet: &Packet, place: Place, bytes: &[u8], now: Duration) -> Place {
        let Some(read) = self.read else {
            self.sends(packet, "data", bytes.len(), now);
            return Place::default();
        };
        let Place { left, head } = place;
        if left >= bytes.len() {
            return Place { left: left - bytes.len(), head };
        }
        let bytes = [&head, &bytes[left..]].concat();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let Some(frame) = read(packet, rest) else {
                if rest.len() < HEAD_BYTES_MAX {
                    return Place { left: 0, head: rest.to_vec() };
                }
                self.sends(packet, "data", rest.len(), now);
                return Place::default();
            };
            let answered =
                if let Call::Answers(number) = frame.call { self.asked.remove(&(flow.back(), number)) } else { None };
            let name = match answered {
                Some(question) => format!("{} → {}", self.recording.kinds[question], frame.name),
                None => frame.name.into_owned(),
            };
            self.sends(packet, &name, frame.length, now);
            if let Call::Asks(number) = frame.call {
                let kind = self.kinds[&name];
                self.asked.insert((flow, number), kind);
            }
            assert!(frame.length > 0, "a message has bytes");
            if frame.length > rest.len() {
                return Place { left: frame.length - rest.len(), head: Vec::new() };
            }
            rest = &rest[frame.length..];
        }
        Place::default()
    }

    /// Takes down one message.
    fn sends(&mut self, packet: &Packet, kind: &str, bytes: usize, now: Duration) {
        let kind = interned(&mut self.recording.kinds, &mut self.kinds, kind);
        let (from, to) = (self.place(packet.from), self.place(packet.to));
        self.recording.messages.push(Message { from, to, sent: now, arrived: None, kind, bytes });
    }

    fn arrives(&mut self, flow: Flow, kind: PacketKind, now: Duration) {
        let Some(travelling) = self.flows.get_mut(&flow) else { return };
        let Some(place) = travelling.packets.iter().position(|travel| travel.kind == kind) else { return };
        let travel = travelling.packets.remove(place).expect("it was just found");
        for message in &mut self.recording.messages[travel.messages] {
            message.arrived = Some(now);
        }
    }
}
