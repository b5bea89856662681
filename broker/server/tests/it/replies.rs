//! Replies are handed to the client that waits for them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
use crate::support::{
    Raw, SECOND, TOPIC, TestBroker, cluster, config, lone_master, pull_header, reaching, run, send_header,
};
use protocol::body::{HeartbeatData, ProducerData};
use protocol::header::{Empty, PullMessageRequest, PushReplyMessageRequest, SendMessageRequestV2, SendMessageResponse};
use protocol::message::property;
use protocol::{Command, Properties, RequestCode, ResponseCode};
use remoting::{BoxFuture, Connection, Handler};
use rt::world;
use std::sync::{Arc, Mutex};

/// A client that waits, and says that code of each reply.
struct Waits {
    code: ResponseCode,
    got: Mutex<Vec<(PushReplyMessageRequest, Vec<u8>)>>,
}

impl Handler for Waits {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        assert_eq!(request.request_code(), Some(RequestCode::PushReplyMessageToClient));
        self.got.lock().unwrap().push((request.header().unwrap(), request.body.to_vec()));
        let answer = Command::reply(&request, self.code);
        Box::pin(async { Some(answer) })
    }
}

async fn waiting(broker: &TestBroker, code: ResponseCode) -> (Raw, Arc<Waits>) {
    let waits = Arc::new(Waits { code, got: Mutex::default() });
    let raw = Raw::with(&broker.address(), Some(Arc::clone(&waits) as Arc<dyn Handler>));
    let data = HeartbeatData {
        client_id: "p@1".to_owned(),
        producer_data_set: vec![ProducerData { group_name: "P".to_owned() }],
        ..HeartbeatData::default()
    };
    let beat = Command::request(RequestCode::HeartBeat, &Empty {}).with_body(protocol::json::to_vec(&data).unwrap());
    assert_eq!(raw.ask(beat).await.response_code(), Some(ResponseCode::Success));
    (raw, waits)
}

async fn reply(raw: &Raw, topic: &str, properties: &[(&str, &str)]) -> Command {
    let mut header = send_header(0, properties);
    header.topic = topic.to_owned();
    let header: SendMessageRequestV2 = header.into();
    raw.ask(Command::request(RequestCode::SendReplyMessageV2, &header).with_body("yes")).await
}

async fn kept(raw: &Raw, topic: &str) -> usize {
    raw.pull(PullMessageRequest { topic: topic.to_owned(), ..pull_header(0) }).await.messages.len()
}

const TO_P: [(&str, &str); 2] = [(property::REPLY_TO_CLIENT, "p@1"), (property::CORRELATION_ID, "7")];

#[test]
fn a_reply_is_handed_to_the_client_that_waits_and_kept() {
    run(|| async {
        let broker = lone_master().await;
        let topic = format!("{}_REPLY_TOPIC", cluster().cluster_name);
        let (_asking, waits) = waiting(&broker, ResponseCode::Success).await;
        let raw = Raw::to(&broker.address());
        let answer = reply(&raw, &topic, &TO_P).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::Success), "{:?}", answer.remark);
        assert_ne!(answer.header::<SendMessageResponse>().unwrap().msg_id, "0");
        let (header, body) = waits.got.lock().unwrap().pop().unwrap();
        let properties = Properties::parse(header.properties.as_deref().unwrap());
        assert_eq!((&*body, header.topic, header.flag), (&b"yes"[..], topic.clone(), 7));
        assert_eq!(properties.get(property::CORRELATION_ID), Some("7"));
        assert!(properties.contains(property::PUSH_REPLY_TIME));
        assert_eq!(header.store_host, broker.address());
        rt::time::sleep(SECOND).await;
        assert_eq!(kept(&raw, &topic).await, 1);
        broker.stop().await;
    });
}

#[test]
fn who_replies_is_told_if_nobody_got_it() {
    reaching("server.reply.client_gone", || async {
        let broker = lone_master().await;
        let raw = Raw::to(&broker.address());
        for properties in [&TO_P[..], &[]] {
            assert_eq!(reply(&raw, TOPIC, properties).await.response_code(), Some(ResponseCode::SystemError));
        }
        let (_asking, waits) = waiting(&broker, ResponseCode::SystemError).await;
        assert_eq!(reply(&raw, TOPIC, &TO_P).await.response_code(), Some(ResponseCode::SystemError));
        assert_eq!(waits.got.lock().unwrap().len(), 1);
        rt::time::sleep(SECOND).await;
        assert_eq!(kept(&raw, TOPIC).await, 3);
        broker.stop().await;
    });
}

#[test]
fn replies_need_not_be_kept() {
    run(|| async {
        let node = world::add_node("master");
        let mut settings = config(world::ip(node), 0, &[]);
        settings.store_replies = false;
        let broker = TestBroker::start(node, cluster(), settings).await;
        let raw = Raw::to(&broker.address());
        let (_asking, _waits) = waiting(&broker, ResponseCode::Success).await;
        let answer = reply(&raw, TOPIC, &TO_P).await;
        assert_eq!(answer.header::<SendMessageResponse>().unwrap().msg_id, "0");
        rt::time::sleep(SECOND).await;
        assert_eq!(kept(&raw, TOPIC).await, 0);
        broker.stop().await;
    });
}
