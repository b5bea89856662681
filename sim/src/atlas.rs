//! Which damage a scenario permits, so that no last good copy is destroyed unless somebody asked for it: then any loss is a bug.
//!
//! A scenario registers the *areas* that its system keeps in several copies: the nodes that have one, the path of the area on each,
//! and how many copies may be damaged at one time. A fault that damages what was synced asks first, and so does one that takes a disk
//! as a whole. Damage that no area covers is refused, and so is damage beyond what an area permits; both are counted and change nothing.
//!
//! ```
//! # #[cfg(madsim)] {
//! use sim::atlas::{Area, Atlas};
//! use std::path::Path;
//!
//! let atlas = Atlas::new().with(Area::new("log", &["a", "b", "c"], "/store/log", 1));
//! assert!(atlas.permits("a", Path::new("/store/log/0")));
//! assert!(!atlas.permits("b", Path::new("/store/log/0")), "b or c may have the last good copy");
//! atlas.repaired("a", "log");
//! assert!(atlas.permits("b", Path::new("/store/log/0")));
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Something that is kept in several copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    name: String,
    nodes: BTreeSet<String>,
    path_prefix: PathBuf,
    damaged_max: usize,
}

impl Area {
    /// The files below `path_prefix` on each of `nodes` are one copy; at most `damaged_max` copies may be damaged at one time.
    ///
    /// # Panics
    /// If that is more than there are copies.
    pub fn new(name: &str, nodes: &[&str], path_prefix: impl AsRef<Path>, damaged_max: usize) -> Area {
        let nodes: BTreeSet<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        assert!(damaged_max <= nodes.len(), "area {name:?} has {} copies, not {damaged_max}", nodes.len());
        Area { name: name.to_owned(), nodes, path_prefix: path_prefix.as_ref().to_owned(), damaged_max }
    }

    fn covers(&self, node: &str, path: &Path) -> bool {
        self.nodes.contains(node) && path.starts_with(&self.path_prefix)
    }
}

/// The areas of a scenario and what is damaged in them. Clones are the same atlas.
#[derive(Debug, Clone, Default)]
pub struct Atlas(Arc<Mutex<Map>>);

#[derive(Debug, Default)]
struct Map {
    areas: Vec<Charted>,
    refused: u64,
}

#[derive(Debug)]
struct Charted {
    area: Area,
    /// How often each node's copy is damaged.
    damaged: BTreeMap<String, u64>,
}

impl Charted {
    fn permits(&self, node: &str) -> bool {
        self.damaged.contains_key(node) || self.damaged.len() < self.area.damaged_max
    }
}

impl Map {
    fn at<'a>(&'a mut self, node: &'a str, path: &'a Path) -> impl Iterator<Item = &'a mut Charted> {
        self.areas.iter_mut().filter(move |charted| charted.area.covers(node, path))
    }

    fn would_permit(&self, node: &str, path: &Path) -> bool {
        let mut covering = self.areas.iter().filter(|charted| charted.area.covers(node, path)).peekable();
        covering.peek().is_some() && covering.all(|charted| charted.permits(node))
    }

    /// The areas that have a copy on the node.
    fn on<'a>(&'a mut self, node: &'a str) -> impl Iterator<Item = &'a mut Charted> {
        self.areas.iter_mut().filter(move |charted| charted.area.nodes.contains(node))
    }

    fn would_permit_loss(&self, node: &str, files: &[PathBuf]) -> bool {
        let mut copies = self.areas.iter().filter(|charted| charted.area.nodes.contains(node)).peekable();
        let covered = |path: &PathBuf| self.areas.iter().any(|charted| charted.area.covers(node, path));
        copies.peek().is_some() && copies.all(|charted| charted.permits(node)) && files.iter().all(covered)
    }
}

impl Atlas {
    /// An atlas that permits no damage yet.
    pub fn new() -> Atlas {
        Atlas::default()
    }

