//! A cluster of a name server that only remembers, one or two brokers, and a raw client.
use protocol::body::{BrokerData, ClusterInfo};
use protocol::filter::BloomFilter;
use protocol::header::{
    OffsetResponse, PullMessageRequest, PullMessageResponse, QueryConsumerOffsetRequest, RegisterBrokerRequest,
    RegisterBrokerResponse, SendMessageRequest, SendMessageRequestV2, SendMessageResponse, UpdateConsumerOffsetRequest,
};
use protocol::message::{Properties, decode_all};
use protocol::{Command, Header, QueueOffset, RequestCode, ResponseCode, StoredMessage};
use remoting::{BoxFuture, Client, ClientConfig, Connection, Handler, Server};
use replication::{HaMasterConfig, HaSlaveConfig};
use rt::sync::{CancellationToken, oneshot};
use rt::task::JoinHandle;
use rt::time::{Duration, sleep};
use rt::world::{self, NodeId};
use server::{BrokerRole, BrokerServer, ClusterConfig, FilterConfig, ServerConfig, ServerError, Timing};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use store::{FlushMode, IndexConfig, StoreConfig, TimerConfig};

pub const SECOND: Duration = Duration::from_secs(1);
pub const TOPIC: &str = "T";
pub const GROUP: &str = "G";

/// Runs a test body in a world of its own; its clients are on the world's own node.
pub fn run<F: Future<Output = ()> + 'static>(body: impl FnOnce() -> F + 'static) {
    world::run_test(body);
}

/// As [`run`], and demands that the body reaches the probe.
pub fn reaching<F: Future<Output = ()> + 'static>(probe: &str, body: impl FnOnce() -> F + 'static) {
    let outcome = world::run(world::WorldConfig::default(), body);
    assert!(outcome.finding.is_none(), "{:?}", outcome.finding);
    assert!(outcome.probes.hits.contains_key(probe), "{probe} was not reached: {:?}", outcome.probes);
}

/// A name server that remembers who registered.
#[derive(Default)]
pub struct Names {
    pub registered: Mutex<BTreeMap<i64, (String, String, usize)>>,
}

struct NamesHandler(Arc<Names>);

impl Handler for NamesHandler {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let names = Arc::clone(&self.0);
        Box::pin(async move {
            let mut registered = names.registered.lock().expect("no test panics here");
            let ok = Command::reply(&request, ResponseCode::Success);
            match request.request_code() {
                Some(RequestCode::RegisterBroker) => {
                    let header: RegisterBrokerRequest = request.header().expect("a whole header");
                    let entry = registered.entry(header.broker_id).or_default();
                    *entry = (header.broker_addr, header.ha_server_addr, entry.2 + 1);
                    let master = registered.get(&0).filter(|_| header.broker_id != 0);
                    Some(ok.with_header(&RegisterBrokerResponse {
                        ha_server_addr: master.map(|m| m.1.clone()),
                        master_addr: master.map(|m| m.0.clone()),
                    }))
                }
                Some(RequestCode::UnregisterBroker) => {
                    let header: protocol::header::UnregisterBrokerRequest = request.header().expect("a whole header");
                    registered.remove(&header.broker_id);
                    Some(ok)
                }
                Some(RequestCode::GetBrokerClusterInfo) => {
                    let broker_addrs = registered.iter().map(|(id, entry)| (*id, entry.0.clone())).collect();
                    let data = BrokerData {
                        broker_addrs,
                        broker_name: "b".to_owned(),
                        cluster: "C".to_owned(),
                        enable_acting_master: false,
                        zone_name: None,
                    };
                    let info = ClusterInfo {
                        broker_addr_table: [("b".to_owned(), data)].into(),
                        cluster_addr_table: BTreeMap::new(),
                    };
                    Some(ok.with_body(protocol::json::to_vec(&info).expect("plain values")))
                }
                _ => None,
            }
        })
    }
}

/// Starts a remembering name server on a node of its own.
pub async fn name_server(name: &str) -> (Arc<Names>, String) {
    let node = world::add_node(name);
    let names = Arc::new(Names::default());
    let address = SocketAddr::new(world::ip(node), 9876);
    let (ready, started) = oneshot::channel();
    let handler = Arc::new(NamesHandler(Arc::clone(&names)));
    world::spawn_on(node, async move {
        let server =
            Server::bind(address, remoting::ServerConfig::standard(), handler).await.expect("the port is free");
        ready.send(()).expect("the test waits");
        std::future::pending::<()>().await;
        drop(server);
    });
    started.await.expect("the name server starts");
    (names, address.to_string())
}

