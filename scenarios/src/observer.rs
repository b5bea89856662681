//! The observer: looks at the cluster from the world's own node, which has no faults, with the requests that any administrator has,
//! and at disks as a laboratory would.

use crate::evidence::{LogCopy, QueueContents, StoredKey};
use crate::expiry::REMOVAL_ASKED;
use crate::ledger::{HALF_TOPIC, OP_TOPIC};
use crate::machines::Machines;
use crate::node_config::NAMESRV_PORT;
use crate::operation::{Ask, Queue, Recorder, Told};
use crate::plan::{Plan, TOPIC};
use crate::producers::is_body_of;
use protocol::body::{ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper, KvTable, TopicRouteData};
use protocol::header::{
    CreateTopicRequest, Empty, GetMaxOffsetRequest, GetMinOffsetRequest, GetRouteInfoRequest, OffsetResponse,
    PullMessageRequest, PullSysFlag, QueryConsumerOffsetRequest, TopicFilterType,
};
use protocol::message::property::KEYS;
use protocol::message::record::{PEEK_BYTES, Peeked, RecordView, peek};
use protocol::{Command, Header, QueueOffset, RequestCode, ResponseCode};
use remoting::{Client, ClientConfig};
use rt::sync::CancellationToken;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A healthy node answers within that.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Nothing but late requests is on its way when queues are read, and they are stored within that.
const READS_MAX: u32 = 30;
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Whose progress says how far a broker is done with half messages.
const TRANSACTION_GROUP: &str = "CID_RMQ_SYS_TRANS";
const COMMIT_LOG_DIR: &str = "/data/store/commitlog";

/// Asks servers; what it is not answered it does not know.
#[derive(Clone)]
pub struct Observer {
    client: Client,
    machines: Machines,
    /// Whether messages go away while it looks.
    expires: bool,
}

impl Observer {
    /// An observer without connections.
    pub fn new(plan: &Plan, machines: &Machines) -> Observer {
        Observer {
            client: Client::new(ClientConfig::standard(), None, &CancellationToken::new()),
            machines: machines.clone(),
            expires: plan.cluster.retention.is_some(),
        }
    }

    async fn ask(&self, address: &str, request: Command) -> Option<Command> {
        self.client.request(address, request, ANSWER_MAX).await.ok()
    }

    async fn broker<H: Header>(&self, node: &str, code: RequestCode, header: &H) -> Option<Command> {
        self.ask(self.machines.broker_address(node), Command::request(code, header)).await
    }

    /// Creates the topic at a master; whether it did.
    pub async fn create_topic(&self, plan: &Plan, master: &str) -> bool {
        let queues = i32::try_from(plan.cluster.queues).expect("a plan has few queues");
        let header = CreateTopicRequest {
            topic: TOPIC.into(),
            default_topic: None,
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm: 6,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_sys_flag: None,
            order: false,
            attributes: None,
            force: false,
        };
        let answer = self.broker(master, RequestCode::UpdateAndCreateTopic, &header).await;
        answer.is_some_and(|answer| answer.response_code() == Some(ResponseCode::Success))
    }

    /// The topic's route at a name server: address by `broker name#id`.
    pub async fn route(&self, name_server: &str) -> Option<BTreeMap<String, String>> {
        let header = GetRouteInfoRequest { topic: TOPIC.into(), accept_standard_json_only: Some(true) };
        let address = format!("{}:{NAMESRV_PORT}", self.machines.addresses()[name_server]);
        let answer = self.ask(&address, Command::request(RequestCode::GetRouteinfoByTopic, &header)).await?;
        if answer.response_code() != Some(ResponseCode::Success) {
            return Some(BTreeMap::new());
        }
        let route: TopicRouteData = protocol::json::from_slice(&answer.body).ok()?;
        let brokers = route.broker_datas.iter();
        Some(
            brokers
                .flat_map(|broker| {
                    broker.broker_addrs.iter().map(|(id, addr)| (format!("{}#{id}", broker.broker_name), addr.clone()))
                })
                .collect(),
        )
    }

    /// Reads a committed offset and records that.
    pub async fn committed(&self, node: &str, group: &str, queue: &Queue, recorder: &Recorder) -> Option<i64> {
        let ask = Ask::ReadCommitted { node: node.into(), group: group.into(), queue: queue.clone() };
        let pending = recorder.invoke("observer", ask);
        let header = QueryConsumerOffsetRequest {
            consumer_group: group.into(),
            topic: TOPIC.into(),
            queue_id: queue.id,
            set_zero_if_not_found: Some(false),
        };
        let Some(answer) = self.broker(node, RequestCode::QueryConsumerOffset, &header).await else {
            pending.fail("no answer");
            return None;
        };
        let offset = match answer.response_code() {
            Some(ResponseCode::Success) => answer.header::<OffsetResponse>().ok().map(|header| header.offset.0),
            Some(ResponseCode::QueryNotFound) => None,
            _ => {
                pending.fail(format!("code {}", answer.code));
                return None;
            }
        };
        pending.ok(Told::Committed(offset));
        offset
    }

