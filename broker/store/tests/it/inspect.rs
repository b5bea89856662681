//! What a look through files says of stores that are sound, and of those that are not.
use crate::golden::{Files, ROOT, config, files, manifest, plant};
use crate::support::{files_below, open};
use rt::world::run_test;
use std::path::{Path, PathBuf};
use store::{IndexConfig, Inspection, inspect};

async fn look() -> Inspection {
    inspect(Path::new(ROOT), None, config().index, |_, _| {}).await.unwrap()
}

/// Each damage as `file:position: what`.
fn told(found: &Inspection) -> Vec<String> {
    let damage = found.damage.iter();
    damage
        .map(|damage| {
            let name = damage.path.strip_prefix(ROOT).unwrap_or(&damage.path);
            format!("{}:{}: {}", name.display(), damage.position, damage.what)
        })
        .collect()
}

fn looked(files: Files, check: impl FnOnce(Inspection) + 'static) {
    run_test(move || async move {
        plant(&files);
        let before = files_below(ROOT);
        check(look().await);
        assert!(files_below(ROOT) == before, "nothing is written");
    });
}

#[test]
fn apaches_stores_are_sound() {
    for (name, is_clean) in [("clean", true), ("unclean", false)] {
        let manifest = manifest(name);
        looked(files(name), move |found| {
            assert_eq!(told(&found), [""; 0], "{name}");
            assert_eq!(found.is_clean, is_clean, "{name}");
            assert_eq!(found.end.0, manifest["commitLog"]["end"].as_i64().unwrap());
            assert_eq!(found.records, manifest["commitLog"]["records"].as_array().unwrap().len() as u64);
            assert_eq!(found.queues, manifest["consumeQueue"].as_object().unwrap().len() as u64);
        });
    }
}

#[test]
fn our_store_is_sound_after_a_restart() {
    let files = files("clean");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        // While it runs.
        assert_eq!(told(&look().await), [""; 0]);
        store.shutdown().await.unwrap();
        let found = look().await;
        assert_eq!(told(&found), [""; 0]);
        assert!(found.is_clean && found.keys > 300);
    });
}

/// Changes one byte of a file.
fn inverted(name: &str, file: &str, at: usize) -> Files {
    let mut files = files(name);
    files.get_mut(Path::new(file)).unwrap()[at] ^= 0xff;
    files
}

#[test]
fn damage_is_named_with_its_file_and_place() {
    looked(inverted("clean", "commitlog/00000000000000000000", 300), |found| {
        insta::assert_snapshot!(told(&found).join("\n"));
    });
    looked(inverted("clean", "consumequeue/GoldenNormal/0/00000000000000000000", 5), |found| {
        insta::assert_snapshot!(told(&found).join("\n"));
    });
    let mut torn = files("clean");
    let last = torn.keys().rfind(|path| path.starts_with("index")).unwrap().clone();
    torn.get_mut(&last).unwrap()[40 + 200 + 20 * 7 + 3] ^= 0xff;
    looked(torn, |found| insta::assert_snapshot!(told(&found).join("\n")));
}

#[test]
fn what_is_missing_is_named() {
    let mut without_queues = files("clean");
    without_queues.retain(|path, _| !path.starts_with("consumequeue/GoldenNormal"));
    looked(without_queues, |found| {
        let told = told(&found);
        assert!(!told.is_empty() && told.iter().all(|what| what.contains("there is none, and")), "{told:?}");
    });
    let mut without_a_segment = files("clean");
    without_a_segment.retain(|path, _| !path.ends_with("00000000000000262144"));
    looked(without_a_segment, |found| {
        assert!(told(&found)[0].contains("the file before it ends at log offset 262144"), "{:?}", told(&found));
    });
    looked(Files::new(), |found| assert_eq!((told(&found).len(), found.records), (0, 0)));
}

#[test]
fn files_of_other_features_are_named_and_are_no_damage() {
    looked(files("features"), |found| {
        insta::assert_snapshot!(format!("{}\n---\n{}", found.not_checked.join("\n"), told(&found).join("\n")));
    });
}

#[test]
fn an_index_of_another_size_is_not_read_as_if_it_had_the_size() {
    let files = files("clean");
    run_test(move || async move {
        plant(&files);
        let found = inspect(Path::new(ROOT), None, Some(IndexConfig::default()), |_, _| {}).await.unwrap();
        assert_eq!((told(&found).len(), found.keys), (0, 0));
        let why = "the file has 2240 bytes, and maxHashSlotNum=5000000, maxIndexNum=20000000 make 420000040";
        assert!(found.not_checked[0].ends_with(why), "{:?}", found.not_checked);
    });
}

#[test]
fn two_queue_files_that_are_worlds_apart_are_looked_at_soon() {
    let mut files = files("clean");
    let far = "consumequeue/GoldenNormal/0/09000000000000000000";
    files.insert(PathBuf::from(far), vec![0; 400]);
    looked(files, move |found| {
        assert_eq!(told(&found), [format!("{far}:0: it does not begin where the file before it ends")]);
    });
}
