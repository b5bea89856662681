//! The timer's wheel and log against those of Apache's broker 5.3.3, against crashes at each disk operation, and against a model.
use crate::golden::{self, Files, all_files, files, manifest, plant};
use crate::support::{self, ROOT, SECOND, message, open, seeded, started};
use protocol::message::{Properties, StoredMessage};
use protocol::{PhysicalOffset, QueueOffset};
use rt::rand::Rng;
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep, unix_ms};
use rt::world::{CrashKind, CrashPoint, NodeId, disk, run_test};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::{
    Enqueued, FlushMode, GetRequest, GetStatus, NewMessage, Store, TIMER_TOPIC, TagFilter, Timer, TimerCheckpoint,
    TimerConfig, TimerError,
};

/// Files of 19 units.
const GOLDEN: TimerConfig = TimerConfig {
    precision_ms: 1000,
    roll_window_slots: 172_800,
    log_file_bytes: 1040,
    delay_max: Duration::from_secs(259_200),
    flush_interval: SECOND,
};
/// Short slots, and a window that most messages are beyond of.
const SMALL: TimerConfig = TimerConfig { precision_ms: 100, roll_window_slots: 6, ..GOLDEN };

/// Messages of a queue from an offset on.
async fn read(store: &Store, topic: &str, from: QueueOffset) -> Vec<StoredMessage> {
    let (mut out, mut from) = (Vec::new(), from);
    loop {
        let topic = topic.to_owned();
        let tags = TagFilter::All;
        let request = GetRequest { topic, queue_id: 0, from, max_messages: 32, max_bytes: 1 << 20, tags };
        let outcome = store.get(request).await.unwrap();
        if outcome.status != GetStatus::Found {
            return out;
        }
        out.extend(outcome.records.iter().map(|record| StoredMessage::decode(record).unwrap()));
        from = outcome.next;
    }
}

async fn enqueue_all(store: &Store, timer: &mut Timer, now_ms: impl Fn(PhysicalOffset) -> i64) {
    for message in read(store, TIMER_TOPIC, timer.next()).await {
        let found = timer.enqueue(&message, now_ms(message.physical_offset)).await.unwrap();
        assert!(matches!(found, Enqueued::Waits | Enqueued::Done), "{found:?}");
    }
    timer.check_invariants();
}

/// Empties the wheel: the places in the log of what waits, slot by slot.
async fn drain(timer: &mut Timer) -> Vec<(i64, Vec<i64>)> {
    let mut out = Vec::new();
    while let Some(number) = timer.due(i64::MAX) {
        let mut places = Vec::new();
        for unit in timer.units(number).await.unwrap() {
            places.push(timer.message(&unit).await.unwrap().unwrap().physical_offset.0);
        }
        out.push((number, places));
        timer.finish(number);
    }
    out
}

/// What waits according to the manifest.
fn waiting(manifest: &Value) -> Vec<(i64, Vec<i64>)> {
    let units: BTreeMap<i64, &Value> =
        manifest["timerLog"].as_array().unwrap().iter().map(|unit| (unit["at"].as_i64().unwrap(), unit)).collect();
    let read_s = manifest["timerCheck"]["lastReadTimeMs"].as_i64().unwrap() / 1000;
    let mut out = Vec::new();
    for slot in manifest["timerWheel"].as_array().unwrap() {
        let (number, mut position) = (slot["time"].as_i64().unwrap(), slot["lastPos"].as_i64().unwrap());
        let mut places = Vec::new();
        while position >= 0 && number >= read_s {
            places.push(units[&position]["phy"].as_i64().unwrap());
            position = units[&position]["prevPos"].as_i64().unwrap();
        }
        places.reverse();
        if !places.is_empty() {
            out.push((number, places));
        }
    }
    out
}

fn places(slots: &[(i64, Vec<i64>)]) -> BTreeSet<i64> {
    slots.iter().flat_map(|(_, places)| places.iter().copied()).collect()
}

fn on_disk(path: &str) -> Vec<u8> {
    disk::read_file(NodeId::WORLD, Path::new(golden::ROOT).join(path)).unwrap()
}

