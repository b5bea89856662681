//! Files and directories by path, with the errors of Linux.
use super::directory::{Change, Directory, InodeId};
use super::image::Image;
use crate::sim::rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

pub(super) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// A file or a directory.
#[derive(Debug)]
pub(super) enum Inode {
    File(Box<FileInode>),
    Directory(Directory),
}

#[derive(Debug, Default)]
pub(super) struct FileInode {
    pub(super) image: Image,
    /// The open file that holds the lock.
    pub(super) locked_by: Option<u64>,
}

/// What a power loss took from a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreeLost {
    pub(super) sectors: u64,
    pub(super) sectors_kept: u64,
    pub(super) lengths: u64,
    pub(super) names: u64,
}

/// One file system.
#[derive(Debug)]
pub(super) struct Tree {
    inodes: BTreeMap<InodeId, Inode>,
    next_inode: u32,
    next_change: u64,
    /// Open files per inode: an unlinked file lives until the last is closed.
    open: BTreeMap<InodeId, u32>,
}

pub(super) const ROOT: InodeId = InodeId(0);

/// The components of an absolute path; a relative one starts at the root, `..` is resolved by name.
pub(super) fn components(path: &Path) -> io::Result<Vec<String>> {
    if path.as_os_str().is_empty() {
        return Err(errno(libc::ENOENT));
    }
    let mut parts: Vec<String> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                let name = name.to_str().ok_or_else(|| errno(libc::EILSEQ))?;
                if name.len() > 255 {
                    return Err(errno(libc::ENAMETOOLONG));
                }
                parts.push(name.to_owned());
            }
            Component::ParentDir => {
                parts.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(parts)
}

impl Tree {
    pub(super) fn new() -> Tree {
        let inodes = BTreeMap::from([(ROOT, Inode::Directory(Directory::default()))]);
        Tree { inodes, next_inode: 1, next_change: 1, open: BTreeMap::new() }
    }

    pub(super) fn file(&mut self, id: InodeId) -> io::Result<&mut FileInode> {
        match self.inodes.get_mut(&id) {
            Some(Inode::File(file)) => Ok(file),
            _ => Err(errno(libc::EISDIR)),
        }
    }

    pub(super) fn directory(&mut self, id: InodeId) -> io::Result<&mut Directory> {
        match self.inodes.get_mut(&id) {
            Some(Inode::Directory(directory)) => Ok(directory),
            _ => Err(errno(libc::ENOTDIR)),
        }
    }

    pub(super) fn is_directory(&self, id: InodeId) -> bool {
        matches!(self.inodes.get(&id), Some(Inode::Directory(_)))
    }

    fn insert(&mut self, inode: Inode) -> InodeId {
        let id = InodeId(self.next_inode);
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        id
    }

    fn change(&mut self, directory: InodeId, change: Change) {
        let sequence = self.next_change;
        self.next_change += 1;
        self.directory(directory).expect("it was resolved as a directory").change(sequence, change);
    }

    /// What the path names.
    pub(super) fn resolve(&mut self, path: &Path) -> io::Result<InodeId> {
        let parts = components(path)?;
        self.walk(&parts)
    }

    fn walk(&mut self, parts: &[String]) -> io::Result<InodeId> {
        let mut at = ROOT;
        for name in parts {
            at = self.directory(at)?.get(name).ok_or_else(|| errno(libc::ENOENT))?;
        }
        Ok(at)
    }

    /// The directory that holds the path's last name, and that name.
    fn parent(&mut self, path: &Path) -> io::Result<(InodeId, String)> {
        let mut parts = components(path)?;
        let name = parts.pop().ok_or_else(|| errno(libc::EBUSY))?;
        let parent = self.walk(&parts)?;
        self.directory(parent)?;
        Ok((parent, name))
    }

