//! Small stores, messages that say what they are, and worlds that a test can cut the power of.
use bytes::Bytes;
use protocol::message::RecordView;
use protocol::{PhysicalOffset, QueueOffset};
use rt::sync::CancellationToken;
use rt::time::sleep;
use rt::world::{CrashKind, CrashPoint, NodeId, WorldConfig, disk};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use store::{
    FlushMode, GetOutcome, GetRequest, GetStatus, IndexConfig, NewMessage, Store, StoreConfig, StoreError, TagFilter,
    UnrecoveredStore,
};

pub const ROOT: &str = "/data/store";
pub const TOPIC: &str = "Orders";
pub const SECOND: rt::time::Duration = rt::time::Duration::from_secs(1);

/// Segments of 4 KiB, queue files of 20 entries.
pub fn config(flush_mode: FlushMode) -> StoreConfig {
    let index = Some(IndexConfig { hash_slots: 10, entries: 50 });
    StoreConfig { segment_size: 4096, consume_queue_file_size: 400, index, flush_mode, ..StoreConfig::new(ROOT) }
}

pub async fn open(config: StoreConfig) -> Result<Arc<Store>, StoreError> {
    UnrecoveredStore::open(config).await?.recover().await
}

/// Opened, recovered and started; the tasks end with the node.
pub async fn started(config: StoreConfig) -> Arc<Store> {
    let store = open(config).await.unwrap();
    store.start(&CancellationToken::new());
    store
}

pub fn message(queue_id: i32, body: impl Into<Bytes>) -> NewMessage {
    let body = body.into();
    NewMessage {
        topic: TOPIC.to_owned(),
        queue_id,
        flag: 0,
        sys_flag: 0,
        born_timestamp: 1,
        born_host: "10.0.0.9:40000".parse().unwrap(),
        store_host: "10.0.0.1:10911".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        properties: format!("TAGS\u{1}tag\u{2}KEYS\u{1}{}\u{2}", key_of(&body)),
        body,
    }
}

/// The key of a message: what its body says up to the first `;`.
pub fn key_of(body: &[u8]) -> String {
    let key = body.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned()
}

/// Demands that each message that the queues show is found by its key.
pub async fn check_keys(store: &Store) {
    for queue_id in 0..4 {
        for body in read_all(store, queue_id).await {
            let found = store.records_by_key(TOPIC, &key_of(&body), (1_000, usize::MAX), 0, i64::MAX).await.unwrap();
            let is_it = |record: &Bytes| RecordView::parse(record).unwrap().body() == body;
            assert!(found.iter().any(is_it), "queue {queue_id}: {} is not found by its key", key_of(&body));
        }
    }
}

/// A body that says its number, padded to a length that varies with it.
pub fn body(n: u64) -> Vec<u8> {
    let mut body = format!("message-{n};").into_bytes();
    body.resize(body.len() + usize::try_from(n * 37 % 700).unwrap(), b'a' + u8::try_from(n % 26).unwrap());
    body
}

pub fn request(queue_id: i32, from: i64) -> GetRequest {
    GetRequest {
        topic: TOPIC.to_owned(),
        queue_id,
        from: QueueOffset(from),
        max_messages: 32,
        max_bytes: 1 << 20,
        tags: TagFilter::All,
    }
}

pub async fn get(store: &Store, queue_id: i32, from: i64) -> GetOutcome {
    store.get(request(queue_id, from)).await.unwrap()
}

/// Every body of a queue, in order; checks that offsets are dense.
pub async fn read_all(store: &Store, queue_id: i32) -> Vec<Vec<u8>> {
    let Some((min, max)) = store.queue_bounds(TOPIC, queue_id) else { return Vec::new() };
    let (mut bodies, mut next) = (Vec::new(), min);
    while next < max {
        let outcome = get(store, queue_id, next.0).await;
        assert_eq!(outcome.status, GetStatus::Found, "queue {queue_id} at {next} of {min}..{max}");
        for (record, offset) in outcome.records.iter().zip(&outcome.offsets) {
            let view = RecordView::parse(record).unwrap();
            assert_eq!(view.queue_offset(), *offset);
            assert_eq!(*offset, next);
            bodies.push(view.body().to_vec());
            next = next + 1;
        }
        assert_eq!(outcome.next, next);
    }
    bodies
}

pub fn seeded(seed: u64) -> WorldConfig {
    WorldConfig { seed, ..WorldConfig::default() }
}