    /// Reads the committed offsets of groups in queues with one question, as a slave does, and records each.
    pub async fn all_committed(&self, node: &str, asked: &[(String, Queue)], recorder: &Recorder) {
        let ask = |(group, queue): &(String, Queue)| {
            let ask = Ask::ReadCommitted { node: node.into(), group: group.clone(), queue: queue.clone() };
            recorder.invoke("observer", ask)
        };
        let pending: Vec<_> = asked.iter().map(ask).collect();
        let answer = self.broker(node, RequestCode::GetAllConsumerOffset, &Empty {}).await;
        let text = answer.ok_or("no answer").and_then(|answer| {
            protocol::json::from_slice::<ConsumerOffsetSerializeWrapper>(&answer.body).map_err(|_| "not a table")
        });
        for ((group, queue), pending) in asked.iter().zip(pending) {
            match &text {
                Ok(text) => {
                    let queues = text.offset_table.get(&format!("{TOPIC}@{group}"));
                    pending.ok(Told::Committed(queues.and_then(|queues| queues.get(&queue.id)).copied()));
                }
                Err(reason) => pending.fail(*reason),
            }
        }
    }

    /// Reads how far each delay level was delivered, and records that.
    pub async fn delays(&self, node: &str, recorder: &Recorder) -> Option<BTreeMap<i32, i64>> {
        let pending = recorder.invoke("observer", Ask::ReadDelays { node: node.into() });
        let answer = self.broker(node, RequestCode::GetAllDelayOffset, &Empty {}).await;
        let text =
            answer.and_then(|answer| protocol::json::from_slice::<DelayOffsetSerializeWrapper>(&answer.body).ok());
        let Some(text) = text else {
            pending.fail("no table");
            return None;
        };
        pending.ok(Told::Delays(text.offset_table.clone()));
        Some(text.offset_table)
    }

    /// Has a broker remove what has expired, and records that.
    pub async fn remove_expired(&self, node: &str, recorder: &Recorder) {
        // It may come to pass without an answer.
        recorder.node(node, REMOVAL_ASKED);
        self.broker(node, RequestCode::DeleteExpiredCommitlog, &Empty {}).await;
    }

    /// What a node's clock says, in Unix milliseconds.
    pub fn clock_ms(&self, node: &str) -> i64 {
        rt::world::unix_nanos_of(self.machines.node(node)).div_euclid(1_000_000)
    }

    /// How far a broker is done with half messages and with op messages.
    pub async fn transactions(&self, node: &str) -> Option<[i64; 2]> {
        let answer = self.broker(node, RequestCode::GetAllConsumerOffset, &Empty {}).await?;
        let text: ConsumerOffsetSerializeWrapper = protocol::json::from_slice(&answer.body).ok()?;
        let done = |topic: &str| {
            let queues = text.offset_table.get(&format!("{topic}@{TRANSACTION_GROUP}"));
            queues.and_then(|queues| queues.get(&0)).copied().unwrap_or(0)
        };
        Some([HALF_TOPIC, OP_TOPIC].map(done))
    }

    /// Smallest offset of a queue at a broker node, and the one behind its last message.
    pub async fn bounds(&self, node: &str, queue: i32) -> Option<(i64, i64)> {
        let min = GetMinOffsetRequest { topic: TOPIC.into(), queue_id: queue };
        let max = GetMaxOffsetRequest { topic: TOPIC.into(), queue_id: queue, committed: true };
        let min = self.broker(node, RequestCode::GetMinOffset, &min).await?.header::<OffsetResponse>().ok()?;
        let max = self.broker(node, RequestCode::GetMaxOffset, &max).await?.header::<OffsetResponse>().ok()?;
        Some((min.offset.0, max.offset.0))
    }

    /// Bytes of a broker node's log that its queues do not show yet.
    pub async fn dispatch_behind(&self, node: &str) -> Option<u64> {
        let request = Command::request(RequestCode::GetBrokerRuntimeInfo, &Empty {});
        let answer = self.ask(self.machines.broker_address(node), request).await?;
        let info: KvTable = protocol::json::from_slice(&answer.body).ok()?;
        info.table.get("dispatchBehindBytes")?.parse().ok()
    }

