//! A running hash over every event, a ring of the last ones, and a checkpoint every 1,024.
//!
//! Recording costs a few nanoseconds and never formats or allocates: an event is three words, and [`TraceEvent`] is made of them
//! only when someone asks.
use super::interpose::ENTROPY;
use super::node::NodeId;
use super::world::World;
use std::fmt;
use std::time::Duration;

/// What kind of thing happened. The values are part of the hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Event {
    /// A task was picked; the word is how many were ready (high half) and its slot.
    Pick = 1,
    /// A timer fired; the word is its deadline in the node's local time.
    Timer,
    /// Something of the network, the word says what.
    Packet,
    /// A disk operation, the word says what.
    Disk,
    /// A random draw; the word is the value.
    Draw,
    /// A task was spawned; the word is its slot.
    Spawn,
    /// A node was ended; the word is its incarnation (high half) and 1 if it lost power.
    End,
    /// A fault or a repair was applied to a node or a link.
    Fault,
}

impl Event {
    fn from_u8(value: u8) -> Option<Event> {
        use Event::{Disk, Draw, End, Fault, Packet, Pick, Spawn, Timer};
        [Pick, Timer, Packet, Disk, Draw, Spawn, End, Fault].into_iter().find(|event| *event as u8 == value)
    }
}

/// Events kept for a report.
const RING: usize = 4096;
/// Events between two checkpoints; less than [`RING`], so the ring always reaches back beyond the last equal checkpoint.
const CHECKPOINT: u64 = 1024;
const _: () = assert!(RING as u64 > 2 * CHECKPOINT, "the ring must hold the events since the last checkpoint");

/// The hash after a number of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Events so far.
    pub events: u64,
    /// Hash over them.
    pub hash: u64,
}

/// One round of folded multiplication: the mixer of wyhash and rapidhash.
#[inline(always)]
pub(crate) fn fold(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    (product as u64) ^ ((product >> 64) as u64)
}

#[derive(Clone, Copy)]
struct Words {
    /// Kind (8 bits), node (24), task or stream (32).
    head: u64,
    now: u64,
    what: u64,
}

pub(crate) struct Trace {
    hash: u64,
    count: u64,
    ring: Box<[Words; RING]>,
}

impl Default for Trace {
    fn default() -> Trace {
        let ring = vec![Words { head: 0, now: 0, what: 0 }; RING].into_boxed_slice();
        Trace {
            hash: 0x243F_6A88_85A3_08D3,
            count: 0,
            ring: ring.try_into().unwrap_or_else(|_| unreachable!("its length is RING")),
        }
    }
}

impl Trace {
    /// Adds an event. The result is the checkpoint that is due, if any.
    #[inline]
    pub(super) fn record(&mut self, event: Event, node: NodeId, low: u32, now: u64, what: u64) -> Option<Checkpoint> {
        let head = (event as u64) << 56 | (node.index() as u64) << 32 | u64::from(low);
        self.hash = fold(fold(self.hash, head ^ now.rotate_left(17)), what);
        self.ring[self.count as usize & (RING - 1)] = Words { head, now, what };
        self.count += 1;
        self.count.is_multiple_of(CHECKPOINT).then(|| self.checkpoint())
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { events: self.count, hash: self.hash }
    }

    fn last(&self, n: usize) -> impl Iterator<Item = (u64, Words)> {
        let n = (n as u64).min(self.count).min(RING as u64);
        (self.count - n..self.count).map(|index| (index, self.ring[index as usize & (RING - 1)]))
    }
}