/// Runs `body` once for each seed, in a world with one node besides the world's own.
pub fn for_seeds<F>(seeds: u64, body: impl Fn(NodeId) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    for_seeds_reaching(&[], seeds, body);
}

/// As [`for_seeds`], and demands that each run reaches the probes.
pub fn for_seeds_reaching<F>(probes: &[&str], seeds: u64, body: impl Fn(NodeId) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    for seed in 1..=seeds {
        let outcome = rt::world::run(seeded(seed), move || async move { body(rt::world::add_node("broker")).await });
        if let Some(finding) = outcome.finding {
            panic!("seed {seed}: {finding}");
        }
        for probe in probes {
            assert!(outcome.probes.hits.contains_key(*probe), "seed {seed} does not reach {probe}");
        }
    }
}

/// Where the node of a story ends.
#[derive(Clone, Copy, Debug)]
pub struct End(Option<(u64, CrashKind)>);

impl End {
    /// Does a piece of work on the node, which may end in it; returns how many disk operations it took.
    pub async fn in_work(self, node: NodeId, work: impl Future<Output = ()> + Send + 'static) -> u64 {
        let before = rt::world::disk_operations(node);
        if let End(Some((point, kind))) = self {
            rt::world::crash_at(node, CrashPoint::DiskOperation(point), kind);
        }
        let _ = rt::world::spawn_on(node, work).await;
        rt::world::disk_operations(node) - before
    }
}

/// Tells a story whose [work](End::in_work) ends nowhere, then once for each disk operation of it with the node ended there: by a process crash
/// at each fourth, by a power loss at the others. The story returns how many operations its work took: `least` or more.
pub fn ended_at_each_disk_operation<F>(least: u64, story: impl Fn(NodeId, End) -> F + Copy + 'static)
where
    F: Future<Output = u64> + 'static,
{
    let tell = |end: End, seed| {
        let outcome =
            rt::world::run(seeded(seed), move || async move { story(rt::world::add_node("broker"), end).await });
        if let Some(finding) = outcome.finding {
            panic!("{end:?}: {finding}");
        }
        outcome.value.expect("the story ends")
    };
    let total = tell(End(None), 1);
    assert!(total >= least, "the work does something: {total} disk operations");
    for point in 1..=total {
        let kind = if point.is_multiple_of(4) { CrashKind::Process } else { CrashKind::Power };
        tell(End(Some((point, kind))), point);
    }
}

/// A store that is opened takes numbered messages, every third of them waited for, and pauses in their middle, until its node ends
/// there and loses its power. Returns how many disk operations that took, and how many messages were told to be durable.
pub async fn filled_until_the_end(
    (node, end): (NodeId, End),
    opened: impl Future<Output = Result<Arc<Store>, StoreError>> + Send + 'static,
    count: u64,
    numbered: impl Fn(u64) -> NewMessage + Send + 'static,
) -> (u64, u64) {
    let told = Arc::new(Mutex::new(0));
    let tell = Arc::clone(&told);
    let operations = end
        .in_work(node, async move {
            let Ok(store) = opened.await else { return };
            store.start(&CancellationToken::new());
            for n in 0..count {
                let Ok(appended) = store.append(numbered(n)) else { return };
                if n % 3 == 0 && store.flushed(appended.end, SECOND).await.is_ok() {
                    *tell.lock().unwrap() = n + 1;
                }
                if n == count / 2 {
                    sleep(2 * SECOND).await;
                }
            }
            let _ = store.shutdown().await;
        })
        .await;
    rt::world::power_loss(node);
    let told = *told.lock().unwrap();
    (operations, told)
}

/// All files below a folder of the world's own disk.
pub fn files_below(root: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut dirs = vec![PathBuf::from(root)];
    let mut files = BTreeMap::new();
    while let Some(dir) = dirs.pop() {
        for path in rt::fs::read_dir(&dir).unwrap_or_default() {
            if rt::fs::metadata(&path).unwrap().is_dir {
                dirs.push(path);
            } else {
                let bytes = disk::read_file(NodeId::WORLD, &path).unwrap();
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Everything a reader can see of a store: bounds and bodies of queues 0 to 3, and the log's end.
pub async fn view(store: &Store) -> (PhysicalOffset, Vec<Vec<Vec<u8>>>) {
    let mut queues = Vec::new();
    for queue_id in 0..4 {
        queues.push(read_all(store, queue_id).await);
    }
    (store.log_end(), queues)
}
