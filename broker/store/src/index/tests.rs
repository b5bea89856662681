//! Files as Apache's broker writes them, and what a crash may leave of them. Needs planted files.
#![cfg(madsim)]
use super::Index;
use crate::layout::IndexSizes;
use protocol::PhysicalOffset;
use rt::world::{NodeId, disk, run_test};
use std::path::{Path, PathBuf};

const DIR: &str = "/index";
/// Small: 49 entries a file.
const SIZES: IndexSizes = IndexSizes { slots: 10, entries: 50 };

async fn opened(is_clean: bool) -> Index {
    opened_below(is_clean, None).await
}

async fn opened_below(is_clean: bool, synced: Option<PhysicalOffset>) -> Index {
    rt::fs::create_dir_all(DIR).unwrap();
    Index::open(DIR.into(), SIZES, is_clean, synced).await.unwrap()
}

/// Message `n` has two keys and lies at 100 n.
fn put(index: &Index, numbers: std::ops::Range<i64>) {
    for n in numbers {
        let keys = [format!("unique-{n}"), format!("order-{}", n % 7)];
        let ms = 1_000_000 + 300 * n;
        index.put("Orders", keys.iter().map(String::as_str), PhysicalOffset(100 * n), ms, ms).unwrap();
    }
    index.write_pending().unwrap();
}

async fn find(index: &Index, key: &str) -> Vec<i64> {
    let found = index.find("Orders", key, 64, 0, i64::MAX).await.unwrap();
    found.into_iter().map(|place| place.0 / 100).collect()
}

async fn check(index: &Index, messages: i64) {
    for n in 0..messages {
        assert!(find(index, &format!("unique-{n}")).await.contains(&n), "message {n}");
    }
    for group in 0..7 {
        let expected: Vec<i64> = (0..messages).rev().filter(|n| n % 7 == group).collect();
        let found = find(index, &format!("order-{group}")).await;
        assert_eq!(found.iter().filter(|n| *n % 7 == group).copied().collect::<Vec<_>>(), expected);
    }
}

fn files() -> Vec<PathBuf> {
    disk::list(NodeId::WORLD, DIR).unwrap()
}

#[test]
fn each_key_is_found_over_several_files_before_and_after_a_restart() {
    run_test(|| async {
        let index = opened(true).await;
        assert_eq!(find(&index, "order-1").await, [0; 0]);
        put(&index, 0..100);
        assert_eq!(files().len(), 5, "{:?}", files());
        check(&index, 100).await;
        assert_eq!(index.end(), PhysicalOffset(9_900));
        // Known messages are passed over.
        put(&index, 0..99);
        check(&index, 100).await;
        index.sync().await.unwrap();
        // The slots of full files are read from the disk from now on.
        check(&index, 100).await;
        for is_clean in [true, false] {
            let index = opened(is_clean).await;
            put(&index, 0..100);
            check(&index, 100).await;
            index.sync().await.unwrap();
        }
    });
}

#[test]
fn times_bound_what_is_found() {
    run_test(|| async {
        let index = opened(true).await;
        put(&index, 0..100);
        let find = async |from: i64, until: i64| {
            let found = index.find("Orders", "order-3", 64, from, until).await.unwrap();
            found.into_iter().map(|place| place.0 / 100).filter(|n| n % 7 == 3).collect::<Vec<_>>()
        };
        // An entry knows its time to the second; what was stored in time is found in any case.
        for n in [3, 10, 52, 94] {
            let ms = 1_000_000 + 300 * n;
            assert!(find(ms, ms).await.contains(&n));
        }
        assert_eq!(find(0, 999_999).await, [0; 0]);
        assert_eq!(find(2_000_000, 3_000_000).await, [0; 0]);
        assert_eq!(index.find("Orders", "order-3", 2, 0, i64::MAX).await.unwrap().len(), 2, "no more than asked for");
    });
}

#[test]
fn a_crash_takes_no_key_that_the_log_still_has() {
    run_test(|| async {
        for (synced, cut_at) in
            [0, 20, 24, 25, 40].into_iter().flat_map(|synced| [0, 1, 20, 39, 41, 120, 800].map(|at| (synced, at)))
        {
            for file in files_if_any() {
                rt::fs::remove_file(file).unwrap();
            }
            let index = opened(true).await;
            put(&index, 0..synced);
            index.sync().await.unwrap();
            put(&index, synced..60);
            drop(index);
            // The process ended before anything but entries was written; then a part of the last file is lost.
            let last = files().pop().unwrap();
            let mut bytes = disk::read_file(NodeId::WORLD, &last).unwrap();
            let end = bytes.len();
            bytes[(40 + 40 + 20 + cut_at).min(end)..].fill(0);
            disk::write_file(NodeId::WORLD, &last, &bytes).unwrap();
            let index = opened_below(false, Some(PhysicalOffset(100 * synced))).await;
            // What was synced is found before anything is indexed again: recovery may begin behind it.
            check(&index, synced).await;
            assert!(index.end() <= PhysicalOffset(100 * synced));
            put(&index, 0..60);
            check(&index, 60).await;
        }
    });
}

fn files_if_any() -> Vec<PathBuf> {
    disk::list(NodeId::WORLD, DIR).unwrap_or_default()
}

/// On a full disk a file may be made and get no length.
#[test]
fn an_empty_file_between_others_hides_nothing() {
    run_test(|| async {
        let index = opened(true).await;
        put(&index, 0..60);
        index.sync().await.unwrap();
        let last = super::creation_time(files().last().unwrap()).unwrap();
        disk::write_file(NodeId::WORLD, format!("{DIR}/{:017}", last - 1), b"").unwrap();
        for is_clean in [true, false] {
            let index = opened_below(is_clean, Some(PhysicalOffset(6_000))).await;
            check(&index, 60).await;
            index.sync().await.unwrap();
        }
    });
}

#[test]
fn entries_of_a_lost_suffix_are_given_up() {
    run_test(|| async {
        let index = opened(true).await;
        put(&index, 0..100);
        for kept in [90, 61, 48, 13, 1, 0] {
            index.keep_below(PhysicalOffset(100 * kept)).await.unwrap();
            check(&index, kept).await;
            assert!(!find(&index, &format!("unique-{kept}")).await.contains(&kept));
        }
        // Other messages come to stand there.
        put(&index, 0..20);
        check(&index, 20).await;
    });
}

#[test]
fn a_name_is_the_time_of_creation_and_rises() {
    assert_eq!(super::file_name(1_795_973_515_713), 20_261_129_173_155_713);
    assert_eq!(super::creation_time(Path::new("/x/20261129173155713")), Some(20_261_129_173_155_713));
    for foreign in ["2026112915315571", "202611291731557133", "20261129x53155713"] {
        assert_eq!(super::creation_time(Path::new(foreign)), None);
    }
}
#[test]
fn old_files_go_and_the_last_one_stays() {
    run_test(|| async {
        let index = opened(true).await;
        put(&index, 0..100);
        index.remove_below(PhysicalOffset(5_000)).unwrap();
        assert!(!find(&index, "unique-10").await.contains(&10));
        assert!(find(&index, "unique-99").await.contains(&99));
        index.remove_below(PhysicalOffset(i64::MAX)).unwrap();
        assert_eq!(files().len(), 1);
        assert!(find(&index, "unique-99").await.contains(&99));
    });
}
