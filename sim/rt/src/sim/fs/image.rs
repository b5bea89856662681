//! The bytes of one file: what the page cache holds, what the platter holds, and what may be between them after a power loss.
//!
//! Pages of 4 KiB are shared copy-on-write between cache and platter; dirty is counted by sectors of 512 bytes, the unit that the
//! device writes whole or not at all.
//!
//! # Crash states
//! What was written since the last completed sync forms one or more *stages* (one per sync under way, and the rest). After a
//! power loss each dirty sector of each stage is old or new, each independently; a stage's cut (`set_len` to less) happened or
//! not; the length is that of before, of after, or between, whatever became of the bytes: a longer file without its bytes reads
//! zeros. What a completed sync covered is always there.
use crate::sim::rand::Rng;
use damage::Damage;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

pub(super) const PAGE: usize = 4096;
pub(super) const SECTOR: usize = 512;
const _: () = assert!(PAGE / SECTOR == 8, "a page's dirty sectors are the bits of one byte");

type Page = [u8; PAGE];
type Pages = Vec<Option<Rc<Page>>>;

/// What a sync that has begun will make durable.
#[derive(Debug)]
struct Stage {
    sync: u64,
    len: u64,
    /// The shortest length since the sync before, if the file was cut.
    cut: Option<u64>,
    pages: Vec<(u32, u8, Rc<Page>)>,
}

/// One file's bytes.
#[derive(Debug, Default)]
pub(super) struct Image {
    len: u64,
    durable_len: u64,
    cut: Option<u64>,
    cached: Pages,
    durable: Pages,
    /// Page number to dirty sectors.
    dirty: BTreeMap<u32, u8>,
    syncing: VecDeque<Stage>,
    /// Syncs up to this one have failed.
    failed_through: u64,
    /// Pages that are on the platter only: the next read of one waits for the device.
    cold: BTreeSet<u32>,
    damage: Damage,
}

/// What a power loss took from a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) sectors: u64,
    pub(super) kept_sectors: u64,
    pub(super) length_changed: bool,
}

/// How much of a stage survives: everything, nothing, or each part by its own draw. The pure cases are drawn often, because they
/// are what a real machine mostly does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Survival {
    All,
    None,
    Some,
}

impl Survival {
    fn draw(rng: &mut Rng) -> Survival {
        match rng.below(4) {
            0 => Survival::All,
            1 => Survival::None,
            _ => Survival::Some,
        }
    }
}

fn zero_page() -> Rc<Page> {
    Rc::new([0; PAGE])
}

pub(super) fn page_of(offset: u64) -> (usize, usize) {
    let page = usize::try_from(offset / PAGE as u64).expect("a file is smaller than the address space");
    (page, (offset % PAGE as u64) as usize)
}

/// The sectors that `at..at + length` of a page touches.
pub(super) fn sectors(at: usize, length: usize) -> u8 {
    assert!(length > 0 && at + length <= PAGE);
    let (first, last) = (at / SECTOR, (at + length - 1) / SECTOR);
    ((1_u16 << (last + 1)) - (1_u16 << first)) as u8
}

fn copy_sectors(target: &mut Page, source: &Page, mask: u8) {
    for sector in (0..8).filter(|sector| mask >> sector & 1 == 1) {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        target[range.clone()].copy_from_slice(&source[range]);
    }
}

/// Drops everything beyond `len` from a page list.
fn trim(pages: &mut Pages, len: u64) {
    let (page, at) = page_of(len);
    if pages.len() > page + usize::from(at > 0) {
        pages.truncate(page + usize::from(at > 0));
    }
    if at > 0
        && let Some(Some(last)) = pages.get_mut(page)
        && last[at..].iter().any(|byte| *byte != 0)
    {
        Rc::make_mut(last)[at..].fill(0);
    }
}

