//! Clients while name servers and brokers come and go.
use crate::support::{
    Broker, Cluster, GROUP, NameServer, Recorder, SECOND, TOPIC, blank, client, consumer_config, producer_config, run,
    run_reaching, wait_until,
};
use client::{ClientInstance, MessageSelector, Producer, PushConsumer};
use protocol::message::retry_topic;
use protocol::{Message, RequestCode};
use std::sync::Arc;

async fn consumer(instance: &ClientInstance, recorder: &Arc<Recorder>) -> PushConsumer {
    let subscriptions = vec![(TOPIC.to_owned(), MessageSelector::all())];
    PushConsumer::start(instance, consumer_config(), subscriptions, Arc::clone(recorder) as _).await.unwrap()
}

fn fill(broker: &Arc<Broker>, count: usize) {
    for index in 0..count {
        broker.append(blank(TOPIC, 0, format!("{index}").into()));
    }
}

#[test]
fn a_dead_name_server_is_passed_over() {
    run(|| async {
        let (first, second) = (NameServer::start(9876).await, NameServer::start(9877).await);
        let broker = Broker::start("a", 0, 10911).await;
        second.route(TOPIC, 1, &[&broker]);
        first.down();
        let producer = Producer::start(&client(&[&first, &second], "p"), producer_config()).await.unwrap();
        producer.send(Message::new(TOPIC, "x")).await.unwrap();
    });
}

#[test]
fn a_name_server_that_knows_nothing_yet_is_passed_over() {
    run(|| async {
        let (first, second) = (NameServer::start(9876).await, NameServer::start(9877).await);
        let broker = Broker::start("a", 0, 10911).await;
        second.route(TOPIC, 1, &[&broker]);
        for name in ["p1", "p2", "p3"] {
            let producer = Producer::start(&client(&[&first, &second], name), producer_config()).await.unwrap();
            producer.send(Message::new(TOPIC, "x")).await.unwrap();
        }
    });
}

#[test]
fn a_removed_name_server_is_not_asked_again() {
    run(|| async {
        let (first, second) = (NameServer::start(9876).await, NameServer::start(9877).await);
        let (old, new) = (Broker::start("a", 0, 10911).await, Broker::start("a", 0, 10912).await);
        first.route(TOPIC, 1, &[&old]);
        second.route(TOPIC, 1, &[&new]);
        let instance = client(&[&first], "p");
        let producer = Producer::start(&instance, producer_config()).await.unwrap();
        producer.send(Message::new(TOPIC, "x")).await.unwrap();
        instance.update_name_servers(vec![second.addr.to_string()]);
        rt::time::sleep(SECOND * 31).await;
        producer.send(Message::new(TOPIC, "x")).await.unwrap();
        assert_eq!((old.stored(TOPIC), new.stored(TOPIC)), (1, 1));
    });
}

#[test]
fn a_restarted_broker_hears_of_its_members_before_the_next_heartbeat_is_due() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), &recorder).await;
        wait_until(|| consumer.assigned().len() == 3).await;
        cluster.broker.down();
        rt::time::sleep(SECOND * 3).await;
        assert_eq!(consumer.assigned().len(), 3);
        cluster.broker.up().await;
        fill(&cluster.broker, 1);
        let begun = rt::time::Instant::now();
        recorder.wait_for(1).await;
        assert!(begun.elapsed() < SECOND * 5, "{:?}", begun.elapsed());
        assert_eq!(consumer.assigned().len(), 3);
    });
}

#[test]
fn after_the_masters_return_it_has_at_least_the_clients_progress() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster.broker, 5);
        let recorder = Recorder::accepting();
        let _consumer = consumer(&cluster.client("c"), &recorder).await;
        recorder.wait_for(5).await;
        rt::time::sleep(SECOND * 6).await;
        cluster.broker.down();
        // The crash has cost the table of offsets.
        cluster.broker.state().offsets.clear();
        rt::time::sleep(SECOND * 20).await;
        cluster.broker.up().await;
        rt::time::sleep(SECOND * 36).await;
        assert_eq!(cluster.broker.committed(TOPIC, 0), Some(5));
        assert_eq!(recorder.all().len(), 5);
    });
}

