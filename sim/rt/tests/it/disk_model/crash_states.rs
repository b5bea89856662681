//! The crash states of one fixed journal: the simulated disk reaches a thousand of them and none that the promises of `rt::fs` forbid.
//!
//! What is permitted is written down a second time here, from the promises alone: each directory had a line of states since its last
//! sync, and any of them may be left, but both halves of a move between directories or none; each file is judged by the contents it
//! had since its last sync ([`Reference`]).
use super::{Reference, Step};
use Operation::{Create, CreateDirectory, Cut, Remove, Rename, Sync, SyncDirectory, Write};
use rt::fs::{File, OpenOptions, create_dir, remove_file, rename, sync_dir};
use rt::time::{Duration, sleep};
use rt::world::{self, NodeId, WorldConfig, disk};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug)]
enum Operation {
    CreateDirectory(&'static str),
    Create(&'static str),
    Write(&'static str, usize, usize, u8),
    Cut(&'static str, usize),
    Sync(&'static str),
    SyncDirectory(&'static str),
    Rename(&'static str, &'static str),
    Remove(&'static str),
}

/// A journal of segments with a head that is replaced by renaming.
const JOURNAL: [Operation; 28] = [
    CreateDirectory("/seg"),
    SyncDirectory("/"),
    Create("/seg/1"),
    SyncDirectory("/seg"),
    Write("/seg/1", 0, 1_300, b'a'),
    Sync("/seg/1"),
    Create("/head.tmp"),
    Write("/head.tmp", 0, 600, b'h'),
    Sync("/head.tmp"),
    Rename("/head.tmp", "/head"),
    SyncDirectory("/"),
    Create("/seg/0"),
    Write("/seg/1", 1_300, 1_500, b'b'),
    Write("/seg/1", 512, 512, b'c'),
    Create("/seg/2"),
    SyncDirectory("/seg"),
    Write("/seg/2", 0, 2_000, b'd'),
    Sync("/seg/2"),
    Write("/seg/2", 1_000, 1_600, b'e'),
    Create("/head.tmp"),
    Write("/head.tmp", 0, 700, b'i'),
    Sync("/head.tmp"),
    Rename("/head.tmp", "/head"),
    Cut("/seg/1", 2_100),
    Remove("/seg/0"),
    Rename("/seg/1", "/old"),
    Create("/seg/3"),
    Write("/seg/3", 0, 512, b'g'),
];

/// What a look at the disk shows: each file with its bytes, and each directory, whose path ends with a slash.
type State = BTreeMap<String, Vec<u8>>;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    File(usize),
    Directory,
}

/// One state of a directory, and the moves to or from other directories that had happened by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    names: BTreeMap<String, Meaning>,
    moves: BTreeSet<usize>,
}

/// What the promises permit to be left.
#[derive(Debug)]
struct Promises {
    /// By identity: a renamed file is the same file.
    files: Vec<Reference>,
    /// The states of each directory since its last sync, that of the sync first.
    directories: BTreeMap<String, Vec<Names>>,
}

/// The directory of a path, and the name in it.
fn split(path: &str) -> (String, String) {
    let (directory, name) = path.rsplit_once('/').expect("an absolute path");
    (if directory.is_empty() { "/".to_owned() } else { directory.to_owned() }, name.to_owned())
}

impl Promises {
    fn after(operations: &[Operation]) -> Promises {
        let directories = BTreeMap::from([("/".to_owned(), vec![Names::default()])]);
        let mut promises = Promises { files: Vec::new(), directories };
        for (at, operation) in operations.iter().enumerate() {
            promises.apply(at, *operation);
        }
        promises
    }

    fn now(&self, directory: &str) -> &Names {
        self.directories[directory].last().expect("there is always one")
    }

    fn file(&mut self, path: &str) -> &mut Reference {
        let (directory, name) = split(path);
        match self.now(&directory).names[&name] {
            Meaning::File(file) => &mut self.files[file],
            Meaning::Directory => panic!("{path} is a directory"),
        }
    }

    /// Adds a state to the line of a directory.
    fn change(&mut self, directory: &str, change: impl FnOnce(&mut Names)) {
        let mut names = self.now(directory).clone();
        change(&mut names);
        self.directories.get_mut(directory).expect("it was created").push(names);
    }

    fn link(&mut self, path: &str, meaning: Meaning) {
        let (directory, name) = split(path);
        self.change(&directory, |names| {
            names.names.insert(name, meaning);
        });
    }

    fn apply(&mut self, at: usize, operation: Operation) {
        match operation {
            CreateDirectory(path) => {
                self.link(path, Meaning::Directory);
                self.directories.insert(path.to_owned(), vec![Names::default()]);
            }
            Create(path) => {
                self.files.push(Reference::new(Vec::new()));
                self.link(path, Meaning::File(self.files.len() - 1));
            }
            Write(path, offset, length, byte) => self.file(path).apply(&Step::Write { offset, length, byte }),
            Cut(path, length) => self.file(path).apply(&Step::SetLength(length)),
            Sync(path) => self.file(path).apply(&Step::Sync),
            SyncDirectory(path) => {
                let synced = self.now(path).clone();
                self.directories.insert(path.to_owned(), vec![synced]);
            }
            Rename(from, to) => self.rename(at, from, to),
            Remove(path) => {
                let (directory, name) = split(path);
                self.change(&directory, |names| {
                    names.names.remove(&name);
                });
            }
        }
    }

    fn rename(&mut self, at: usize, from: &str, to: &str) {
        let ((source, old), (target, new)) = (split(from), split(to));
        let meaning = self.now(&source).names[&old];
        if source == target {
            return self.change(&source, |names| {
                names.names.remove(&old);
                names.names.insert(new, meaning);
            });
        }
        self.change(&source, |names| {
            names.names.remove(&old);
            names.moves.insert(at);
        });
        self.change(&target, |names| {
            names.names.insert(new, meaning);
            names.moves.insert(at);
        });
    }

    /// Every way in which names may be left: a state of each directory's line such that no move is torn. (Every move here is
    /// between the same two directories, so both have seen the same ones.)
    fn names(&self) -> Vec<BTreeMap<String, Meaning>> {
        let mut all = Vec::new();
        for root in &self.directories["/"] {
            let mut top = BTreeMap::new();
            for (name, meaning) in &root.names {
                top.insert(format!("/{name}"), *meaning);
            }
            if !root.names.contains_key("seg") {
                all.push(top);
                continue;
            }
            for inner in self.directories["/seg"].iter().filter(|inner| inner.moves == root.moves) {
                let inner = inner.names.iter().map(|(name, meaning)| (format!("/seg/{name}"), *meaning));
                all.push(top.clone().into_iter().chain(inner).collect());
            }
        }
        all
    }

    fn legal(&self, state: &State) -> bool {
        self.names().iter().any(|names| {
            let fits = |(path, meaning): (&String, &Meaning)| match meaning {
                Meaning::Directory => state.contains_key(&format!("{path}/")),
                Meaning::File(file) => state.get(path).is_some_and(|bytes| self.files[*file].refusal(bytes).is_none()),
            };
            names.len() == state.len() && names.iter().all(fits)
        })
    }
}

async fn perform(operation: Operation) -> io::Result<()> {
    let open = |path| OpenOptions::new().write(true).open(path);
    match operation {
        CreateDirectory(path) => create_dir(path),
        Create(path) => OpenOptions::new().write(true).create_new(true).open(path).map(drop),
        Write(path, offset, length, byte) => open(path)?.write_at(&vec![byte; length], offset as u64),
        Cut(path, length) => open(path)?.set_len(length as u64),
        Sync(path) => File::open(path)?.sync_data().await,
        SyncDirectory(path) => sync_dir(path).await,
        Rename(from, to) => rename(from, to),
        Remove(path) => remove_file(path),
    }
}

/// Plays the journal, but for the operation `forgotten`; `done` tells how many operations have returned.
async fn play(forgotten: Option<usize>, done: Arc<AtomicUsize>) {
    for (at, operation) in JOURNAL.into_iter().enumerate() {
        if forgotten != Some(at) {
            perform(operation).await.unwrap();
        }
        done.store(at + 1, Ordering::Relaxed);
        sleep(Duration::from_micros(100)).await;
    }
}

fn look(node: NodeId) -> State {
    let (mut state, mut open) = (State::new(), vec!["/".to_owned()]);
    while let Some(directory) = open.pop() {
        for path in disk::list(node, &directory).unwrap() {
            let path = path.to_str().unwrap().to_owned();
            match disk::read_file(node, &path) {
                Ok(bytes) => drop(state.insert(path, bytes)),
                Err(_) => {
                    state.insert(format!("{path}/"), Vec::new());
                    open.push(path);
                }
            }
        }
    }
    state
}

/// Cuts the power `after` that time, or after the end; gives how many operations had returned, and what is left.
fn power_loss(seed: u64, after: Option<Duration>, forgotten: Option<usize>) -> (usize, State) {
    world::run_test_with(WorldConfig { seed, ..WorldConfig::default() }, move || async move {
        let node = world::add_node("journal");
        let done = Arc::new(AtomicUsize::new(0));
        let program = world::spawn_on(node, play(forgotten, Arc::clone(&done)));
        match after {
            Some(after) => sleep(after).await,
            None => program.await.unwrap(),
        }
        world::power_loss(node);
        disk::check_invariants(node);
        (done.load(Ordering::Relaxed), look(node))
    })
}

/// A moment between the first operation and the last.
fn moment(seed: u64) -> Option<Duration> {
    Some(Duration::from_micros(seed * 7_919 % 5_500))
}

#[test]
fn a_thousand_crash_states_are_reached_and_all_are_legal() {
    let promises = Promises::after(&JOURNAL);
    let mut states = BTreeSet::new();
    for seed in 0..3_000 {
        let (done, state) = power_loss(seed, None, None);
        assert_eq!(done, JOURNAL.len());
        assert!(promises.legal(&state), "seed {seed} leaves {state:?}");
        states.insert(state);
    }
    let names: BTreeSet<Vec<&String>> = states.iter().map(|state| state.keys().collect()).collect();
    let permitted: BTreeSet<Vec<String>> = promises.names().iter().map(paths).collect();
    println!("{} states after the last operation, {} of {} sets of names", states.len(), names.len(), permitted.len());
    assert!(states.len() >= 1_000, "{} states", states.len());
    assert_eq!(names.len(), permitted.len(), "every set of names that may be left is left by some seed");
}

fn paths(names: &BTreeMap<String, Meaning>) -> Vec<String> {
    let path = |(path, meaning): (&String, &Meaning)| match meaning {
        Meaning::Directory => format!("{path}/"),
        Meaning::File(_) => path.clone(),
    };
    names.iter().map(path).collect()
}

#[test]
fn a_power_loss_at_any_moment_of_the_journal_leaves_a_legal_state() {
    let promises: Vec<Promises> = (0..=JOURNAL.len()).map(|done| Promises::after(&JOURNAL[..done])).collect();
    let (mut states, mut moments) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..2_000 {
        let (done, state) = power_loss(seed, moment(seed), None);
        assert!(promises[done].legal(&state), "seed {seed} leaves {state:?} after {done} operations");
        moments.insert(done);
        states.insert(state);
    }
    println!("{} states, {} moments", states.len(), moments.len());
    assert_eq!(moments.len(), JOURNAL.len() + 1, "the power is cut before the first operation and after each");
    assert!(states.len() >= 500, "{} states", states.len());
}

/// Each sync is needed: a disk on which one of them does nothing leaves states that are refused.
#[test]
fn a_disk_that_forgets_one_sync_is_caught() {
    let promises: Vec<Promises> = (0..=JOURNAL.len()).map(|done| Promises::after(&JOURNAL[..done])).collect();
    for (at, operation) in JOURNAL.iter().enumerate() {
        if matches!(operation, Sync(_) | SyncDirectory(_)) {
            let caught = (0..500).position(|seed| {
                let (done, state) = power_loss(seed, moment(seed), Some(at));
                !promises[done].legal(&state)
            });
            assert!(caught.is_some(), "without {operation:?}, number {at}, nothing illegal is left");
        }
    }
}

#[test]
fn illegal_states_are_refused() {
    let promises = Promises::after(&JOURNAL);
    let everything: State = [
        ("/seg/", Vec::new()),
        ("/head", vec![b'i'; 700]),
        ("/old", [vec![b'a'; 512], vec![b'c'; 512], vec![b'a'; 276], vec![b'b'; 800]].concat()),
        ("/seg/2", [vec![b'd'; 1_000], vec![b'e'; 1_600]].concat()),
        ("/seg/3", vec![b'g'; 512]),
    ]
    .map(|(path, bytes)| (path.to_owned(), bytes))
    .into();
    assert!(promises.legal(&everything));
    let refused = |what: &str, change: fn(&mut State)| {
        let mut state = everything.clone();
        change(&mut state);
        assert!(!promises.legal(&state), "{what} is legal");
    };
    refused("a synced sector that is lost", |state| state.get_mut("/old").unwrap()[..512].fill(0));
    refused("a sector torn in itself", |state| state.get_mut("/old").unwrap()[600..1_024].fill(b'a'));
    refused("an unsynced byte that nobody wrote", |state| state.get_mut("/seg/2").unwrap()[2_500] = b'z');
    refused("a length that the file never reached", |state| state.get_mut("/seg/2").unwrap().push(0));
    refused("a synced length that is cut", |state| state.get_mut("/head").unwrap().truncate(699));
    refused("both names of a rename", |state| drop(state.insert("/head.tmp".into(), vec![b'i'; 700])));
    refused("neither name of a rename", |state| drop(state.remove("/head")));
    refused("both names of a move", |state| drop(state.insert("/seg/1".into(), state["/old"].clone())));
    refused("neither name of a move", |state| drop(state.remove("/old")));
    refused("a removed name that is back while a later one is kept", |state| {
        state.insert("/seg/0".into(), Vec::new());
    });
    refused("a synced directory that is lost", |state| state.retain(|path, _| !path.starts_with("/seg")));
    refused("a name that nobody gave", |state| drop(state.insert("/other".into(), Vec::new())));
}