    /// The file that `path` names, created if it is missing.
    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeId> {
        let (parent, name) = self.parent(path)?;
        if let Some(present) = self.directory(parent)?.get(&name) {
            return Ok(present);
        }
        let inode = self.insert(Inode::File(Box::default()));
        self.change(parent, Change::Link { name, inode });
        Ok(inode)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        if components(path)?.is_empty() {
            return Err(errno(libc::EEXIST));
        }
        let (parent, name) = self.parent(path)?;
        if self.directory(parent)?.get(&name).is_some() {
            return Err(errno(libc::EEXIST));
        }
        let inode = self.insert(Inode::Directory(Directory::default()));
        self.change(parent, Change::Link { name, inode });
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        if components(path)?.is_empty() {
            return Err(errno(libc::EISDIR));
        }
        let (parent, name) = self.parent(path)?;
        let inode = self.directory(parent)?.get(&name).ok_or_else(|| errno(libc::ENOENT))?;
        if self.is_directory(inode) {
            return Err(errno(libc::EISDIR));
        }
        self.change(parent, Change::Unlink { name });
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let inode = self.directory(parent)?.get(&name).ok_or_else(|| errno(libc::ENOENT))?;
        if !self.directory(inode)?.is_empty() {
            return Err(errno(libc::ENOTEMPTY));
        }
        self.change(parent, Change::Unlink { name });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (source, from_name) = self.parent(from)?;
        let inode = self.directory(source)?.get(&from_name).ok_or_else(|| errno(libc::ENOENT))?;
        let (target, to_name) = self.parent(to)?;
        if self.is_directory(inode)
            && components(to)?.starts_with(&components(from)?)
            && components(to)? != components(from)?
        {
            return Err(errno(libc::EINVAL));
        }
        if let Some(replaced) = self.directory(target)?.get(&to_name) {
            if replaced == inode {
                return Ok(());
            }
            match (self.is_directory(inode), self.is_directory(replaced)) {
                (false, true) => return Err(errno(libc::EISDIR)),
                (true, false) => return Err(errno(libc::ENOTDIR)),
                (true, true) if !self.directory(replaced)?.is_empty() => return Err(errno(libc::ENOTEMPTY)),
                _ => {}
            }
        }
        if source == target {
            self.change(source, Change::Rename { from: from_name, to: to_name, inode });
        } else {
            let sequence = self.next_change;
            self.next_change += 1;
            self.directory(source)?.change(sequence, Change::MoveOut { name: from_name, to: target });
            self.directory(target)?.change(sequence, Change::MoveIn { name: to_name, inode, from: source });
        }
        Ok(())
    }

    /// Makes the names of a directory durable up to a change of it, and what hangs together with them. Says how many pages that freed.
    pub(super) fn commit(&mut self, directory: InodeId, through: u64) -> u64 {
        let mut wanted = BTreeMap::from([(directory, through)]);
        let mut open = vec![(directory, through)];
        while let Some((id, through)) = open.pop() {
            let Ok(directory) = self.directory(id) else { continue };
            for (partner, at) in directory.partners(through) {
                if wanted.get(&partner).is_none_or(|present| *present < at) {
                    wanted.insert(partner, at);
                    open.push((partner, at));
                }
            }
        }
        let mut freed_names = false;
        for (id, through) in wanted {
            if let Ok(directory) = self.directory(id) {
                freed_names |= directory.commit(through);
            }
        }
        if freed_names { self.sweep() } else { 0 }
    }

    pub(super) fn opened(&mut self, id: InodeId) {
        *self.open.entry(id).or_default() += 1;
    }

    /// How many files are open.
    pub(super) fn open_files(&self) -> u64 {
        self.open.values().map(|count| u64::from(*count)).sum()
    }

    /// A directory and everything that is named below it; nothing if there is no such directory.
    pub(super) fn below(&mut self, parts: &[String]) -> BTreeSet<InodeId> {
        let mut all = BTreeSet::new();
        let mut open: Vec<InodeId> = self.walk(parts).into_iter().collect();
        while let Some(id) = open.pop() {
            if all.insert(id)
                && let Ok(directory) = self.directory(id)
            {
                open.extend(directory.names().map(|(_, inode)| inode));
            }
        }
        all
    }

    /// Full paths of all files, sorted.
    pub(super) fn files(&mut self) -> Vec<PathBuf> {
        let (mut files, mut open) = (Vec::new(), vec![(PathBuf::from("/"), ROOT)]);
        while let Some((path, id)) = open.pop() {
            match self.directory(id) {
                Ok(directory) => open.extend(directory.names().map(|(name, inode)| (path.join(name), inode))),
                Err(_) => files.push(path),
            }
        }
        files.sort();
        files
    }