    /// Registers an area. Where areas overlap, all must permit a damage.
    ///
    /// # Panics
    /// If an area of that name is registered already.
    #[must_use]
    pub fn with(self, area: Area) -> Atlas {
        self.charted(|map| {
            assert!(map.areas.iter().all(|other| other.area.name != area.name), "area {:?} is there twice", area.name);
            map.areas.push(Charted { area, damaged: BTreeMap::new() });
        });
        self
    }

    /// Asks whether the node's copy of what is at `path` may be damaged. If so, it counts as damaged from now on; if not, the
    /// refusal is counted.
    pub fn permits(&self, node: &str, path: &Path) -> bool {
        self.charted(|map| {
            let permitted = map.would_permit(node, path);
            if !permitted {
                map.refused += 1;
                return false;
            }
            for charted in map.at(node, path) {
                *charted.damaged.entry(node.to_owned()).or_default() += 1;
            }
            true
        })
    }

    /// Asks whether everything on the node's disk may be lost, which has these files. If so, its copy of each area counts as damaged
    /// until it is [`repaired`](Self::repaired), also of one of which no file is there yet; if not, the refusal is counted. A file
    /// that no area covers is the only one of its kind: then it is refused.
    pub fn permits_loss_of_disk(&self, node: &str, files: &[PathBuf]) -> bool {
        self.charted(|map| {
            let permitted = map.would_permit_loss(node, files);
            if !permitted {
                map.refused += 1;
                return false;
            }
            for charted in map.on(node) {
                *charted.damaged.entry(node.to_owned()).or_default() += 1;
            }
            true
        })
    }

    /// As [`permits`](Self::permits), but nothing is counted.
    pub fn would_permit(&self, node: &str, path: &Path) -> bool {
        self.charted(|map| map.would_permit(node, path))
    }

