//! One flipped bit, or one file cut short, anywhere in a store whose records are sealed: it is noticed, or it changes nothing.
use crate::support::{ROOT, SECOND, TOPIC, body, config, files_below, message, open, seeded, started};
use protocol::message::RecordView;
use rt::world::{NodeId, disk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{FlushMode, GetRequest, GetStatus, NewMessage, Store, StoreConfig, TagFilter, inspect};

/// Topic, queue and offset of a message, and what a reader is given of it.
type Messages = BTreeMap<(String, i32, i64), Vec<u8>>;
type Files = BTreeMap<PathBuf, Vec<u8>>;

const PLACES: usize = 10_000;
const DELAYED: &str = "SCHEDULE_TOPIC_XXXX";

fn sealed() -> StoreConfig {
    StoreConfig { seal_records: true, require_seals: true, ..config(FlushMode::Sync) }
}

/// Single messages, batches and delayed ones, over several segments, queue files and index files; stopped in order.
async fn fill() -> (Files, View) {
    let store = started(sealed()).await;
    for n in 0..40 {
        let one = message(i32::try_from(n % 2).unwrap(), body(n * 3));
        store.append(one).unwrap();
        if n % 5 == 0 {
            store.append_batch((0..3).map(|part| message(2, body(n * 7 + part))).collect()).unwrap();
        }
        if n % 8 == 0 {
            let properties = "DELAY\u{1}3\u{2}REAL_TOPIC\u{1}Orders\u{2}".to_owned();
            store.append(NewMessage { topic: DELAYED.to_owned(), properties, ..message(2, body(n)) }).unwrap();
        }
    }
    store.flushed(store.log_end(), SECOND).await.unwrap();
    // Queues and index follow the log.
    rt::time::sleep(SECOND).await;
    let view = View::of(&store).await;
    store.shutdown().await.unwrap();
    (files_below(ROOT), view)
}

/// What readers see of a store.
#[derive(Clone, Debug, Default, PartialEq)]
struct View {
    all: Messages,
    /// Those that a reader of the one tag gets.
    tagged: BTreeSet<(String, i32, i64)>,
    /// Bodies that are found by key.
    by_key: BTreeSet<Vec<u8>>,
    /// What a reader was told instead.
    errors: Vec<String>,
}

impl View {
    async fn of(store: &Store) -> View {
        let mut view = View::default();
        for (topic, queue_id) in store.queues() {
            let Some((min, max)) = store.queue_bounds(&topic, queue_id) else { continue };
            for offset in min.0..max.0 {
                for tags in [TagFilter::All, TagFilter::Codes([protocol::message::tags_code("tag")].into())] {
                    let is_tagged = tags != TagFilter::All;
                    let request = GetRequest { max_messages: 1, tags, ..crate::support::request(queue_id, offset) };
                    let place = (topic.to_string(), queue_id, offset);
                    match store.get(GetRequest { topic: topic.to_string(), ..request }).await {
                        Ok(found) if found.status == GetStatus::Found && found.offsets[0].0 == offset => {
                            if is_tagged {
                                view.tagged.insert(place);
                            } else {
                                view.all.insert(place, found.records[0].to_vec());
                            }
                        }
                        Ok(_) => {}
                        Err(error) => view.errors.push(error.to_string()),
                    }
                }
            }
        }
        for n in 0..300 {
            let key = crate::support::key_of(&body(n));
            match store.records_by_key(TOPIC, &key, (10, usize::MAX), 0, i64::MAX).await {
                Ok(found) => {
                    view.by_key.extend(found.iter().map(|record| RecordView::parse(record).unwrap().body().to_vec()));
                }
                Err(error) => view.errors.push(error.to_string()),
            }
        }
        view
    }
}

/// What is done to one file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip { byte: usize, bit: u32 },
    Cut { length: usize },
}

/// Places spread over all files: every ninth of them is a cut.
fn harm(files: &Files, number: usize) -> (PathBuf, Harm) {
    let total: usize = files.values().map(Vec::len).sum();
    // A prime that shares no factor with the sum of the lengths.
    let mut place = number * 7_919 % total;
    for (path, bytes) in files {
        if place < bytes.len() {
            let harm = match number % 9 {
                0 => Harm::Cut { length: place },
                bit => Harm::Flip { byte: place, bit: u32::try_from(bit - 1).unwrap() },
            };
            return (path.clone(), harm);
        }
        place -= bytes.len();
    }
    unreachable!("the place lies in some file")
}

fn plant(files: &Files, harmed: &Path, harm: Harm) {
    for (path, bytes) in files {
        let mut bytes = bytes.clone();
        if path == harmed {
            match harm {
                Harm::Flip { byte, bit } => bytes[byte] ^= 1 << bit,
                Harm::Cut { length } => bytes.truncate(length),
            }
        }
        disk::write_file(NodeId::WORLD, path, &bytes).unwrap();
    }
}

/// How often a harm was noticed by whom.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    told: usize,
    by_check: usize,
    harmless: usize,
}

#[test]
fn a_flipped_bit_or_a_cut_file_is_noticed_or_harmless() {
    let (files, expected) = rt::world::run(seeded(1), fill).value.expect("the store is filled");
    assert!(expected.all.len() > 60 && expected.tagged.len() > 50 && expected.by_key.len() > 30);
    let mut tally = Tally::default();
    for number in 0..PLACES {
        let (path, harm) = harm(&files, number);
        let (files, expected) = (files.clone(), expected.clone());
        let shown = format!("{} {harm:?}", path.display());
        let outcome = rt::world::run(seeded(1), move || async move {
            plant(&files, &path, harm);
            let checked = inspect(Path::new(ROOT), None, sealed().index, |_, _| {}).await.unwrap();
            let by_check = !checked.is_sound() || !checked.not_checked.is_empty();
            let store = match open(sealed()).await {
                Ok(store) => store,
                Err(error) => {
                    assert!(error.to_string().contains(ROOT), "{error} names no file");
                    return Tally { refused: 1, ..Tally::default() };
                }
            };
            let seen = View::of(&store).await;
            for (place, record) in &seen.all {
                assert_eq!(expected.all.get(place), Some(record), "{place:?} was never stored so");
            }
            if seen == expected {
                return Tally { harmless: 1, ..Tally::default() };
            }
            if store.recovery_report().dropped.is_some() || !seen.errors.is_empty() {
                return Tally { told: 1, ..Tally::default() };
            }
            let lost: Vec<_> = expected.all.keys().filter(|place| !seen.all.contains_key(*place)).collect();
            let (tagged, keyed) = (expected.tagged.difference(&seen.tagged), expected.by_key.difference(&seen.by_key));
            let (tagged, keyed) = (tagged.collect::<Vec<_>>(), keyed.map(|body| body.len()).collect::<Vec<_>>());
            assert!(by_check, "nobody has noticed: lost {lost:?}, by tag {tagged:?}, by key {keyed:?}");
            Tally { by_check: 1, ..Tally::default() }
        });
        let one = outcome.value.unwrap_or_else(|| panic!("{shown}: {}", outcome.finding.expect("a failure")));
        tally.refused += one.refused;
        tally.told += one.told;
        tally.by_check += one.by_check;
        tally.harmless += one.harmless;
    }
    let Tally { refused, told, by_check, harmless } = tally;
    assert!([refused, told, by_check, harmless].iter().all(|count| *count > 100), "each way occurs: {tally:?}");
}
