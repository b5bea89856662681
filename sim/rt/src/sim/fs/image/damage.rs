//! What goes wrong with the bytes of a file other than by a crash: sectors that cannot be read, bits that flip at rest, writes that
//! land elsewhere, reads that show what was there before.
use super::{Image, PAGE, SECTOR, page_of, sectors};
use crate::sim::fs::marks::{Marks, touched, whole};
use std::ops::Range;
use std::rc::Rc;

/// The damage of one file.
#[derive(Debug, Default)]
pub(in crate::sim::fs) struct Damage {
    /// Sectors of the platter that cannot be read until they are written again.
    pub(super) unreadable: Marks,
    /// Sectors of which a bit has flipped.
    rotten: Marks,
    /// The bytes that the last write replaced, kept while a fault may show them again.
    replaced: Option<(u64, Vec<u8>)>,
}

impl Damage {
    /// What is behind `len` is no part of the file any more.
    pub(super) fn cut(&mut self, len: u64) {
        self.unreadable.cut(len);
        self.rotten.cut(len);
    }
}

fn range_of(offset: u64, length: usize) -> Range<u64> {
    offset..offset.saturating_add(length as u64)
}

impl Image {
    /// Sectors of a page that were written and are not durable yet.
    fn written(&self, page: u32) -> u8 {
        let stages = self.syncing.iter().flat_map(|stage| &stage.pages);
        let syncing = stages.filter(|(at, ..)| *at == page).fold(0, |all, (_, mask, _)| all | mask);
        self.dirty.get(&page).copied().unwrap_or(0) | syncing
    }

    /// Lets sectors of the platter be unreadable; says how many.
    pub(in crate::sim::fs) fn fail_sectors(&mut self, range: &Range<u64>) -> u64 {
        let stored = range.start..range.end.min(self.durable_len);
        let on_platter = |page: u32| self.durable.get(page as usize).is_some_and(Option::is_some);
        let pages: Vec<(u32, u8)> = touched(&stored).filter(|(page, _)| on_platter(*page)).collect();
        pages.into_iter().map(|(page, mask)| self.damage.unreadable.set(page, mask)).sum()
    }

    /// Lets sectors be read again, with what was in them; says how many.
    pub(in crate::sim::fs) fn restore_sectors(&mut self, range: &Range<u64>) -> u64 {
        let within = |sector: &u64| range.start < sector + SECTOR as u64 && *sector < range.end;
        let unreadable = &mut self.damage.unreadable;
        let marked: Vec<u64> = unreadable.offsets().filter(within).collect();
        marked
            .iter()
            .map(|sector| page_of(*sector))
            .map(|(page, at)| unreadable.clear(page as u32, super::sectors(at, SECTOR)))
            .sum()
    }

    /// Whether a read of the range meets an unreadable sector. What the cache holds and the platter does not yet is readable.
    pub(in crate::sim::fs) fn is_unreadable(&self, range: &Range<u64>) -> bool {
        let unreadable = &self.damage.unreadable;
        !unreadable.is_empty()
            && touched(range).any(|(page, mask)| unreadable.of(page) & mask & !self.written(page) != 0)
    }

    /// Whether a write must first read a sector that it covers in part only, and cannot.
    pub(in crate::sim::fs) fn is_unwritable(&self, offset: u64, length: usize) -> bool {
        if self.damage.unreadable.is_empty() || length == 0 {
            return false;
        }
        let range = range_of(offset, length);
        let partly = |byte: u64| !byte.is_multiple_of(SECTOR as u64);
        partly(range.start) && self.is_unreadable(&(range.start..range.start + 1))
            || partly(range.end) && self.is_unreadable(&(range.end - 1..range.end))
    }

    /// Flips a bit that is at rest on the platter; false if nothing is, or it is about to be written again.
    pub(in crate::sim::fs) fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        let (page, at) = page_of(offset);
        if offset >= self.durable_len || self.written(page as u32) != 0 {
            return false;
        }
        let Some(Some(bytes)) = self.durable.get_mut(page) else { return false };
        Rc::make_mut(bytes)[at] ^= 1 << (bit % 8);
        if let Some(cached @ Some(_)) = self.cached.get_mut(page) {
            *cached = Some(Rc::clone(bytes));
        }
        self.damage.rotten.set(page as u32, sectors(at, 1));
        true
    }

    /// How many rotten sectors a read of the range shows.
    pub(in crate::sim::fs) fn rotten(&self, range: &Range<u64>) -> u64 {
        self.damage.rotten.in_range(range)
    }

    /// Remembers what a write is about to replace, to show it once more.
    pub(in crate::sim::fs) fn remember(&mut self, offset: u64, length: usize) {
        let mut replaced = vec![0; length];
        let known = self.read_at(offset, &mut replaced);
        replaced.truncate(known);
        self.damage.replaced = Some((offset, replaced));
    }

    /// Puts what the last write replaced over what a read gave; true if that changed anything, and then only once.
    pub(in crate::sim::fs) fn show_replaced(&mut self, offset: u64, out: &mut [u8]) -> bool {
        let Some((from, replaced)) = &self.damage.replaced else { return false };
        let (old, new) = (range_of(*from, replaced.len()), range_of(offset, out.len()));
        let common = old.start.max(new.start)..old.end.min(new.end);
        if common.is_empty() {
            return false;
        }
        let part = |range: &Range<u64>| (common.start - range.start) as usize..(common.end - range.start) as usize;
        let (stale, shown) = (&replaced[part(&old)], &mut out[part(&new)]);
        let differs = *stale != *shown;
        shown.copy_from_slice(stale);
        if differs {
            self.damage.replaced = None;
        }
        differs
    }

    /// Where a write of that many bytes may land instead: a place within the file, in the same position of its sector. `draw` gives a
    /// number below its argument. `None`: the file has no other place.
    pub(in crate::sim::fs) fn elsewhere(
        &self,
        offset: u64,
        length: usize,
        draw: impl FnOnce(u64) -> u64,
    ) -> Option<u64> {
        let sector = SECTOR as u64;
        let end = self.len.max(offset + length as u64);
        let places = (end - offset % sector - length as u64) / sector + 1;
        let present = offset / sector;
        let place = draw(places.checked_sub(1).filter(|others| *others > 0)?);
        Some(place + u64::from(place >= present)).map(|place| place * sector + offset % sector)
    }

    /// The file is as long as after a write there, without its bytes.
    pub(in crate::sim::fs) fn extend(&mut self, offset: u64, length: usize) {
        self.len = self.len.max(offset + length as u64);
    }

    /// The program has written there: what was rotten and is replaced as a whole is sound.
    pub(in crate::sim::fs) fn overwritten(&mut self, offset: u64, length: usize) {
        if !self.damage.rotten.is_empty() {
            for (page, mask) in touched(&whole(&range_of(offset, length))) {
                self.damage.rotten.clear(page, mask);
            }
        }
    }

    /// Bytes that the platter holds: what can be damaged.
    pub(in crate::sim::fs) fn durable_len(&self) -> u64 {
        self.durable_len
    }
}

const _: () = assert!(PAGE.is_multiple_of(SECTOR), "sectors do not cross pages");
