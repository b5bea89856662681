//! Sectors of one file that something is wrong with.
use super::image::{PAGE, SECTOR, page_of, sectors};
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of sectors: page number to the page's sectors.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<u32, u8>);

/// The pages that a range of bytes touches, with the sectors in each; the sectors at the ends are touched in part.
pub(super) fn touched(range: &Range<u64>) -> impl Iterator<Item = (u32, u8)> + use<> {
    let (start, end) = (range.start, range.end);
    let pages = if start < end { page_of(start).0..page_of(end - 1).0 + 1 } else { 0..0 };
    pages.map(move |page| {
        let base = page as u64 * PAGE as u64;
        let at = start.saturating_sub(base) as usize;
        let length = (end - base).min(PAGE as u64) as usize - at;
        (page as u32, sectors(at, length))
    })
}

/// The bytes of the sectors that the range covers as a whole.
pub(super) fn whole(range: &Range<u64>) -> Range<u64> {
    let sector = SECTOR as u64;
    range.start.next_multiple_of(sector)..range.end / sector * sector
}

impl Marks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, page: u32) -> u8 {
        self.0.get(&page).copied().unwrap_or(0)
    }

    /// Where each marked sector begins.
    pub(super) fn offsets(&self) -> impl Iterator<Item = u64> {
        let sectors = |(page, mask): (&u32, &u8)| {
            let (base, mask) = (u64::from(*page) * PAGE as u64, *mask);
            (0..8).filter(move |bit| mask & 1 << bit != 0).map(move |bit| base + bit * SECTOR as u64)
        };
        self.0.iter().flat_map(sectors)
    }

    /// Marks sectors; says how many were not marked before.
    pub(super) fn set(&mut self, page: u32, mask: u8) -> u64 {
        if mask == 0 {
            return 0;
        }
        let marked = self.0.entry(page).or_default();
        let new = mask & !*marked;
        *marked |= mask;
        u64::from(new.count_ones())
    }

    /// Takes marks away; says how many.
    pub(super) fn clear(&mut self, page: u32, mask: u8) -> u64 {
        let Some(marked) = self.0.get_mut(&page) else { return 0 };
        let gone = *marked & mask;
        *marked &= !mask;
        if *marked == 0 {
            self.0.remove(&page);
        }
        u64::from(gone.count_ones())
    }

    /// Takes away the marks of sectors that begin at `len` or behind it.
    pub(super) fn cut(&mut self, len: u64) {
        let (page, at) = page_of(len.next_multiple_of(SECTOR as u64));
        self.0.retain(|marked, _| *marked as usize <= page);
        self.clear(page as u32, (u8::MAX as u16).wrapping_shl((at / SECTOR) as u32) as u8);
    }

    /// How many marked sectors the range touches.
    pub(super) fn in_range(&self, range: &Range<u64>) -> u64 {
        if self.0.is_empty() {
            0
        } else {
            touched(range).map(|(page, mask)| u64::from((self.of(page) & mask).count_ones())).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, PAGE, touched, whole};

    #[test]
    fn a_range_touches_sectors_and_covers_fewer() {
        let all = |range| touched(&range).collect::<Vec<_>>();
        assert_eq!(all(0..0), []);
        assert_eq!(all(511..513), [(0, 0b11)]);
        assert_eq!(all(4_000..4_097), [(0, 0b1000_0000), (1, 0b1)]);
        assert_eq!(whole(&(1..1_500)), 512..1_024);
        assert!(whole(&(1..1_000)).is_empty());
    }

    #[test]
    fn a_cut_takes_the_marks_behind_it() {
        let mut marks = Marks::default();
        assert_eq!(marks.set(0, 0b1111), 4);
        assert_eq!(marks.set(0, 0b11000), 1);
        assert_eq!(marks.set(1, 1), 1);
        marks.cut(PAGE as u64);
        assert_eq!((marks.of(0), marks.of(1)), (0b11111, 0));
        marks.cut(513);
        assert_eq!(marks.of(0), 0b11, "the sector of the last byte stays");
        assert_eq!(marks.in_range(&(0..512)), 1);
        assert_eq!(marks.offsets().collect::<Vec<_>>(), [0, 512]);
        assert_eq!(marks.clear(0, u8::MAX), 2);
        assert!(marks.is_empty());
    }
}
