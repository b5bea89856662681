//! Stores written by Apache's broker 5.3.3: opened with the same result, and written again with the same bytes.
use crate::support::open;
use bytes::Bytes;
use flate2::read::GzDecoder;
use protocol::message::RecordView;
use protocol::{QueueOffset, Record};
use rt::world::{NodeId, disk, run_test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use store::{DamagePolicy, GetRequest, GetStatus, IndexConfig, NewMessage, Store, StoreConfig, TagFilter};

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

pub const ROOT: &str = "/golden";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/store").join(name)
}

#[expect(clippy::disallowed_methods, reason = "golden files lie on the host's disk, outside of the world")]
fn unzipped(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut out = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap();
    out
}

/// The files of a fixture store but the timer's, by path below the root, unpacked.
pub fn files(name: &str) -> Files {
    let mut out = all_files(name);
    out.retain(|path, _| {
        let parts = [
            "commitlog",
            "consumequeue",
            "consumequeue_ext",
            "batchconsumequeue",
            "index",
            "checkpoint",
            "abort",
            "lock",
        ];
        parts.iter().any(|part| path.starts_with(part))
    });
    out
}

/// All files of a fixture store.
pub fn all_files(name: &str) -> Files {
    fn walk(dir: &Path, root: &Path, out: &mut Files) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, out);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                out.insert(PathBuf::from(name.strip_suffix(".gz").unwrap_or(name)), unzipped(&path));
            }
        }
    }
    let mut out = Files::new();
    walk(&fixture(name), &fixture(name), &mut out);
    out
}

pub fn manifest(name: &str) -> Value {
    let plain = fixture(&format!("{name}.manifest.json"));
    let path = if plain.exists() { plain } else { fixture(&format!("{name}.manifest.json.gz")) };
    serde_json::from_slice(&unzipped(&path)).unwrap()
}

pub fn plant(files: &Files) {
    for (path, bytes) in files {
        disk::write_file(NodeId::WORLD, Path::new(ROOT).join(path), bytes).unwrap();
    }
}

pub fn config() -> StoreConfig {
    let index = Some(IndexConfig { hash_slots: 50, entries: 100 });
    StoreConfig { segment_size: 262_144, consume_queue_file_size: 400, index, ..StoreConfig::new(ROOT) }
}

fn planted(path: impl AsRef<Path>) -> Vec<u8> {
    disk::read_file(NodeId::WORLD, Path::new(ROOT).join(path)).unwrap()
}

/// Log end and every queue's entries as the manifest of Apache's recovery says.
async fn check_against(store: &Store, manifest: &Value) {
    assert_eq!(store.log_end().0, manifest["commitLog"]["end"].as_i64().unwrap());
    let queues = manifest["consumeQueue"].as_object().unwrap();
    assert_eq!(store.queues().len(), queues.len());
    for (name, queue) in queues {
        let (topic, id) = name.rsplit_once('/').unwrap();
        let id = id.parse().unwrap();
        // Apache leaves entries behind a cut in the file; what its clients see is the bounds.
        let entries = queue["entries"].as_array().unwrap();
        let is_damaged = manifest["damage"].is_object();
        let seen = manifest["queueBoundsSeenByClient"][name]["max"].as_u64().filter(|_| is_damaged);
        let count = seen.map_or(entries.len(), |max| usize::try_from(max).unwrap());
        let bounds = store.queue_bounds(topic, id).unwrap();
        assert_eq!(bounds, (QueueOffset(0), QueueOffset(i64::try_from(count).unwrap())), "{name}");
        for (n, entry) in entries[..count].iter().enumerate() {
            let request = GetRequest {
                topic: topic.to_owned(),
                queue_id: id,
                from: QueueOffset(i64::try_from(n).unwrap()),
                max_messages: 1,
                max_bytes: 1,
                tags: TagFilter::Codes([entry[2].as_i64().unwrap()].into()),
            };
            let outcome = store.get(request).await.unwrap();
            assert_eq!(outcome.status, GetStatus::Found, "{name} at {n}");
            let record = RecordView::parse(&outcome.records[0]).unwrap();
            assert_eq!(record.physical_offset().0, entry[0].as_i64().unwrap());
            assert_eq!(i64::try_from(record.size()).unwrap(), entry[1].as_i64().unwrap());
        }
    }
}

