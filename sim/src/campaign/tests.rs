use crate::explore::{Corpus, Explorer, Strategy};
use crate::scenario::tests::registry;
use crate::shard::Shard;
use std::collections::BTreeSet;

/// Scenarios and seeds of the first runs of a shard, of a campaign of `seeds` seeds.
fn dealt(seeds: u64, shard: Shard) -> Vec<(String, u64)> {
    let registry = registry();
    let entries = registry.select(&[]).expect("all");
    let explorer = Explorer::new(entries, Strategy::Random, 100, shard, Corpus::default()).expect("any has seeds");
    let numbers = (0..).take_while(|number| explorer.index(*number) < seeds);
    let tasks = numbers.map(|number| explorer.task(number).expect("a seed"));
    tasks.map(|task| (task.scenario().to_owned(), task.seed().expect("drawn"))).collect()
}

#[test]
fn shards_share_a_campaign_without_gap_or_overlap() {
    let whole = dealt(11, Shard::ALL);
    assert_eq!(whole.len(), 11);
    assert_eq!(whole[1], ("offset_never_goes_back".to_owned(), 101));
    let shards: Vec<_> = (1..=3).flat_map(|index| dealt(11, Shard { index, count: 3 })).collect();
    assert_eq!(shards.len(), 11);
    assert_eq!(shards.into_iter().collect::<BTreeSet<_>>(), whole.into_iter().collect());
}
