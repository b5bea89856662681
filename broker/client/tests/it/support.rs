//! Scripted name servers and brokers: they keep messages in memory, serve what a client asks, and misbehave when told to.
use bytes::{Bytes, BytesMut};
use client::{
    ClientConfig, ClientInstance, ConsumeContext, ConsumeFrom, ConsumeOutcome, ConsumerConfig, Listener, ProducerConfig,
};
use protocol::body::{BrokerData, ConsumerListBody, HeartbeatData, QueueData, TopicRouteData};
use protocol::header::{
    ConsumerSendMsgBackRequest, EndTransactionRequest, GetConsumerListByGroupRequest, GetMaxOffsetRequest,
    GetRouteInfoRequest, NotifyConsumerIdsChangedRequest, OffsetResponse, PullMessageRequest, PullMessageResponse,
    PullSysFlag, PushReplyMessageRequest, QueryConsumerOffsetRequest, RecallMessageRequest, RecallMessageResponse,
    SendMessageRequest, SendMessageResponse, UnregisterClientRequest, UpdateConsumerOffsetRequest,
};
use protocol::message::{BatchEntry, RecallHandle, RecordVersion, batch, property, retry_topic};
use protocol::{
    Command, MessageId, PhysicalOffset, Properties, QueueOffset, Record, RequestCode, ResponseCode, StoredMessage,
    SysFlag,
};
use remoting::{BoxFuture, Connection, Handler, Lane, Server, ServerConfig};
use rt::sync::{CancellationToken, Notify};
use rt::time::{sleep, timeout};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub const SECOND: Duration = Duration::from_secs(1);
pub const TOPIC: &str = "T";
pub const GROUP: &str = "g";

/// Each test is run under so many seeds: other orders of tasks, other choices of queues and servers.
const SEEDS: u64 = 8;

pub fn run<F: Future<Output = ()> + 'static>(body: impl FnOnce() -> F + Copy + 'static) {
    for seed in 1..=SEEDS {
        rt::world::run_test_with(rt::world::WorldConfig { seed, ..Default::default() }, body);
    }
}

/// As [`run`], and every run must reach the probe.
pub fn run_reaching<F: Future<Output = ()> + 'static>(probe: &str, body: impl FnOnce() -> F + Copy + 'static) {
    for seed in 1..=SEEDS {
        let outcome = rt::world::run(rt::world::WorldConfig { seed, ..Default::default() }, body);
        assert!(outcome.finding.is_none(), "{}", outcome.finding.expect("just seen"));
        assert!(outcome.probes.hits.contains_key(probe), "seed {seed} did not reach {probe}: {:?}", outcome.probes);
    }
}

pub fn addr(port: u16) -> SocketAddr {
    SocketAddr::new(rt::world::ip(rt::world::current_node()), port)
}

/// What a broker does with the next request of some code, instead of serving it.
#[derive(Clone, Copy, Debug)]
pub enum Mood {
    /// Answers with that code and does nothing.
    Refuse(ResponseCode),
    /// Does it and does not answer.
    ServeSilently,
    /// Does it and answers with that code.
    ServeAs(ResponseCode),
}

type Queue = (String, i32);

#[derive(Default)]
pub struct State {
    pub log: BTreeMap<Queue, Vec<Bytes>>,
    physical: i64,
    pub offsets: BTreeMap<(String, String, i32), i64>,
    /// Client ids of a group, each with the connection that its last heartbeat came by.
    pub members: BTreeMap<String, BTreeMap<String, u64>>,
    pub moods: BTreeMap<i32, VecDeque<Mood>>,
    pub commits_by_pull: Vec<i64>,
    pub seen: Vec<i32>,
    /// Offsets below were deleted: asking for them is illegal.
    pub minimum: i64,
    pub suggest: i64,
    pub connections: Vec<Connection>,
    pub groups_seen: BTreeSet<String>,
    pub ends: Vec<EndTransactionRequest>,
}

/// One broker.
pub struct Broker {
    pub name: &'static str,
    pub id: i64,
    pub addr: SocketAddr,
    state: Mutex<State>,
    arrived: Notify,
    server: Mutex<Option<Server>>,
}

struct BrokerHandler(Arc<Broker>);

