//! A repair makes queues and index anew, and keeps what it replaces.
use crate::golden::{Files, ROOT, config, files, plant};
use crate::support::open;
use rt::world::{NodeId, disk, run_test};
use std::path::{Path, PathBuf};
use store::{DamagePolicy, StoreConfig, StoreError, inspect, repair};

fn in_store(path: impl AsRef<Path>) -> PathBuf {
    Path::new(ROOT).join(path)
}

fn bytes(path: impl AsRef<Path>) -> Vec<u8> {
    disk::read_file(NodeId::WORLD, in_store(path)).unwrap()
}

async fn damage_left() -> Vec<String> {
    let found = inspect(Path::new(ROOT), None, config().index, |_, _| {}).await.unwrap();
    found.damage.iter().map(ToString::to_string).collect()
}

/// Changes one byte of a file.
fn inverted(mut files: Files, file: &str, at: usize) -> Files {
    files.get_mut(Path::new(file)).unwrap()[at] ^= 0xff;
    files
}

const QUEUE: &str = "consumequeue/GoldenNormal/0/00000000000000000000";
const SEGMENT: &str = "commitlog/00000000000000000000";

#[test]
fn queues_and_index_come_again_with_the_same_bytes() {
    let sound = files("clean");
    let damaged = inverted(sound.clone(), QUEUE, 5);
    run_test(move || async move {
        plant(&damaged);
        assert!(!damage_left().await.is_empty());
        let repaired = repair(config()).await.unwrap();
        assert_eq!(damage_left().await, [""; 0]);
        assert!(repaired.report.dropped.is_none());
        for (path, expected) in sound.iter().filter(|(path, _)| path.starts_with("consumequeue")) {
            assert!(bytes(path) == *expected, "{}", path.display());
        }
        assert_eq!(repaired.kept_in, in_store("before-repair-1"));
        assert!(bytes(repaired.kept_in.join(QUEUE)) == damaged[Path::new(QUEUE)], "the damaged queue is kept");
        assert!(rt::fs::metadata(repaired.kept_in.join("commitlog")).is_err(), "the log is sound");
        // Once more, on what is sound.
        assert_eq!(repair(config()).await.unwrap().kept_in, in_store("before-repair-2"));
        assert_eq!(damage_left().await, [""; 0]);
    });
}

#[test]
fn a_log_is_cut_only_if_that_was_asked_for_and_only_after_it_was_copied() {
    let sound = files("clean");
    run_test(move || async move {
        plant(&sound);
        // A start of ours writes into the checkpoint how far the log is on disk.
        open(config()).await.unwrap().shutdown().await.unwrap();
        let mut log = bytes(SEGMENT);
        log[300] ^= 0xff;
        disk::write_file(NodeId::WORLD, in_store(SEGMENT), &log).unwrap();
        let refused = repair(config()).await.unwrap_err();
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
        assert!(bytes(SEGMENT) == log, "the log is as it was");
        let dropping = StoreConfig { damage: DamagePolicy::DropTail, ..config() };
        let repaired = repair(dropping).await.unwrap();
        assert!(repaired.report.dropped.unwrap().records_behind > 0);
        assert!(bytes(repaired.kept_in.join(SEGMENT)) == log, "what was cut is kept");
        assert_eq!(damage_left().await, [""; 0]);
    });
}

#[test]
fn a_store_that_runs_is_not_repaired() {
    run_test(|| async {
        plant(&files("clean"));
        let store = open(config()).await.unwrap();
        assert!(matches!(repair(config()).await, Err(StoreError::Locked { .. })));
        store.shutdown().await.unwrap();
    });
}
