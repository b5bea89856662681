//! What a program says about its clients. Every field has RocketMQ's default in the constructor; the required ones are arguments.
use crate::rebalance::Strategy;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One client id: what all producers and consumers of a [`ClientInstance`](crate::ClientInstance) share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Name servers, `host:port` each; any order, not empty.
    pub name_servers: Vec<String>,
    /// Address of this machine, the first part of the client id and of message keys.
    pub client_ip: IpAddr,
    /// Second part of the client id; must differ between processes of one machine. A broadcasting consumer must keep it over
    /// restarts: its local offsets are filed under the client id.
    pub instance_name: String,
    /// Process id as it appears in message keys (low 16 bits are used).
    pub process_id: u32,
    /// How often routes are refreshed.
    pub poll_name_server_interval: Duration,
    /// How often every broker gets a heartbeat.
    pub heartbeat_broker_interval: Duration,
    /// How often progress is written to the brokers or the local file.
    pub persist_consumer_offset_interval: Duration,
    /// Wait before the next pull after a failed one.
    pub pull_delay_on_error: Duration,
    /// Time-out of calls to name servers, heartbeats and consumer lists.
    pub api_timeout: Duration,
    /// Time-out of offset queries, offset updates and send-backs.
    pub offset_timeout: Duration,
    /// Time-out of connecting.
    pub connect_timeout: Duration,
    /// How often a consumer rebalances without being asked.
    pub rebalance_interval: Duration,
    /// The least time between two rebalances, and the wait after one that could not do all it should.
    pub rebalance_interval_min: Duration,
}

impl ClientConfig {
    /// RocketMQ's defaults.
    pub fn new(name_servers: Vec<String>, client_ip: IpAddr, instance_name: impl Into<String>) -> ClientConfig {
        ClientConfig {
            name_servers,
            client_ip,
            instance_name: instance_name.into(),
            process_id: 1,
            poll_name_server_interval: Duration::from_secs(30),
            heartbeat_broker_interval: Duration::from_secs(30),
            persist_consumer_offset_interval: Duration::from_secs(5),
            pull_delay_on_error: Duration::from_secs(1),
            api_timeout: Duration::from_secs(3),
            offset_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            rebalance_interval: Duration::from_secs(20),
            rebalance_interval_min: Duration::from_secs(1),
        }
    }

    /// `clientIP@instanceName`: how brokers know this client.
    pub fn client_id(&self) -> String {
        format!("{}@{}", self.client_ip, self.instance_name)
    }
}

/// One producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerConfig {
    /// Producer group: 1 to 120 characters of `%|a-zA-Z0-9_-`.
    pub group: String,
    /// Limit of one call of `send`, all its attempts together.
    pub send_timeout: Duration,
    /// Limit of one attempt while another may follow, so that one silent broker cannot use up the whole call. `None`: no such
    /// limit, as in the Java client.
    pub attempt_timeout: Option<Duration>,
    /// Attempts after the first one.
    pub retry_times_when_send_failed: u32,
    /// Whether a stored message with a weak answer (flush or slave time-out) is sent again to another broker: makes a copy.
    pub retry_another_broker_when_not_store_ok: bool,
    /// Bodies of at least so many bytes are compressed (ZLIB).
    pub compress_body_over: usize,
    /// ZLIB level, 0 to 9.
    pub compress_level: u32,
    /// Largest body in bytes, before compression.
    pub max_message_size: usize,
    /// Whether slow and failing brokers are avoided for a while.
    pub send_latency_enable: bool,
    /// Topic whose queues a missing topic is created with.
    pub create_topic_key: String,
    /// Queues of a topic that a broker creates at the first send.
    pub default_topic_queue_nums: i32,
}

impl ProducerConfig {
    /// RocketMQ's defaults.
    pub fn new(group: impl Into<String>) -> ProducerConfig {
        ProducerConfig {
            group: group.into(),
            send_timeout: Duration::from_secs(3),
            attempt_timeout: Some(Duration::from_millis(1500)),
            retry_times_when_send_failed: 2,
            retry_another_broker_when_not_store_ok: false,
            compress_body_over: 4096,
            compress_level: 5,
            max_message_size: 4 << 20,
            send_latency_enable: false,
            create_topic_key: "TBW102".into(),
            default_topic_queue_nums: 4,
        }
    }
}