#[test]
fn the_same_messages_make_apaches_log_and_wheel() {
    let (plain, all) = (files("clean"), all_files("clean"));
    run_test(move || async move {
        plant(&plain);
        let manifest = manifest("clean");
        let store = open(golden::config()).await.unwrap();
        let mut timer = Timer::open(Arc::clone(&store), GOLDEN).await.unwrap();
        let times: BTreeMap<i64, i64> = manifest["timerLog"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|unit| Some((unit["phy"].as_i64()?, unit["currWriteTimeMs"].as_i64()?)))
            .collect();
        enqueue_all(&store, &mut timer, |place| times[&place.0]).await;
        timer.flush(1_795_973_516_000, SECOND).await.unwrap();
        for name in ["00000000000000000000", "00000000000000001040", "00000000000000002080"] {
            let path = format!("timerlog/{name}");
            assert!(on_disk(&path) == all[Path::new(&path)], "{name}");
        }
        let wheel = on_disk("timerwheel");
        assert_eq!(wheel.len(), all[Path::new("timerwheel")].len());
        let slots = wheel.chunks(32).zip(all[Path::new("timerwheel")].chunks(32)).enumerate();
        for (place, (found, expected)) in slots {
            assert_eq!(found, expected, "slot {place}");
        }
        let check = TimerCheckpoint::decode(&on_disk("config/timercheck")).unwrap();
        assert_eq!((check.log_bytes, check.next, check.master_next), (2288, 42, 42));
    });
}

async fn opened(files: &Files) -> (Arc<Store>, Timer) {
    plant(files);
    let store = open(golden::config()).await.unwrap();
    let timer = Timer::open(Arc::clone(&store), GOLDEN).await.unwrap();
    (store, timer)
}

#[test]
fn apaches_wheel_is_gone_on_with_and_its_files_stay() {
    let all = all_files("clean");
    run_test(move || async move {
        let manifest = manifest("clean");
        let (_store, mut timer) = opened(&all).await;
        let check = &manifest["timerCheck"];
        let said = timer.flushed();
        assert_eq!(said.read_ms, check["lastReadTimeMs"].as_i64().unwrap());
        assert_eq!(said.encode()[..], all[Path::new("config/timercheck")][..56]);
        assert_eq!(timer.next().0, check["lastTimerQueueOffset"].as_i64().unwrap());
        for path in ["timerwheel", "timerlog/00000000000000002080", "config/timercheck"] {
            assert!(on_disk(path) == all[Path::new(path)], "{path}");
        }
        assert_eq!(drain(&mut timer).await, waiting(&manifest));
    });
}

/// Whatever happened to wheel and log: what waits does so again, and what was delivered does not.
#[test]
fn damaged_files_are_made_again_from_the_queue() {
    let all = all_files("clean");
    let damages: [fn(&mut Files); 6] = [
        |files| drop(files.remove(Path::new("timerwheel"))),
        |files| files.get_mut(Path::new("timerwheel")).unwrap().truncate(4096),
        |files| drop(files.remove(Path::new("timerlog/00000000000000001040"))),
        |files| files.get_mut(Path::new("timerlog/00000000000000000000")).unwrap()[312..320].fill(7),
        |files| files.get_mut(Path::new("timerlog/00000000000000002080")).unwrap().fill(0),
        |files| files.get_mut(Path::new("timerlog/00000000000000002080")).unwrap().truncate(99),
    ];
    for damage in damages {
        let mut files = all.clone();
        damage(&mut files);
        let outcome = rt::world::run(seeded(1), move || async move {
            let manifest = manifest("clean");
            let (store, mut timer) = opened(&files).await;
            assert_eq!(timer.next(), QueueOffset(0));
            enqueue_all(&store, &mut timer, |_| 1_795_973_587_000).await;
            assert_eq!(timer.next(), QueueOffset(42));
            timer.flush(1_795_973_587_000, SECOND).await.unwrap();
            drop(timer);
            let mut again = Timer::open(store, GOLDEN).await.unwrap();
            assert_eq!(places(&drain(&mut again).await), places(&waiting(&manifest)));
        });
        assert!(outcome.finding.is_none(), "{:?}", outcome.finding);
        for probe in ["store.timer.rebuilt", "store.timer.delivered_passed_over"] {
            assert!(outcome.probes.hits.contains_key(probe), "{probe} was not reached");
        }
    }
}