    /// Lets every unreadable sector be read again.
    pub(super) fn restore_sectors(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Inode::File(file) = inode {
                file.image.restore_sectors(&(0..u64::MAX));
            }
        }
    }

    /// An open file is closed; says how many pages that freed.
    pub(super) fn closed(&mut self, id: InodeId, handle: u64) -> u64 {
        if let Ok(file) = self.file(id)
            && file.locked_by == Some(handle)
        {
            file.locked_by = None;
        }
        match self.open.get_mut(&id) {
            Some(count) if *count > 1 => {
                *count -= 1;
                0
            }
            _ => {
                self.open.remove(&id);
                if self.references().contains(&id) { 0 } else { self.free(id) }
            }
        }
    }

    /// The process is gone: its open files and locks with it.
    pub(super) fn close_all(&mut self) -> u64 {
        self.open.clear();
        for inode in self.inodes.values_mut() {
            if let Inode::File(file) = inode {
                file.locked_by = None;
            }
        }
        self.sweep()
    }

    fn references(&self) -> BTreeSet<InodeId> {
        let directories = self.inodes.values().filter_map(|inode| match inode {
            Inode::Directory(directory) => Some(directory),
            Inode::File(_) => None,
        });
        let mut all: BTreeSet<InodeId> = directories.flat_map(Directory::references).collect();
        all.insert(ROOT);
        all
    }

    /// Frees what no name and no open file refers to any more.
    fn sweep(&mut self) -> u64 {
        let mut freed = 0;
        loop {
            let references = self.references();
            let dead = |id: &&InodeId| !references.contains(id) && !self.open.contains_key(id);
            let dead: Vec<InodeId> = self.inodes.keys().filter(dead).copied().collect();
            if dead.is_empty() {
                return freed;
            }
            // A dead directory may have been the last to refer to others.
            for id in dead {
                freed += self.free(id);
            }
        }
    }

    fn free(&mut self, id: InodeId) -> u64 {
        match self.inodes.remove(&id) {
            Some(Inode::File(file)) => file.image.pages(),
            _ => 0,
        }
    }

    /// The power goes: see [`Directory`] and [`Image`] for the permitted states.
    pub(super) fn power_loss(&mut self, rng: &mut Rng) -> TreeLost {
        let mut lost = TreeLost::default();
        self.open.clear();
        let kept = self.draw_kept(rng);
        for (id, inode) in &mut self.inodes {
            match inode {
                Inode::Directory(directory) => {
                    lost.names += (directory.pending() - kept[id]) as u64;
                    directory.power_loss(kept[id]);
                }
                Inode::File(file) => {
                    file.locked_by = None;
                    let file_lost = file.image.power_loss(rng);
                    lost.sectors += file_lost.sectors;
                    lost.sectors_kept += file_lost.kept_sectors;
                    lost.lengths += u64::from(file_lost.length_changed);
                }
            }
        }
        self.sweep();
        lost
    }

    /// How many changes of each directory reach the platter: a drawn prefix, shortened until no move is torn.
    fn draw_kept(&self, rng: &mut Rng) -> BTreeMap<InodeId, usize> {
        let mut kept = BTreeMap::new();
        for (id, inode) in &self.inodes {
            if let Inode::Directory(directory) = inode {
                let pending = directory.pending();
                let drawn = match rng.below(4) {
                    0 => pending,
                    1 => 0,
                    _ => rng.below(pending as u64 + 1) as usize,
                };
                kept.insert(*id, drawn);
            }
        }
        loop {
            let mut shortened = false;
            for (id, inode) in &self.inodes {
                let Inode::Directory(directory) = inode else { continue };
                let keeps_other = |partner: InodeId, sequence: u64| match self.inodes.get(&partner) {
                    Some(Inode::Directory(other)) => {
                        !other.keeps(usize::MAX, sequence) || other.keeps(kept[&partner], sequence)
                    }
                    _ => true,
                };
                if let Some(shorter) = directory.first_torn(kept[id], keeps_other) {
                    kept.insert(*id, shorter);
                    shortened = true;
                }
            }
            if !shortened {
                return kept;
            }
        }
    }

    /// Pages that all files take.
    pub(super) fn pages(&self) -> u64 {
        let pages = |inode: &Inode| match inode {
            Inode::File(file) => file.image.pages(),
            Inode::Directory(_) => 0,
        };
        self.inodes.values().map(pages).sum()
    }

    /// Puts a durable file there, with its directories.
    pub(super) fn plant(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut parts = components(path)?;
        let name = parts.pop().ok_or_else(|| errno(libc::EISDIR))?;
        let mut at = ROOT;
        for part in parts {
            at = match self.directory(at)?.get(&part) {
                Some(present) => present,
                None => {
                    let made = self.insert(Inode::Directory(Directory::default()));
                    self.directory(at)?.plant(&part, made);
                    made
                }
            };
        }
        let inode = match self.directory(at)?.get(&name) {
            Some(present) => present,
            None => {
                let made = self.insert(Inode::File(Box::default()));
                self.directory(at)?.plant(&name, made);
                made
            }
        };
        self.file(inode)?.image.plant(bytes);
        Ok(())
    }

    /// What the path names on the platter: certain to survive a power loss.
    pub(super) fn resolve_durable(&mut self, path: &Path) -> io::Result<InodeId> {
        let mut at = ROOT;
        for name in components(path)? {
            let next =
                self.directory(at)?.durable_names().find(|(durable, _)| *durable == name).map(|(_, inode)| inode);
            at = next.ok_or_else(|| errno(libc::ENOENT))?;
        }
        Ok(at)
    }

    /// What must hold between two operations.
    pub(super) fn check_invariants(&self) {
        for id in self.references() {
            assert!(self.inodes.contains_key(&id), "a name refers to a freed inode {id:?}");
        }
        for inode in self.inodes.values() {
            if let Inode::File(file) = inode {
                file.image.check_invariants();
            }
        }
    }
}
