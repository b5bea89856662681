//! Recovery takes any bytes.
use crate::support::{ROOT, body, config, message, open, read_all, started};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use rt::world::{NodeId, disk, run_test};
use store::{DamagePolicy, FlushMode, StoreConfig};

/// What happens to one file of a store.
#[derive(Clone, Debug)]
enum Harm {
    Flip { file: usize, at: usize, with: u8 },
    Zero { file: usize, at: usize, length: usize },
    Cut { file: usize, length: usize },
    Noise { file: usize, at: usize, bytes: Vec<u8> },
    Nothing,
}

const FILES: [&str; 7] = [
    "commitlog/00000000000000000000",
    "commitlog/00000000000000004096",
    "commitlog/00000000000000008192",
    "consumequeue/Orders/0/00000000000000000000",
    "consumequeue/Orders/1/00000000000000000000",
    "checkpoint",
    "abort",
];

fn harm() -> impl Strategy<Value = Harm> {
    let file = 0..FILES.len();
    prop_oneof![
        (file.clone(), 0..4096_usize, 1..=255_u8).prop_map(|(file, at, with)| Harm::Flip { file, at, with }),
        (file.clone(), 0..4096_usize, 1..4096_usize).prop_map(|(file, at, length)| Harm::Zero { file, at, length }),
        (file.clone(), 0..4096_usize).prop_map(|(file, length)| Harm::Cut { file, length }),
        (file, 0..4096_usize, vec(any::<u8>(), 1..200)).prop_map(|(file, at, bytes)| Harm::Noise { file, at, bytes }),
        Just(Harm::Nothing),
    ]
}

fn apply(harm: &Harm) {
    let change = |file: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let path = format!("{ROOT}/{}", FILES[file]);
        let Ok(mut bytes) = disk::read_file(NodeId::WORLD, &path) else { return };
        change(&mut bytes);
        disk::write_file(NodeId::WORLD, &path, &bytes).unwrap();
    };
    let write = |bytes: &mut Vec<u8>, at: usize, new: &[u8]| {
        for (place, byte) in bytes.iter_mut().skip(at).zip(new) {
            *place = *byte;
        }
    };
    match harm {
        Harm::Flip { file, at, with } => change(*file, &|bytes| {
            if let Some(byte) = bytes.get_mut(*at) {
                *byte ^= with;
            }
        }),
        Harm::Zero { file, at, length } => change(*file, &|bytes| write(bytes, *at, &vec![0; *length])),
        Harm::Cut { file, length } => change(*file, &|bytes| bytes.truncate(*length)),
        Harm::Noise { file, at, bytes: new } => change(*file, &|bytes| write(bytes, *at, new)),
        Harm::Nothing => {}
    }
}

/// Whatever the files hold: no panic; a store that opens shows messages that were appended, at their offsets, and opens again with
/// the same content.
#[test]
fn recovery_takes_any_bytes_and_invents_nothing() {
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 150, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let strategy = (vec(harm(), 1..4), any::<bool>(), any::<bool>());
    let result = runner.run(&strategy, |(harms, is_clean, is_lenient)| {
        run_test(move || async move {
            let store = started(config(FlushMode::Sync)).await;
            for n in 0..24 {
                store.append(message(i32::try_from(n % 2).unwrap(), body(n))).unwrap();
            }
            store.flushed(store.log_end(), crate::support::SECOND).await.unwrap();
            if is_clean {
                store.shutdown().await.unwrap();
            }
            drop(store);
            rt::time::sleep(crate::support::SECOND).await;
            harms.iter().for_each(apply);
            let damage = if is_lenient { DamagePolicy::DropTail } else { DamagePolicy::Refuse };
            let config = StoreConfig { damage, ..config(FlushMode::Sync) };
            let Ok(store) = open(config.clone()).await else { return };
            store.check_invariants();
            let mut before = Vec::new();
            for queue_id in 0..2 {
                // Entries of the part before the walk may be damaged: then reads say so, and never give another message.
                let Some((min, max)) = store.queue_bounds("Orders", queue_id) else { continue };
                for offset in min.0..max.0 {
                    let request = store::GetRequest { max_messages: 1, ..crate::support::request(queue_id, offset) };
                    let Ok(outcome) = store.get(request).await else { continue };
                    for (record, offset) in outcome.records.iter().zip(&outcome.offsets) {
                        let expected = body(u64::try_from(offset.0 * 2 + i64::from(queue_id)).unwrap());
                        assert_eq!(protocol::message::RecordView::parse(record).unwrap().body(), expected);
                    }
                }
                before.push((min, max));
            }
            let end = store.log_end();
            drop(store);
            let store = open(config).await.unwrap();
            assert_eq!(store.log_end(), end, "recovery is idempotent");
        });
        Ok(())
    });
    result.unwrap();
}

#[test]
fn single_lost_queue_file_is_rebuilt() {
    run_test(|| async {
        let store = open(config(FlushMode::Async)).await.unwrap();
        for n in 0..60 {
            store.append(message(0, body(n))).unwrap();
        }
        store.shutdown().await.unwrap();
        drop(store);
        rt::fs::remove_file(format!("{ROOT}/consumequeue/Orders/0/00000000000000000400")).unwrap();
        let store = open(config(FlushMode::Async)).await.unwrap();
        assert!(store.recovery_report().is_rebuilt);
        assert_eq!(read_all(&store, 0).await, (0..60).map(body).collect::<Vec<_>>());
    });
}

#[test]
fn lost_log_is_refused() {
    run_test(|| async {
        let store = open(config(FlushMode::Async)).await.unwrap();
        for n in 0..24 {
            store.append(message(0, body(n))).unwrap();
        }
        store.shutdown().await.unwrap();
        drop(store);
        for path in rt::fs::read_dir(format!("{ROOT}/commitlog")).unwrap() {
            rt::fs::remove_file(path).unwrap();
        }
        let error = open(config(FlushMode::Async)).await.expect_err("the log is gone");
        assert!(
            error.to_string().starts_with("the commit log in /data/store/commitlog ends at 0, but it was synced up to"),
            "{error}"
        );
    });
}
