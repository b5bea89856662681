//! `cargo sim …`: the stand's command line over the scenarios of this package.
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
/// `mi_option_purge_delay`, which the binding leaves without a name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    // A child lives for less than a second, so memory is never given back; and giving it back reads the clock, which in a world is a
    // door of its own.
    // SAFETY: no other thread runs yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
    sim::cli::main(&scenarios::registry())
}
