//! An allocator that counts what this thread holds. A world runs on one thread, so other tests do not disturb its count.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Without a destructor and without lazy initialisation: an allocator may not allocate.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
pub struct Counting;

fn count(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    if live > PEAK.get() {
        PEAK.set(live);
    }
}

// SAFETY: the system allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// What the thread holds now, in bytes; from here on [`peak`] is counted.
pub fn begin() -> i64 {
    PEAK.set(LIVE.get());
    LIVE.get()
}

/// The most that the thread held since [`begin`], in bytes.
pub fn peak() -> i64 {
    PEAK.get()
}

/// What the thread holds now, in bytes.
pub fn live() -> i64 {
    LIVE.get()
}
