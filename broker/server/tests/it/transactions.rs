//! Half messages: seen by nobody until their transaction is committed, and asked for if nobody says.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
use crate::support::{
    Raw, SECOND, TOPIC, TestBroker, cluster, config, eventually, lone_master, pull_header, reaching, run, send_header,
};
use protocol::body::{HeartbeatData, ProducerData};
use protocol::header::{
    CheckTransactionStateRequest, Empty, EndTransactionRequest, ResumeCheckHalfMessageRequest, SendMessageRequestV2,
    SendMessageResponse,
};
use protocol::message::property;
use protocol::{Command, MessageId, QueueOffset, RequestCode, ResponseCode, StoredMessage, SysFlag};
use remoting::{BoxFuture, Connection, Handler};
use rt::time::{Duration, sleep, unix_ms};
use rt::world;
use server::ServerConfig;
use std::sync::{Arc, Mutex};

const UNDECIDED: &str = "TRANS_CHECK_MAX_TIME_TOPIC";

/// A half message as its producer knows it.
#[derive(Clone, Debug)]
struct Half {
    id: String,
    place: MessageId,
    offset: QueueOffset,
}

impl Half {
    fn end(&self, decision: i32, from_check: bool) -> EndTransactionRequest {
        EndTransactionRequest {
            topic: Some(TOPIC.to_owned()),
            producer_group: "P".to_owned(),
            tran_state_table_offset: self.offset,
            commit_log_offset: self.place.offset,
            commit_or_rollback: decision,
            from_transaction_check: from_check,
            msg_id: self.id.clone(),
            transaction_id: Some(self.id.clone()),
        }
    }
}

/// A producer's connection: remembers what it was asked.
#[derive(Default)]
struct Asked(Mutex<Vec<(Half, StoredMessage)>>);

impl Handler for Asked {
    fn handle(&self, _: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        assert_eq!(request.request_code(), Some(RequestCode::CheckTransactionState));
        assert!(request.is_oneway());
        let header: CheckTransactionStateRequest = request.header().unwrap();
        let half = Half {
            id: header.msg_id.unwrap(),
            place: header.offset_msg_id.unwrap().parse().unwrap(),
            offset: header.tran_state_table_offset,
        };
        assert_eq!(half.place.offset, header.commit_log_offset);
        self.0.lock().unwrap().push((half, StoredMessage::decode(&request.body).unwrap()));
        Box::pin(async { None })
    }
}

impl Asked {
    fn all(&self) -> Vec<(Half, StoredMessage)> {
        self.0.lock().unwrap().clone()
    }
}

/// A connection that belongs to the producer group.
async fn producer(broker: &TestBroker) -> (Raw, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let raw = Raw::with(&broker.address(), Some(Arc::clone(&asked) as Arc<dyn Handler>));
    let data = HeartbeatData {
        client_id: "p".to_owned(),
        producer_data_set: vec![ProducerData { group_name: "P".to_owned() }],
        ..HeartbeatData::default()
    };
    let beat = Command::request(RequestCode::HeartBeat, &Empty {}).with_body(protocol::json::to_vec(&data).unwrap());
    assert_eq!(raw.ask(beat).await.response_code(), Some(ResponseCode::Success));
    (raw, asked)
}

async fn master(set: impl FnOnce(&mut ServerConfig)) -> TestBroker {
    let node = world::add_node("master");
    let mut settings = config(world::ip(node), 0, &[]);
    settings.timing.transaction_check_period = SECOND;
    set(&mut settings);
    TestBroker::start(node, cluster(), settings).await
}

async fn half_with(raw: &Raw, body: &str, properties: &[(&str, &str)]) -> Half {
    let mut all = vec![(property::TRANSACTION_PREPARED, "true"), (property::PRODUCER_GROUP, "P")];
    all.extend(properties);
    let mut header = send_header(0, &all);
    header.sys_flag = SysFlag::TRANSACTION_PREPARED;
    header.born_timestamp = unix_ms();
    let header: SendMessageRequestV2 = header.into();
    let send = Command::request(RequestCode::SendMessageV2, &header).with_body(body.as_bytes().to_vec());
    let reply = raw.ask(send).await;
    assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
    let reply: SendMessageResponse = reply.header().unwrap();
    Half { id: reply.transaction_id.unwrap(), place: reply.msg_id.parse().unwrap(), offset: reply.queue_offset }
}

async fn half(raw: &Raw, body: &str) -> Half {
    half_with(raw, body, &[]).await
}

async fn end(raw: &Raw, half: &Half, decision: i32) -> ResponseCode {
    raw.call(RequestCode::EndTransaction, &half.end(decision, false)).await.response_code().unwrap()
}

