//! The producer of transactions.
use crate::support::{Broker, Cluster, Mood, SECOND, TOPIC, producer_config, run};
use client::{
    InvalidMessage, SendError, SendStatus, TransactionListener, TransactionProducer, TransactionState as State,
};
use protocol::header::{CheckTransactionStateRequest, EndTransactionRequest};
use protocol::message::property;
use protocol::{Command, Message, MessageId, PhysicalOffset, QueueOffset, RequestCode, ResponseCode, StoredMessage};
use remoting::BoxFuture;
use rt::time::sleep;
use std::sync::{Arc, Mutex};

/// Says the same of each transaction, and remembers of which it was asked.
struct Says {
    state: State,
    asked: Mutex<Vec<StoredMessage>>,
}

impl TransactionListener for Says {
    fn check(&self, message: StoredMessage) -> BoxFuture<'static, State> {
        self.asked.lock().unwrap().push(message);
        let state = self.state;
        Box::pin(async move {
            sleep(SECOND).await;
            state
        })
    }
}

fn says(state: State) -> Arc<Says> {
    Arc::new(Says { state, asked: Mutex::default() })
}

async fn producer(cluster: &Cluster, listener: &Arc<Says>) -> TransactionProducer {
    let listener = Arc::clone(listener) as Arc<dyn TransactionListener>;
    TransactionProducer::start(&cluster.client("p"), producer_config(), &[TOPIC], listener).await.unwrap()
}

fn message() -> Message {
    Message::new(TOPIC, "x")
}

fn ends(broker: &Broker) -> Vec<EndTransactionRequest> {
    broker.state().ends.clone()
}

#[test]
fn the_broker_is_told_what_became_of_a_transaction_once_that_is_known() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = producer(&cluster, &says(State::Unknown)).await;
        for (state, bits) in [(State::Commit, Some(8)), (State::RollBack, Some(12)), (State::Unknown, None)] {
            let before = ends(&cluster.broker).len();
            let outcome = producer.send(message(), |half| {
                assert_eq!(half.status, SendStatus::Ok);
                async move { state }
            });
            let outcome = outcome.await.unwrap();
            assert_eq!(outcome.state, state);
            outcome.told.unwrap();
            let told = ends(&cluster.broker).split_off(before);
            assert_eq!(told.iter().map(|end| end.commit_or_rollback).collect::<Vec<_>>(), Vec::from_iter(bits));
            let place: MessageId = outcome.half.offset_message_id.parse().unwrap();
            for end in told {
                assert_eq!((&end.msg_id, &*end.producer_group), (&outcome.half.message_id, &*producer_config().group));
                assert_eq!(end.tran_state_table_offset, outcome.half.queue_offset);
                assert_eq!((end.commit_log_offset, end.from_transaction_check), (place.offset, false));
            }
        }
        let queues = cluster.broker.state().log.clone();
        for record in queues.values().flatten() {
            let half = StoredMessage::decode(record).unwrap();
            assert_eq!(half.sys_flag.0, 4);
            assert_eq!(half.properties.get(property::TRANSACTION_PREPARED), Some("true"));
            assert_eq!(half.properties.get(property::PRODUCER_GROUP), Some(&*producer_config().group));
        }
        producer.shutdown().await;
    });
}

#[test]
fn brokers_know_whom_to_ask_before_anything_is_sent() {
    run(|| async {
        let cluster = Cluster::start().await;
        let listener = says(State::Commit) as Arc<dyn TransactionListener>;
        let topics = ["not there", TOPIC];
        let producer =
            TransactionProducer::start(&cluster.client("p"), producer_config(), &topics, listener).await.unwrap();
        assert!(cluster.broker.state().groups_seen.contains(&producer_config().group));
        producer.shutdown().await;
    });
}

#[test]
fn without_a_safe_half_the_local_transaction_does_not_run() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = producer(&cluster, &says(State::Unknown)).await;
        let never = |_: &client::SendOutcome| async { panic!("the local transaction was run") };
        cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::ServeAs(ResponseCode::FlushDiskTimeout)]);
        let outcome = producer.send(message(), never).await.unwrap();
        assert_eq!((outcome.half.status, outcome.state), (SendStatus::FlushDiskTimeout, State::RollBack));
        assert_eq!(ends(&cluster.broker)[0].commit_or_rollback, 12);
        cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::MessageIllegal)]);
        assert!(producer.send(message(), never).await.is_err());
        let delayed = message().with_property(property::DELAY_TIME_LEVEL, "3");
        let refused = producer.send(delayed, never).await.unwrap_err();
        assert!(matches!(refused, SendError::Invalid(InvalidMessage::NotInTransaction { .. })), "{refused}");
    });
}

#[test]
fn an_end_that_is_not_answered_is_told_to_the_caller() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = producer(&cluster, &says(State::Unknown)).await;
        cluster.broker.next_mood(RequestCode::EndTransaction, &[Mood::Refuse(ResponseCode::SystemError)]);
        let outcome = producer.send(message(), |_| async { State::Commit }).await.unwrap();
        assert_eq!((outcome.half.status, outcome.state), (SendStatus::Ok, State::Commit));
        assert!(outcome.told.is_err());
    });
}

#[test]
fn a_broker_that_asks_is_told() {
    run(|| async {
        let cluster = Cluster::start().await;
        let listener = says(State::Commit);
        let producer = producer(&cluster, &listener).await;
        let half = producer.send(message(), |_| async { State::Unknown }).await.unwrap().half;
        let record = cluster.broker.state().log[&(TOPIC.to_owned(), half.queue.queue_id)][0].clone();
        let question = CheckTransactionStateRequest {
            topic: Some("RMQ_SYS_TRANS_HALF_TOPIC".to_owned()),
            tran_state_table_offset: QueueOffset(77),
            commit_log_offset: PhysicalOffset(7_700),
            msg_id: Some(half.message_id.clone()),
            transaction_id: Some(half.message_id.clone()),
            offset_msg_id: None,
        };
        let question = Command::request(RequestCode::CheckTransactionState, &question);
        // One that cannot be read is passed over.
        cluster.broker.push(question.clone().with_body("x")).await;
        cluster.broker.push(question.with_body(record)).await;
        sleep(2 * SECOND).await;
        assert_eq!(listener.asked.lock().unwrap().len(), 1);
        let told = ends(&cluster.broker).pop().unwrap();
        assert_eq!((told.commit_or_rollback, told.from_transaction_check), (8, true));
        assert_eq!((told.tran_state_table_offset, told.commit_log_offset), (QueueOffset(77), PhysicalOffset(7_700)));
        assert_eq!(told.msg_id, half.message_id);
        producer.shutdown().await;
    });
}