    /// Reads a queue from its first message to its last. A queue that grows meanwhile is read again, and so is one that does not show
    /// all of the log yet: a request that its client has given up may be stored late. `None`: it was never read, or never stood still,
    /// and then its master does not serve it.
    pub async fn queue_contents(&self, node: &str, queue: i32) -> Option<QueueContents> {
        for _ in 0..READS_MAX {
            let contents = self.read_queue(node, queue).await;
            let stands = contents.as_ref().map(|read| (read.min, read.max));
            if stands.is_some()
                && self.dispatch_behind(node).await == Some(0)
                && stands == self.bounds(node, queue).await
            {
                return contents;
            }
            rt::time::sleep(READ_AGAIN_AFTER).await;
        }
        None
    }

    async fn read_queue(&self, node: &str, queue: i32) -> Option<QueueContents> {
        let (min, max) = self.bounds(node, queue).await?;
        let mut contents = QueueContents { min, max, messages: Vec::new() };
        let mut next = min;
        while next < max {
            let answer = self.broker(node, RequestCode::PullMessage, &pull(queue, next)).await?;
            if answer.response_code() != Some(ResponseCode::Success) {
                break;
            }
            let messages = stored_keys(&answer.body)?;
            let Some(last) = messages.last() else { break };
            next = last.offset + 1;
            contents.messages.extend(messages);
        }
        // The minimum follows the log a moment later.
        let begins = contents.messages.first().map_or(max, |first| first.offset);
        (!self.expires || begins == min).then_some(contents)
    }

    /// Offset behind the last record of the last segment on the node's disk; 0 without a segment.
    pub fn log_end(&self, node: &str) -> i64 {
        let node = self.machines.node(node);
        let files = rt::world::disk::list(node, COMMIT_LOG_DIR).unwrap_or_default();
        let segments = files.iter().filter_map(|path| Some((segment_start(path)?, path)));
        let Some((start, path)) = segments.max() else { return 0 };
        let used = rt::world::disk::read_file(node, path).map_or(0, |bytes| used_bytes(&bytes));
        start + i64::try_from(used).expect("a segment is small")
    }

    /// The commit log as it lies on the node's disk.
    pub fn log(&self, node: &str) -> LogCopy {
        let node = self.machines.node(node);
        let files = rt::world::disk::list(node, COMMIT_LOG_DIR).unwrap_or_default();
        let mut copy = LogCopy::default();
        for path in files {
            let (Some(start), Ok(bytes)) = (segment_start(&path), rt::world::disk::read_file(node, &path)) else {
                continue;
            };
            if copy.bytes.is_empty() {
                copy.start = start;
            } else if start != copy.end() {
                break;
            }
            let used = used_bytes(&bytes);
            copy.bytes.extend_from_slice(&bytes[..used]);
            if used < bytes.len() {
                break;
            }
        }
        copy
    }
}

/// The messages of a pull's answer; none if they are no run of records.
fn stored_keys(mut records: &[u8]) -> Option<Vec<StoredKey>> {
    let mut messages = Vec::new();
    while !records.is_empty() {
        let record = RecordView::parse(records).ok()?;
        messages.push(stored_key(&record));
        records = &records[record.size()..];
    }
    Some(messages)
}

/// What judges look at, read where it stands: a table of all properties would cost more than the rest of the last look.
pub(crate) fn stored_key(record: &RecordView<'_>) -> StoredKey {
    let keys = String::from_utf8_lossy(record.property(KEYS).unwrap_or_default());
    let key = keys.split(' ').find(|key| !key.is_empty()).unwrap_or_default().to_owned();
    let body_intact = is_body_of(record.body(), &key);
    StoredKey { offset: record.queue_offset().0, physical: record.physical_offset().0, key, body_intact }
}

/// Segments are named by the offset of their first byte.
fn segment_start(path: &Path) -> Option<i64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Length of the run of records (and of the filler) at the start of a file.
fn used_bytes(file: &[u8]) -> usize {
    let mut used = 0;
    while let Some(head) = file.get(used..).filter(|rest| rest.len() >= PEEK_BYTES) {
        match peek(head) {
            Ok(Peeked::Record { size, .. }) if used + size <= file.len() => used += size,
            Ok(Peeked::Blank { size }) if used + size == file.len() => used += size,
            _ => break,
        }
    }
    used
}

fn pull(queue: i32, from: i64) -> PullMessageRequest {
    PullMessageRequest {
        consumer_group: "observer".into(),
        topic: TOPIC.into(),
        queue_id: queue,
        queue_offset: QueueOffset(from),
        max_msg_nums: 32,
        sys_flag: PullSysFlag::SUBSCRIPTION,
        commit_offset: QueueOffset(0),
        suspend_timeout_millis: 0,
        subscription: Some("*".into()),
        sub_version: 0,
        expression_type: None,
        max_msg_bytes: None,
        request_source: None,
        proxy_forward_client_id: None,
    }
}
