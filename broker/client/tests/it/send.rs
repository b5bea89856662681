//! The producer.
use crate::support::{Broker, Cluster, Mood, NameServer, SECOND, TOPIC, client, producer_config, run};
use client::{CallError, Fate, Producer, ProducerConfig, SendError, SendStatus, StartError};
use protocol::message::property;
use protocol::{Message, MessageQueue, RequestCode, ResponseCode, StoredMessage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn message(body: &str) -> Message {
    Message::new(TOPIC, body.to_owned())
}

async fn two_brokers() -> (Arc<NameServer>, Arc<Broker>, Arc<Broker>) {
    let name_server = NameServer::start(9876).await;
    let (a, b) = (Broker::start("a", 0, 10911).await, Broker::start("b", 0, 10912).await);
    name_server.route(TOPIC, 1, &[&a, &b]);
    (name_server, a, b)
}

#[test]
fn a_stored_message_has_its_place_and_its_key() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let mut queues = BTreeSet::new();
        for offset in 0..2 {
            for _ in 0..2 {
                let outcome = producer.send(message("x")).await.unwrap();
                assert_eq!((outcome.status, outcome.queue_offset.0), (SendStatus::Ok, offset));
                assert_eq!(outcome.message_id.len(), 32);
                assert!(outcome.attempts.is_empty());
                queues.insert(outcome.queue);
            }
        }
        assert_eq!(queues.len(), 2);
        let stored = StoredMessage::decode(&cluster.broker.state().log[&(TOPIC.into(), 0)][0]).unwrap();
        assert_eq!(stored.properties.get(property::WAIT_STORE_MSG_OK), Some("true"));
        producer.shutdown().await;
    });
}

#[test]
fn a_message_that_waits_for_its_moment_can_be_taken_back() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        assert_eq!(producer.send(message("at once")).await.unwrap().recall_handle, None);
        let later = message("later").with_property(property::TIMER_DELAY_SEC, "60");
        let outcome = producer.send(later).await.unwrap();
        let handle = outcome.recall_handle.unwrap();
        assert_eq!(producer.recall(TOPIC, &handle).await.unwrap(), outcome.message_id);
        assert!(matches!(producer.recall(TOPIC, "x").await, Err(CallError::RecallHandle)));
        cluster.broker.next_mood(RequestCode::RecallMessage, &[Mood::Refuse(ResponseCode::NoPermission)]);
        let refused = producer.recall(TOPIC, &handle).await.unwrap_err();
        assert_eq!(refused.code(), Some(ResponseCode::NoPermission));
    });
}

#[test]
fn a_weak_answer_is_an_answer() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let cases = [
            (ResponseCode::FlushDiskTimeout, SendStatus::FlushDiskTimeout),
            (ResponseCode::FlushSlaveTimeout, SendStatus::FlushSlaveTimeout),
            (ResponseCode::SlaveNotAvailable, SendStatus::SlaveNotAvailable),
        ];
        for (code, status) in cases {
            cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::ServeAs(code)]);
            let outcome = producer.send(message("x")).await.unwrap();
            assert_eq!((outcome.status, outcome.attempts.len()), (status, 0));
        }
        assert_eq!(cluster.broker.stored(TOPIC), 3);
    });
}

#[test]
fn an_answer_that_cannot_be_read_leaves_the_fate_unknown() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::Success)]);
        let outcome = producer.send(message("x")).await.unwrap();
        assert_eq!(outcome.attempts[0].fate(), Fate::Unknown);
    });
}

#[test]
fn a_refused_message_goes_to_another_broker() {
    run(|| async {
        let (name_server, a, b) = two_brokers().await;
        let producer = Producer::start(&client(&[&name_server], "p"), producer_config()).await.unwrap();
        for broker in [&a, &b] {
            broker.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::SystemBusy)]);
        }
        let outcome = producer.send(message("x")).await.unwrap();
        let fates: Vec<Fate> = outcome.attempts.iter().map(client::FailedAttempt::fate).collect();
        assert_eq!(fates, [Fate::NotStored, Fate::NotStored]);
        assert_ne!(outcome.attempts[0].queue.broker_name, outcome.attempts[1].queue.broker_name);
        assert_eq!(a.stored(TOPIC) + b.stored(TOPIC), 1);
    });
}

#[test]
fn a_silent_broker_leaves_the_fate_unknown_and_does_not_use_up_the_time() {
    run(|| async {
        let (name_server, a, b) = two_brokers().await;
        let producer = Producer::start(&client(&[&name_server], "p"), producer_config()).await.unwrap();
        a.next_mood(RequestCode::SendMessageV2, &[Mood::ServeSilently]);
        b.next_mood(RequestCode::SendMessageV2, &[Mood::ServeSilently]);
        // The first attempt is cut at 1.5 s, the second has the same cap and ends with the call.
        let error = producer.send(message("x")).await.unwrap_err();
        assert_eq!((error.fate(), error.attempts().len()), (Fate::Unknown, 2));
        assert!(matches!(&error, SendError::Failed(failure) if failure.out_of_time));
        assert_eq!((a.stored(TOPIC), b.stored(TOPIC)), (1, 1));
        // With one silent broker the other one gets it.
        a.next_mood(RequestCode::SendMessageV2, &[Mood::ServeSilently]);
        let mut unknown = 0;
        for _ in 0..2 {
            unknown += producer.send(message("y")).await.unwrap().attempts.len();
        }
        assert_eq!(unknown, 1);
    });
}

