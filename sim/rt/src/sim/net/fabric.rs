//! The wires between nodes: who may send to whom, how long it takes, what gets lost.
use super::config::{Bandwidth, Latency, Reordering};
use crate::sim::node::NodeId;

/// One direction between two nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// How many faults block it; overlapping faults heal one by one.
    blocks: u32,
    latency: Option<Latency>,
    loss_ppm: u32,
    duplicate_ppm: u32,
    reordering: Option<Reordering>,
    bandwidth: Option<Bandwidth>,
    /// When the last byte that waits for the bandwidth will have left.
    busy_until: u64,
}

impl Link {
    fn is_usual(&self) -> bool {
        self.blocks == 0
            && self.latency.is_none()
            && self.loss_ppm == 0
            && self.duplicate_ppm == 0
            && self.reordering.is_none()
            && self.bandwidth.is_none()
    }
}

/// What a packet meets at the entry of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// The link carries anything at once.
    None,
    /// It takes that many nanoseconds until the packet's last byte has left.
    Waits(u64),
    /// There is no room.
    Full,
}

/// One million: losses are in parts of it.
pub(super) const MILLION: u64 = 1_000_000;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The place of the usual link, which no fault has touched.
const USUAL: u32 = 0;

/// All links. While all are usual they cost one flag.
#[derive(Debug)]
pub(super) struct Fabric {
    usual: Latency,
    /// Loss of every link, added to its own.
    loss_ppm: u32,
    /// The usual link, and behind it each that a fault has touched since the last healing.
    links: Vec<Link>,
    /// Row `from`, column `to`: the place of that link. Small numbers, for a thousand nodes have a million links.
    places: Vec<u32>,
    /// Rows and columns; grown when a fault names a node.
    stride: usize,
    /// How many links differ from the usual one: counted, so that a fault of one link does not look at all others.
    unusual: usize,
    /// No link differs from the usual one.
    quiet: bool,
}

impl Fabric {
    pub(super) fn new(usual: Latency) -> Fabric {
        let links = vec![Link::default()];
        Fabric { usual, loss_ppm: 0, links, places: Vec::new(), stride: 0, unusual: 0, quiet: true }
    }

    /// Whether nothing differs from the usual: the fast path.
    #[inline]
    pub(super) fn quiet(&self) -> bool {
        self.quiet
    }

    #[inline]
    pub(super) fn blocked(&self, from: NodeId, to: NodeId) -> bool {
        !self.quiet && from != to && self.link(from, to).blocks > 0
    }

    /// Parts of a million that are lost on the way.
    #[inline]
    pub(super) fn loss_ppm(&self, from: NodeId, to: NodeId) -> u32 {
        if self.quiet || from == to { 0 } else { self.link(from, to).loss_ppm.saturating_add(self.loss_ppm) }
    }

    /// Whether something between the two may get lost, either way.
    pub(super) fn may_lose(&self, one: NodeId, other: NodeId) -> bool {
        let loses = |from, to| self.blocked(from, to) || self.loss_ppm(from, to) > 0;
        loses(one, other) || loses(other, one)
    }

    /// The latency of a link and whether a fault set it.
    #[inline]
    pub(super) fn latency(&self, from: NodeId, to: NodeId) -> (Latency, bool) {
        match self.quiet {
            true => (self.usual, false),
            false => self.link(from, to).latency.map_or((self.usual, false), |latency| (latency, true)),
        }
    }

    pub(super) fn set_usual(&mut self, latency: Latency) {
        self.usual = latency;
    }

    pub(super) fn block(&mut self, from: NodeId, to: NodeId) {
        self.change(from, to, |link| link.blocks += 1);
    }

    pub(super) fn unblock(&mut self, from: NodeId, to: NodeId) {
        self.change(from, to, |link| link.blocks = link.blocks.saturating_sub(1));
    }