    /// Takes back one damage that [`permits`](Self::permits) has permitted and that has not come to pass or has ended.
    pub fn ended(&self, node: &str, path: &Path) {
        self.charted(|map| {
            for charted in map.at(node, path) {
                match charted.damaged.get_mut(node) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(charted.damaged.remove(node)),
                }
            }
        });
    }

    /// The node's copy of the area is good again: its system has repaired it, or the disk was made anew from a good one.
    pub fn repaired(&self, node: &str, area: &str) {
        self.charted(|map| {
            for charted in map.areas.iter_mut().filter(|charted| charted.area.name == area) {
                charted.damaged.remove(node);
            }
        });
    }

    /// The nodes whose copies of the area are damaged.
    pub fn damaged(&self, area: &str) -> Vec<String> {
        self.charted(|map| {
            let named = map.areas.iter().filter(|charted| charted.area.name == area);
            named.flat_map(|charted| charted.damaged.keys().cloned()).collect()
        })
    }

    /// How many damages were refused.
    pub fn refused(&self) -> u64 {
        self.charted(|map| map.refused)
    }

    /// Counts a damage that was refused before its place was chosen.
    pub(crate) fn refuse(&self) {
        self.charted(|map| map.refused += 1);
    }

    fn charted<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::{Area, Atlas};
    use std::path::Path;

    const LOG: &str = "/store/log/0";

    fn permits(atlas: &Atlas, node: &str, path: &str) -> bool {
        atlas.permits(node, Path::new(path))
    }

    #[test]
    fn the_last_good_copies_are_never_damaged() {
        for copies in 1..=5 {
            let nodes = &["a", "b", "c", "d", "e"][..copies];
            for damaged_max in 0..=copies {
                let atlas = Atlas::new().with(Area::new("log", nodes, "/store/log", damaged_max));
                let permitted = nodes.iter().filter(|node| permits(&atlas, node, LOG)).count();
                assert_eq!(permitted, damaged_max);
                assert_eq!(atlas.damaged("log").len(), damaged_max);
                assert_eq!(atlas.refused(), (copies - damaged_max) as u64);
            }
        }
    }

    #[test]
    fn a_damaged_copy_may_be_damaged_again_and_counts_once() {
        let atlas = Atlas::new().with(Area::new("log", &["a", "b"], "/store/log", 1));
        assert!(permits(&atlas, "a", LOG));
        assert!(permits(&atlas, "a", "/store/log/1"));
        assert!(!permits(&atlas, "b", "/store/log/2"), "a copy is good as a whole");
        atlas.ended("a", Path::new(LOG));
        assert!(!permits(&atlas, "b", LOG), "the other damage is still there");
        atlas.ended("a", Path::new("/store/log/1"));
        assert!(permits(&atlas, "b", LOG));
        assert_eq!(atlas.damaged("log"), ["b"]);
    }

    #[test]
    fn what_is_repaired_lets_others_be_damaged() {
        let atlas = Atlas::new().with(Area::new("log", &["a", "b"], "/store/log", 1));
        assert!(permits(&atlas, "a", LOG) && permits(&atlas, "a", LOG));
        atlas.repaired("a", "other");
        assert!(!permits(&atlas, "b", LOG));
        atlas.repaired("a", "log");
        assert!(permits(&atlas, "b", LOG));
    }

    #[test]
    fn what_no_area_covers_is_not_damaged() {
        let atlas = Atlas::new().with(Area::new("log", &["a"], "/store/log", 1));
        for (node, path) in [("a", "/store/index"), ("a", "/store/log2/0"), ("b", LOG)] {
            assert!(!permits(&atlas, node, path), "{node} {path}");
        }
        assert_eq!(atlas.refused(), 3);
        assert!(!permits(&Atlas::new(), "a", LOG));
    }

    #[test]
    fn where_areas_overlap_all_must_permit() {
        let atlas = Atlas::new().with(Area::new("store", &["a", "b", "c"], "/store", 1)).with(Area::new(
            "log",
            &["a", "b"],
            "/store/log",
            2,
        ));
        assert!(permits(&atlas, "a", LOG));
        assert!(!permits(&atlas, "b", LOG));
        assert_eq!((atlas.damaged("store").len(), atlas.damaged("log").len()), (1, 1), "a refusal damages nothing");
    }

    #[test]
    fn a_disk_is_lost_only_where_each_of_its_areas_permits_it() {
        let areas = || {
            let log = Area::new("log", &["a", "b", "c"], "/store/log", 1);
            Atlas::new().with(log).with(Area::new("index", &["a", "b"], "/store/index", 1))
        };
        let files = |paths: &[&str]| paths.iter().map(|path| Path::new(path).to_owned()).collect::<Vec<_>>();
        let all = files(&[LOG, "/store/index/0"]);
        let atlas = areas();
        assert!(atlas.permits_loss_of_disk("a", &all));
        assert_eq!((atlas.damaged("log"), atlas.damaged("index")), (vec!["a".to_owned()], vec!["a".to_owned()]));
        assert!(atlas.permits_loss_of_disk("a", &[]), "nothing more can be lost there");
        assert!(!atlas.permits_loss_of_disk("b", &all));
        assert!(!atlas.permits_loss_of_disk("c", &files(&[LOG])) && !permits(&atlas, "c", LOG));
        atlas.repaired("a", "log");
        assert!(!atlas.permits_loss_of_disk("b", &all), "its index may be the last good one");
        assert!(atlas.permits_loss_of_disk("c", &files(&[LOG])));
        assert_eq!(atlas.refused(), 4);

        let atlas = areas();
        assert!(!atlas.permits_loss_of_disk("a", &files(&[LOG, "/identity"])), "no other node has that file");
        assert!(!atlas.permits_loss_of_disk("d", &[]), "nobody said that this node may lose anything");
        assert_eq!((atlas.refused(), atlas.damaged("log").len()), (2, 0));
        assert!(atlas.permits_loss_of_disk("b", &[]), "an empty disk");
        assert!(
            !permits(&atlas, "a", LOG),
            "counts as a copy that is gone: it may have been filled in the same instant"
        );
    }

    #[test]
    #[should_panic(expected = "there twice")]
    fn an_area_is_registered_once() {
        let area = || Area::new("log", &["a"], "/", 1);
        let _ = Atlas::new().with(area()).with(area());
    }
}
