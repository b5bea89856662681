//! The names of one directory: what programs see, what the platter holds, and the changes between them.
//!
//! # Crash states
//! Changes of one directory reach the platter in their order: after a power loss a prefix of them is there, drawn per directory.
//! A rename is one change: the old name or the new one, never both or none; across two directories it holds both to it. What
//! [`commit`](Directory::commit) covered is always there.
use std::collections::{BTreeMap, VecDeque};

/// A file or directory of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(pub(super) u32);

/// One change of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A name now means this, whatever it meant before.
    Link { name: String, inode: InodeId },
    /// A name is gone.
    Unlink { name: String },
    /// Within the directory.
    Rename { from: String, to: String, inode: InodeId },
    /// The first half of a rename to another directory.
    MoveOut { name: String, to: InodeId },
    /// The second half of it.
    MoveIn { name: String, inode: InodeId, from: InodeId },
}

impl Change {
    /// The directory that must keep or lose the other half of it.
    fn partner(&self) -> Option<InodeId> {
        match self {
            Change::MoveOut { to, .. } => Some(*to),
            Change::MoveIn { from, .. } => Some(*from),
            Change::Link { .. } | Change::Unlink { .. } | Change::Rename { .. } => None,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, InodeId>) {
        match self {
            Change::Link { name, inode } | Change::MoveIn { name, inode, .. } => {
                names.insert(name.clone(), *inode);
            }
            Change::Unlink { name } | Change::MoveOut { name, .. } => {
                names.remove(name);
            }
            Change::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }

    fn inode(&self) -> Option<InodeId> {
        match self {
            Change::Link { inode, .. } | Change::Rename { inode, .. } | Change::MoveIn { inode, .. } => Some(*inode),
            Change::Unlink { .. } | Change::MoveOut { .. } => None,
        }
    }
}

/// One directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    names: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
    /// Changes since the last sync, with their place in the order of the disk; both halves of a move have the same.
    journal: VecDeque<(u64, Change)>,
}

impl Directory {
    pub(super) fn get(&self, name: &str) -> Option<InodeId> {
        self.names.get(name).copied()
    }

    /// In order of the names.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, InodeId)> {
        self.names.iter().map(|(name, inode)| (name.as_str(), *inode))
    }

    pub(super) fn durable_names(&self) -> impl Iterator<Item = (&str, InodeId)> {
        self.durable.iter().map(|(name, inode)| (name.as_str(), *inode))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn change(&mut self, sequence: u64, change: Change) {
        assert!(self.journal.back().is_none_or(|(last, _)| *last <= sequence));
        change.apply(&mut self.names);
        self.journal.push_back((sequence, change));
    }

    /// The last change so far: what a sync that begins now covers.
    pub(super) fn last_change(&self) -> Option<u64> {
        self.journal.back().map(|(sequence, _)| *sequence)
    }

    /// Other directories that must be durable up to the same change if this one is up to `through`.
    pub(super) fn partners(&self, through: u64) -> Vec<(InodeId, u64)> {
        let covered = self.journal.iter().take_while(|(sequence, _)| *sequence <= through);
        covered.filter_map(|(sequence, change)| Some((change.partner()?, *sequence))).collect()
    }

    /// Makes the changes up to `through` durable; true if a name was lost or replaced by them.
    pub(super) fn commit(&mut self, through: u64) -> bool {
        let before = self.durable.len();
        let mut applied = 0;
        while self.journal.front().is_some_and(|(sequence, _)| *sequence <= through) {
            let (_, change) = self.journal.pop_front().expect("it was just seen");
            change.apply(&mut self.durable);
            applied += 1;
        }
        self.durable.len() < before + applied
    }

    pub(super) fn pending(&self) -> usize {
        self.journal.len()
    }

    /// Whether the first `kept` changes contain the one numbered `sequence`.
    pub(super) fn keeps(&self, kept: usize, sequence: u64) -> bool {
        self.journal.iter().take(kept).any(|(at, _)| *at == sequence)
    }

    /// The first of the first `kept` changes whose other half is lost, by `keeps_other`.
    pub(super) fn first_torn(&self, kept: usize, keeps_other: impl Fn(InodeId, u64) -> bool) -> Option<usize> {
        let torn = |(sequence, change): &(u64, Change)| {
            change.partner().is_some_and(|partner| !keeps_other(partner, *sequence))
        };
        self.journal.iter().take(kept).position(torn)
    }

    /// The power goes: the first `kept` changes are on the platter, and the platter is what there is.
    pub(super) fn power_loss(&mut self, kept: usize) {
        for (_, change) in self.journal.drain(..).take(kept) {
            change.apply(&mut self.durable);
        }
        self.names = self.durable.clone();
    }

    /// Makes the present state durable, for files that the experimenter plants.
    pub(super) fn plant(&mut self, name: &str, inode: InodeId) {
        self.names.insert(name.to_owned(), inode);
        self.durable.insert(name.to_owned(), inode);
    }

    /// Everything that a name means, meant on the platter, or may mean again.
    pub(super) fn references(&self) -> impl Iterator<Item = InodeId> {
        let journal = self.journal.iter().filter_map(|(_, change)| change.inode());
        self.names.values().copied().chain(self.durable.values().copied()).chain(journal)
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Directory, InodeId};

    fn link(name: &str, inode: u32) -> Change {
        Change::Link { name: name.into(), inode: InodeId(inode) }
    }

    fn names(directory: &Directory) -> Vec<(String, u32)> {
        directory.names().map(|(name, inode)| (name.to_owned(), inode.0)).collect()
    }

    #[test]
    fn a_prefix_survives() {
        for (kept, expected) in
            [(0, vec![]), (1, vec![("a.tmp".to_owned(), 1)]), (2, vec![("a".to_owned(), 1)]), (3, vec![])]
        {
            let mut directory = Directory::default();
            directory.change(1, link("a.tmp", 1));
            directory.change(2, Change::Rename { from: "a.tmp".into(), to: "a".into(), inode: InodeId(1) });
            directory.change(3, Change::Unlink { name: "a".into() });
            directory.power_loss(kept);
            assert_eq!(names(&directory), expected);
        }
    }

    #[test]
    fn a_commit_covers_what_came_before_it_only() {
        let mut directory = Directory::default();
        directory.change(1, link("a", 1));
        let through = directory.last_change().expect("one change");
        directory.change(2, link("b", 2));
        assert!(!directory.commit(through));
        directory.power_loss(0);
        assert_eq!(names(&directory), [("a".to_owned(), 1)]);
    }
}