    pub(super) fn set_latency(&mut self, from: NodeId, to: NodeId, latency: Option<Latency>) {
        self.change(from, to, |link| link.latency = latency);
    }

    pub(super) fn set_loss(&mut self, from: NodeId, to: NodeId, ppm: u32) {
        self.change(from, to, |link| link.loss_ppm = ppm);
    }

    pub(super) fn set_loss_everywhere(&mut self, ppm: u32) {
        self.loss_ppm = ppm;
        self.refresh();
    }

    pub(super) fn set_duplication(&mut self, from: NodeId, to: NodeId, ppm: u32) {
        self.change(from, to, |link| link.duplicate_ppm = ppm);
    }

    pub(super) fn set_reordering(&mut self, from: NodeId, to: NodeId, reordering: Option<Reordering>) {
        self.change(from, to, |link| link.reordering = reordering);
    }

    pub(super) fn set_bandwidth(&mut self, from: NodeId, to: NodeId, bandwidth: Option<Bandwidth>) {
        self.change(from, to, |link| link.bandwidth = bandwidth);
    }

    /// Parts of a million of the datagrams that travel twice.
    pub(super) fn duplicate_ppm(&self, from: NodeId, to: NodeId) -> u32 {
        if self.quiet || from == to { 0 } else { self.link(from, to).duplicate_ppm }
    }

    /// Which datagrams others may overtake; `None`: none.
    pub(super) fn reordering(&self, from: NodeId, to: NodeId) -> Option<Reordering> {
        if self.quiet || from == to { None } else { self.link(from, to).reordering }
    }

    /// Whether packets should be as small as on the wire: so that a loss or a narrow link takes a part of a transmission.
    #[inline]
    pub(super) fn counts_segments(&self, from: NodeId, to: NodeId) -> bool {
        if self.quiet || from == to {
            return false;
        }
        let link = self.link(from, to);
        link.bandwidth.is_some() || link.loss_ppm > 0 || self.loss_ppm > 0
    }

    /// Lets a packet of that length into the link.
    pub(super) fn queue(&mut self, from: NodeId, to: NodeId, length: usize, now: u64) -> Queue {
        let Some(bandwidth) = self.link(from, to).bandwidth else { return Queue::None };
        let link = self.link_mut(from, to);
        let rate = u128::from(bandwidth.bytes_per_second.max(1));
        let behind = u128::from(link.busy_until.saturating_sub(now));
        if behind * rate / NANOS_PER_SECOND > u128::from(bandwidth.queue_bytes) {
            return Queue::Full;
        }
        let takes = u64::try_from(length as u128 * NANOS_PER_SECOND / rate).unwrap_or(u64::MAX >> 1);
        link.busy_until = link.busy_until.max(now).saturating_add(takes);
        Queue::Waits(link.busy_until - now)
    }

    pub(super) fn heal(&mut self) {
        *self = Fabric::new(self.usual);
    }

    fn change(&mut self, from: NodeId, to: NodeId, change: impl FnOnce(&mut Link)) {
        let link = self.link_mut(from, to);
        let before = link.is_usual();
        change(link);
        match (before, link.is_usual()) {
            (true, false) => self.unusual += 1,
            (false, true) => self.unusual -= 1,
            _ => {}
        }
        self.refresh();
    }

    fn refresh(&mut self) {
        self.quiet = self.loss_ppm == 0 && self.unusual == 0;
    }

    fn link(&self, from: NodeId, to: NodeId) -> &Link {
        let (from, to) = (from.index(), to.index());
        let known = from < self.stride && to < self.stride;
        let place = if known { self.places[from * self.stride + to] } else { USUAL };
        &self.links[place as usize]
    }

    fn link_mut(&mut self, from: NodeId, to: NodeId) -> &mut Link {
        let (from, to) = (from.index(), to.index());
        self.grow_to(from.max(to) + 1);
        let place = &mut self.places[from * self.stride + to];
        if *place == USUAL {
            *place = u32::try_from(self.links.len()).expect("links are fewer than 2^32");
            self.links.push(Link::default());
        }
        &mut self.links[*place as usize]
    }

