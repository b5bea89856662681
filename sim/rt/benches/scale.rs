//! How much one world holds, in full size:
//!
//! ```text
//! cargo bench -p rt --profile sim --bench scale
//! ```
//!
//! 10 GB through one connection, a million timers, a thousand nodes. Memory is what the world's thread allocated beyond what it
//! held before the load. Smaller loads of the same code are tests: `tests/it/scale.rs`.
#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]
#![cfg_attr(madsim, expect(clippy::unwrap_used, reason = "a load that fails ends the benchmark"))]

#[cfg(not(madsim))]
fn main() {
    println!("this benchmark measures the simulated half: run `cargo bench -p rt --bench scale`, without `prod`");
}

#[cfg(madsim)]
#[path = "../tests/it/scale/heap.rs"]
mod heap;
#[cfg(madsim)]
#[path = "../tests/it/scale/loads.rs"]
mod loads;

#[cfg(madsim)]
#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

#[cfg(madsim)]
fn main() {
    row("10 GB through one connection", || loads::one_connection(10_000_000_000 / 65_536 * 65_536));
    row("1,000,000 timers", || loads::timers(1_000_000, 1));
    row("1,000 nodes, 3,000 streams, 90,000 echoes", || loads::nodes(1000));
}

/// On a thread of its own, so that none finds thread-locals of another.
#[cfg(madsim)]
fn row(name: &str, load: fn() -> loads::Load) {
    let (begin, cpu) = (std::time::Instant::now(), cpu_seconds());
    let load = std::thread::spawn(load).join().unwrap();
    let (took, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let (peak, left) = (kib(load.peak_bytes), kib(load.left_bytes));
    println!("{name:<44} {took:>6.2} s, {cpu:>5.2} s of a core {peak:>9.0} KiB at most {left:>7.0} KiB left");
}

/// Processor time of this process: what a busy machine does not change much.
#[cfg(madsim)]
fn cpu_seconds() -> f64 {
    // SAFETY: all fields are numbers, for which zero is a value; the pointer is to one `rusage`.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
