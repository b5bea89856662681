//! Clock and entropy of dependencies: the doors that madsim leaves open, closed by symbols of our own. They are active only on a
//! thread that is inside a world.
//!
//! - `syscall`: some crates (getrandom 0.2, so rand 0.8 and ring) ask for entropy by the raw system call, past the libc function
//!   that madsim replaces. The answer comes from the node's stream `getrandom`. This works in every binary that links `rt`.
//! - `clock_gettime`: madsim replaces it by *its* clock, which knows no nodes. A binary that is linked with
//!   `-Wl,--wrap=clock_gettime` uses ours instead: std's `Instant` and `SystemTime` in any crate then follow the current node's
//!   clock (drift, steps, freeze), and each read is counted as stray, because it did not come through `rt::time`. Without the
//!   flag std shows madsim's clock: the right speed, but one clock for all nodes and a date drawn from the seed.
//!
//! A package that owns a binary or tests which are to have that has this `build.rs` (not `rustflags`: they would break build
//! scripts and procedural macros):
//!
//! ```no_run
//! println!("cargo::rerun-if-changed=build.rs");
//! if std::env::var_os("CARGO_CFG_MADSIM").is_some() && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
//!     println!("cargo::rustc-link-arg=-Wl,--wrap=clock_gettime");
//! }
//! ```
//!
//! Not closed: clocks read by the processor's counter (quanta, minstant), and the vDSO called directly.
use super::trace::Event;
use super::world::{World, try_world};
use std::backtrace::Backtrace;
use std::sync::atomic::{AtomicUsize, Ordering};

/// In the place of a stream's number in the trace.
pub(super) const ENTROPY: u32 = u32::MAX - 1;

type Syscall = unsafe extern "C" fn(i64, i64, i64, i64, i64, i64, i64) -> i64;

/// Stands before libc's. Not variadic here: on Linux x86-64 and AArch64 a variadic call passes seven integers like any other.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: i64, a: i64, b: i64, c: i64, d: i64, e: i64, f: i64) -> i64 {
    if number == libc::SYS_getrandom
        && let Some(world) = try_world()
    {
        // SAFETY: the caller gives a buffer of `b` bytes at `a`.
        let out =
            unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(a as usize), b as usize) };
        fill(world, out);
        return b;
    }
    // SAFETY: the arguments are passed on as they came.
    unsafe { next_syscall()(number, a, b, c, d, e, f) }
}

fn fill(world: &World, out: &mut [u8]) {
    let mut entropy = world.here().entropy.borrow_mut();
    entropy.fill(out);
    drop(entropy);
    world.stray_entropy_reads.set(world.stray_entropy_reads.get() + 1);
    let word = out.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    world.record_as(Event::Draw, ENTROPY, word);
}

fn next_syscall() -> Syscall {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let mut next = NEXT.load(Ordering::Relaxed);
    if next == 0 {
        // SAFETY: the name is a C string.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) }.expose_provenance();
        assert!(next != 0, "libc has `syscall`");
        NEXT.store(next, Ordering::Relaxed);
    }
    // SAFETY: it is the address of libc's `syscall`, which takes its arguments as `Syscall` passes them.
    unsafe { std::mem::transmute::<*const (), Syscall>(std::ptr::with_exposed_provenance(next)) }
}

/// Called in the place of `clock_gettime` by everything in a binary that is linked with the flag above.
///
/// # Safety
/// As libc's `clock_gettime`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_clock_gettime(id: libc::clockid_t, out: *mut libc::timespec) -> libc::c_int {
    // An allocator may ask at any moment, also while the first node is being made. No borrow may be taken here: the code that allocates
    // may hold it.
    let Some(world) = try_world().filter(|world| world.node_count() > 0) else {
        // SAFETY: the arguments are passed on as they came. Not `clock_gettime`, which would end here again.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, id, out) } as libc::c_int;
    };
    count_stray(world);
    let clock = world.here().clock.get();
    let nanos = match id {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => clock.unix_nanos(world.now.get()),
        _ => clock.local(world.now.get()) as i64,
    };
    let time = libc::timespec { tv_sec: nanos.div_euclid(1_000_000_000), tv_nsec: nanos.rem_euclid(1_000_000_000) };
    // SAFETY: the caller gives room for one.
    unsafe { out.write(time) };
    0
}

fn count_stray(world: &World) {
    let count = world.stray_clock_reads.get() + 1;
    world.stray_clock_reads.set(count);
    if world.config.catch_clock_read == Some(count) {
        world.caught_clock_read.replace(Some(Backtrace::force_capture().to_string()));
    }
}
