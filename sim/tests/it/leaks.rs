//! Planted leaks of the outer world into a run.

use proptest::strategy::{BoxedStrategy, Just, Strategy};
use rt::world::WorldConfig;
use sim::desk::Desk;
use sim::report::Report;
use sim::scenario::Scenario;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Grows in the process that forks: its children inherit what it is.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Grows in the child only.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// What leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leak {
    /// The order of a map that hashes by where it lies.
    MapOrder,
    /// The machine's clock, by a system call that nothing stands before.
    Clock,
    /// A counter of the process that forks.
    StaticOfParent,
    /// A counter of the child: no leak, because each run has its own.
    StaticOfChild,
    /// The order of std's map: no leak, because its keys are drawn in the world.
    StdMapOrder,
    /// An address that decides a verdict, but no event.
    AddressInReport,
}

struct ByAddress(u64);

impl BuildHasher for ByAddress {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

fn address() -> u64 {
    (&raw const *Box::new(1_u64)) as usize as u64 >> 12
}

fn clock() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one struct.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_nsec.unsigned_abs()
}

impl Leak {
    pub const ALL: [Leak; 6] = {
        use Leak::{AddressInReport, Clock, MapOrder, StaticOfChild, StaticOfParent, StdMapOrder};
        [MapOrder, Clock, StaticOfParent, StaticOfChild, StdMapOrder, AddressInReport]
    };

    /// Numbers that decide how long the run sleeps.
    fn numbers(self) -> Vec<u64> {
        let first = |keys: Vec<u64>| keys.into_iter().take(1).collect();
        match self {
            Leak::MapOrder => {
                let mut map = HashMap::with_hasher(ByAddress(address()));
                map.extend((1..=1_000_u64).map(|key| (key, key)));
                first(map.into_keys().collect())
            }
            Leak::Clock => vec![1 + clock() % 1_000_000],
            Leak::StaticOfParent => vec![1 + ASKED.load(Ordering::Relaxed)],
            Leak::StaticOfChild => vec![1 + RUNS.fetch_add(1, Ordering::Relaxed)],
            Leak::StdMapOrder => {
                first((1..=1_000_u64).map(|key| (key, key)).collect::<HashMap<_, _>>().into_keys().collect())
            }
            Leak::AddressInReport => vec![1],
        }
    }
}

impl Scenario for Leak {
    type Plan = ();

    fn name(&self) -> &'static str {
        ASKED.fetch_add(1, Ordering::Relaxed);
        match self {
            Leak::MapOrder => "leaks_map_order",
            Leak::Clock => "leaks_clock",
            Leak::StaticOfParent => "leaks_static",
            Leak::StaticOfChild => "keeps_static",
            Leak::StdMapOrder => "keeps_map_order",
            Leak::AddressInReport => "leaks_into_report",
        }
    }

    fn suite(&self) -> &'static str {
        "leaks"
    }

    fn claim(&self) -> &'static str {
        "a leak is caught by the determinism check"
    }

    fn strategy(&self) -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn run(&self, (): &()) -> Report {
        let leak = *self;
        let desk = Desk::new();
        let (_, mut report) = desk.run(WorldConfig::default(), move || async move {
            for round in 0..2_000_u64 {
                let more = if round == 1_500 { leak.numbers() } else { Vec::new() };
                for number in [1].into_iter().chain(more) {
                    rt::time::sleep(Duration::from_micros(number)).await;
                }
            }
        });
        if leak == Leak::AddressInReport {
            report.counts.insert("address".to_owned(), address());
        }
        report
    }
}