/// Who of a group gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageModel {
    /// One member; progress is kept at the broker.
    Clustering,
    /// Every member; progress is kept in a local file.
    Broadcasting,
}

/// Where a group starts in a queue for which no progress is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumeFrom {
    /// At the end: only what comes from now on. (A broker answers 0 for a young topic, so there it is the beginning.)
    LastOffset,
    /// At the beginning.
    FirstOffset,
    /// At the first message stored at or after this wall time in milliseconds since 1970.
    Timestamp(i64),
}

/// One push consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// Consumer group: 1 to 120 characters of `%|a-zA-Z0-9_-`.
    pub group: String,
    /// Who of the group gets a message.
    pub model: MessageModel,
    /// Where to start without stored progress.
    pub consume_from: ConsumeFrom,
    /// How queues are shared out.
    pub strategy: Strategy,
    /// Listener calls at a time.
    pub consume_concurrency: usize,
    /// Messages per listener call, at most.
    pub consume_message_batch_max_size: usize,
    /// Messages per pull, at most.
    pub pull_batch_size: i32,
    /// Bytes per pull, at most (newer brokers look at it).
    pub pull_batch_size_bytes: i32,
    /// No pull of a queue while more messages of it are held.
    pub pull_threshold_for_queue: usize,
    /// No pull of a queue while more whole MiB of it are held.
    pub pull_threshold_size_mib_for_queue: usize,
    /// No pull of a queue while its held offsets span more than this.
    pub consume_concurrently_max_span: i64,
    /// Wait between an answer with messages and the next pull.
    pub pull_interval: Duration,
    /// Wait while a threshold above is exceeded.
    pub flow_control_delay: Duration,
    /// How long a broker may hold a pull that finds nothing.
    pub broker_suspend_max: Duration,
    /// How long the client waits for the answer to a pull; more than the hold.
    pub pull_timeout: Duration,
    /// Wait between getting a queue and its first pull.
    pub first_pull_delay: Duration,
    /// A queue that was not even considered for a pull for so long is taken anew.
    pub pull_idle_max: Duration,
    /// Deliveries before a message goes to the dead letter queue; `None`: the broker's 16.
    pub max_reconsume_times: Option<i32>,
    /// A listener call of this age counts as failed and its message is handed back, so that it no longer pins the progress.
    pub consume_timeout: Duration,
    /// Wait before a message is consumed again here when it could not be handed back to a broker.
    pub local_retry_delay: Duration,
    /// Directory of local offset files (broadcasting only).
    pub local_offset_dir: PathBuf,
}

impl ConsumerConfig {
    /// RocketMQ's defaults, clustering, from the last offset.
    pub fn new(group: impl Into<String>) -> ConsumerConfig {
        ConsumerConfig {
            group: group.into(),
            model: MessageModel::Clustering,
            consume_from: ConsumeFrom::LastOffset,
            strategy: Strategy::Average,
            consume_concurrency: 20,
            consume_message_batch_max_size: 1,
            pull_batch_size: 32,
            pull_batch_size_bytes: 256 << 10,
            pull_threshold_for_queue: 1000,
            pull_threshold_size_mib_for_queue: 100,
            consume_concurrently_max_span: 2000,
            pull_interval: Duration::ZERO,
            flow_control_delay: Duration::from_millis(50),
            broker_suspend_max: Duration::from_secs(15),
            pull_timeout: Duration::from_secs(30),
            first_pull_delay: Duration::from_millis(500),
            pull_idle_max: Duration::from_secs(120),
            max_reconsume_times: None,
            consume_timeout: Duration::from_secs(15 * 60),
            local_retry_delay: Duration::from_secs(5),
            local_offset_dir: PathBuf::from(".rocketmq_offsets"),
        }
    }
}
