//! The index of keys against that of Apache's broker 5.3.3.
use crate::golden::{Files, ROOT, config, files, manifest, plant};
use crate::support::open;
use protocol::message::RecordView;
use rt::world::{NodeId, disk, run_test};
use std::path::Path;
use store::{Store, StoreConfig};

/// Offsets in the log of what a key finds, oldest first. (`topic#key`, as the manifest has it.)
async fn find(store: &Store, name: &str) -> Vec<i64> {
    let (topic, key) = name.split_once('#').unwrap();
    let records = store.records_by_key(topic, key, (64, usize::MAX), 0, i64::MAX).await.unwrap();
    records.iter().rev().map(|record| RecordView::parse(record).unwrap().physical_offset().0).collect()
}

async fn check_lookups(store: &Store) {
    let manifest = manifest("clean");
    let lookups = manifest["indexLookup"].as_object().unwrap();
    assert!(lookups.len() > 300);
    for (name, expected) in lookups {
        let mut expected: Vec<i64> = expected.as_array().unwrap().iter().map(|at| at.as_i64().unwrap()).collect();
        expected.sort_unstable();
        assert_eq!(find(store, name).await, expected, "{name}");
    }
    assert_eq!(find(store, "GoldenNormal#no such key").await, [0; 0]);
    assert_eq!(find(store, "NoTopic#order0").await, [0; 0]);
}

/// From now on the checkpoint is ours, and says how far the index was synced.
async fn opened_and_stopped() {
    open(config()).await.unwrap().shutdown().await.unwrap();
}

/// Contents of the index files, in the order of their names.
fn index_of(files: &Files) -> Vec<Vec<u8>> {
    files.iter().filter(|(path, _)| path.starts_with("index")).map(|(_, bytes)| bytes.clone()).collect()
}

fn index_on_disk() -> Vec<Vec<u8>> {
    let paths = disk::list(NodeId::WORLD, Path::new(ROOT).join("index")).unwrap();
    paths.iter().map(|path| disk::read_file(NodeId::WORLD, path).unwrap()).collect()
}

#[test]
fn each_key_of_apaches_index_is_found_and_the_files_stay() {
    let files = files("clean");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        check_lookups(&store).await;
        store.shutdown().await.unwrap();
        assert!(index_on_disk() == index_of(&files));
    });
}

#[test]
fn an_index_that_is_built_anew_has_apaches_bytes() {
    let mut files = files("clean");
    let expected = index_of(&files);
    files.retain(|path, _| !path.starts_with("index"));
    files.insert("abort".into(), Vec::new());
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        check_lookups(&store).await;
        store.shutdown().await.unwrap();
        let found = index_on_disk();
        assert_eq!(found.len(), expected.len());
        for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found[..40], expected[..40], "header {n}");
            assert!(found == expected, "file {n}");
        }
    });
}

#[test]
fn a_torn_index_is_made_whole_from_the_log() {
    let files = files("clean");
    run_test(move || async move {
        plant(&files);
        opened_and_stopped().await;
        let last = disk::list(NodeId::WORLD, Path::new(ROOT).join("index")).unwrap().pop().unwrap();
        let mut bytes = disk::read_file(NodeId::WORLD, &last).unwrap();
        // Its slots are gone, and half of its entries.
        bytes[40..240].fill(0);
        bytes[1_000..].fill(0);
        for is_there in [true, false] {
            disk::write_file(NodeId::WORLD, &last, &bytes).unwrap();
            disk::write_file(NodeId::WORLD, Path::new(ROOT).join("abort"), b"").unwrap();
            if !is_there {
                rt::fs::remove_file(&last).unwrap();
            }
            // A checkpoint of Apache's: it does not say how far the index was synced.
            disk::write_file(NodeId::WORLD, Path::new(ROOT).join("checkpoint"), &[0; 4096]).unwrap();
            let store = open(config()).await.unwrap();
            check_lookups(&store).await;
            store.shutdown().await.unwrap();
        }
    });
}

#[test]
fn an_index_that_was_deleted_is_built_again_and_a_disabled_one_finds_nothing() {
    let files = files("clean");
    run_test(move || async move {
        plant(&files);
        opened_and_stopped().await;
        for path in disk::list(NodeId::WORLD, Path::new(ROOT).join("index")).unwrap() {
            rt::fs::remove_file(path).unwrap();
        }
        let store = open(config()).await.unwrap();
        check_lookups(&store).await;
        store.shutdown().await.unwrap();
        drop(store);
        let store = open(StoreConfig { index: None, ..config() }).await.unwrap();
        assert_eq!(find(&store, "GoldenNormal#order0").await, [0; 0]);
    });
}
