//! When each node's next timer fires, in world time, and which node is first.
//!
//! A step asks for the first of all nodes far more often than one of them changes. So the least of each block is kept: a world of
//! few nodes reads one word, a world of a thousand reads 32.
use super::node::NodeId;
use super::table::Table;
use super::world::NEVER;
use std::cell::Cell;
use std::ops::Range;

/// Nodes of a block: about the root of a thousand, so that a scan of blocks and one of a block cost the same there.
const BLOCK: usize = 32;

/// The next timers of all nodes.
#[derive(Debug)]
pub(super) struct Due {
    of_node: Table<Cell<u64>>,
    /// Nodes from here on have never had a timer.
    nodes: Cell<usize>,
    of_block: Vec<Cell<u64>>,
}

impl Due {
    /// For that many nodes, none of which has a timer.
    pub(super) fn new(nodes_max: usize) -> Due {
        let of_node = Table::new(nodes_max, || Cell::new(NEVER));
        Due { of_node, nodes: Cell::new(0), of_block: vec![Cell::new(NEVER); nodes_max.div_ceil(BLOCK)] }
    }

    /// Sets when the node's next timer fires; [`NEVER`]: it has none.
    #[inline]
    pub(super) fn set(&self, node: NodeId, at: u64) {
        let index = self.index(node);
        let before = self.of_node.at(index).replace(at);
        let block = &self.of_block[index / BLOCK];
        if at <= block.get() {
            block.set(at);
        } else if before == block.get() {
            block.set(self.least(index / BLOCK));
        }
    }

    /// As [`set`](Self::set), if it comes sooner than what was known.
    #[inline]
    pub(super) fn set_sooner(&self, node: NodeId, at: u64) {
        let index = self.index(node);
        let due = self.of_node.at(index);
        if at < due.get() {
            due.set(at);
            let block = &self.of_block[index / BLOCK];
            block.set(block.get().min(at));
        }
    }

    /// When the first timer of the first `nodes` nodes fires: all others have none.
    #[inline]
    pub(super) fn first(&self, nodes: usize) -> u64 {
        self.of_block[..nodes.div_ceil(BLOCK)].iter().map(Cell::get).min().unwrap_or(NEVER)
    }

    /// Calls `fire` with each of the first `nodes` nodes that has a timer due by `now`, in their order.
    pub(super) fn each_due(&self, nodes: usize, now: u64, mut fire: impl FnMut(NodeId)) {
        for block in (0..nodes.div_ceil(BLOCK)).filter(|block| self.of_block[*block].get() <= now) {
            for index in nodes_of(block).take_while(|index| *index < nodes) {
                if self.of_node.at(index).get() <= now {
                    fire(NodeId::new(index));
                }
            }
        }
    }

    #[inline]
    fn index(&self, node: NodeId) -> usize {
        let index = node.index();
        self.nodes.set(self.nodes.get().max(index + 1));
        index
    }

    fn least(&self, block: usize) -> u64 {
        let nodes = nodes_of(block).take_while(|index| *index < self.nodes.get());
        nodes.map(|index| self.of_node.at(index).get()).min().unwrap_or(NEVER)
    }
}

fn nodes_of(block: usize) -> Range<usize> {
    block * BLOCK..(block + 1) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Due, NEVER, NodeId};
    use proptest::prelude::{any, proptest};

    const NODES: usize = 3 * BLOCK - 5;

    proptest! {
        #[test]
        fn is_the_least_of_a_plain_list(steps in proptest::collection::vec((0..NODES, 0u64..20, any::<bool>()), 0..200)) {
            let due = Due::new(NODES);
            let mut list = [NEVER; NODES];
            for (index, at, sooner) in steps {
                // Some have no timer any more.
                let at = if at == 0 && !sooner { NEVER } else { at };
                if sooner {
                    due.set_sooner(NodeId::new(index), at);
                    list[index] = list[index].min(at);
                } else {
                    due.set(NodeId::new(index), at);
                    list[index] = at;
                }
                assert_eq!(due.first(NODES), *list.iter().min().unwrap());
                let mut fired = Vec::new();
                due.each_due(NODES, 7, |node| fired.push(node.index()));
                assert_eq!(fired, (0..NODES).filter(|index| list[*index] <= 7).collect::<Vec<_>>());
            }
        }
    }
}
