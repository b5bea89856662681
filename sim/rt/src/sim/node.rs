//! One machine of the world.
use super::clock::Clock;
use super::control::WorldConfig;
use super::crash::{CrashCounter, CrashKind};
use super::fs;
use super::rand::Rng;
use super::timer::TimerHeap;
use super::world::NEVER;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::Waker;

/// The hosts of a network with a mask of 24 bits, without its first and its last address.
pub(super) const NODES_PER_SUBNET: usize = 254;

/// A machine of the world, by the order of [`add_node`](crate::world::add_node).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u16);

impl NodeId {
    /// The node on which `main` runs: the experimenter's desk, which has no faults.
    pub const WORLD: NodeId = NodeId(0);

    pub(super) fn new(index: usize) -> NodeId {
        NodeId(u16::try_from(index).expect("nodes are fewer than 2^16"))
    }

    /// Its place in the order in which nodes were added; [`NodeId::WORLD`] is 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its address: 10.0.0.(index + 1), and after 10.0.0.254 comes 10.0.1.1.
    pub fn ip(self) -> IpAddr {
        let (subnet, host) = (self.index() / NODES_PER_SUBNET, self.index() % NODES_PER_SUBNET);
        let subnet = u8::try_from(subnet).expect("a world has fewer than 256 subnets");
        let host = u8::try_from(host + 1).expect("a subnet has 254 hosts");
        IpAddr::V4(Ipv4Addr::new(10, 0, subnet, host))
    }

    /// The index of the node with that address, whether or not there is such a node.
    pub(super) fn index_of(ip: Ipv4Addr) -> Option<usize> {
        let [10, 0, subnet, host @ 1..=254] = ip.octets() else { return None };
        Some(usize::from(subnet) * NODES_PER_SUBNET + usize::from(host) - 1)
    }
}

/// What a node is and has.
pub(crate) struct Node {
    pub id: NodeId,
    pub name: Arc<str>,
    pub clock: Cell<Clock>,
    /// Keyed by the node's local time.
    pub timers: RefCell<TimerHeap>,
    pub disk: RefCell<fs::Disk>,
    /// Whether its kernel answers: false from a power loss until the node is started again, and while it is being ended.
    pub up: Cell<bool>,
    /// Grows by one each time the node is ended. Handles remember theirs: see [`serves`](Self::serves).
    pub incarnation: Cell<u32>,
    /// Set when a crash point was reached by the node's own code: from then on that incarnation has no effect, and the node is
    /// ended as soon as the present poll returns.
    pub doomed: Cell<Option<CrashKind>>,
    /// Its futures are being dropped.
    pub(super) dying: Cell<bool>,
    pub(super) paused: Cell<bool>,
    /// Ready tasks that wait for the end of a pause or for the processor.
    pub(super) parked: RefCell<Vec<u32>>,
    /// What a poll costs, in nanoseconds of world time; 0 is a processor of endless speed.
    pub(super) poll_cost: Cell<u64>,
    pub(super) busy_until: Cell<u64>,
    /// The end of the busy time is scheduled.
    pub(super) processor_awaited: Cell<bool>,
    pub(super) disk_operations: CrashCounter,
    pub(super) packets: CrashCounter,
    pub(super) stop_requested: Cell<bool>,
    pub(super) stop_waiters: RefCell<Vec<Waker>>,
    /// How often each stream name was opened, over all incarnations: a restarted program draws other numbers.
    openings: RefCell<BTreeMap<String, u32>>,
    /// Answers the `getrandom` system calls of dependencies.
    pub(super) entropy: RefCell<Rng>,
}

impl Node {
    pub(super) fn new(id: NodeId, name: &str, config: &WorldConfig) -> Node {
        Node {
            id,
            name: name.into(),
            clock: Cell::new(Clock::starting_at(config.start_unix_ms)),
            timers: RefCell::default(),
            disk: RefCell::new(fs::Disk::new(config.seed, id, config.disk.clone())),
            up: Cell::new(true),
            incarnation: Cell::new(0),
            doomed: Cell::new(None),
            dying: Cell::new(false),
            paused: Cell::new(false),
            parked: RefCell::default(),
            poll_cost: Cell::new(0),
            busy_until: Cell::new(0),
            processor_awaited: Cell::new(false),
            disk_operations: CrashCounter::default(),
            packets: CrashCounter::default(),
            stop_requested: Cell::new(false),
            stop_waiters: RefCell::default(),
            openings: RefCell::default(),
            entropy: RefCell::new(Rng::for_node(config.seed, id, "getrandom", 0)),
        }
    }

    /// Whether a handle made by `incarnation` still has an effect. Network and disk ask it before every operation: what a dying or
    /// dead incarnation does is void.
    #[inline]
    pub(crate) fn serves(&self, incarnation: u32) -> bool {
        self.up.get() && self.incarnation.get() == incarnation && self.doomed.get().is_none()
    }

    /// World time of the next timer; [`NEVER`] while paused.
    pub(super) fn next_timer(&self) -> u64 {
        if self.paused.get() {
            return NEVER;
        }
        self.timers.borrow().next_deadline().map_or(NEVER, |deadline| self.clock.get().world(deadline))
    }

    pub(super) fn count_opening(&self, name: &str) -> u32 {
        let mut openings = self.openings.borrow_mut();
        match openings.get_mut(name) {
            Some(count) => {
                *count += 1;
                *count - 1
            }
            None => {
                openings.insert(name.to_owned(), 1);
                0
            }
        }
    }
}