impl Broker {
    pub async fn start(name: &'static str, id: i64, port: u16) -> Arc<Broker> {
        let broker = Arc::new(Broker {
            name,
            id,
            addr: addr(port),
            state: Mutex::default(),
            arrived: Notify::new(),
            server: Mutex::default(),
        });
        broker.up().await;
        broker
    }

    /// Begins to listen. What it knows of clients is gone, the log and the offsets are there.
    pub async fn up(self: &Arc<Self>) {
        self.state().members.clear();
        let server =
            Server::bind(self.addr, ServerConfig::standard(), Arc::new(BrokerHandler(Arc::clone(self)))).await.unwrap();
        *self.server.lock().unwrap() = Some(server);
    }

    /// Stops to listen and closes every connection.
    pub fn down(&self) {
        self.server.lock().unwrap().take();
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn next_mood(&self, code: RequestCode, moods: &[Mood]) {
        self.state().moods.entry(code.as_i32()).or_default().extend(moods);
    }

    pub fn committed(&self, topic: &str, queue_id: i32) -> Option<i64> {
        self.state().offsets.get(&(GROUP.into(), topic.into(), queue_id)).copied()
    }

    pub fn stored(&self, topic: &str) -> usize {
        self.state().log.iter().filter(|((t, _), _)| t == topic).map(|(_, queue)| queue.len()).sum()
    }

    pub fn count(&self, code: RequestCode) -> usize {
        self.state().seen.iter().filter(|seen| **seen == code.as_i32()).count()
    }

    /// Sends a request to every client.
    pub async fn push(&self, request: Command) {
        let connections = self.state().connections.clone();
        for connection in connections.into_iter().filter(|connection| !connection.is_closed()) {
            connection.send_oneway(request.clone()).await.unwrap();
        }
    }

    pub fn append(&self, message: StoredMessage) -> (i64, i64) {
        let mut state = self.state();
        let physical = state.physical;
        state.physical += 1000;
        let queue = state.log.entry((message.topic.clone(), message.queue_id)).or_default();
        let offset = i64::try_from(queue.len()).unwrap();
        queue.push(encode(message, offset, physical));
        drop(state);
        self.arrived.notify_waiters();
        (offset, physical)
    }

    async fn serve(&self, connection: Connection, request: Command) -> Option<Command> {
        let mood = {
            let mut state = self.state();
            state.seen.push(request.code);
            state.moods.get_mut(&request.code).and_then(VecDeque::pop_front)
        };
        match mood {
            Some(Mood::Refuse(code)) => return Some(Command::reply(&request, code)),
            Some(Mood::ServeSilently | Mood::ServeAs(_)) | None => {}
        }
        let mut answer = self.act(connection, &request).await;
        match mood {
            Some(Mood::ServeSilently) => return None,
            Some(Mood::ServeAs(code)) => answer.code = code.as_i32(),
            _ => {}
        }
        Some(answer)
    }

    async fn act(&self, connection: Connection, request: &Command) -> Command {
        match request.request_code().unwrap() {
            RequestCode::HeartBeat => self.heartbeat(connection, request).await,
            RequestCode::CheckClientConfig => ok(request),
            RequestCode::UnregisterClient => self.unregister(request).await,
            RequestCode::GetConsumerListByGroup => self.members(request),
            RequestCode::SendMessageV2 | RequestCode::SendBatchMessage => self.send(request),
            RequestCode::SendReplyMessageV2 => self.reply(request).await,
            RequestCode::PullMessage => self.pull(request).await,
            RequestCode::QueryConsumerOffset => self.query_offset(request),
            RequestCode::UpdateConsumerOffset => self.update_offset(request),
            RequestCode::GetMaxOffset => self.max_offset(request),
            RequestCode::ConsumerSendMsgBack => self.send_back(request),
            RequestCode::RecallMessage => {
                let header: RecallMessageRequest = request.header().unwrap();
                let handle = RecallHandle::decode(&header.recall_handle).unwrap();
                ok(request).with_header(&RecallMessageResponse { msg_id: handle.unique_key, region: None })
            }
            RequestCode::EndTransaction => {
                self.state().ends.push(request.header().unwrap());
                ok(request)
            }
            _ => Command::reply(request, ResponseCode::RequestCodeNotSupported),
        }
    }

    async fn heartbeat(&self, connection: Connection, request: &Command) -> Command {
        let data: HeartbeatData = protocol::json::from_slice(&request.body).unwrap();
        let mut changed = Vec::new();
        {
            let mut state = self.state();
            state.groups_seen.extend(data.producer_data_set.iter().map(|producer| producer.group_name.clone()));
            let id = connection.id().as_u64();
            if !state.connections.iter().any(|known| known.id() == connection.id()) {
                state.connections.push(connection);
            }
            for consumer in &data.consumer_data_set {
                let members = state.members.entry(consumer.group_name.clone()).or_default();
                if members.insert(data.client_id.clone(), id).is_none() {
                    changed.push(consumer.group_name.clone());
                }
            }
        }
        self.notify(changed).await;
        ok(request)
    }

    async fn unregister(&self, request: &Command) -> Command {
        let header: UnregisterClientRequest = request.header().unwrap();
        let group = header.consumer_group.clone().unwrap_or_default();
        let left =
            self.state().members.get_mut(&group).is_some_and(|members| members.remove(&header.client_id).is_some());
        self.notify(if left { vec![group] } else { Vec::new() }).await;
        ok(request)
    }

    async fn notify(&self, groups: Vec<String>) {
        for consumer_group in groups {
            let header = NotifyConsumerIdsChangedRequest { consumer_group };
            self.push(Command::request(RequestCode::NotifyConsumerIdsChanged, &header)).await;
        }
    }

    fn members(&self, request: &Command) -> Command {
        let header: GetConsumerListByGroupRequest = request.header().unwrap();
        let members = self.state().members.get(&header.consumer_group).cloned().unwrap_or_default();
        if members.is_empty() {
            return Command::reply(request, ResponseCode::SystemError).with_remark("no consumer for this group");
        }
        let body = ConsumerListBody { consumer_id_list: members.into_keys().collect() };
        ok(request).with_body(protocol::json::to_vec(&body).unwrap())
    }

    fn send(&self, request: &Command) -> Command {
        let header = SendMessageRequest::decode_any(request.request_code().unwrap(), &request.ext_fields).unwrap();
        let properties = Properties::parse(header.properties.as_deref().unwrap_or_default());
        let single =
            BatchEntry { flag: header.flag, body: request.body.clone(), properties: properties.to_text().into() };
        let is_batch = header.batch == Some(true);
        let entries = if is_batch { batch::decode(&request.body, 100).unwrap() } else { vec![single] };
        let placed: Vec<(i64, i64)> = entries
            .into_iter()
            .map(|entry| {
                let mut message = blank(&header.topic, header.queue_id, entry.body.clone());
                message.properties = entry.properties();
                message.sys_flag = SysFlag(header.sys_flag);
                message.reconsume_times = header.reconsume_times.unwrap_or(0);
                self.append(message)
            })
            .collect();
        ok(request).with_header(&SendMessageResponse {
            msg_id: MessageId::new(self.addr, PhysicalOffset(placed[0].1)).to_string(),
            queue_id: header.queue_id,
            queue_offset: QueueOffset(placed[0].0),
            transaction_id: None,
            batch_uniq_id: None,
            recall_handle: properties.contains(property::TIMER_DELAY_SEC).then(|| {
                let handle = RecallHandle {
                    topic: header.topic.clone(),
                    broker_name: self.name.to_owned(),
                    deliver_ms: 5,
                    unique_key: properties.unique_key().unwrap().to_owned(),
                };
                handle.encode()
            }),
            region: None,
            trace_on: None,
        })
    }

    /// Hands the reply to every client, as a broker does to the one that waits.
    async fn reply(&self, request: &Command) -> Command {
        let header = SendMessageRequest::decode_any(request.request_code().unwrap(), &request.ext_fields).unwrap();
        let push = PushReplyMessageRequest {
            producer_group: header.producer_group,
            topic: header.topic,
            default_topic: header.default_topic,
            default_topic_queue_nums: header.default_topic_queue_nums,
            queue_id: header.queue_id,
            sys_flag: header.sys_flag,
            born_timestamp: header.born_timestamp,
            flag: header.flag,
            properties: header.properties,
            reconsume_times: header.reconsume_times,
            unit_mode: header.unit_mode,
            born_host: "/10.0.0.1:5".to_owned(),
            store_host: self.addr.to_string(),
            store_timestamp: 5,
        };
        let push = Command::request(RequestCode::PushReplyMessageToClient, &push).with_body(request.body.clone());
        let connections = self.state().connections.clone();
        let mut taken = 0;
        for connection in connections {
            let answer = connection.request(push.clone(), SECOND).await.unwrap();
            taken += usize::from(answer.response_code() == Some(ResponseCode::Success));
        }
        let code = if taken == 1 { ResponseCode::Success } else { ResponseCode::SystemError };
        Command::reply(request, code).with_header(&SendMessageResponse {
            msg_id: "0".to_owned(),
            queue_id: 0,
            queue_offset: QueueOffset(0),
            transaction_id: None,
            batch_uniq_id: None,
            recall_handle: None,
            region: None,
            trace_on: None,
        })
    }

    async fn pull(&self, request: &Command) -> Command {
        let header: PullMessageRequest = request.header().unwrap();
        let flags = PullSysFlag(header.sys_flag);
        if flags.commits_offset() {
            let mut state = self.state();
            state.commits_by_pull.push(header.commit_offset.0);
            let key = (header.consumer_group.clone(), header.topic.clone(), header.queue_id);
            state.offsets.insert(key, header.commit_offset.0);
        }
        if !self.state().members.contains_key(&header.consumer_group) {
            return Command::reply(request, ResponseCode::SubscriptionNotExist);
        }
        let hold = Duration::from_millis(header.suspend_timeout_millis.try_into().unwrap());
        let answer = timeout(hold, async {
            loop {
                let arrived = self.arrived.notified();
                match self.try_pull(request, &header) {
                    Some(answer) => return answer,
                    None => arrived.await,
                }
            }
        });
        answer
            .await
            .unwrap_or_else(|_| self.pulled(request, ResponseCode::PullNotFound, header.queue_offset.0, Bytes::new()))
    }

    fn try_pull(&self, request: &Command, header: &PullMessageRequest) -> Option<Command> {
        let state = self.state();
        let queue = state.log.get(&(header.topic.clone(), header.queue_id)).map(Vec::as_slice).unwrap_or_default();
        let (from, minimum, end) = (header.queue_offset.0, state.minimum, i64::try_from(queue.len()).unwrap());
        let found: BytesMut = queue.iter().skip(from.try_into().unwrap()).take(32).flatten().copied().collect();
        drop(state);
        if from > end {
            return Some(self.pulled(request, ResponseCode::PullOffsetMoved, end, Bytes::new()));
        }
        if from < minimum {
            return Some(self.pulled(request, ResponseCode::PullOffsetMoved, minimum, Bytes::new()));
        }
        if found.is_empty() {
            return None;
        }
        Some(self.pulled(request, ResponseCode::Success, (from + 32).min(end), found.freeze()))
    }

    fn pulled(&self, request: &Command, code: ResponseCode, next: i64, body: Bytes) -> Command {
        let header = PullMessageResponse {
            suggest_which_broker_id: self.state().suggest,
            next_begin_offset: QueueOffset(next),
            min_offset: QueueOffset(0),
            max_offset: QueueOffset(0),
            offset_delta: None,
            topic_sys_flag: None,
            group_sys_flag: None,
            forbidden_type: None,
        };
        Command::reply(request, code).with_header(&header).with_body(body)
    }

    fn query_offset(&self, request: &Command) -> Command {
        let header: QueryConsumerOffsetRequest = request.header().unwrap();
        match self.state().offsets.get(&(header.consumer_group, header.topic, header.queue_id)) {
            Some(offset) => ok(request).with_header(&OffsetResponse { offset: QueueOffset(*offset) }),
            None => Command::reply(request, ResponseCode::QueryNotFound),
        }
    }

    fn update_offset(&self, request: &Command) -> Command {
        let header: UpdateConsumerOffsetRequest = request.header().unwrap();
        self.state().offsets.insert((header.consumer_group, header.topic, header.queue_id), header.commit_offset.0);
        ok(request)
    }

    fn max_offset(&self, request: &Command) -> Command {
        let header: GetMaxOffsetRequest = request.header().unwrap();
        let len = self.state().log.get(&(header.topic, header.queue_id)).map_or(0, Vec::len);
        ok(request).with_header(&OffsetResponse { offset: QueueOffset(len.try_into().unwrap()) })
    }

    fn send_back(&self, request: &Command) -> Command {
        let header: ConsumerSendMsgBackRequest = request.header().unwrap();
        let records: Vec<Bytes> = self.state().log.values().flatten().cloned().collect();
        let all = records.iter().map(|record| StoredMessage::decode(record).unwrap());
        let Some(mut message) = all.into_iter().find(|message| message.physical_offset == header.offset) else {
            return Command::reply(request, ResponseCode::SystemError);
        };
        message.properties.insert(property::RETRY_TOPIC, header.origin_topic.unwrap());
        message.topic = retry_topic(&header.group);
        message.queue_id = 0;
        message.reconsume_times += 1;
        self.append(message);
        ok(request)
    }
}

impl Handler for BrokerHandler {
    fn handle(&self, connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let broker = Arc::clone(&self.0);
        Box::pin(async move { broker.serve(connection, request).await })
    }

