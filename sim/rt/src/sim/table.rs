//! A table with a place for every node that a world can have, of which most worlds need the first few only.
use std::cell::OnceCell;

/// Places that are there from the start.
const NEAR: usize = 256;

/// Values by index. They never move, so a reference to one stays while others are added.
#[derive(Debug)]
pub(super) struct Table<T> {
    near: Box<[T]>,
    /// Made when the first of them is asked for.
    far: OnceCell<Box<[T]>>,
    size: usize,
    make: fn() -> T,
}

impl<T> Table<T> {
    /// A table of `size` values, each as `make` makes it.
    pub(super) fn new(size: usize, make: fn() -> T) -> Table<T> {
        Table { near: (0..size.min(NEAR)).map(|_| make()).collect(), far: OnceCell::new(), size, make }
    }

    /// The value at that place.
    ///
    /// # Panics
    /// Beyond the size.
    #[inline]
    pub(super) fn at(&self, index: usize) -> &T {
        match self.near.get(index) {
            Some(value) => value,
            None => self.far_at(index),
        }
    }

    #[cold]
    fn far_at(&self, index: usize) -> &T {
        let far = self.far.get_or_init(|| (self.near.len()..self.size).map(|_| (self.make)()).collect());
        &far[index - self.near.len()]
    }
}