    /// In steps of a power of two: a fault of a node names all others one after the other.
    fn grow_to(&mut self, nodes: usize) {
        if nodes <= self.stride {
            return;
        }
        let stride = nodes.next_power_of_two();
        let mut places = vec![USUAL; stride * stride];
        for row in 0..self.stride {
            let old = &self.places[row * self.stride..][..self.stride];
            places[row * stride..][..self.stride].copy_from_slice(old);
        }
        (self.places, self.stride) = (places, stride);
    }
}

#[cfg(test)]
mod tests {
    use super::{Bandwidth, Fabric, Latency, NodeId, Queue};

    fn node(index: usize) -> NodeId {
        NodeId::new(index)
    }

    #[test]
    fn overlapping_blocks_heal_one_by_one() {
        let mut fabric = Fabric::new(Latency::uniform(1, 2));
        fabric.block(node(0), node(1));
        fabric.block(node(0), node(1));
        fabric.block(node(5), node(2));
        assert!(
            fabric.blocked(node(0), node(1)) && fabric.blocked(node(5), node(2)) && !fabric.blocked(node(1), node(0))
        );
        fabric.unblock(node(0), node(1));
        assert!(fabric.blocked(node(0), node(1)), "the other fault still holds it");
        fabric.unblock(node(0), node(1));
        fabric.unblock(node(5), node(2));
        assert!(fabric.quiet());
    }

    #[test]
    fn a_narrow_link_lets_bytes_wait_and_drops_those_beyond_its_queue() {
        let mut fabric = Fabric::new(Latency::uniform(1, 2));
        assert_eq!(fabric.queue(node(0), node(1), 1000, 0), Queue::None);
        fabric.set_bandwidth(node(0), node(1), Some(Bandwidth { bytes_per_second: 1000, queue_bytes: 1500 }));
        assert_eq!(fabric.queue(node(0), node(1), 1000, 0), Queue::Waits(1_000_000_000));
        assert_eq!(fabric.queue(node(0), node(1), 1000, 0), Queue::Waits(2_000_000_000));
        assert_eq!(fabric.queue(node(0), node(1), 1000, 0), Queue::Full);
        assert_eq!(fabric.queue(node(1), node(0), 1000, 0), Queue::None, "the other direction is as wide as ever");
        assert_eq!(fabric.queue(node(0), node(1), 500, 1_500_000_000), Queue::Waits(1_000_000_000));
        assert_eq!(fabric.queue(node(0), node(1), 1, 9_000_000_000), Queue::Waits(1_000_000));
    }

    #[test]
    fn growing_keeps_the_links() {
        let mut fabric = Fabric::new(Latency::uniform(1, 2));
        fabric.set_loss(node(1), node(0), 7);
        fabric.set_latency(node(9), node(3), Some(Latency::uniform(5, 6)));
        assert_eq!(fabric.loss_ppm(node(1), node(0)), 7);
        assert_eq!(fabric.loss_ppm(node(0), node(1)), 0);
        assert_eq!(fabric.latency(node(9), node(3)), (Latency::uniform(5, 6), true));
        fabric.heal();
        assert!(fabric.quiet());
        assert_eq!(fabric.loss_ppm(node(1), node(0)), 0);
    }

    #[test]
    fn a_fault_of_every_link_of_many_nodes_heals_link_by_link() {
        let mut fabric = Fabric::new(Latency::uniform(1, 2));
        for (from, to) in (0..300).flat_map(|from| (0..300).map(move |to| (node(from), node(to)))) {
            fabric.block(from, to);
        }
        for (from, to) in (0..300).flat_map(|from| (0..300).map(move |to| (node(from), node(to)))) {
            assert!(!fabric.quiet());
            fabric.unblock(from, to);
        }
        assert!(fabric.quiet());
    }
}
