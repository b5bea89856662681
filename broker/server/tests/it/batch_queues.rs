//! Topics that hold batches as they were sent.
use crate::support::{Raw, TOPIC, TestBroker, cluster, config, eventually, lone_master, pull_header, run, send_header};
use protocol::header::{
    CreateTopicRequest, DeleteTopicRequest, SendMessageRequestV2, SendMessageResponse, TopicFilterType,
};
use protocol::message::{BatchEntry, batch};
use protocol::{Command, Message, QueueOffset, RequestCode, ResponseCode, SysFlag};
use rt::world;

async fn create(raw: &Raw, attributes: &str) -> Option<ResponseCode> {
    let header = CreateTopicRequest {
        topic: TOPIC.to_owned(),
        default_topic: Some("TBW102".to_owned()),
        read_queue_nums: 4,
        write_queue_nums: 4,
        perm: 6,
        topic_filter_type: TopicFilterType::SingleTag,
        topic_sys_flag: None,
        order: false,
        attributes: Some(attributes.to_owned()),
        force: false,
    };
    raw.call(RequestCode::UpdateAndCreateTopic, &header).await.response_code()
}

async fn send(raw: &Raw, bodies: &[&'static str], properties: &[(&str, &str)]) -> Command {
    let entries: Vec<_> = bodies.iter().map(|body| BatchEntry::of(&Message::new(TOPIC, *body))).collect();
    let mut header: SendMessageRequestV2 = send_header(0, properties).into();
    header.batch = Some(true);
    raw.ask(Command::request(RequestCode::SendBatchMessage, &header).with_body(batch::encode(&entries).expect("short")))
        .await
}

/// The records of queue 0: offset, flags of a batch, and how many messages they hold.
async fn records(raw: &Raw) -> Vec<(i64, bool, usize)> {
    let pulled = raw.pull(pull_header(0)).await;
    let records = pulled.messages.iter().map(|message| {
        let is_batch = message.sys_flag.has(SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP);
        let count = if is_batch { batch::decode(&message.body, 100).expect("a batch").len() } else { 1 };
        (message.queue_offset.get(), is_batch, count)
    });
    records.collect()
}

#[test]
fn a_batch_is_one_record_with_an_offset_for_each_of_its_messages() {
    run(|| async {
        let master = lone_master().await;
        let raw = Raw::to(&master.address());
        assert_eq!(create(&raw, "+queue.type=BatchCQ").await, Some(ResponseCode::Success));
        let answer: SendMessageResponse = send(&raw, &["a", "b", "c"], &[("UNIQ_KEY", "k1")]).await.header().unwrap();
        assert_eq!((answer.queue_offset, answer.batch_uniq_id.as_deref()), (QueueOffset(0), Some("k1")));
        assert_eq!(answer.msg_id.split(',').count(), 1);
        assert_eq!(raw.sent(0, "single").await, 3);
        // Without a key of its own the batch is taken apart, as Apache's broker does.
        let answer: SendMessageResponse = send(&raw, &["d", "e"], &[]).await.header().unwrap();
        assert_eq!((answer.queue_offset, answer.msg_id.split(',').count()), (QueueOffset(4), 2));
        let expected = [(0, true, 3), (3, false, 1), (4, false, 1), (5, false, 1)];
        eventually("all are there", async || records(&raw).await == expected).await;
        let header = raw.pull(pull_header(0)).await.header.unwrap();
        assert_eq!((header.next_begin_offset, header.max_offset), (QueueOffset(6), QueueOffset(6)));
        // A tag that none of them has may be that of a message inside.
        let mut tagged = pull_header(0);
        tagged.subscription = Some("other".to_owned());
        assert_eq!(raw.pull(tagged).await.messages.len(), 1);
        assert_eq!(create(&raw, "+queue.type=SimpleCQ").await, Some(ResponseCode::InvalidParameter));
        let (node, cluster, settings) = master.stop().await;
        let master = TestBroker::start(node, cluster, settings).await;
        let raw = Raw::to(&master.address());
        assert_eq!(records(&raw).await, expected);
        let deleted = raw.call(RequestCode::DeleteTopicInBroker, &DeleteTopicRequest { topic: TOPIC.to_owned() }).await;
        assert_eq!(deleted.response_code(), Some(ResponseCode::Success));
        assert_eq!(create(&raw, "").await, Some(ResponseCode::Success));
        let answer: SendMessageResponse = send(&raw, &["a", "b"], &[("UNIQ_KEY", "k2")]).await.header().unwrap();
        assert_eq!((answer.queue_offset, answer.batch_uniq_id), (QueueOffset(0), None));
        eventually("taken apart", async || records(&raw).await == [(0, false, 1), (1, false, 1)]).await;
    });
}

/// What a consumer could not take apart is not stored.
#[test]
fn an_inner_batch_is_taken_if_it_is_one_and_its_topic_holds_them() {
    run(|| async {
        let node = world::add_node("master");
        let master = TestBroker::start(node, cluster(), config(world::ip(node), 0, &[])).await;
        let raw = Raw::to(&master.address());
        let body = batch::encode(&["a", "b"].map(|body| BatchEntry::of(&Message::new(TOPIC, body)))).unwrap();
        let code = async |flags: i32, properties: &[(&str, &str)]| {
            let mut header: SendMessageRequestV2 = send_header(0, properties).into();
            header.sys_flag = flags;
            let sent = raw.ask(Command::request(RequestCode::SendMessageV2, &header).with_body(body.clone())).await;
            sent.response_code().unwrap()
        };
        let flags = SysFlag::INNER_BATCH | SysFlag::NEED_UNWRAP;
        assert_eq!(code(flags, &[("INNER_NUM", "2")]).await, ResponseCode::MessageIllegal);
        assert_eq!(create(&raw, "+queue.type=BatchCQ").await, Some(ResponseCode::InvalidParameter));
        raw.call(RequestCode::DeleteTopicInBroker, &DeleteTopicRequest { topic: TOPIC.to_owned() }).await;
        assert_eq!(create(&raw, "+queue.type=BatchCQ").await, Some(ResponseCode::Success));
        assert_eq!(code(flags, &[("INNER_NUM", "2")]).await, ResponseCode::Success);
        for (flags, properties) in [
            (0, &[("INNER_NUM", "2")][..]),
            (flags, &[]),
            (flags, &[("INNER_NUM", "3")]),
            (flags, &[("INNER_NUM", "2"), ("DELAY", "1")]),
            (SysFlag::INNER_BATCH, &[("INNER_NUM", "2")]),
        ] {
            assert_eq!(code(flags, properties).await, ResponseCode::MessageIllegal, "{flags} {properties:?}");
        }
        eventually("one record", async || records(&raw).await == [(0, true, 2)]).await;
    });
}