/// A broker on a node, which may be stopped, crashed and started again.
pub struct TestBroker {
    pub node: NodeId,
    pub cluster: ClusterConfig,
    pub config: ServerConfig,
    pub stop: CancellationToken,
    pub running: JoinHandle<Result<(), ServerError>>,
}

impl TestBroker {
    pub fn address(&self) -> String {
        self.config.advertised.to_string()
    }

    /// Starts a broker of these settings on the node and waits until it serves.
    pub async fn start(node: NodeId, cluster: ClusterConfig, config: ServerConfig) -> TestBroker {
        let (ready, started) = oneshot::channel();
        let stop = CancellationToken::new();
        let (token, settings) = (stop.clone(), (cluster.clone(), config.clone()));
        let running = world::spawn_on(node, async move {
            let server = BrokerServer::start(settings.0, settings.1, &token).await?;
            let _ = ready.send(());
            server.run().await
        });
        started.await.expect("the broker starts");
        TestBroker { node, cluster, config, stop, running }
    }

    pub async fn again(&self) -> TestBroker {
        TestBroker::start(self.node, self.cluster.clone(), self.config.clone()).await
    }

    pub async fn stop(self) -> (NodeId, ClusterConfig, ServerConfig) {
        self.stop.cancel();
        self.running.await.expect("the broker's task ends").expect("the broker stops in order");
        (self.node, self.cluster, self.config)
    }
}

pub fn cluster() -> ClusterConfig {
    ClusterConfig {
        cluster_name: "C".to_owned(),
        broker_name: "b".to_owned(),
        in_sync_replicas: 1,
        default_topic_queue_nums: 8,
        auto_create_topic: true,
        auto_create_group: true,
        cluster_topic: true,
        broker_topic: true,
        trace_topic: None,
        delay_levels: vec![SECOND, 5 * SECOND, 10 * SECOND],
        region_id: "R".to_owned(),
        trace_on: true,
        recover_from_slave: true,
    }
}

pub fn config(ip: IpAddr, broker_id: i64, name_servers: &[String]) -> ServerConfig {
    let role = if broker_id == 0 { BrokerRole::AsyncMaster } else { BrokerRole::Slave };
    let root = std::path::PathBuf::from("/store");
    let store = StoreConfig {
        flush_mode: FlushMode::Async,
        segment_size: 1 << 20,
        consume_queue_file_size: 20_000,
        index: Some(IndexConfig { hash_slots: 100, entries: 400 }),
        delay_levels_ms: vec![1000, 5000, 10_000],
        timer: Some(TimerConfig { log_file_bytes: 1040, ..TimerConfig::default() }),
        ..StoreConfig::new(&root)
    };
    ServerConfig {
        light_queues: false,
        broker_id,
        role,
        listen: SocketAddr::new(ip, 10_911),
        advertised: SocketAddr::new(ip, 10_911),
        as_master: HaMasterConfig::standard(SocketAddr::new(ip, 10_912)),
        as_slave: HaSlaveConfig::standard(format!("b:{broker_id}")),
        ha_advertised: SocketAddr::new(ip, 10_912),
        ha_master: None,
        name_servers: name_servers.to_vec(),
        root,
        flush_sync: false,
        store,
        permission: 6,
        slave_read: true,
        long_polling: true,
        notify_consumer_change: true,
        recall: true,
        store_replies: true,
        reject_transactions: false,
        transaction_checks_max: 15,
        filter: FilterConfig {
            by_properties: true,
            of_retries: true,
            in_bits: false,
            bloom: BloomFilter::new(20, 32).expect("in range"),
            keep_dead: Duration::from_secs(86_400),
        },
        held_pulls_max: 1000,
        remoting_server: remoting::ServerConfig::standard(),
        remoting_client: ClientConfig::standard(),
        timing: Timing::standard(),
    }
}

/// One master without name servers.
pub async fn lone_master() -> TestBroker {
    let node = world::add_node("master");
    TestBroker::start(node, cluster(), config(world::ip(node), 0, &[])).await
}

/// A client that speaks bare requests to one broker.
pub struct Raw {
    pub client: Client,
    pub address: String,
}

impl Raw {
    pub fn to(address: &str) -> Raw {
        Raw::with(address, None)
    }

    pub fn with(address: &str, handler: Option<Arc<dyn Handler>>) -> Raw {
        Raw {
            client: Client::new(ClientConfig::standard(), handler, &CancellationToken::new()),
            address: address.to_owned(),
        }
    }

