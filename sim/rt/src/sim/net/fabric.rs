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

/// All links. The links that no fault touched cost one flag.
#[derive(Debug)]
pub(super) struct Fabric {
    usual: Latency,
    /// Loss of every link, added to its own.
    loss_ppm: u32,
    /// Row `from`, column `to`; grown when a fault names a node.
    links: Vec<Link>,
    stride: usize,
    /// No link differs from the usual one.
    quiet: bool,
}

impl Fabric {
    pub(super) fn new(usual: Latency) -> Fabric {
        Fabric { usual, loss_ppm: 0, links: Vec::new(), stride: 0, quiet: true }
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
        self.link_mut(from, to).blocks += 1;
        self.quiet = false;
    }

    pub(super) fn unblock(&mut self, from: NodeId, to: NodeId) {
        let link = self.link_mut(from, to);
        link.blocks = link.blocks.saturating_sub(1);
        self.refresh();
    }

    pub(super) fn set_latency(&mut self, from: NodeId, to: NodeId, latency: Option<Latency>) {
        self.link_mut(from, to).latency = latency;
        self.refresh();
    }

    pub(super) fn set_loss(&mut self, from: NodeId, to: NodeId, ppm: u32) {
        self.link_mut(from, to).loss_ppm = ppm;
        self.refresh();
    }

    pub(super) fn set_loss_everywhere(&mut self, ppm: u32) {
        self.loss_ppm = ppm;
        self.refresh();
    }

    pub(super) fn set_duplication(&mut self, from: NodeId, to: NodeId, ppm: u32) {
        self.link_mut(from, to).duplicate_ppm = ppm;
        self.refresh();
    }

    pub(super) fn set_reordering(&mut self, from: NodeId, to: NodeId, reordering: Option<Reordering>) {
        self.link_mut(from, to).reordering = reordering;
        self.refresh();
    }

    pub(super) fn set_bandwidth(&mut self, from: NodeId, to: NodeId, bandwidth: Option<Bandwidth>) {
        self.link_mut(from, to).bandwidth = bandwidth;
        self.refresh();
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
        self.links.clear();
        self.stride = 0;
        self.loss_ppm = 0;
        self.quiet = true;
    }

    fn refresh(&mut self) {
        self.quiet = self.loss_ppm == 0 && self.links.iter().all(Link::is_usual);
    }

    fn link(&self, from: NodeId, to: NodeId) -> Link {
        let (from, to) = (from.index(), to.index());
        if from < self.stride && to < self.stride { self.links[from * self.stride + to] } else { Link::default() }
    }

    fn link_mut(&mut self, from: NodeId, to: NodeId) -> &mut Link {
        let (from, to) = (from.index(), to.index());
        let need = from.max(to) + 1;
        if need > self.stride {
            let mut links = vec![Link::default(); need * need];
            for (at, link) in self.links.iter().enumerate() {
                links[at / self.stride * need + at % self.stride] = *link;
            }
            (self.links, self.stride) = (links, need);
        }
        &mut self.links[from * self.stride + to]
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
    }
}