fn read(pages: &Pages, len: u64, mut offset: u64, out: &mut [u8]) -> usize {
    let total = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
    let mut done = 0;
    while done < total {
        let (page, at) = page_of(offset);
        let length = (total - done).min(PAGE - at);
        match pages.get(page) {
            Some(Some(page)) => out[done..done + length].copy_from_slice(&page[at..at + length]),
            _ => out[done..done + length].fill(0),
        }
        done += length;
        offset += length as u64;
    }
    total
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Pages in the cache: what the file takes of the disk.
    pub(super) fn pages(&self) -> u64 {
        self.cached.iter().flatten().count() as u64
    }

    /// Writes as much of `bytes` as needs at most `pages_free` new pages; says how much, and how many pages that took.
    pub(super) fn write_at(&mut self, mut offset: u64, bytes: &[u8], pages_free: u64) -> (usize, u64) {
        let (mut done, mut taken) = (0, 0);
        while done < bytes.len() {
            let (page, at) = page_of(offset);
            let length = (bytes.len() - done).min(PAGE - at);
            if page >= self.cached.len() {
                self.cached.resize(page + 1, None);
            }
            let slot = &mut self.cached[page];
            if slot.is_none() {
                if taken == pages_free {
                    break;
                }
                taken += 1;
                *slot = Some(zero_page());
            }
            let page_bytes = slot.as_mut().expect("it was just filled");
            Rc::make_mut(page_bytes)[at..at + length].copy_from_slice(&bytes[done..done + length]);
            *self.dirty.entry(page as u32).or_default() |= sectors(at, length);
            done += length;
            offset += length as u64;
        }
        if done > 0 {
            self.len = self.len.max(offset);
        }
        (done, taken)
    }

    pub(super) fn read_at(&self, offset: u64, out: &mut [u8]) -> usize {
        read(&self.cached, self.len, offset, out)
    }

    /// Whether a read must wait for the device; the pages are in the cache afterwards.
    pub(super) fn warm(&mut self, offset: u64, length: usize) -> bool {
        if self.cold.is_empty() || length == 0 {
            return false;
        }
        let (first, _) = page_of(offset);
        let (last, _) = page_of(offset + length as u64 - 1);
        let cold: Vec<u32> = self.cold.range(first as u32..=last as u32).copied().collect();
        for page in &cold {
            self.cold.remove(page);
        }
        !cold.is_empty()
    }

    /// Cuts or extends; says how many pages that freed.
    pub(super) fn set_len(&mut self, len: u64) -> u64 {
        let before = self.pages();
        if len < self.len {
            self.cut = Some(self.cut.map_or(len, |cut| cut.min(len)));
            trim(&mut self.cached, len);
            self.damage.cut(len);
            let (page, at) = page_of(len);
            let kept = page + usize::from(at > 0);
            self.dirty.retain(|page, _| (*page as usize) < kept);
            if at > 0 && matches!(self.cached.get(page), Some(Some(_))) {
                // The zeros behind the new end must reach the platter too, or an extension would show old bytes.
                *self.dirty.entry(page as u32).or_default() |= sectors(at, PAGE - at);
            }
        }
        self.len = len;
        before - self.pages()
    }

    /// A sync begins: it covers what was written so far.
    pub(super) fn begin_sync(&mut self, sync: u64) {
        let cached = &self.cached;
        let page = |(page, mask): (u32, u8)| {
            (page, mask, cached[page as usize].clone().expect("a dirty page is in the cache"))
        };
        let pages = std::mem::take(&mut self.dirty).into_iter().map(page).collect();
        self.syncing.push_back(Stage { sync, len: self.len, cut: self.cut.take(), pages });
    }

    /// A sync ends well, and with it all that began before it. False: it had failed meanwhile.
    pub(super) fn complete_sync(&mut self, sync: u64) -> bool {
        while self.syncing.front().is_some_and(|stage| stage.sync <= sync) {
            let stage = self.syncing.pop_front().expect("it was just seen");
            self.settle(stage);
        }
        sync > self.failed_through
    }

    fn settle(&mut self, stage: Stage) {
        if let Some(cut) = stage.cut {
            trim(&mut self.durable, cut);
        }
        for (page, mask, bytes) in stage.pages {
            self.damage.unreadable.clear(page, mask);
            let page = page as usize;
            if self.durable.len() <= page {
                self.durable.resize(page + 1, None);
            }
            self.durable[page] = Some(bytes);
        }
        trim(&mut self.durable, stage.len);
        self.durable_len = stage.len;
    }

    /// A sync fails, and the kernel drops what was dirty: the cache shows the platter again, under the present length; or, if
    /// `pages_stay`, still what was written. Every sync under way fails with it. Says how many sectors were lost.
    pub(super) fn fail_sync(&mut self, sync: u64, pages_stay: bool) -> u64 {
        self.failed_through = self.failed_through.max(sync);
        let stages = self.syncing.drain(..).flat_map(|stage| stage.pages).map(|(page, mask, _)| (page, mask));
        let mut lost: BTreeMap<u32, u8> = std::mem::take(&mut self.dirty);
        for (page, mask) in stages {
            *lost.entry(page).or_default() |= mask;
        }
        for page in lost.keys().map(|page| *page as usize).filter(|_| !pages_stay) {
            self.cached[page] = self.durable.get(page).cloned().flatten();
        }
        trim(&mut self.cached, self.len);
        lost.values().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// The power goes: the platter keeps one of the permitted states, and the cache is gone.
    pub(super) fn power_loss(&mut self, rng: &mut Rng) -> Lost {
        let before = self.len;
        let mut lost = Lost::default();
        self.begin_sync(u64::MAX);
        for stage in std::mem::take(&mut self.syncing) {
            self.tear(&stage, rng, &mut lost);
        }
        trim(&mut self.durable, self.durable_len);
        self.damage.cut(self.durable_len);
        self.cached = self.durable.clone();
        self.len = self.durable_len;
        self.cut = None;
        self.cold = (0..self.cached.len() as u32).filter(|page| self.cached[*page as usize].is_some()).collect();
        lost.length_changed = self.len != before;
        lost
    }

    fn tear(&mut self, stage: &Stage, rng: &mut Rng, lost: &mut Lost) {
        let survival = Survival::draw(rng);
        let survives = |rng: &mut Rng| match survival {
            Survival::All => true,
            Survival::None => false,
            Survival::Some => rng.below(2) == 0,
        };
        if let Some(cut) = stage.cut
            && survives(rng)
        {
            trim(&mut self.durable, cut);
            self.durable_len = self.durable_len.min(cut);
        }
        for (page, mask, bytes) in &stage.pages {
            let keep = match survival {
                Survival::All => *mask,
                Survival::None => 0,
                Survival::Some => *mask & rng.next() as u8,
            };
            lost.sectors += u64::from((mask & !keep).count_ones());
            lost.kept_sectors += u64::from(keep.count_ones());
            if keep != 0 {
                self.damage.unreadable.clear(*page, keep);
                let page = *page as usize;
                if self.durable.len() <= page {
                    self.durable.resize(page + 1, None);
                }
                copy_sectors(Rc::make_mut(self.durable[page].get_or_insert_with(zero_page)), bytes, keep);
            }
        }
        self.durable_len = match survival {
            Survival::All => stage.len,
            Survival::None => self.durable_len,
            Survival::Some => match rng.below(3) {
                0 => self.durable_len,
                1 => stage.len,
                _ => {
                    let (low, high) = (self.durable_len.min(stage.len), self.durable_len.max(stage.len));
                    low + rng.below(high - low + 1)
                }
            },
        };
    }

    /// All bytes as a program reads them.
    pub(super) fn cached_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; self.len as usize];
        self.read_at(0, &mut out);
        out
    }

    /// All bytes that are certain to survive a power loss.
    pub(super) fn durable_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; self.durable_len as usize];
        read(&self.durable, self.durable_len, 0, &mut out);
        out
    }

    /// Replaces cache and platter alike: damage by the experimenter, or a file that was always there.
    pub(super) fn plant(&mut self, bytes: &[u8]) {
        *self = Image { failed_through: self.failed_through, ..Image::default() };
        self.write_at(0, bytes, u64::MAX);
        self.begin_sync(u64::MAX);
        self.complete_sync(u64::MAX);
    }

    /// Bytes that differ between cache and platter exist.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.syncing.is_empty() || self.len != self.durable_len || self.cut.is_some()
    }

    /// What must hold between two operations.
    pub(super) fn check_invariants(&self) {
        let within = |pages: &Pages, len: u64| pages.len() as u64 <= len.div_ceil(PAGE as u64);
        assert!(within(&self.cached, self.len), "cached pages beyond the end");
        assert!(within(&self.durable, self.durable_len), "durable pages beyond the end");
        for page in self.dirty.keys() {
            assert!(matches!(self.cached.get(*page as usize), Some(Some(_))), "dirty page {page} is not in the cache");
        }
        assert!(self.syncing.iter().is_sorted_by_key(|stage| stage.sync), "syncs end in their order");
    }
}

mod damage;
#[cfg(test)]
mod tests;