    fn lane(&self, _request: &Command) -> Lane {
        Lane::Held
    }

    fn connection_closed(&self, connection: &Connection) {
        for members in self.0.state().members.values_mut() {
            members.retain(|_, id| *id != connection.id().as_u64());
        }
    }
}

fn ok(request: &Command) -> Command {
    Command::reply(request, ResponseCode::Success)
}

pub fn blank(topic: &str, queue_id: i32, body: Bytes) -> StoredMessage {
    let host = addr(1);
    StoredMessage {
        topic: topic.into(),
        queue_id,
        queue_offset: QueueOffset(0),
        physical_offset: PhysicalOffset(0),
        store_size: 0,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        properties: Properties::new(),
        body,
    }
}

fn encode(message: StoredMessage, offset: i64, physical: i64) -> Bytes {
    let record = Record {
        version: RecordVersion::V1,
        topic: message.topic,
        queue_id: message.queue_id,
        queue_offset: QueueOffset(offset),
        physical_offset: PhysicalOffset(physical),
        flag: message.flag,
        sys_flag: message.sys_flag,
        born_timestamp: message.born_timestamp,
        born_host: message.born_host,
        store_timestamp: message.store_timestamp,
        store_host: message.store_host,
        reconsume_times: message.reconsume_times,
        prepared_transaction_offset: message.prepared_transaction_offset,
        properties: message.properties.to_text().into(),
        body: message.body,
    };
    let mut out = BytesMut::new();
    record.encode(&mut out).unwrap();
    out.freeze()
}

/// A name server that knows what it is told: topics with their brokers.
pub struct NameServer {
    pub addr: SocketAddr,
    routes: Mutex<BTreeMap<String, TopicRouteData>>,
    server: Mutex<Option<Server>>,
}

struct NameHandler(Arc<NameServer>);

impl NameServer {
    pub async fn start(port: u16) -> Arc<NameServer> {
        let name_server = Arc::new(NameServer { addr: addr(port), routes: Mutex::default(), server: Mutex::default() });
        let handler = Arc::new(NameHandler(Arc::clone(&name_server)));
        *name_server.server.lock().unwrap() =
            Some(Server::bind(addr(port), ServerConfig::standard(), handler).await.unwrap());
        name_server
    }

