use super::{Status, commit, delay_after, read, request, wanted};
use crate::assignment::PullPoint;
use crate::config::{ConsumerConfig, MessageModel};
use crate::error::CallError;
use crate::process_queue::tests::message;
use crate::subscription::MessageSelector;
use bytes::{Bytes, BytesMut};
use protocol::header::{PullMessageRequest, PullMessageResponse, PullSysFlag};
use protocol::message::{BatchEntry, RecordVersion, batch, compression, property};
use protocol::{
    Command, Message, MessageQueue, QueueOffset, Record, RequestCode, ResponseCode, StoredMessage, SysFlag,
};
use std::time::Duration;

#[test]
fn progress_is_a_commit_only_if_above_zero_in_clustering_and_at_the_master() {
    use MessageModel::{Broadcasting, Clustering};
    let (suspend, both) = (PullSysFlag::SUSPEND, PullSysFlag::SUSPEND | PullSysFlag::COMMIT_OFFSET);
    let cases = [
        (Clustering, Some(7), false, both, 7),
        (Clustering, Some(7), true, suspend, 7),
        (Clustering, Some(0), false, suspend, 0),
        (Clustering, None, false, suspend, -1),
        (Broadcasting, Some(7), false, suspend, 0),
    ];
    for (model, progress, to_slave, flags, offset) in cases {
        let got = commit(model, progress.map(QueueOffset), to_slave);
        assert_eq!(got, (PullSysFlag(flags), QueueOffset(offset)), "{model:?} {progress:?} {to_slave}");
    }
}

#[test]
fn request_says_what_the_java_client_says() {
    let config = ConsumerConfig::new("g");
    let subscription = MessageSelector::tags("a").subscribe("T", 99);
    let point = PullPoint { from: QueueOffset(8), progress: Some(QueueOffset(5)), replica: 0 };
    let command = request(&config, &subscription, &MessageQueue::new("T", "b", 3), point, false);
    assert_eq!(command.request_code(), Some(RequestCode::PullMessage));
    assert_eq!(command.ext_fields.get("bname").map(ToString::to_string), Some("b".into()));
    let expected = PullMessageRequest {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id: 3,
        queue_offset: QueueOffset(8),
        max_msg_nums: 32,
        sys_flag: 3,
        commit_offset: QueueOffset(5),
        suspend_timeout_millis: 15_000,
        subscription: None,
        sub_version: 99,
        expression_type: Some("TAG".into()),
        max_msg_bytes: Some(262_144),
        request_source: None,
        proxy_forward_client_id: None,
    };
    assert_eq!(command.header::<PullMessageRequest>().unwrap(), expected);
}

fn answer(code: ResponseCode, body: Bytes) -> Command {
    let header = PullMessageResponse {
        suggest_which_broker_id: 1,
        next_begin_offset: QueueOffset(12),
        min_offset: QueueOffset(0),
        max_offset: QueueOffset(20),
        offset_delta: None,
        topic_sys_flag: None,
        group_sys_flag: None,
        forbidden_type: None,
    };
    let question = Command::request(RequestCode::PullMessage, &header);
    Command::reply(&question, code).with_header(&header).with_body(body)
}

fn record(message: &StoredMessage) -> Bytes {
    let record = Record {
        version: RecordVersion::V1,
        topic: message.topic.clone(),
        queue_id: message.queue_id,
        queue_offset: message.queue_offset,
        physical_offset: message.physical_offset,
        flag: message.flag,
        sys_flag: message.sys_flag,
        born_timestamp: message.born_timestamp,
        born_host: message.born_host,
        store_timestamp: message.store_timestamp,
        store_host: message.store_host,
        reconsume_times: message.reconsume_times,
        prepared_transaction_offset: message.prepared_transaction_offset,
        properties: message.properties.to_text().into(),
        body: message.body.clone(),
    };
    let mut out = BytesMut::new();
    record.encode(&mut out).unwrap();
    out.freeze()
}

fn found(body: Bytes) -> Vec<StoredMessage> {
    match read("x", &answer(ResponseCode::Success, body)).unwrap().status {
        Status::Found(messages) => messages,
        other => panic!("{other:?}"),
    }
}

#[test]
fn codes_become_statuses() {
    for code in [ResponseCode::PullNotFound, ResponseCode::PullRetryImmediately] {
        let pulled = read("x", &answer(code, Bytes::new())).unwrap();
        assert!(matches!(pulled.status, Status::Nothing));
        assert_eq!((pulled.next, pulled.replica), (QueueOffset(12), 1));
    }
    let moved = read("x", &answer(ResponseCode::PullOffsetMoved, Bytes::new())).unwrap();
    assert!(matches!(moved.status, Status::OffsetIllegal));
    let busy = read("x", &answer(ResponseCode::SystemBusy, Bytes::new()));
    assert!(matches!(busy, Err(CallError::Refused { code: 2, .. })));
}

#[test]
fn a_broken_answer_is_an_error() {
    assert!(matches!(read("x", &answer(ResponseCode::Success, "nonsense".into())), Err(CallError::Record(_))));
    let mut bare = answer(ResponseCode::Success, Bytes::new());
    bare.ext_fields = protocol::ExtFields::new();
    assert!(matches!(read("x", &bare), Err(CallError::Header(_))));
}

#[test]
fn bodies_are_made_plain() {
    let mut packed = message(3, 0).as_ref().clone();
    packed.body = compression::compress_zlib(b"hello", 5);
    packed.sys_flag = SysFlag(SysFlag::COMPRESSED | SysFlag::COMPRESSION_ZLIB);
    assert_eq!(found(record(&packed))[0].body, "hello");
    packed.body = "no stream".into();
    let left = &found(record(&packed))[0];
    assert_eq!((&left.body[..], left.sys_flag.is_compressed()), (&b"no stream"[..], true));
}

#[test]
fn an_inner_batch_becomes_its_messages() {
    let parts = [Message::new("T", "a").with_tags("x"), Message::new("T", "b")];
    let mut outer = message(10, 0).as_ref().clone();
    outer.body = batch::encode(&parts.iter().map(BatchEntry::of).collect::<Vec<_>>()).unwrap();
    outer.sys_flag = SysFlag(SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP);
    let messages = found(record(&outer));
    let seen: Vec<_> =
        messages.iter().map(|m| (m.queue_offset.0, &m.body[..], m.properties.tags(), m.sys_flag.0)).collect();
    assert_eq!(seen, [(10, &b"a"[..], Some("x"), 0), (11, &b"b"[..], None, 0)]);
}

#[test]
fn tags_are_compared_again_here() {
    let tagged = |offset, tag: &str| {
        let mut one = message(offset, 1).as_ref().clone();
        one.properties.insert(property::TAGS, tag);
        one
    };
    let subscription = MessageSelector::tags("Aa").subscribe("T", 1);
    let kept = wanted(vec![tagged(0, "Aa"), tagged(1, "BB"), message(2, 1).as_ref().clone()], &subscription);
    assert_eq!(kept.iter().map(|m| m.queue_offset.0).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_broker_short_of_resources_is_asked_again_soon() {
    let second = Duration::from_secs(1);
    let refused = |code| CallError::Refused { addr: "x".into(), code, remark: None };
    assert_eq!(delay_after(&refused(215), second), Duration::from_millis(20));
    assert_eq!(delay_after(&refused(2), second), second);
}