/// Opens a (damaged) copy and compares with what Apache's broker made of it; after an orderly stop and another start too.
fn check_recovery(files: Files, expected: &'static str) {
    let manifest = manifest(expected);
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        check_against(&store, &manifest).await;
        store.shutdown().await.unwrap();
        assert!(disk::read_file(NodeId::WORLD, Path::new(ROOT).join("abort")).is_err());
        drop(store);
        let store = open(config()).await.unwrap();
        assert!(store.recovery_report().is_clean);
        assert!(store.recovery_report().dropped.is_none());
        check_against(&store, &manifest).await;
    });
}

#[test]
fn orderly_stopped_store_is_read_and_not_changed() {
    let files = files("clean");
    let before = files.clone();
    let manifest = manifest("clean");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        assert!(store.recovery_report().is_clean);
        check_against(&store, &manifest).await;
        for record in manifest["commitLog"]["records"].as_array().unwrap() {
            let at = record["phy"].as_i64().unwrap();
            let bytes = store.record_at(at.into()).await.unwrap().expect("a record is there");
            assert_eq!(i64::try_from(bytes.len()).unwrap(), record["size"].as_i64().unwrap());
        }
        store.shutdown().await.unwrap();
        for (path, bytes) in
            before.iter().filter(|(path, _)| path.starts_with("commitlog") || path.starts_with("consumequeue"))
        {
            assert_eq!(planted(path), *bytes, "{}", path.display());
        }
    });
}

#[test]
fn killed_store_recovers_as_apache_recovers_it() {
    check_recovery(files("unclean"), "unclean-recovered");
}

#[test]
fn recovered_files_are_those_of_apache() {
    let (before, after) = (files("unclean"), files("unclean-recovered"));
    run_test(move || async move {
        plant(&before);
        let store = open(config()).await.unwrap();
        store.shutdown().await.unwrap();
        for (path, bytes) in
            after.iter().filter(|(path, _)| path.starts_with("commitlog") || path.starts_with("consumequeue"))
        {
            assert_eq!(planted(path), *bytes, "{}", path.display());
        }
        assert!(disk::read_file(NodeId::WORLD, Path::new(ROOT).join("commitlog/00000000000000524288")).is_err());
        // confirmPhyOffset: start of the last record.
        assert_eq!(planted("checkpoint")[32..40], after[Path::new("checkpoint")][32..40]);
    });
}

#[test]
fn store_without_consume_queues_gets_them_back() {
    let mut files = files("unclean");
    files.retain(|path, _| !path.starts_with("consumequeue"));
    check_recovery(files, "unclean-nocq");
}

#[test]
fn torn_body_ends_the_log_before_it() {
    check_recovery(damaged("unclean-tornbody"), "unclean-tornbody");
}

#[test]
fn corrupt_record_of_unknown_age_ends_the_log_and_is_reported() {
    check_recovery(damaged("unclean-corrupt"), "unclean-corrupt");
    let files = damaged("unclean-corrupt");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        let dropped = store.recovery_report().dropped.clone().expect("records are dropped");
        assert_eq!(dropped.from.0, 264_828);
        assert!(!dropped.is_synced_part, "Apache's checkpoint does not say what was synced");
        assert_eq!(dropped.records_behind, 300 - 197 - 1);
    });
}

/// Apache keeps a last record whose properties are half zero, and serves it broken; here it is torn and goes.
#[test]
fn torn_properties_end_the_log_before_their_record() {
    let files = damaged("unclean-torn");
    let manifest = manifest("unclean-torn");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        let last = manifest["damage"]["lastRecord"][0].as_i64().unwrap();
        // 100 bytes at the end of the record are zero, which is less than its last sector's share: but they end it.
        assert_eq!(store.log_end().0, last);
    });
}

/// After this store has been here the synced part is known, and the same damage is refused.
#[test]
fn damage_in_the_synced_part_is_refused_or_dropped_as_configured() {
    let files = files("unclean");
    run_test(move || async move {
        plant(&files);
        let store = open(config()).await.unwrap();
        store.shutdown().await.unwrap();
        drop(store);
        let mut segment = planted("commitlog/00000000000000262144");
        segment[264_926 - 262_144] ^= 0xff;
        disk::write_file(NodeId::WORLD, Path::new(ROOT).join("commitlog/00000000000000262144"), &segment).unwrap();
        let error = open(config()).await.expect_err("damage is refused");
        let text = error.to_string();
        let expected = "/golden/commitlog/00000000000000262144 is damaged at log offset 264828, and the log was synced up to \
                        403054: record body has checksum";
        assert!(text.starts_with(expected), "{text}");
        let store = open(StoreConfig { damage: DamagePolicy::DropTail, ..config() }).await.unwrap();
        assert_eq!(store.log_end().0, 264_828);
        let dropped = store.recovery_report().dropped.clone().unwrap();
        assert!(dropped.is_synced_part);
        assert_eq!(dropped.records_behind, 102);
    });
}