    pub async fn ask(&self, command: Command) -> Command {
        self.client.request(&self.address, command, 60 * SECOND).await.expect("an answer")
    }

    pub async fn call(&self, code: RequestCode, header: &impl Header) -> Command {
        self.ask(Command::request(code, header)).await
    }

    pub async fn send(&self, queue_id: i32, body: &str, properties: &[(&str, &str)]) -> Command {
        let header: SendMessageRequestV2 = send_header(queue_id, properties).into();
        self.ask(Command::request(RequestCode::SendMessageV2, &header).with_body(body.as_bytes().to_vec())).await
    }

    /// Sends and insists on SEND_OK; answers the queue offset.
    pub async fn sent(&self, queue_id: i32, body: &str) -> i64 {
        let reply = self.send(queue_id, body, &[]).await;
        assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
        reply.header::<SendMessageResponse>().expect("a whole header").queue_offset.get()
    }

    pub async fn pull(&self, header: PullMessageRequest) -> Pulled {
        let reply = self.call(RequestCode::PullMessage, &header).await;
        let code = reply.response_code().expect("a known code");
        let messages =
            if code == ResponseCode::Success { decode_all(reply.body.clone()).expect("records") } else { Vec::new() };
        Pulled { code, header: reply.header().ok(), messages }
    }

    pub async fn commit(&self, queue_id: i32, offset: i64) -> Option<ResponseCode> {
        let header = UpdateConsumerOffsetRequest {
            consumer_group: GROUP.to_owned(),
            topic: TOPIC.to_owned(),
            queue_id,
            commit_offset: QueueOffset(offset),
        };
        self.call(RequestCode::UpdateConsumerOffset, &header).await.response_code()
    }

    /// The committed offset; `None` if there is none.
    pub async fn committed(&self, queue_id: i32) -> Option<i64> {
        let header = QueryConsumerOffsetRequest {
            consumer_group: GROUP.to_owned(),
            topic: TOPIC.to_owned(),
            queue_id,
            set_zero_if_not_found: Some(false),
        };
        let reply = self.call(RequestCode::QueryConsumerOffset, &header).await;
        (reply.response_code() == Some(ResponseCode::Success))
            .then(|| reply.header::<OffsetResponse>().expect("a whole header").offset.get())
    }
}

/// A pull's answer.
#[derive(Debug)]
pub struct Pulled {
    pub code: ResponseCode,
    pub header: Option<PullMessageResponse>,
    pub messages: Vec<StoredMessage>,
}

impl Pulled {
    pub fn bodies(&self) -> Vec<String> {
        self.messages.iter().map(|message| String::from_utf8(message.body.to_vec()).expect("text")).collect()
    }
}

pub fn send_header(queue_id: i32, properties: &[(&str, &str)]) -> SendMessageRequest {
    let properties: Properties = properties.iter().copied().collect();
    SendMessageRequest {
        producer_group: "P".to_owned(),
        topic: TOPIC.to_owned(),
        default_topic: "TBW102".to_owned(),
        default_topic_queue_nums: 4,
        queue_id,
        sys_flag: 0,
        born_timestamp: 1,
        flag: 7,
        properties: Some(properties.to_text()),
        reconsume_times: None,
        unit_mode: None,
        max_reconsume_times: None,
        batch: None,
        broker_name: None,
    }
}

/// A pull of queue 0 that brings its own subscription to everything and does not wait.
pub fn pull_header(offset: i64) -> PullMessageRequest {
    PullMessageRequest {
        consumer_group: GROUP.to_owned(),
        topic: TOPIC.to_owned(),
        queue_id: 0,
        queue_offset: QueueOffset(offset),
        max_msg_nums: 32,
        sys_flag: 4,
        commit_offset: QueueOffset(0),
        suspend_timeout_millis: 0,
        subscription: Some("*".to_owned()),
        sub_version: 1,
        expression_type: None,
        max_msg_bytes: None,
        request_source: None,
        proxy_forward_client_id: None,
    }
}

/// The same, waiting up to so many seconds.
pub fn waiting(offset: i64, seconds: i64) -> PullMessageRequest {
    PullMessageRequest { sys_flag: 4 | 2, suspend_timeout_millis: seconds * 1000, ..pull_header(offset) }
}

/// Waits until `done`, at most a minute of virtual time.
pub async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if done().await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("not within a minute: {what}");
}