/// The log of messages was cut, and other messages lie where a unit points.
#[test]
fn a_unit_whose_record_is_another_one_is_found_and_nothing_is_lost() {
    run_test(|| async {
        let store = started(support::config(FlushMode::Async)).await;
        let mut timer = Timer::open(Arc::clone(&store), SMALL).await.unwrap();
        let now = unix_ms();
        for id in 0..6 {
            store.append(timed(id, now + 300, &[])).unwrap();
        }
        sleep(SECOND).await;
        enqueue_all(&store, &mut timer, |_| now).await;
        timer.flush(now, SECOND).await.unwrap();
        store.shutdown().await.unwrap();
        drop((timer, store));
        // Another life wrote the log anew, with other messages.
        for dir in ["commitlog", "consumequeue/rmq_sys_wheel_timer/0", "index"] {
            for path in disk::list(NodeId::WORLD, Path::new(ROOT).join(dir)).unwrap() {
                rt::fs::remove_file(path).unwrap();
            }
        }
        rt::fs::remove_file(Path::new(ROOT).join("checkpoint")).unwrap();
        let store = started(support::config(FlushMode::Async)).await;
        for id in 10..13 {
            store.append(timed(id, now + 400, &[("FILL", "x")])).unwrap();
        }
        sleep(SECOND).await;
        let mut timer = Timer::open(Arc::clone(&store), SMALL).await.unwrap();
        enqueue_all(&store, &mut timer, |_| now).await;
        let slots = drain(&mut timer).await;
        assert_eq!(places(&slots).len(), 3, "{slots:?}");
    });
}

#[test]
fn a_slave_takes_over_how_far_its_master_has_come_and_keeps_its_own_files() {
    run_test(|| async {
        rt::fs::create_dir_durably(ROOT).await.unwrap();
        let root = Path::new(ROOT);
        let master =
            TimerCheckpoint { read_ms: 9_000, log_bytes: 520, next: 10, master_next: 10, ..Default::default() };
        store::take_over_timer_checkpoint(root, master).await.unwrap();
        let said = store::read_timer_checkpoint(root).await.unwrap();
        assert_eq!(said, TimerCheckpoint { log_bytes: 0, next: 0, ..master });
    });
}

/// A message that is due at `deliver_ms`.
fn timed(id: u64, deliver_ms: i64, more: &[(&str, &str)]) -> NewMessage {
    let mut properties: Properties = more.iter().copied().collect();
    properties.insert("UNIQ_KEY", format!("key-{id}"));
    properties.insert("TIMER_DELIVER_MS", deliver_ms.to_string());
    properties.insert("TIMER_OUT_MS", SMALL.floor_ms(deliver_ms - 1).to_string());
    properties.insert("REAL_TOPIC", support::TOPIC);
    properties.insert("REAL_QID", "0");
    NewMessage { topic: TIMER_TOPIC.to_owned(), properties: properties.to_text(), ..message(0, id.to_string()) }
}

/// One look of a timer that delivers into the store: what has come, what is due, a flush.
async fn turn(store: &Store, timer: &mut Timer) -> Result<(), TimerError> {
    let now_ms = unix_ms();
    for message in read(store, TIMER_TOPIC, timer.next()).await {
        if timer.enqueue(&message, unix_ms()).await? == Enqueued::Blocked {
            break;
        }
    }
    while let Some(number) = timer.due(now_ms) {
        let units = timer.units(number).await?;
        let mut deleted = BTreeSet::new();
        for unit in units.iter().filter(|unit| unit.deletes()) {
            let marker = timer.message(unit).await?.unwrap();
            deleted.insert(marker.properties.get("TIMER_DEL_UNIQKEY").unwrap().to_owned());
        }
        for unit in units.iter().filter(|unit| !unit.deletes()) {
            let mut message = timer.message(unit).await?.unwrap();
            let is_deleted = deleted.contains(message.properties.unique_key().unwrap());
            let topic = if unit.rolls() {
                let times: i64 = message.properties.get("TIMER_ROLL_TIMES").map_or(0, |text| text.parse().unwrap());
                message.properties.insert("TIMER_ROLL_TIMES", (times + 1).to_string());
                TIMER_TOPIC
            } else {
                support::TOPIC
            };
            if unit.rolls() || !is_deleted {
                let properties = message.properties.to_text();
                let copy = NewMessage { topic: topic.to_owned(), properties, ..support::message(0, message.body) };
                // A store that ends takes nothing; the test looks at what is there then.
                if store.append(copy).is_err() {
                    return Ok(());
                }
            }
        }
        timer.finish(number);
    }
    timer.check_invariants();
    timer.flush(unix_ms(), SECOND).await
}

/// What a producer was told: when each acknowledged message is due, and which were taken back before that.
#[derive(Debug, Default)]
struct Told {
    due_ms: BTreeMap<u64, i64>,
    recalled: BTreeSet<u64>,
}

