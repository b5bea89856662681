//! The doors by which a dependency could reach the outer world: what each shows inside of a run. See `DETERMINISM.md`.
#![cfg(target_os = "linux")]

use rt::world::{FindingKind, Outcome, WorldConfig, run};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Instant, SystemTime};

/// What an asker reads in a run of that seed.
fn reads<T: 'static>(seed: u64, ask: fn() -> T) -> T {
    let config = WorldConfig { seed, ..WorldConfig::default() };
    let outcome: Outcome<T> = run(config, move || async move {
        rt::time::sleep(std::time::Duration::from_millis(1_234)).await;
        ask()
    });
    outcome.value.expect("nothing goes wrong")
}

/// The same in each run of a seed, and another thing in another.
fn follows_the_seed<T: PartialEq + std::fmt::Debug + Send + 'static>(ask: fn() -> T) {
    let [first, again, other] = [1, 1, 2].map(|seed| {
        // Std keeps its first keys for a thread.
        std::thread::spawn(move || reads(seed, ask)).join().expect("it ends")
    });
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// As getrandom 0.3 and 0.4 do, and with them rand 0.9 and 0.10.
fn found_at_run_time() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the name ends with a zero; a symbol of that name is libc's or stands before it, and has its type.
    unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"getrandom".as_ptr());
        assert!(!symbol.is_null(), "libc has it");
        let getrandom: unsafe extern "C" fn(*mut libc::c_void, usize, u32) -> isize = std::mem::transmute(symbol);
        assert_eq!(getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0), 16);
    }
    bytes
}

fn linked() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: it fills the array.
    assert_eq!(unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) }, 0);
    bytes
}

/// As getrandom 0.2 does, and with it rand 0.8 and ring.
fn by_system_call() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: it fills the array.
    assert_eq!(unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) }, 16);
    bytes
}

#[test]
fn entropy_by_each_door_is_drawn_in_the_world() {
    follows_the_seed(found_at_run_time);
    follows_the_seed(linked);
    follows_the_seed(by_system_call);
    follows_the_seed(|| RandomState::new().hash_one(1));
}

#[test]
fn clocks_of_std_are_the_nodes() {
    let began = Instant::now();
    let today = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis();
    assert_eq!(reads(1, today), 1_790_000_001_234);
    let monotonic = || {
        let now = Instant::now();
        (now, rt::world::elapsed())
    };
    assert_eq!(reads(1, monotonic), reads(2, monotonic), "no time passes between two runs");
    assert!(Instant::now() > began);
}

#[test]
fn the_number_of_processors_is_no_secret_of_the_machine() {
    assert_eq!(
        reads(1, || std::thread::available_parallelism().ok()),
        reads(2, || std::thread::available_parallelism().ok())
    );
}

#[test]
fn a_thread_is_a_finding() {
    let outcome = run(WorldConfig::default(), || async { drop(std::thread::spawn(|| {})) });
    assert_eq!(outcome.finding.map(|finding| finding.kind), Some(FindingKind::Panic));
}
