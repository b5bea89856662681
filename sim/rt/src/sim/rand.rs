//! Entropy: named streams, each a counter through a mixer, so a stream is eight bytes and a seed away from any place.
use super::node::NodeId;
use super::trace::{Event, fold};
use super::world::world;

/// A stream of random words. Its draws are not recorded: for the world's own decisions, whose effects are.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The world's stream of that name.
    pub(crate) fn new(seed: u64, name: &str) -> Rng {
        Rng(name.bytes().fold(fold(seed, 0x5EED), |hash, byte| fold(hash, u64::from(byte))))
    }

    /// The `opening`-th stream of that name on `node`.
    pub(crate) fn for_node(seed: u64, node: NodeId, name: &str, opening: u32) -> Rng {
        let Rng(hash) = Rng::new(seed, name);
        Rng(fold(fold(hash, node.index() as u64 + 1), u64::from(opening)))
    }

    /// The next word.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xA076_1D64_78BD_642F);
        fold(self.0, 0xE703_7ED1_A0B4_28DB)
    }

    /// Uniform in `0..n`.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing is below 0");
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// True with that probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    /// Fills `out`.
    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// A stream that the program under test draws from: seeded by (world seed, node, name, n-th opening), each draw in the trace.
#[derive(Debug)]
pub struct Source {
    rng: Rng,
    /// Place in the world's list of opened streams, which the trace names it by.
    index: u32,
}

impl Source {
    pub(super) fn new(rng: Rng, index: u32) -> Source {
        Source { rng, index }
    }

    /// The next word.
    pub fn next(&mut self) -> u64 {
        let value = self.rng.next();
        world().record_as(Event::Draw, self.index, value);
        value
    }
}

/// Opens the current node's stream of that name.
pub fn source(name: &'static str) -> Source {
    world().source(name)
}

#[cfg(test)]
mod tests {
    use super::Rng;
    use crate::sim::node::NodeId;

    #[test]
    fn streams_are_kept_apart_by_seed_node_name_and_opening() {
        let first = |seed, node, name, opening| Rng::for_node(seed, NodeId::new(node), name, opening).next();
        let all =
            [first(1, 0, "a", 0), first(2, 0, "a", 0), first(1, 1, "a", 0), first(1, 0, "b", 0), first(1, 0, "a", 1)];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "two of {all:?} are equal");
        }
        assert_eq!(first(1, 0, "a", 0), all[0]);
    }

    #[test]
    fn below_is_uniform_enough() {
        let mut rng = Rng::new(7, "uniform");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn chance_keeps_its_ends() {
        let mut rng = Rng::new(7, "ends");
        assert!((0..1000).all(|_| !rng.chance(0.0)));
        assert!((0..1000).all(|_| rng.chance(1.0)));
    }
}