/// Sends some messages while a timer delivers; each call may fail once the node is about to end.
async fn script(told: Arc<Mutex<Told>>) {
    let Ok(store) = open(support::config(FlushMode::Sync)).await else { return };
    store.start(&CancellationToken::new());
    let Ok(mut timer) = Timer::open(Arc::clone(&store), SMALL).await else { return };
    for id in 0..14_u64 {
        let delay_ms = [40, 250, 130, 1700, 320][usize::try_from(id % 5).unwrap()];
        let deliver_ms = unix_ms() + delay_ms;
        let Ok(appended) = store.append(timed(id, deliver_ms, &[])) else { return };
        if store.flushed(appended.end, SECOND).await.is_ok() {
            told.lock().unwrap().due_ms.insert(id, deliver_ms);
        }
        if id % 5 == 1 {
            let key = format!("key-{id}");
            let marker = timed(100 + id, deliver_ms, &[("TIMER_DEL_UNIQKEY", &key)]);
            let Ok(appended) = store.append(marker) else { return };
            if store.flushed(appended.end, SECOND).await.is_ok() {
                told.lock().unwrap().recalled.insert(id);
            }
        }
        sleep(Duration::from_millis(60)).await;
        if turn(&store, &mut timer).await.is_err() {
            return;
        }
    }
    let _ = store.shutdown().await;
}

