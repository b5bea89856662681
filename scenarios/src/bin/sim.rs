//! `cargo sim …`: the stand's command line over the scenarios of this package.
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Pieces = Pieces;
/// `mi_option_purge_delay`, which the binding leaves without a name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    // A child lives for less than a second, so memory is never given back; and giving it back reads the clock, which in a world is a
    // door of its own.
    // SAFETY: no other thread runs yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
    sim::cli::main(&scenarios::registry())
}

/// mimalloc by its plain entry points: the binding asks for every piece with its alignment, which costs more than finding the piece.
struct Pieces;

impl Pieces {
    /// Whether mimalloc aligns a piece so without being told: it deals in words.
    fn is_plain(layout: Layout) -> bool {
        layout.align() <= size_of::<usize>()
    }
}

// SAFETY: each method hands its own contract on to mimalloc, whose plain and aligned functions give and take the same pieces.
unsafe impl GlobalAlloc for Pieces {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            if Pieces::is_plain(layout) {
                libmimalloc_sys::mi_malloc(layout.size()).cast()
            } else {
                MiMalloc.alloc(layout)
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            if Pieces::is_plain(layout) {
                libmimalloc_sys::mi_zalloc(layout.size()).cast()
            } else {
                MiMalloc.alloc_zeroed(layout)
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.dealloc(piece, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            if Pieces::is_plain(layout) {
                libmimalloc_sys::mi_realloc(piece.cast(), size).cast()
            } else {
                MiMalloc.realloc(piece, layout, size)
            }
        }
    }
}
