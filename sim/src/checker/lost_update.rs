//! No update is lost: of two updates that took effect, none was made from what the other one replaced.
//!
//! An update reads a version of a value and puts its own in its place. If two that read the same version both take effect, the later one wrote
//! over the earlier one without having seen it (phenomenon P4 of Berenson et al. 1995; "lost update" in Kingsbury and Alvaro, Elle,
//! VLDB 2020). Versions are told apart by what was written, so each is written once.

use crate::verdict::EventId;

/// One read and the write that followed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update<K, V> {
    /// Which value.
    pub key: K,
    /// The version it was made from; none: the value was not there.
    pub read: Option<V>,
    /// The version it put there.
    pub wrote: V,
    /// Whether the client was told that it took effect. One of which that is unknown took effect if somebody saw its version.
    pub is_acknowledged: bool,
    /// The proof.
    pub event: EventId,
}

/// Two updates made from one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost<K, V> {
    /// Which value.
    pub key: K,
    /// The version that both were made from.
    pub read: Option<V>,
    /// What the two wrote, with their proofs, in the order of the history.
    pub wrote: [(V, EventId); 2],
}

/// Finds each version that two updates which took effect were made from; of more than two, the first two are told. Updates in the order of
/// the history; failed ones are left out.
pub fn check<K: Eq + Clone, V: Eq + Clone>(updates: &[Update<K, V>]) -> Vec<Lost<K, V>> {
    let was_seen = |update: &Update<K, V>| {
        updates.iter().any(|other| other.key == update.key && other.read.as_ref() == Some(&update.wrote))
    };
    let effective: Vec<_> = updates.iter().filter(|update| update.is_acknowledged || was_seen(update)).collect();
    let mut lost = Vec::new();
    for (place, first) in effective.iter().enumerate() {
        let same = |other: &&&Update<K, V>| other.key == first.key && other.read == first.read;
        if effective[..place].iter().any(|other| same(&other)) {
            continue;
        }
        if let Some(second) = effective[place + 1..].iter().find(same) {
            let wrote = [first, second].map(|update| (update.wrote.clone(), update.event));
            lost.push(Lost { key: first.key.clone(), read: first.read.clone(), wrote });
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::{Lost, Update, check};
    use crate::verdict::EventId;

    /// Updates of `x`: version read, version written, whether acknowledged.
    fn updates(of: &[(Option<u32>, u32, bool)]) -> Vec<Update<&'static str, u32>> {
        let update = |(index, (read, wrote, is_acknowledged)): (usize, &(Option<u32>, u32, bool))| Update {
            key: "x",
            read: *read,
            wrote: *wrote,
            is_acknowledged: *is_acknowledged,
            event: EventId(index),
        };
        of.iter().enumerate().map(update).collect()
    }

    #[test]
    fn a_chain_of_updates_loses_none() {
        assert!(check(&updates(&[(None, 1, true), (Some(1), 2, true), (Some(2), 3, true)])).is_empty());
        let mut two = updates(&[(None, 1, true), (None, 2, true)]);
        two[1].key = "y";
        assert!(check(&two).is_empty(), "values of two keys have nothing to do with each other");
    }

    /// Berenson et al., history H4: both read 100, one writes 130 and the other 120.
    #[test]
    fn two_updates_of_one_version_are_told() {
        let found = check(&updates(&[(None, 100, true), (Some(100), 120, true), (Some(100), 130, true)]));
        let wrote = [(120, EventId(1)), (130, EventId(2))];
        assert_eq!(found, [Lost { key: "x", read: Some(100), wrote }]);
    }

    #[test]
    fn an_unknown_update_counts_if_its_version_was_seen() {
        let unknown = [(Some(1), 2, false), (Some(1), 3, true)];
        assert!(check(&updates(&unknown)).is_empty(), "it may never have taken effect");
        let seen = [(Some(1), 2, false), (Some(1), 3, true), (Some(2), 4, true)];
        assert_eq!(check(&updates(&seen)).len(), 1);
    }
}