/// The same messages in the same order give the same bytes, store times aside (ours are stamped by our clock).
#[test]
fn same_messages_give_the_same_log_and_queues() {
    for name in ["clean", "unclean"] {
        let golden = files(name);
        let manifest = manifest(name);
        run_test(move || async move {
            let config = StoreConfig { delay_levels_ms: StoreConfig::new("").delay_levels_ms, ..config() };
            let store = open(config).await.unwrap();
            let records = golden_records(&golden, &manifest);
            let mut batch = Vec::<(Record, NewMessage)>::new();
            for (n, record) in records.iter().enumerate() {
                batch.push((record.clone(), new_message(record)));
                if records.get(n + 1).is_some_and(|next| is_same_batch(record, next)) {
                    continue;
                }
                let (stored, messages): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
                for (record, appended) in stored.iter().zip(store.append_batch(messages).unwrap()) {
                    assert_eq!(appended.physical, record.physical_offset, "{name} record {n}");
                    assert_eq!(appended.queue_offset, record.queue_offset);
                }
            }
            store.shutdown().await.unwrap();
            compare_logs(&golden, &records);
            let is_queue =
                |path: &Path| path.starts_with("consumequeue") && !path.starts_with("consumequeue/SCHEDULE_TOPIC_XXXX");
            for (path, bytes) in golden.iter().filter(|(path, _)| is_queue(path)) {
                assert_eq!(planted(path), *bytes, "{}", path.display());
            }
        });
    }
}

fn golden_records(golden: &Files, manifest: &Value) -> Vec<Record> {
    let records = manifest["commitLog"]["records"].as_array().unwrap().iter();
    let parse = |record: &Value| {
        let at = usize::try_from(record["phy"].as_u64().unwrap()).unwrap();
        let segment = &golden[&PathBuf::from(format!("commitlog/{:020}", at / 262_144 * 262_144))];
        Record::decode(&Bytes::copy_from_slice(&segment[at % 262_144..])).unwrap()
    };
    records.map(parse).collect()
}

/// Members of a client batch share store time and birth and lie next to each other in one queue.
fn is_same_batch(a: &Record, b: &Record) -> bool {
    a.topic == "GoldenBatch"
        && b.topic == a.topic
        && a.queue_id == b.queue_id
        && a.born_timestamp == b.born_timestamp
        && a.store_timestamp == b.store_timestamp
}

fn new_message(record: &Record) -> NewMessage {
    NewMessage {
        topic: record.topic.clone(),
        queue_id: record.queue_id,
        flag: record.flag,
        sys_flag: record.sys_flag.0,
        born_timestamp: record.born_timestamp,
        born_host: record.born_host,
        store_host: record.store_host,
        reconsume_times: record.reconsume_times,
        prepared_transaction_offset: record.prepared_transaction_offset,
        properties: String::from_utf8(record.properties.to_vec()).unwrap(),
        body: record.body.clone(),
    }
}

fn compare_logs(golden: &Files, records: &[Record]) {
    for (path, bytes) in
        golden.iter().filter(|(path, bytes)| path.starts_with("commitlog") && bytes.iter().any(|b| *b != 0))
    {
        let mut ours = planted(path);
        let start: i64 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        for record in records.iter().filter(|r| (start..start + 262_144).contains(&r.physical_offset.0)) {
            let at = usize::try_from(record.physical_offset.0 - start).unwrap();
            let time = at + 48 + record.sys_flag.born_host_bytes();
            ours[time..time + 8].copy_from_slice(&record.store_timestamp.to_be_bytes());
        }
        assert!(ours == *bytes, "{}", path.display());
    }
}

fn damaged(name: &str) -> Files {
    let damage = manifest(name)["damage"].clone();
    let mut files = files("unclean");
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let mut change = |at: usize, length: usize, change: fn(u8) -> u8| {
        let start = at / 262_144 * 262_144;
        let segment = files.get_mut(&PathBuf::from(format!("commitlog/{start:020}"))).unwrap();
        for byte in &mut segment[at - start..at - start + length] {
            *byte = change(*byte);
        }
    };
    if let Some(zeroed) = damage["zeroed"].as_array() {
        change(number(&zeroed[0]), number(&zeroed[1]), |_| 0);
    }
    if damage["invertedByteAt"].is_u64() {
        change(number(&damage["invertedByteAt"]), 1, |byte| !byte);
    }
    files
}