/// Opens the store again, delivers all there is, and holds what came against what was told.
async fn check_after(told: &Told, copies_max: usize) {
    let store = started(support::config(FlushMode::Sync)).await;
    let mut timer = Timer::open(Arc::clone(&store), SMALL).await.unwrap();
    for _ in 0..40 {
        turn(&store, &mut timer).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(timer.due_ms(), None, "all was delivered");
    let mut copies: BTreeMap<u64, usize> = BTreeMap::new();
    for message in read(&store, support::TOPIC, QueueOffset(0)).await {
        let id = std::str::from_utf8(&message.body).unwrap().parse().unwrap();
        let deliver_ms: i64 = message.properties.get("TIMER_DELIVER_MS").unwrap().parse().unwrap();
        assert!(
            message.store_timestamp >= deliver_ms,
            "message {id} is {} early",
            deliver_ms - message.store_timestamp
        );
        *copies.entry(id).or_default() += 1;
    }
    for id in told.due_ms.keys() {
        let found = copies.get(id).copied().unwrap_or(0);
        if told.recalled.contains(id) {
            assert_eq!(found, 0, "message {id} was taken back");
        } else if id % 5 != 1 {
            // Each stop of a message that rolls may be repeated by a crash, and then each repetition.
            let most = if copies_max > 1 && id % 5 == 3 { 4 * copies_max } else { copies_max };
            assert!((1..=most).contains(&found), "message {id} has {found} copies");
        }
    }
}

#[test]
fn a_timer_without_a_crash_delivers_each_message_once() {
    let outcome = rt::world::run(seeded(1), || async {
        let told = Arc::new(Mutex::new(Told::default()));
        script(Arc::clone(&told)).await;
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert_eq!((told.due_ms.len(), told.recalled.len()), (14, 3));
        check_after(&told, 1).await;
    });
    assert!(outcome.finding.is_none(), "{:?}", outcome.finding);
}

/// Power losses and process crashes at each disk operation, and a power loss in the recovery: nothing is lost, early, or delivered although
/// it was taken back; a message comes again once a crash at most.
#[test]
fn a_crash_at_each_disk_operation_loses_no_timer_message() {
    let total = rt::world::run(seeded(1), || async {
        let node = rt::world::add_node("broker");
        rt::world::spawn_on(node, script(Arc::default())).await.unwrap();
        rt::world::disk_operations(node)
    });
    let total = total.value.expect("the script ends");
    assert!(total > 60, "the script does something");
    let mut reached = BTreeSet::new();
    for point in 1..=total {
        let kind = if point % 3 == 0 { CrashKind::Process } else { CrashKind::Power };
        let outcome = rt::world::run(seeded(point), move || async move {
            let node = rt::world::add_node("broker");
            let told = Arc::new(Mutex::new(Told::default()));
            rt::world::crash_at(node, CrashPoint::DiskOperation(point), kind);
            let _ = rt::world::spawn_on(node, script(Arc::clone(&told))).await;
            rt::world::crash_at(node, CrashPoint::DiskOperation(1 + point % 41), CrashKind::Power);
            let _ = rt::world::spawn_on(node, async {
                let Ok(store) = open(support::config(FlushMode::Sync)).await else { return };
                store.start(&CancellationToken::new());
                let Ok(mut timer) = Timer::open(Arc::clone(&store), SMALL).await else { return };
                let _ = turn(&store, &mut timer).await;
            })
            .await;
            rt::world::power_loss(node);
            let told = std::mem::take(&mut *told.lock().unwrap());
            rt::world::spawn_on(node, async move { check_after(&told, 3).await }).await.unwrap();
        });
        if let Some(finding) = outcome.finding {
            panic!("crash at disk operation {point} ({kind:?}): {finding}");
        }
        reached.extend(outcome.probes.hits.into_keys());
    }
    assert!(reached.contains("store.timer.slot_led_back"), "{reached:?}");
}

/// Two moments that are a whole turn of the wheel apart have one place in the file: the later one waits until the earlier one is delivered.
#[test]
fn a_slot_that_is_overdue_by_a_turn_of_the_wheel_is_not_overwritten() {
    let outcome = rt::world::run(seeded(1), || async {
        let store = started(support::config(FlushMode::Async)).await;
        let mut timer = Timer::open(Arc::clone(&store), SMALL).await.unwrap();
        let turn_ms = 2 * 604_800 * 100;
        let (first, second) = (unix_ms() + 300, unix_ms() + 300 + turn_ms);
        for (id, deliver_ms) in [(0, first), (1, second)] {
            store.append(timed(id, deliver_ms, &[])).unwrap();
        }
        sleep(SECOND).await;
        let messages = read(&store, TIMER_TOPIC, QueueOffset(0)).await;
        assert_eq!(timer.enqueue(&messages[0], first - 200).await.unwrap(), Enqueued::Waits);
        assert_eq!(timer.enqueue(&messages[1], second - 200).await.unwrap(), Enqueued::Blocked);
        let number = timer.due(second).unwrap();
        assert_eq!(timer.units(number).await.unwrap().len(), 1);
        timer.finish(number);
        assert_eq!(timer.enqueue(&messages[1], second - 200).await.unwrap(), Enqueued::Waits);
        timer.flush(second, SECOND).await.unwrap();
        let mut again = Timer::open(store, SMALL).await.unwrap();
        assert_eq!(drain(&mut again).await.len(), 1);
    });
    assert!(outcome.finding.is_none(), "{:?}", outcome.finding);
    assert!(outcome.probes.hits.contains_key("store.timer.slot_taken"));
}

/// Random lives against a model: messages of any distance, orderly and disorderly ends, jumps of the clock that are longer than the wheel.
#[test]
fn random_lives_deliver_each_message_and_none_early() {
    for seed in 1..=12 {
        let outcome = rt::world::run(seeded(seed), || async {
            let node = rt::world::add_node("broker");
            let mut random = rt::rand::stream("lives");
            let mut told = Told::default();
            let mut id = 0;
            for _ in 0..6 {
                let jump_s: i64 = if random.random_bool(0.3) { random.random_range(0..400_000) } else { 0 };
                rt::world::step_wall_clock(node, jump_s * 1000);
                let delays: Vec<i64> = (0..random.random_range(1..12)).map(|_| random.random_range(1..3000)).collect();
                let turns = random.random_range(0..30);
                let first = id;
                id += 1000;
                let life = rt::world::spawn_on(node, async move {
                    let store = started(support::config(FlushMode::Sync)).await;
                    let mut timer = Timer::open(Arc::clone(&store), SMALL).await.unwrap();
                    let mut due = Vec::new();
                    for (id, delay_ms) in (first..).zip(delays) {
                        let deliver_ms = unix_ms() + delay_ms;
                        let appended = store.append(timed(id, deliver_ms, &[])).unwrap();
                        store.flushed(appended.end, SECOND).await.unwrap();
                        due.push((id, deliver_ms));
                    }
                    for _ in 0..turns {
                        sleep(Duration::from_millis(90)).await;
                        turn(&store, &mut timer).await.unwrap();
                    }
                    due
                });
                told.due_ms.extend(life.await.unwrap());
                rt::world::power_loss(node);
            }
            rt::world::spawn_on(node, async move { check_after(&told, 7).await }).await.unwrap();
        });
        if let Some(finding) = outcome.finding {
            panic!("seed {seed}: {finding}");
        }
        assert!(!outcome.probes.hits.contains_key("store.timer.rebuilt"), "seed {seed}: files in doubt without damage");
    }
}