#[test]
fn without_a_master_the_slave_is_read_and_takes_progress_but_not_by_pulls() {
    run(|| async {
        let cluster = Cluster::start().await;
        let slave = Broker::start("a", 1, 10921).await;
        let both = [&cluster.broker, &slave];
        cluster.name_server.route(TOPIC, 1, &both);
        cluster.name_server.route(&retry_topic(GROUP), 1, &both);
        fill(&cluster.broker, 3);
        fill(&slave, 6);
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), &recorder).await;
        recorder.wait_for(3).await;
        assert_eq!(slave.count(RequestCode::PullMessage), 0);
        cluster.broker.down();
        cluster.name_server.route(TOPIC, 1, &[&slave]);
        cluster.name_server.route(&retry_topic(GROUP), 1, &[&slave]);
        recorder.wait_for(6).await;
        wait_until(|| slave.committed(TOPIC, 0) == Some(6)).await;
        assert!(slave.state().commits_by_pull.is_empty());
        assert_eq!(consumer.assigned().len(), 2);
        assert_eq!(recorder.all().len(), 6);
    });
}

#[test]
fn a_suggested_slave_is_read_until_the_suggestion_ends() {
    run(|| async {
        let cluster = Cluster::start().await;
        let slave = Broker::start("a", 1, 10921).await;
        cluster.name_server.route(TOPIC, 1, &[&cluster.broker, &slave]);
        (cluster.broker.state().suggest, slave.state().suggest) = (1, 1);
        fill(&cluster.broker, 2);
        fill(&slave, 2);
        let recorder = Recorder::accepting();
        let _consumer = consumer(&cluster.client("c"), &recorder).await;
        recorder.wait_for(2).await;
        rt::time::sleep(SECOND * 10).await;
        assert!(slave.count(RequestCode::PullMessage) > 0);
        let before = cluster.broker.count(RequestCode::PullMessage);
        assert!(slave.state().commits_by_pull.is_empty());
        slave.state().suggest = 0;
        rt::time::sleep(SECOND * 20).await;
        assert!(cluster.broker.count(RequestCode::PullMessage) > before);
        assert!(cluster.broker.state().commits_by_pull.iter().all(|offset| *offset == 2));
        assert_eq!(recorder.all().len(), 2);
    });
}

#[test]
fn new_queues_are_taken_with_the_next_route() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), &recorder).await;
        wait_until(|| consumer.assigned().len() == 3).await;
        cluster.name_server.route(TOPIC, 4, &[&cluster.broker]);
        let begun = rt::time::Instant::now();
        wait_until(|| consumer.assigned().len() == 5).await;
        assert!(begun.elapsed() < SECOND * 32);
    });
}

#[test]
fn a_member_that_the_broker_has_forgotten_tells_it_before_it_gives_up() {
    run_reaching("client.rebalance.not_a_member", || async {
        let cluster = Cluster::start().await;
        let consumer = consumer(&cluster.client("c"), &Recorder::accepting()).await;
        wait_until(|| consumer.assigned().len() == 3).await;
        rt::time::sleep(SECOND * 2).await;
        let before = cluster.broker.count(RequestCode::HeartBeat);
        cluster.broker.state().members.clear();
        cluster.broker.state().members.entry(GROUP.into()).or_default().insert("10.0.0.1@other".into(), u64::MAX);
        wait_until(|| cluster.broker.state().members[GROUP].len() == 2).await;
        assert_eq!(cluster.broker.count(RequestCode::HeartBeat), before + 1);
        // Two members share now: it keeps its own part and gives up the other's only.
        wait_until(|| consumer.assigned().len() == 2).await;
    });
}