    pub fn down(&self) {
        self.server.lock().unwrap().take();
    }

    pub fn route(&self, topic: &str, queues: i32, brokers: &[&Arc<Broker>]) {
        let mut by_name: BTreeMap<&str, BTreeMap<i64, String>> = BTreeMap::new();
        for broker in brokers {
            by_name.entry(broker.name).or_default().insert(broker.id, broker.addr.to_string());
        }
        let mut route = TopicRouteData::default();
        for (name, broker_addrs) in by_name {
            route.queue_datas.push(QueueData {
                broker_name: name.into(),
                perm: 6,
                read_queue_nums: queues,
                write_queue_nums: queues,
                topic_sys_flag: 0,
            });
            route.broker_datas.push(BrokerData { broker_name: name.into(), broker_addrs, ..BrokerData::default() });
        }
        self.routes.lock().unwrap().insert(topic.into(), route);
    }
}

impl Handler for NameHandler {
    fn handle(&self, _connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let header: GetRouteInfoRequest = request.header().unwrap();
        let answer = match self.0.routes.lock().unwrap().get(&header.topic) {
            Some(route) => ok(&request).with_body(protocol::json::to_vec(route).unwrap()),
            None => Command::reply(&request, ResponseCode::TopicNotExist),
        };
        Box::pin(async move { Some(answer) })
    }
}

/// A name server, a broker with two queues of the topic, and the group's retry topic.
pub struct Cluster {
    pub name_server: Arc<NameServer>,
    pub broker: Arc<Broker>,
}

impl Cluster {
    pub async fn start() -> Cluster {
        let (name_server, broker) = (NameServer::start(9876).await, Broker::start("a", 0, 10911).await);
        name_server.route(TOPIC, 2, &[&broker]);
        name_server.route(&retry_topic(GROUP), 1, &[&broker]);
        Cluster { name_server, broker }
    }

