//! A master and a slave as a broker would run them, each on a machine of its own.
use bytes::Bytes;
use protocol::{Command, PhysicalOffset, RequestCode, ResponseCode};
use remoting::{BoxFuture, Client, ClientConfig, Connection, Handler, Server, ServerConfig};
use replication::{HaMaster, HaMasterConfig, HaSlave, HaSlaveConfig, HaSlaveState, MasterAddr, answer_log_digest};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep};
use rt::world::{NodeId, WorldConfig, add_node, ip, run, spawn_on};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use store::{Appended, FlushMode, IndexConfig, NewMessage, Store, StoreConfig, UnrecoveredStore};

pub const SECOND: Duration = Duration::from_secs(1);
pub const HA_PORT: u16 = 10912;
const PORT: u16 = 10911;
pub const SEGMENT: u64 = 64 * 1024;

pub fn store_config(flush_mode: FlushMode) -> StoreConfig {
    let mut config = StoreConfig::new("/store");
    config.segment_size = SEGMENT;
    config.consume_queue_file_size = 2000;
    config.index = Some(IndexConfig { hash_slots: 100, entries: 400 });
    config.max_message_size = 16 * 1024;
    config.flush_mode = flush_mode;
    config
}

pub async fn open_store(config: StoreConfig, shutdown: &CancellationToken) -> Arc<Store> {
    let store = UnrecoveredStore::open(config).await.unwrap().recover().await.unwrap();
    store.start(shutdown);
    store
}

/// What runs on a machine while its process lives.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<Store>,
    pub master: Option<Arc<HaMaster>>,
    pub slave: Option<Arc<HaSlave>>,
    _server: Option<Arc<Server>>,
}

/// A machine and what its process runs.
#[derive(Clone)]
pub struct Machine {
    pub node: NodeId,
    parts: Arc<Mutex<Option<Parts>>>,
}

impl Machine {
    pub fn new(name: &str) -> Machine {
        Machine { node: add_node(name), parts: Arc::default() }
    }

    pub fn parts(&self) -> Parts {
        self.parts.lock().unwrap().clone().expect("the process is up")
    }

    pub fn store(&self) -> Arc<Store> {
        self.parts().store
    }

    pub fn master(&self) -> Arc<HaMaster> {
        self.parts().master.unwrap()
    }

    pub fn slave(&self) -> HaSlaveState {
        self.parts().slave.unwrap().state()
    }

    /// Forgets what the dead process left in the test's hands.
    pub fn forget(&self) {
        self.parts.lock().unwrap().take();
    }

    pub async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(self.node, future).await.unwrap()
    }

    async fn boot(&self, start: impl Future<Output = Parts> + Send + 'static) {
        self.forget();
        let parts = Arc::clone(&self.parts);
        spawn_on(self.node, async move {
            let started = start.await;
            *parts.lock().unwrap() = Some(started);
            std::future::pending::<()>().await;
        });
        for _ in 0..100 {
            sleep(Duration::from_millis(100)).await;
            if self.parts.lock().unwrap().is_some() {
                return;
            }
        }
        panic!("the process does not start");
    }

    /// Starts a master; `compares`: its remoting port knows LOG_DIGEST, as Apache's does not.
    pub async fn boot_master(&self, config: StoreConfig, compares: bool) {
        let at = |port| SocketAddr::new(ip(self.node), port);
        let (listen, remoting) = (at(HA_PORT), at(PORT));
        self.boot(async move {
            let root = CancellationToken::new();
            let store = open_store(config, &root).await;
            let master = HaMaster::start(HaMasterConfig::standard(listen), Arc::clone(&store), &root).await.unwrap();
            let master = Arc::new(master);
            let handler = Digests { store: Arc::clone(&store), master: Arc::clone(&master), compares };
            let server = Server::bind(remoting, ServerConfig::standard(), Arc::new(handler)).await.unwrap();
            Parts { store, master: Some(master), slave: None, _server: Some(Arc::new(server)) }
        })
        .await;
    }

    pub async fn boot_slave(&self, config: StoreConfig, slave: HaSlaveConfig, master: &Machine) {
        self.boot_slave_of(config, slave, Some(master_addr(master))).await;
    }

    pub async fn boot_slave_of(&self, config: StoreConfig, slave: HaSlaveConfig, master: Option<MasterAddr>) {
        self.boot(async move {
            let root = CancellationToken::new();
            let store = open_store(config, &root).await;
            let client = Client::new(ClientConfig::standard(), None, &root);
            let slave = HaSlave::start(slave, Arc::clone(&store), client, &root);
            slave.set_master(master);
            Parts { store, master: None, slave: Some(Arc::new(slave)), _server: None }
        })
        .await;
    }

    /// Appends messages of about `bytes` bytes each.
    pub async fn append(&self, count: usize, bytes: usize) -> Appended {
        let store = self.store();
        self.run(async move {
            let mut last = None;
            for i in 0..count {
                last = Some(store.append(message(i, bytes)).unwrap());
            }
            last.expect("at least one message")
        })
        .await
    }

    /// The whole log.
    pub async fn log(&self) -> Bytes {
        let store = self.store();
        self.run(async move { read_all(&store).await }).await
    }
}

