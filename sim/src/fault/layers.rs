//! Settings that several faults lay over one thing at one time.

use std::collections::BTreeMap;

/// For each target the settings that are on, in the order of their beginnings. The last one counts; when it is over, the one below
/// it counts again.
#[derive(Debug)]
pub(super) struct Layers<K, V> {
    begun: u64,
    on: BTreeMap<K, BTreeMap<Layer, V>>,
}

/// One setting, until it is lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Layer(u64);

impl<K, V> Default for Layers<K, V> {
    fn default() -> Layers<K, V> {
        Layers { begun: 0, on: BTreeMap::new() }
    }
}

impl<K: Ord, V: Copy> Layers<K, V> {
    /// Lays a setting over those of the target; it counts from now on.
    pub(super) fn lay(&mut self, target: K, setting: V) -> Layer {
        self.begun += 1;
        let layer = Layer(self.begun);
        self.on.entry(target).or_default().insert(layer, setting);
        layer
    }

    /// What counts for the target; none where no fault has a say.
    pub(super) fn top(&self, target: &K) -> Option<V> {
        self.on.get(target).and_then(|on| on.values().next_back().copied())
    }

    /// Takes a setting away; what counts now, or none where no fault is left.
    pub(super) fn lift(&mut self, target: K, layer: Layer) -> Option<V> {
        let on = self.on.get_mut(&target).expect("a layer is laid before it is lifted");
        let lifted = on.remove(&layer);
        assert!(lifted.is_some(), "a layer is lifted once");
        if on.is_empty() {
            self.on.remove(&target);
        }
        self.top(&target)
    }
}

#[cfg(test)]
mod tests {
    use super::Layers;

    #[test]
    fn the_last_setting_that_is_still_on_counts() {
        let mut layers = Layers::default();
        let below = layers.lay("a", 1);
        let between = layers.lay("a", 2);
        let above = layers.lay("a", 1);
        let other = layers.lay("b", 9);
        assert_eq!(layers.lift("a", below), Some(1), "the same setting by a later fault stays");
        assert_eq!(layers.lift("a", above), Some(2));
        assert_eq!(layers.lift("a", between), None);
        assert_eq!(layers.lift("b", other), None);
        assert!(layers.on.is_empty());
    }
}