    pub fn client(&self, name: &str) -> ClientInstance {
        client(&[&self.name_server], name)
    }
}

pub fn client(name_servers: &[&Arc<NameServer>], name: &str) -> ClientInstance {
    let list = name_servers.iter().map(|name_server| name_server.addr.to_string()).collect();
    let config = ClientConfig::new(list, addr(0).ip(), name);
    ClientInstance::start(config, &CancellationToken::new()).unwrap()
}

pub fn producer_config() -> ProducerConfig {
    ProducerConfig::new("p")
}

pub fn consumer_config() -> ConsumerConfig {
    ConsumerConfig { consume_from: ConsumeFrom::FirstOffset, ..ConsumerConfig::new(GROUP) }
}

/// What a listener got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub topic: String,
    pub body: String,
    pub queue_id: i32,
    pub offset: i64,
    pub reconsume_times: i32,
}

/// Writes everything down, and answers as `judge` says.
pub struct Recorder {
    deliveries: Mutex<Vec<Delivery>>,
    judge: Box<dyn Fn(&Delivery) -> ConsumeOutcome + Send + Sync>,
    pause: Duration,
}

impl Recorder {
    pub fn accepting() -> Arc<Recorder> {
        Recorder::judging(|_| ConsumeOutcome::Success)
    }