pub fn master_addr(master: &Machine) -> MasterAddr {
    let at = |port| SocketAddr::new(ip(master.node), port);
    MasterAddr { ha: at(HA_PORT), remoting: Some(at(PORT).to_string()) }
}

pub async fn read_all(store: &Store) -> Bytes {
    let mut at = store.log_min();
    let mut log = Vec::new();
    loop {
        let part = store.read_log(at, 1 << 20).await.unwrap();
        if part.is_empty() {
            return log.into();
        }
        log.extend_from_slice(&part);
        at = at + part.len() as i64;
    }
}

pub fn message(number: usize, bytes: usize) -> NewMessage {
    NewMessage {
        topic: "T".to_owned(),
        queue_id: 0,
        flag: 0,
        sys_flag: 0,
        born_timestamp: rt::time::unix_ms(),
        born_host: "10.0.0.9:40000".parse().unwrap(),
        store_host: "10.0.0.1:10911".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        properties: String::new(),
        body: vec![number as u8; bytes].into(),
    }
}

struct Digests {
    store: Arc<Store>,
    master: Arc<HaMaster>,
    compares: bool,
}

impl Handler for Digests {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let (store, master) = (Arc::clone(&self.store), Arc::clone(&self.master));
        let known = self.compares && request.request_code() == Some(RequestCode::LogDigest);
        Box::pin(async move {
            Some(if known {
                answer_log_digest(&store, Some(&master), &request).await
            } else {
                Command::reply(&request, ResponseCode::RequestCodeNotSupported)
            })
        })
    }
}

/// A master and one slave, both up.
pub async fn pair(flush: FlushMode) -> (Machine, Machine) {
    let (master, slave) = (Machine::new("master"), Machine::new("slave"));
    master.boot_master(store_config(flush), true).await;
    slave.boot_slave(store_config(flush), HaSlaveConfig::standard("b:1"), &master).await;
    (master, slave)
}

pub async fn wait_end(machine: &Machine, end: PhysicalOffset, at_most: Duration) {
    for _ in 0..at_most.as_millis() / 10 {
        if machine.store().confirm_end() >= end {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!(
        "the log ends at {} and not at {end}; {:?}",
        machine.store().log_end(),
        machine.parts().slave.map(|s| s.state())
    );
}

/// Both logs are the same from where the slave's begins (an empty slave joins at the master's last segment), and both machines' tables are
/// sound.
pub async fn check_equal(master: &Machine, slave: &Machine) {
    let (m, s) = (master.log().await, slave.log().await);
    let begin = (slave.store().log_min() - master.store().log_min()) as usize;
    assert!(m[begin..] == s, "the logs differ: {} and {begin} + {} bytes", m.len(), s.len());
    master.master().check_invariants();
    master.store().check_invariants();
    slave.store().check_invariants();
}

/// Waits until the slave is connected and holds exactly what the master does.
pub async fn wait_same_end(master: &Machine, slave: &Machine) {
    for _ in 0..6000 {
        let end = master.store().log_end();
        if slave.store().log_end() == end && master.master().slaves().iter().any(|slave| slave.acked == Some(end)) {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("no agreement: {:?} {:?}", master.master().slaves(), slave.slave());
}

/// Runs the body under several seeds, and demands that at least one of them reaches the probe. Returns what the bodies did.
pub fn reaching<F: Future + 'static>(
    probe: &str,
    seeds: std::ops::Range<u64>,
    body: impl Fn(u64) -> F + Clone + 'static,
) -> Vec<F::Output> {
    let (mut values, mut reached) = (Vec::new(), 0);
    for seed in seeds {
        let body = body.clone();
        let outcome = run(WorldConfig { seed, ..WorldConfig::default() }, move || body(seed));
        if let Some(finding) = outcome.finding {
            panic!("seed {seed}: {finding}");
        }
        reached += outcome.probes.hits.get(probe).copied().unwrap_or(0);
        values.push(outcome.value.expect("a run without a finding has a value"));
    }
    assert!(reached > 0, "{probe} was not reached");
    values
}