const COMMIT: i32 = SysFlag::TRANSACTION_COMMIT;
const ROLL_BACK: i32 = SysFlag::TRANSACTION_ROLLBACK;

async fn seen(raw: &Raw) -> Vec<String> {
    raw.pull(pull_header(0)).await.bodies()
}

/// How many messages the topic's first queue has.
async fn count(raw: &Raw, topic: &str) -> usize {
    raw.pull(protocol::header::PullMessageRequest { topic: topic.to_owned(), ..pull_header(0) }).await.messages.len()
}

#[test]
fn a_message_is_seen_when_its_transaction_is_committed_and_never_when_it_is_rolled_back() {
    reaching("server.transaction.ended_again", || async {
        let broker = master(|_| {}).await;
        let raw = Raw::to(&broker.address());
        let (kept, dropped) = (half(&raw, "kept").await, half(&raw, "dropped").await);
        sleep(2 * SECOND).await;
        assert_eq!(seen(&raw).await, [""; 0]);
        assert_eq!(end(&raw, &dropped, ROLL_BACK).await, ResponseCode::Success);
        for _ in 0..3 {
            assert_eq!(end(&raw, &kept, COMMIT).await, ResponseCode::Success);
            sleep(2 * SECOND).await;
        }
        // Too late to think of something else.
        assert_eq!(end(&raw, &dropped, COMMIT).await, ResponseCode::Success);
        assert_eq!(end(&raw, &kept, ROLL_BACK).await, ResponseCode::Success);
        let found = raw.pull(pull_header(0)).await;
        assert_eq!(found.bodies(), ["kept"]);
        let message = &found.messages[0];
        assert_eq!(message.prepared_transaction_offset, kept.place.offset.get());
        assert_eq!(message.sys_flag.0 & ROLL_BACK, COMMIT);
        assert_eq!((message.flag, message.properties.unique_key()), (7, Some(&*kept.id)));
        assert_eq!(message.properties.get(property::TRANSACTION_ID), Some(&*kept.id));
        assert!(!message.properties.contains(property::TRANSACTION_PREPARED), "a retry would be taken for a half");
        broker.stop().await;
    });
}

#[test]
fn an_end_that_fits_no_half_is_refused() {
    run(|| async {
        let broker = master(|_| {}).await;
        let raw = Raw::to(&broker.address());
        raw.sent(0, "plain").await;
        let half = half(&raw, "x").await;
        let code = async |request: EndTransactionRequest| {
            raw.call(RequestCode::EndTransaction, &request).await.response_code().unwrap()
        };
        let good = half.end(COMMIT, false);
        let other_group = EndTransactionRequest { producer_group: "Q".to_owned(), ..good.clone() };
        let other_offset = EndTransactionRequest { tran_state_table_offset: QueueOffset(9), ..good.clone() };
        let plain = EndTransactionRequest { commit_log_offset: protocol::PhysicalOffset(0), ..good.clone() };
        let nowhere = EndTransactionRequest { commit_log_offset: protocol::PhysicalOffset(-7), ..good.clone() };
        for request in [other_group, other_offset, plain, nowhere] {
            assert_eq!(code(request).await, ResponseCode::SystemError);
        }
        assert_eq!(seen(&raw).await, ["plain"]);
        assert_eq!(code(good).await, ResponseCode::Success);
        eventually("the commit is seen", async || seen(&raw).await == ["plain", "x"]).await;
        broker.stop().await;
    });
}

#[test]
fn a_producer_that_does_not_know_gets_no_answer() {
    reaching("server.transaction.producer_does_not_know", || async {
        let broker = master(|_| {}).await;
        let raw = Raw::to(&broker.address());
        let half = half(&raw, "x").await;
        let request = Command::request(RequestCode::EndTransaction, &half.end(0, false));
        assert!(raw.client.request(&raw.address, request, 5 * SECOND).await.is_err());
        assert_eq!(seen(&raw).await, [""; 0]);
    });
}