/// An event for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// Its number, from 0.
    pub index: u64,
    /// World time.
    pub at: Duration,
    /// Name of the node it belongs to.
    pub node: String,
    /// Its kind; `None` only if the words are damaged.
    pub kind: Option<Event>,
    /// The task's slot (`u32::MAX`: none), or of a draw the stream's number.
    pub low: u32,
    /// The word that says what.
    pub what: u64,
    /// Of a draw, the stream's name and opening.
    pub stream: Option<String>,
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceEvent { index, at, node, low, what, .. } = self;
        write!(f, "#{index} {:>14.9}s {node} ", at.as_secs_f64())?;
        let task = Task(*low);
        match self.kind {
            Some(Event::Pick) => write!(f, "pick {task} of {} ready", what >> 32),
            Some(Event::Timer) => write!(f, "timer due at local {what} ns"),
            Some(Event::Draw) => write!(f, "draw {what:#018x} from {}", self.stream.as_deref().unwrap_or("?")),
            Some(Event::Spawn) => write!(f, "spawn task {what} by {task}"),
            Some(Event::End) => {
                let kind = if what & 1 == 1 { "power loss" } else { "crash" };
                write!(f, "{kind}, incarnation {} ends", what >> 32)
            }
            Some(Event::Packet) => write!(f, "packet {what:#018x} by {task}"),
            Some(Event::Disk) => write!(f, "disk {what:#018x} by {task}"),
            Some(Event::Fault) => write!(f, "fault {what:#018x} by {task}"),
            None => write!(f, "unknown event {what:#018x}"),
        }
    }
}

struct Task(u32);

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u32::MAX { write!(f, "the world") } else { write!(f, "task {}", self.0) }
    }
}

/// The last `n` events (at most 4,096), oldest first.
pub(super) fn tail(world: &World, n: usize) -> Vec<TraceEvent> {
    let trace = world.trace.borrow();
    let streams = world.streams.borrow();
    let decode = |(index, words): (u64, Words)| {
        let kind = Event::from_u8((words.head >> 56) as u8);
        let low = words.head as u32;
        let node = (words.head >> 32) as usize & 0x00FF_FFFF;
        TraceEvent {
            index,
            at: Duration::from_nanos(words.now),
            node: world.at(NodeId::new(node)).name.to_string(),
            kind,
            low,
            what: words.what,
            stream: (kind == Some(Event::Draw)).then(|| match low {
                ENTROPY => "getrandom".to_owned(),
                u32::MAX => "buggify".to_owned(),
                index => streams.get(index as usize).cloned().unwrap_or_default(),
            }),
        }
    };
    trace.last(n).map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::{CHECKPOINT, Event, NodeId, Trace};

    fn hash_of(events: &[(Event, usize, u32, u64, u64)]) -> u64 {
        let mut trace = Trace::default();
        for &(event, node, low, now, what) in events {
            trace.record(event, NodeId::new(node), low, now, what);
        }
        trace.checkpoint().hash
    }

    #[test]
    fn every_field_and_the_order_change_the_hash() {
        let base = [(Event::Pick, 1, 2, 3, 4), (Event::Draw, 5, 6, 7, 8)];
        let others = [
            vec![base[1], base[0]],
            vec![base[0]],
            vec![(Event::Disk, 1, 2, 3, 4), base[1]],
            vec![(Event::Pick, 9, 2, 3, 4), base[1]],
            vec![(Event::Pick, 1, 9, 3, 4), base[1]],
            vec![(Event::Pick, 1, 2, 9, 4), base[1]],
            vec![(Event::Pick, 1, 2, 3, 9), base[1]],
        ];
        for other in others {
            assert_ne!(hash_of(&base), hash_of(&other), "{other:?}");
        }
        assert_eq!(hash_of(&base), hash_of(&base));
    }

    #[test]
    fn a_checkpoint_is_due_every_1024_events() {
        let mut trace = Trace::default();
        let due: Vec<u64> = (0..3 * CHECKPOINT)
            .filter_map(|n| trace.record(Event::Draw, NodeId::WORLD, 0, n, n).map(|checkpoint| checkpoint.events))
            .collect();
        assert_eq!(due, [CHECKPOINT, 2 * CHECKPOINT, 3 * CHECKPOINT]);
        assert_eq!(trace.last(usize::MAX).count(), 3 * CHECKPOINT as usize);
        assert_eq!(
            trace.last(2).map(|(index, words)| (index, words.what)).collect::<Vec<_>>(),
            [(3070, 3070), (3071, 3071)]
        );
    }
}