#[test]
fn all_copies_of_a_message_have_one_key() {
    run(|| async {
        let (name_server, a, b) = two_brokers().await;
        let producer = Producer::start(&client(&[&name_server], "p"), producer_config()).await.unwrap();
        a.next_mood(RequestCode::SendMessageV2, &[Mood::ServeSilently]);
        b.next_mood(RequestCode::SendMessageV2, &[Mood::ServeSilently]);
        producer.send(message("x")).await.unwrap_err();
        let key = |broker: &Broker| {
            let record = broker.state().log[&(TOPIC.into(), 0)][0].clone();
            StoredMessage::decode(&record).unwrap().message_id()
        };
        assert_eq!(key(&a), key(&b));
    });
}

#[test]
fn a_dead_cluster_certainly_has_no_copy() {
    run(|| async {
        let (name_server, a, b) = two_brokers().await;
        let producer = Producer::start(&client(&[&name_server], "p"), producer_config()).await.unwrap();
        producer.publish_queues(TOPIC).await.unwrap();
        a.down();
        b.down();
        let error = producer.send(message("x")).await.unwrap_err();
        assert_eq!((error.fate(), error.attempts().len()), (Fate::NotStored, 3));
    });
}

#[test]
fn a_code_that_says_nothing_of_another_broker_ends_the_call() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::MessageIllegal)]);
        let error = producer.send(message("x")).await.unwrap_err();
        assert_eq!((error.fate(), error.attempts().len()), (Fate::NotStored, 1));
    });
}

#[test]
fn a_chosen_queue_is_the_only_one_tried() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let queue = MessageQueue::new(TOPIC, "a", 1);
        let outcome = producer.send_to(message("x"), &queue).await.unwrap();
        assert_eq!(outcome.queue, queue);
        cluster.broker.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::SystemBusy)]);
        let error = producer.send_to(message("x"), &queue).await.unwrap_err();
        assert_eq!(error.attempts().len(), 1);
        let other = producer.send_to(Message::new("U", "x"), &queue).await.unwrap_err();
        assert!(matches!(other, SendError::Invalid(_)));
    });
}

#[test]
fn a_batch_is_stored_in_a_row() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let outcome = producer.send_batch(vec![message("a"), message("b"), message("c")]).await.unwrap();
        assert_eq!(outcome.message_id.split(',').count(), 3);
        let log = cluster.broker.state().log[&(TOPIC.into(), outcome.queue.queue_id)].clone();
        let keys: Vec<String> = log.iter().map(|record| StoredMessage::decode(record).unwrap().message_id()).collect();
        assert_eq!(keys.join(","), outcome.message_id);
    });
}

#[test]
fn a_oneway_message_arrives_without_an_answer() {
    run(|| async {
        let cluster = Cluster::start().await;
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        producer.send_oneway(message("x")).await.unwrap();
        rt::time::sleep(SECOND).await;
        assert_eq!(cluster.broker.stored(TOPIC), 1);
    });
}

#[test]
fn a_new_topic_gets_the_queues_of_the_template() {
    run(|| async {
        let cluster = Cluster::start().await;
        cluster.name_server.route("TBW102", 8, &[&cluster.broker]);
        let producer = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        assert_eq!(producer.publish_queues("new").await.unwrap().len(), 4);
        let outcome = producer.send(Message::new("new", "x")).await.unwrap();
        assert_eq!(outcome.queue.topic, "new");
    });
}

#[test]
fn without_name_servers_nothing_is_sent() {
    run(|| async {
        let name_server = NameServer::start(9876).await;
        name_server.down();
        let producer = Producer::start(&client(&[&name_server], "p"), producer_config()).await.unwrap();
        let error = producer.send(message("x")).await.unwrap_err();
        assert!(matches!(error, SendError::NoQueue { cause: Some(_), .. }));
        assert_eq!(error.fate(), Fate::NotStored);
    });
}

#[test]
fn a_slow_broker_is_avoided_for_a_while() {
    run(|| async {
        let (name_server, a, b) = two_brokers().await;
        let config = ProducerConfig { send_latency_enable: true, ..producer_config() };
        let producer = Producer::start(&client(&[&name_server], "p"), config).await.unwrap();
        a.next_mood(RequestCode::SendMessageV2, &[Mood::Refuse(ResponseCode::SystemBusy)]);
        for _ in 0..10 {
            producer.send(message("x")).await.unwrap();
        }
        assert_eq!(a.count(RequestCode::SendMessageV2), 1);
        rt::time::sleep(SECOND * 11).await;
        for _ in 0..4 {
            producer.send(message("x")).await.unwrap();
        }
        assert!(a.stored(TOPIC) > 0 && b.stored(TOPIC) > 9);
    });
}

#[test]
fn a_group_is_one_producer_and_brokers_hear_of_it() {
    run(|| async {
        let cluster = Cluster::start().await;
        let instance = cluster.client("p");
        let producer = Producer::start(&instance, producer_config()).await.unwrap();
        let second = Producer::start(&instance, producer_config()).await;
        assert!(matches!(second, Err(StartError::GroupInUse { .. })));
        producer.send(message("x")).await.unwrap();
        rt::time::sleep(Duration::from_secs(31)).await;
        assert!(cluster.broker.state().groups_seen.contains("p"));
        producer.shutdown().await;
        Producer::start(&instance, producer_config()).await.unwrap();
    });
}