#[test]
fn a_producer_is_asked_what_became_of_its_transaction_and_its_answer_counts() {
    run(|| async {
        let broker = master(|_| {}).await;
        let (raw, asked) = producer(&broker).await;
        let (first, second) = (half(&raw, "first").await, half(&raw, "second").await);
        sleep(5 * SECOND).await;
        assert!(asked.all().is_empty(), "not before transactionTimeOut");
        eventually("both are asked for", async || asked.all().len() >= 2).await;
        let questions = asked.all();
        let (question, message) = questions.iter().find(|(question, _)| question.id == first.id).unwrap();
        assert_eq!((message.topic.as_str(), message.queue_id, &message.body[..]), (TOPIC, 0, &b"first"[..]));
        assert_ne!(question.offset, first.offset, "it was stored again with the count");
        assert_eq!(message.properties.get(property::TRANSACTION_CHECK_TIMES), Some("1"));
        // One answers the question, the other what it knew from the beginning.
        for request in [question.end(COMMIT, true), second.end(COMMIT, false)] {
            let reply = raw.call(RequestCode::EndTransaction, &request).await;
            assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
        }
        sleep(30 * SECOND).await;
        assert_eq!(asked.all().len(), questions.len(), "what is decided is not asked for");
        assert_eq!(seen(&raw).await, ["first", "second"]);
        broker.stop().await;
    });
}

#[test]
fn what_nobody_decides_is_given_up_after_so_many_questions_and_can_be_resumed() {
    reaching("server.transaction.given_up", || async {
        let broker = master(|settings| settings.transaction_checks_max = 3).await;
        let (raw, asked) = producer(&broker).await;
        let half = half(&raw, "x").await;
        eventually("given up", async || count(&raw, UNDECIDED).await == 1).await;
        assert_eq!(asked.all().len(), 3);
        let given_up =
            raw.pull(protocol::header::PullMessageRequest { topic: UNDECIDED.to_owned(), ..pull_header(0) }).await;
        let id = given_up.messages[0].offset_message_id().to_string();
        let resume = ResumeCheckHalfMessageRequest { topic: Some(UNDECIDED.to_owned()), msg_id: Some(id) };
        let reply = raw.call(RequestCode::ResumeCheckHalfMessage, &resume).await;
        assert_eq!(reply.response_code(), Some(ResponseCode::Success), "{:?}", reply.remark);
        eventually("asked again", async || asked.all().len() > 3).await;
        let (_, message) = asked.all().pop().unwrap();
        assert_eq!(message.properties.get(property::TRANSACTION_CHECK_TIMES), Some("1"));
        eventually("given up again", async || count(&raw, UNDECIDED).await == 2).await;
        // Its producer has come to a decision at last.
        assert_eq!(end(&raw, &half, COMMIT).await, ResponseCode::Success);
        assert_eq!(end(&raw, &half, COMMIT).await, ResponseCode::Success);
        eventually("the commit is seen", async || seen(&raw).await == ["x"]).await;
        let nonsense = ResumeCheckHalfMessageRequest { topic: None, msg_id: Some("x".to_owned()) };
        let reply = raw.call(RequestCode::ResumeCheckHalfMessage, &nonsense).await;
        assert_eq!(reply.response_code(), Some(ResponseCode::SystemError));
        broker.stop().await;
    });
}

#[test]
fn a_half_whose_producer_is_away_waits_for_it() {
    reaching("server.transaction.nobody_to_ask", || async {
        let broker = master(|settings| settings.transaction_checks_max = 1).await;
        let half = half(&Raw::to(&broker.address()), "x").await;
        sleep(600 * SECOND).await;
        let (raw, asked) = producer(&broker).await;
        eventually("asked", async || !asked.all().is_empty()).await;
        assert_eq!(asked.all()[0].0.id, half.id);
        assert_eq!(count(&raw, UNDECIDED).await, 0);
        broker.stop().await;
    });
}

#[test]
fn a_producer_may_ask_for_time() {
    run(|| async {
        let broker = master(|_| {}).await;
        let (raw, asked) = producer(&broker).await;
        let immune = [(property::CHECK_IMMUNITY_TIME_IN_SECONDS, "60")];
        let halves = [half_with(&raw, "a", &immune).await, half_with(&raw, "b", &immune).await];
        sleep(55 * SECOND).await;
        assert!(asked.all().is_empty());
        assert_eq!(end(&raw, &halves[0], COMMIT).await, ResponseCode::Success);
        sleep(10 * SECOND).await;
        let question = asked.all().pop().unwrap().0;
        assert_eq!(question.id, halves[1].id);
        // By now its answers count, and what comes late from before does not.
        assert_eq!(end(&raw, &halves[1], COMMIT).await, ResponseCode::IllegalOperation);
        let answer = raw.call(RequestCode::EndTransaction, &question.end(COMMIT, true)).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::Success));
        assert_eq!(seen(&raw).await, ["a", "b"]);
        broker.stop().await;
    });
}

