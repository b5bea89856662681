//! The timer wheel: which chain of units is due when. In memory are the slots that wait; in the file each has its place.
use crate::layout::{Slot, WHEEL_BYTES, WHEEL_SLOTS};
use rt::fs::{File, OpenOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

/// Bytes read at once when the file is looked through.
const CHUNK: usize = 1 << 20;

/// The slots that wait, by their numbers.
#[derive(Debug)]
pub(crate) struct Wheel {
    path: PathBuf,
    file: Option<File>,
    slots: BTreeMap<i64, Slot>,
    /// Numbers of the slots that the file has otherwise.
    dirty: BTreeSet<i64>,
}

impl Wheel {
    /// A wheel without slots, and without a file until the first flush.
    pub(crate) fn empty(path: PathBuf) -> Wheel {
        Wheel { path, file: None, slots: BTreeMap::new(), dirty: BTreeSet::new() }
    }

    /// Reads the slots of a file whose number is not below `from`. `None`: the file has not the length of a wheel.
    pub(crate) async fn load(path: PathBuf, from: i64) -> io::Result<Option<Wheel>> {
        let file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Wheel::empty(path))),
            Err(error) => return Err(error),
        };
        if file.len()? != WHEEL_BYTES {
            return Ok(None);
        }
        let mut slots = BTreeMap::new();
        let mut chunk = vec![0; CHUNK];
        let mut position = 0;
        while position < WHEEL_BYTES {
            let length = usize::try_from((WHEEL_BYTES - position).min(CHUNK as u64)).expect("a chunk");
            file.read_exact_at(&mut chunk[..length], position).await?;
            for (place, bytes) in (position / Slot::BYTES as u64..).zip(chunk[..length].as_chunks().0) {
                let slot = Slot::decode(bytes);
                if slot.number >= from && slot.number > 0 && place_of(slot.number) == place {
                    slots.insert(slot.number, slot);
                }
            }
            position += length as u64;
        }
        Ok(Some(Wheel { path, file: Some(file), slots, dirty: BTreeSet::new() }))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(crate) fn get(&self, number: i64) -> Option<Slot> {
        self.slots.get(&number).copied()
    }

    /// The slot that is due first.
    pub(crate) fn first(&self) -> Option<Slot> {
        self.slots.first_key_value().map(|(_, slot)| *slot)
    }

    pub(crate) fn numbers(&self) -> Vec<i64> {
        self.slots.keys().copied().collect()
    }

    /// Whether another slot that still waits has the place of this one in the file: after an outage longer than the wheel.
    pub(crate) fn is_blocked(&self, number: i64) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.slots.first_key_value(), self.slots.last_key_value()) else {
            return false;
        };
        let below = (1..).map(|turns| number - turns * WHEEL_SLOTS).take_while(|other| other >= first);
        let above = (1..).map(|turns| number + turns * WHEEL_SLOTS).take_while(|other| other <= last);
        below.chain(above).any(|other| self.slots.contains_key(&other))
    }

    /// Puts a slot in its place, which must not be [blocked](Self::is_blocked).
    pub(crate) fn put(&mut self, slot: Slot) {
        assert!(!self.is_blocked(slot.number), "a slot that waits is not overwritten");
        self.slots.insert(slot.number, slot);
        self.dirty.insert(slot.number);
    }

    /// Empties a slot.
    pub(crate) fn remove(&mut self, number: i64) {
        if self.slots.remove(&number).is_some() {
            self.dirty.insert(number);
        }
    }

    /// Writes what changed and makes it survive a power loss, the file's name too if it is new.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.dirty.is_empty() {
            return Ok(());
        }
        let mut places: BTreeMap<u64, [u8; Slot::BYTES]> = BTreeMap::new();
        for &number in &self.dirty {
            match self.slots.get(&number) {
                Some(slot) => _ = places.insert(place_of(number), slot.encode()),
                None => _ = places.entry(place_of(number)).or_insert([0; Slot::BYTES]),
            }
        }
        let is_new = self.file.is_none();
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?;
                file.set_len(WHEEL_BYTES)?;
                self.file.insert(file)
            }
        };
        let mut run: Option<(u64, Vec<u8>)> = None;
        for (place, bytes) in places {
            match &mut run {
                Some((start, run)) if *start + (run.len() / Slot::BYTES) as u64 == place => {
                    run.extend_from_slice(&bytes);
                }
                _ => {
                    if let Some((start, run)) = run.replace((place, bytes.to_vec())) {
                        file.write_at(&run, start * Slot::BYTES as u64)?;
                    }
                }
            }
        }
        if let Some((start, run)) = run {
            file.write_at(&run, start * Slot::BYTES as u64)?;
        }
        file.sync_data().await?;
        if is_new {
            rt::fs::sync_dir(self.path.parent().expect("a file of the store's root")).await?;
        }
        self.dirty.clear();
        Ok(())
    }
}

/// The place of a slot in the file, in slots.
fn place_of(number: i64) -> u64 {
    u64::try_from(number.rem_euclid(WHEEL_SLOTS)).expect("not negative")
}
