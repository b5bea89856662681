//! Marks in code under test.
use rt::world::{self, Buggify, FindingKind, Sometimes, WorldConfig};
use rt::{always, buggify, probe, sometimes};

#[test]
fn marks_are_counted_per_run() {
    let run = || {
        world::run(WorldConfig::default(), || async {
            for n in 0..5 {
                probe!("rare branch");
                sometimes!(n > 2, "large");
                always!(n < 5, "small");
            }
        })
    };
    run();
    let outcome = run();
    assert_eq!(outcome.finding, None);
    assert_eq!(outcome.probes.hits, [("rare branch", 5)].into());
    assert_eq!(outcome.probes.sometimes, [("large", Sometimes { held: 2, missed: 3 })].into());
    assert_eq!(outcome.probes.always, [("small", 5)].into());
}

#[test]
fn a_broken_always_is_a_finding_at_its_line() {
    let outcome = world::run(WorldConfig::default(), || async {
        always!(1 > 2, "order of numbers");
    });
    let finding = outcome.finding.unwrap();
    assert_eq!((finding.kind, finding.message.as_str()), (FindingKind::Always, "order of numbers"));
    assert!(finding.place.unwrap().contains("probes.rs:"));
}

#[test]
fn marks_outside_of_a_world_do_nothing() {
    probe!("nobody counts");
    sometimes!(false, "nobody counts");
    always!(false, "nobody checks");
    assert!(!buggify!("nobody deviates"));
}

/// Times that each of three sites said yes in 1,000 asks.
fn deviations(seed: u64, buggify: Option<Buggify>) -> ([u32; 3], usize) {
    let outcome = world::run(WorldConfig { seed, buggify, ..WorldConfig::default() }, || async {
        let mut counts = [0; 3];
        for _ in 0..1000 {
            counts[0] += u32::from(buggify!("site one"));
            counts[1] += u32::from(buggify!("site two"));
            counts[2] += u32::from(buggify!("site three"));
        }
        counts
    });
    (outcome.value.unwrap(), outcome.probes.buggified.len())
}

#[test]
fn sites_deviate_only_if_asked_and_only_where_active() {
    assert_eq!(deviations(1, None), ([0; 3], 0));
    let all = Buggify { site_probability: 1.0, fire_probability: 0.5 };
    let (counts, active) = deviations(1, Some(all));
    assert_eq!(active, 3);
    assert!(counts.iter().all(|count| (400..600).contains(count)), "{counts:?}");
    let some: Vec<_> = (0..100).map(|seed| deviations(seed, Some(Buggify::default())).1).collect();
    let mean = some.iter().sum::<usize>() as f64 / 300.0;
    assert!((0.15..0.35).contains(&mean), "a quarter of the sites is active, not {mean}");
    assert_eq!(deviations(3, Some(all)), deviations(3, Some(all)));
}