#[test]
fn a_restarted_broker_knows_what_is_open_and_what_is_decided() {
    run(|| async {
        let sync = |settings: &mut ServerConfig| {
            settings.flush_sync = true;
            settings.store.flush_mode = store::FlushMode::Sync;
        };
        let broker = master(sync).await;
        let raw = Raw::to(&broker.address());
        let (open, decided) = (half(&raw, "open").await, half(&raw, "decided").await);
        assert_eq!(end(&raw, &decided, COMMIT).await, ResponseCode::Success);
        sleep(20 * SECOND).await;
        let node = broker.node;
        world::power_loss(node);
        world::power_on(node);
        let broker = broker.again().await;
        let (raw, asked) = producer(&broker).await;
        // The client did not hear of its success, and says it once more.
        assert_eq!(end(&raw, &decided, COMMIT).await, ResponseCode::Success);
        eventually("the open one is asked for", async || !asked.all().is_empty()).await;
        let question = asked.all().remove(0).0;
        assert_eq!(question.id, open.id);
        let answer = raw.call(RequestCode::EndTransaction, &question.end(COMMIT, true)).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::Success));
        sleep(10 * SECOND).await;
        assert_eq!(seen(&raw).await, ["decided", "open"]);
        broker.stop().await;
    });
}

#[test]
fn one_transaction_has_one_message_although_its_half_was_sent_twice() {
    run(|| async {
        let broker = master(|_| {}).await;
        let (raw, asked) = producer(&broker).await;
        let id = [(property::UNIQUE_KEY, "0A000001000018B4AAC2000000000001")];
        let twins = [half_with(&raw, "x", &id).await, half_with(&raw, "x", &id).await];
        sleep(2 * SECOND).await;
        assert_eq!(end(&raw, &twins[1], COMMIT).await, ResponseCode::Success);
        sleep(60 * SECOND).await;
        assert!(asked.all().is_empty());
        assert_eq!(seen(&raw).await, ["x"]);
        broker.stop().await;
    });
}

#[test]
fn a_delay_counts_from_the_commit_and_a_bad_moment_leaves_the_transaction_open() {
    reaching("server.transaction.not_ended", || async {
        let broker = master(|settings| settings.transaction_checks_max = 2).await;
        let (raw, asked) = producer(&broker).await;
        let delayed = half_with(&raw, "delayed", &[(property::DELAY_TIME_LEVEL, "2")]).await;
        let bad = half_with(&raw, "bad", &[(property::TIMER_DELAY_SEC, "soon")]).await;
        sleep(5 * SECOND).await;
        assert_eq!(end(&raw, &delayed, COMMIT).await, ResponseCode::Success);
        assert_eq!(end(&raw, &bad, COMMIT).await, ResponseCode::MessageIllegal);
        sleep(4 * SECOND).await;
        assert_eq!(seen(&raw).await, [""; 0]);
        eventually("delivered", async || seen(&raw).await == ["delayed"]).await;
        eventually("given up", async || count(&raw, UNDECIDED).await == 1).await;
        assert!(asked.all().iter().all(|(half, _)| half.id == bad.id));
        broker.stop().await;
    });
}

#[test]
fn transactions_can_be_switched_off_and_a_producer_may_not_say_what_a_broker_says() {
    run(|| async {
        let broker = master(|settings| settings.reject_transactions = true).await;
        let raw = Raw::to(&broker.address());
        let prepared = [(property::TRANSACTION_PREPARED, "true"), (property::PRODUCER_GROUP, "P")];
        assert_eq!(raw.send(0, "x", &prepared).await.response_code(), Some(ResponseCode::NoPermission));
        for sys_flag in [COMMIT, ROLL_BACK, SysFlag::TRANSACTION_PREPARED] {
            let mut header = send_header(0, &[]);
            header.sys_flag = sys_flag;
            let header: SendMessageRequestV2 = header.into();
            let send = Command::request(RequestCode::SendMessageV2, &header).with_body(b"x".to_vec());
            assert_eq!(raw.ask(send).await.response_code(), Some(ResponseCode::NoPermission));
        }
        assert_eq!(seen(&raw).await, [""; 0]);
    });
}

#[test]
fn what_a_consumer_sends_back_is_no_half() {
    run(|| async {
        let broker = lone_master().await;
        let raw = Raw::to(&broker.address());
        let mut header = send_header(0, &[(property::TRANSACTION_PREPARED, "true"), (property::DELAY_TIME_LEVEL, "1")]);
        header.reconsume_times = Some(1);
        let header: SendMessageRequestV2 = header.into();
        let send = Command::request(RequestCode::SendMessageV2, &header).with_body(b"again".to_vec());
        assert_eq!(raw.ask(send).await.response_code(), Some(ResponseCode::Success));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(seen(&raw).await, ["again"]);
    });
}
