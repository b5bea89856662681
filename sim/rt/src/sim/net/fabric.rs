//! The wires between nodes: who may send to whom, how long it takes, what gets lost.
use super::config::Latency;
use crate::sim::node::NodeId;

/// One direction between two nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// How many faults block it; overlapping faults heal one by one.
    blocks: u32,
    latency: Option<Latency>,
    loss_ppm: u32,
}

/// One million: losses are in parts of it.
pub(super) const MILLION: u64 = 1_000_000;

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

    pub(super) fn heal(&mut self) {
        self.links.clear();
        self.stride = 0;
        self.loss_ppm = 0;
        self.quiet = true;
    }

    fn refresh(&mut self) {
        let usual = |link: &Link| link.blocks == 0 && link.latency.is_none() && link.loss_ppm == 0;
        self.quiet = self.loss_ppm == 0 && self.links.iter().all(usual);
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
    use super::{Fabric, Latency, NodeId};

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