    pub fn judging(judge: impl Fn(&Delivery) -> ConsumeOutcome + Send + Sync + 'static) -> Arc<Recorder> {
        Arc::new(Recorder { deliveries: Mutex::default(), judge: Box::new(judge), pause: Duration::ZERO })
    }

    pub fn slow(pause: Duration) -> Arc<Recorder> {
        Arc::new(Recorder { deliveries: Mutex::default(), judge: Box::new(|_| ConsumeOutcome::Success), pause })
    }

    pub fn all(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    pub fn bodies(&self) -> Vec<String> {
        let mut bodies: Vec<String> = self.all().into_iter().map(|delivery| delivery.body).collect();
        bodies.sort();
        bodies
    }

    pub async fn wait_for(&self, count: usize) {
        wait_until(|| self.deliveries.lock().unwrap().len() >= count).await;
    }
}

impl Listener for Recorder {
    fn consume(&self, messages: Vec<StoredMessage>, _context: ConsumeContext) -> BoxFuture<'static, ConsumeOutcome> {
        let mut outcome = ConsumeOutcome::Success;
        for message in messages {
            let delivery = Delivery {
                topic: message.topic,
                body: String::from_utf8_lossy(&message.body).into_owned(),
                queue_id: message.queue_id,
                offset: message.queue_offset.0,
                reconsume_times: message.reconsume_times,
            };
            outcome = (self.judge)(&delivery);
            self.deliveries.lock().unwrap().push(delivery);
        }
        let pause = self.pause;
        Box::pin(async move {
            sleep(pause).await;
            outcome
        })
    }
}

/// Waits, at most ten minutes of simulated time.
pub async fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("waited for ten minutes");
}
